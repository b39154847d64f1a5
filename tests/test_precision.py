"""Precision: a scope and not a flag; casts that take all numbers along and nothing else."""

from __future__ import annotations

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from unpinn import precision
from unpinn._errors import UserError

both = pytest.mark.parametrize("kind", ["float32", "float64"])


@both
def test_within_a_scope_numbers_have_its_type(kind):
    with precision.scope(kind):
        assert jnp.zeros(1).dtype == kind
        assert jnp.asarray(np.float64(1.0)).dtype == kind
        assert (jnp.ones(2, kind) * np.ones(2)).dtype == kind


def test_scopes_nest_and_end():
    with precision.scope("float64"):
        with precision.scope("float32"):
            assert jnp.zeros(1).dtype == "float32"
        assert jnp.zeros(1).dtype == "float64"
    assert jnp.zeros(1).dtype == "float32"


def test_a_failure_ends_the_scope():
    with pytest.raises(ZeroDivisionError), precision.scope("float64"):
        raise ZeroDivisionError
    assert jnp.zeros(1).dtype == "float32"


def test_no_global_flag_is_touched():
    seen = []
    with precision.scope("float64"):
        other = threading.Thread(target=lambda: seen.append(jnp.zeros(1).dtype.name))
        other.start()
        other.join()
    assert seen == ["float32"]
    assert not jax.config.jax_enable_x64


@pytest.mark.parametrize("name", ["float16", "double", "", "Float64"])
def test_other_precisions_are_refused(name):
    for function in (precision.check, lambda name: precision.cast({}, name)):
        with pytest.raises(UserError, match=f"precision '{name}' is not known; choose one of"):
            function(name)
    with pytest.raises(UserError, match="is not known"), precision.scope(name):
        pass


def test_the_precision_of_a_tree_is_its_widest_number_s():
    with precision.scope("float64"):
        wide, narrow = jnp.zeros(1), jnp.zeros(1, "float32")
    assert precision.of({"a": narrow, "b": (wide,)}) == "float64"
    assert precision.of({"a": narrow, "b": np.arange(3)}) == "float32"
    assert precision.of([np.zeros(2), narrow]) == "float64"
    assert precision.of({"key": jax.random.key(0), "a": narrow, "name": "x"}) == "float32"
    assert precision.of(()) == "float32"


@both
def test_a_cast_takes_every_number_and_nothing_else(kind):
    tree = {
        "jax": jnp.ones(2, "float32"),
        "numpy": np.ones(2),
        "count": jnp.arange(2, dtype="int32"),
        "flag": np.array([True]),
        "key": jax.random.key(0),
        "name": "tanh",
        "nothing": None,
    }
    with precision.scope("float64"):
        found = precision.cast(tree, kind)
    assert (found["jax"].dtype, found["numpy"].dtype) == (kind, kind)
    assert isinstance(found["numpy"], np.ndarray)
    assert (found["count"].dtype, found["flag"].dtype) == ("int32", "bool")
    assert found["key"] is tree["key"]
    assert (found["name"], found["nothing"]) == ("tanh", None)
    assert precision.of(found) == kind


def test_widening_and_narrowing_again_is_exact():
    numbers = np.random.default_rng(0).normal(size=100).astype("float32")
    with precision.scope("float64"):
        again = precision.cast(precision.cast(jnp.asarray(numbers), "float64"), "float32")
    np.testing.assert_array_equal(again, numbers)
