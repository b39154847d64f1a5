"""Files: written whole or not at all, read back as they were, refused in a sentence if damaged."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from unpinn import _files as files
from unpinn._errors import UserError


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


# -- whole or not at all ----------------------------------------------------------------------


def test_a_file_and_its_folders_are_made(tmp_path):
    target = tmp_path / "a" / "b" / "notes.txt"
    files.write_text(target, "größer")
    assert target.read_bytes() == "größer".encode()
    assert names(target.parent) == ["notes.txt"]


def test_a_file_is_replaced(tmp_path):
    target = tmp_path / "notes.txt"
    files.write_bytes(target, b"a long first version")
    files.write_bytes(target, b"second")
    assert target.read_bytes() == b"second"
    assert names(tmp_path) == ["notes.txt"]


def test_others_may_read_what_is_written(tmp_path):
    files.write_bytes(tmp_path / "notes.txt", b"")
    assert (tmp_path / "notes.txt").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("failing", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, failing, failure):
    target = tmp_path / "notes.txt"
    files.write_bytes(target, b"old")

    def fail(*_):
        raise failure

    monkeypatch.setattr(os, failing, fail)
    expected = UserError if isinstance(failure, OSError) else KeyboardInterrupt
    with pytest.raises(expected) as caught:
        files.write_bytes(target, b"new")
    if expected is UserError:
        assert str(caught.value) == f"cannot write {target}: no space left on device"
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["notes.txt"]


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write .*notes\.txt: "):
        files.write_text(tmp_path / "file" / "notes.txt", "")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match=r"cannot write .*folder: is a directory"):
        files.write_text(tmp_path / "folder", "")
    assert names(tmp_path) == ["file", "folder"]


# -- JSON -------------------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False,
    allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip


@given(content=json_values)
def test_json_reads_back(tmp_path_factory, content):
    target = tmp_path_factory.getbasetemp() / "content.json"
    files.write_json(target, content)
    assert files.read_json(target) == content


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float64(0.5), 0.5),
        (np.int32(3), 3),
        (np.bool_(True), True),
        (jnp.float32(0.5), 0.5),
        (np.arange(4).reshape(2, 2), [[0, 1], [2, 3]]),
        (jnp.array([1.0, jnp.nan, -jnp.inf]), [1.0, None, None]),
        (math.nan, None),
        ([math.inf, 1.0], [None, 1.0]),
        ((1, (2, 3)), [1, [2, 3]]),
        ({1: {"a": np.float32(2)}}, {"1": {"a": 2.0}}),
        ({"a"}, ["a"]),
        (Path("runs") / "one", str(Path("runs") / "one")),
        (True, True),
        (None, None),
        (np.str_("name"), "name"),
    ],
    ids=repr,
)
def test_values_become_plain(tmp_path, value, expected):
    assert files.plain(value) == expected
    files.write_json(tmp_path / "value.json", value)
    assert json.loads((tmp_path / "value.json").read_text()) == expected


def test_json_that_cannot_be_read_is_told(tmp_path):
    with pytest.raises(UserError, match=r"cannot read .*none\.json: no such file or directory"):
        files.read_json(tmp_path / "none.json")
    with pytest.raises(UserError, match=r"cannot read .*: is a directory"):
        files.read_json(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b'{"a": 1', b"\xff\xfe", b"[" * 100_000])
def test_damaged_json_is_told(tmp_path, content):
    (tmp_path / "damaged.json").write_bytes(content)
    with pytest.raises(UserError, match=r"damaged\.json is not valid JSON .*it may be damaged"):
        files.read_json(tmp_path / "damaged.json")


# -- arrays -----------------------------------------------------------------------------------

arrays = npst.arrays(
    st.sampled_from(["float32", "float64", "int32", "int64", "uint8", "bool"]),
    npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)


@given(content=st.dictionaries(st.text("abc./", min_size=1, max_size=5), arrays, max_size=3))
def test_arrays_read_back_bit_by_bit(tmp_path_factory, content):
    target = tmp_path_factory.getbasetemp() / "content.safetensors"
    files.write_arrays(target, content)
    found, about = files.read_arrays(target)
    assert about is None
    assert found.keys() == content.keys()
    for name, array in content.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()


@pytest.mark.parametrize(
    "array",
    [
        np.float32(3.0),
        jnp.float32(3.0),
        np.arange(12.0).reshape(3, 4).T,
        np.arange(12.0)[::-2],
        np.broadcast_to(np.float32(2.0), (2, 3)),
        np.arange(3, dtype=">f8"),
        [1.0, 2.0],
    ],
    ids=["number", "number of JAX", "transposed", "strided", "broadcast", "foreign bytes", "list"],
)
def test_arrays_of_any_layout_keep_shape_and_values(tmp_path, array):
    files.write_arrays(tmp_path / "a.safetensors", {"a": array})
    found = files.read_arrays(tmp_path / "a.safetensors")[0]["a"]
    assert found.shape == np.shape(array)
    np.testing.assert_array_equal(found, array)


def test_what_is_said_about_arrays_reads_back(tmp_path):
    about = {"names": ["a", "b"], "seed": 3, "share": 0.1, "nothing": None}
    files.write_arrays(tmp_path / "a.safetensors", {}, about)
    assert files.read_arrays(tmp_path / "a.safetensors") == ({}, about)


def test_a_file_cut_short_anywhere_is_told(tmp_path):
    target = tmp_path / "a.safetensors"
    files.write_arrays(target, {"a": np.arange(20.0)}, {"seed": 3})
    whole = target.read_bytes()
    for length in range(0, len(whole), 7):
        target.write_bytes(whole[:length])
        with pytest.raises(UserError, match=r"a\.safetensors"):
            files.read_arrays(target)


@pytest.mark.parametrize("content", [b"", b"\x00" * 64, b"not arrays at all", b'{"a": 1}'])
def test_another_file_is_told(tmp_path, content):
    (tmp_path / "a.safetensors").write_bytes(content)
    with pytest.raises(UserError, match="is not a readable safetensors file"):
        files.read_arrays(tmp_path / "a.safetensors")


def test_arrays_that_are_not_there_are_told(tmp_path):
    with pytest.raises(UserError, match=r"cannot read .*none\.safetensors: no such file"):
        files.read_arrays(tmp_path / "none.safetensors")
    with pytest.raises(UserError, match="cannot read"):
        files.read_arrays(tmp_path)


def test_arrays_that_cannot_be_written_are_told(tmp_path):
    with pytest.raises(UserError, match=r"cannot write .*a\.safetensors: .*object"):
        files.write_arrays(tmp_path / "a.safetensors", {"a": np.array([None])})
    assert names(tmp_path) == []
