"""Limited-memory BFGS: minima, Wolfe conditions, restarts, rounding and failures."""

import functools
import io

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from unpinn import precision
from unpinn.training import _lbfgs
from unpinn.training._lbfgs import (
    CHANGE_SMALL,
    GRADIENT_SMALL,
    NOT_FINITE,
    REASONS,
    RUNNING,
    SEARCH_FAILED,
    LbfgsState,
    advance,
    initialise,
)


def with_terms(*functions):
    """The sum of some functions of x as ((value, terms), gradient)."""

    def objective(x):
        terms = jnp.stack([function(x) for function in functions])
        return terms.sum(), terms

    return jax.value_and_grad(objective, has_aux=True)


rosenbrock = with_terms(
    lambda x: 100 * jnp.sum((x[1:] - x[:-1] ** 2) ** 2), lambda x: jnp.sum((1 - x[:-1]) ** 2)
)


@functools.cache
def quadratic(size, condition):
    """sum_i c_i (x_i - 1)^2 / 2 with c from 1 to `condition`."""
    weights = np.logspace(0, np.log10(condition), size)
    return with_terms(lambda x: jnp.sum(jnp.asarray(weights, x.dtype) * (x - 1) ** 2) / 2)


OBJECTIVES = {
    "rosenbrock": (rosenbrock, np.full(100, -1.2)),
    "quadratic": (quadratic(200, 1e4), np.zeros(200)),
    "quartic": (with_terms(lambda x: jnp.sum((x - 1) ** 4 + x**2)), np.full(30, 5.0)),
}
every_objective = pytest.mark.parametrize("name", OBJECTIVES)


# Compiling is what takes time here: tests share what they can, hence the common defaults.
@functools.cache
def starter(value_and_gradient, history=20):
    """`initialise`, compiled."""
    return jax.jit(functools.partial(initialise, value_and_gradient, history=history))


@functools.cache
def solver(value_and_gradient, length=2000, **options):
    """`advance`, compiled."""
    return jax.jit(functools.partial(advance, value_and_gradient, length=length, **options))


def run(value_and_gradient, x, iterations, *, dtype="float64", history=20, length=2000, **options):
    """Run in one call from a start; what comes back are NumPy's arrays."""
    with precision.scope(dtype):
        state = starter(value_and_gradient, history)(jnp.asarray(x, dtype))
        result = solver(value_and_gradient, length, **options)(state, iterations)
        return jax.tree.map(np.asarray, result)


def bits(tree):
    """Every leaf's type, shape and bytes."""
    arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]
    return [(array.dtype, array.shape, array.tobytes()) for array in arrays]


@every_objective
def test_reaches_the_minimum_that_scipy_finds(name):
    value_and_gradient, start = OBJECTIVES[name]
    state, _ = run(value_and_gradient, start, 2000)
    assert int(state.status) == GRADIENT_SMALL
    with precision.scope("float64"):
        compiled = jax.jit(value_and_gradient)

        def evaluate(x):
            (value, _), gradient = compiled(x)
            return float(value), np.asarray(gradient)

        reference = scipy.optimize.minimize(
            evaluate, start, jac=True, method="L-BFGS-B",
            options={"maxcor": 20, "maxiter": 2000, "ftol": 0, "gtol": 1e-8},
        )  # fmt: skip
    assert float(state.value) <= reference.fun + 1e-12
    np.testing.assert_allclose(state.x, reference.x, atol=1e-6)
    # One that wasted evaluations or directions would need many more than the reference.
    assert int(state.evaluations) <= 1.15 * reference.nfev


@every_objective
def test_accepted_steps_satisfy_the_strong_wolfe_conditions(name):
    value_and_gradient, start = OBJECTIVES[name]
    with precision.scope("float64"):
        state = starter(value_and_gradient)(jnp.asarray(start))
        one = solver(value_and_gradient)
        for _ in range(60):
            before, (state, record) = state, one(state, 1)
            if int(state.status) != RUNNING:
                break
            moved = np.asarray(state.x - before.x)
            slope, slope_after = before.gradient @ moved, state.gradient @ moved
            assert slope < 0
            assert state.value <= before.value + 1e-4 * slope + 1e-14 * abs(before.value)
            assert abs(slope_after) <= 0.9 * abs(slope) * (1 + 1e-9)
            assert float(record.step[0]) > 0
    assert int(state.iteration) > 10


@pytest.mark.parametrize("stored", [0, 1, 6, 7, 17])
def test_the_direction_is_that_of_the_two_loop_recursion(stored):
    history = 7
    with precision.scope("float64"):
        state = starter(rosenbrock, history)(jnp.full(100, -1.2))
        pairs = []
        for _ in range(stored):
            before, (state, _) = state, solver(rosenbrock, 40)(state, 1)
            pairs.append(np.asarray([state.x - before.x, state.gradient - before.gradient]))
        direction, slope, _, count = (np.asarray(part) for part in _lbfgs._direction(state))
        state = jax.tree.map(np.asarray, state)

    assert int(count) == min(stored, history)
    remaining, factors = state.gradient, []
    for step, difference in reversed(pairs[-history:]):
        factors.append(step @ remaining / (step @ difference))
        remaining = remaining - factors[-1] * difference
    if pairs:
        step, difference = pairs[-1]
        remaining = remaining * (step @ difference) / (difference @ difference)
    for (step, difference), factor in zip(pairs[-history:], reversed(factors), strict=True):
        remaining = remaining + step * (factor - difference @ remaining / (step @ difference))
    # The pairs are stored in float32, so the two agree to its rounding.
    np.testing.assert_allclose(direction, -remaining, rtol=0, atol=2e-6 * abs(remaining).max())
    np.testing.assert_allclose(slope, state.gradient @ direction, rtol=1e-12)


def test_the_first_trial_step_is_one_in_length_or_shorter():
    with precision.scope("float64"):
        steep = starter(rosenbrock)(jnp.full(100, 3.0))
        gentle = starter(quadratic(100, 2.0))(jnp.full(100, 1.001))
        direction, _, step, _ = _lbfgs._direction(steep)
        np.testing.assert_allclose(np.linalg.norm(step * direction), 1, rtol=1e-12)
        direction, _, step, _ = _lbfgs._direction(gentle)
        assert float(step) == 1
        np.testing.assert_array_equal(direction, -gentle.gradient)


@pytest.mark.parametrize("outside", [np.nan, np.inf])
def test_backs_out_of_a_region_where_the_objective_is_not_finite(outside):
    # The barrier's minimum is at 0.01; the first trial step from 0.05 lands far beyond it.
    barrier = with_terms(
        lambda x: jnp.sum(jnp.where(x > 0, x - 0.01 * jnp.log(jnp.where(x > 0, x, 1)), outside))
    )
    state, record = run(barrier, np.full(7, 0.05), 200)
    assert int(state.status) == GRADIENT_SMALL
    assert int(record.evaluations[0]) > 1
    np.testing.assert_allclose(state.x, 0.01, rtol=1e-6)
    assert np.isfinite(record.value[: int(state.iteration)]).all()


def test_a_gradient_that_is_not_finite_is_no_better_than_such_a_value():
    # sqrt has value 0 and an infinite slope at the edge, exactly where the first trial lands.
    edge = with_terms(lambda x: jnp.sum(jnp.sqrt(jnp.maximum(x, 0)) + x))
    state, _ = run(edge, [1.5], 1)
    assert np.isfinite(state.gradient).all()
    assert 0 < float(state.x[0]) < 1.5


def test_a_start_that_is_not_finite_is_said_to_be_so():
    state, record = run(with_terms(lambda x: jnp.sum(jnp.log(x))), [-1.0, 2.0], 5)
    assert int(state.status) == NOT_FINITE
    assert int(state.iteration) == 0
    assert np.isnan(record.value).all()


def saved_and_restored(state):
    """What a state is after a trip through a file."""
    file = io.BytesIO()
    np.savez(file, **{name: np.asarray(array) for name, array in state._asdict().items()})
    file.seek(0)
    with np.load(file) as stored:
        return LbfgsState(**{name: jnp.asarray(stored[name]) for name in LbfgsState._fields})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_restored_run_ends_bitwise_as_one_that_was_not_interrupted(dtype):
    with precision.scope(dtype):
        solve = solver(rosenbrock, 40)
        start = starter(rosenbrock, 7)(jnp.full(100, -1.2, dtype))
        whole, whole_record = solve(start, 40)
        # 13 is beyond the history and no multiple of it: the ring of slots is cut mid-way.
        part, first_record = solve(start, 13)
        kept_on, _ = solve(part, 27)
        restored, last_record = solve(saved_and_restored(part), 27)
        assert bits(kept_on) == bits(restored) == bits(whole)
        for all_rows, first, last in zip(whole_record, first_record, last_record, strict=True):
            assert bits(jnp.concatenate([first[:13], last[:27]])) == bits(all_rows)


def test_the_record_holds_every_iteration_and_nothing_else():
    state, record = run(rosenbrock, np.full(100, -1.2), 9, history=7, length=40)
    assert int(state.iteration) == 9
    assert int(state.evaluations) == 1 + int(record.evaluations.sum())
    np.testing.assert_allclose(record.terms[:9].sum(axis=1), record.value[:9], rtol=1e-14)
    np.testing.assert_array_equal(record.terms[8], state.terms)
    assert (np.diff(record.value[:9]) < 0).all()
    assert np.isnan(record.value[9:]).all() and np.isnan(record.terms[9:]).all()
    assert (np.asarray(record.evaluations[9:]) == 0).all()


def test_iterations_are_traced_and_cut_to_the_length():
    with precision.scope("float64"):
        state = starter(rosenbrock, 7)(jnp.full(100, -1.2))
        solve = solver(rosenbrock, 40)
        solve(state, 1)
        compilations = solve._cache_size()
        reached = [int(solve(state, count)[0].iteration) for count in (0, 1, 39, 40, 50)]
        assert solve._cache_size() == compilations
    assert reached == [0, 1, 39, 40, 40]


@every_objective
def test_works_in_float32(name):
    value_and_gradient, start = OBJECTIVES[name]
    exact, _ = run(value_and_gradient, start, 2000)
    state, _ = run(value_and_gradient, start, 2000, dtype="float32", gradient_tolerance=1e-3)
    assert {np.asarray(leaf).dtype for leaf in state} == {np.dtype("float32"), np.dtype("int32")}
    np.testing.assert_allclose(state.x, exact.x, atol=2e-3)


def test_float32_survives_pairs_of_very_different_size():
    # Curvature 1e8: s.y is far below |y|^2, which must not be taken for lack of curvature.
    steep = with_terms(lambda x: 1e8 * jnp.sum((x - 1) ** 2 * jnp.linspace(1, 10, 50)))
    state, _ = run(steep, np.zeros(50), 60, dtype="float32", gradient_tolerance=1e3)
    assert int(state.stored) > 5
    np.testing.assert_allclose(state.x, 1, atol=1e-5)


def test_a_pair_without_positive_curvature_is_not_stored():
    # On the way down from the crest of a cosine the slope grows: s.y < 0.
    cosine = with_terms(lambda x: jnp.sum(jnp.cos(x)))
    state, _ = run(cosine, [0.5], 1, maximum_line_search=1)
    assert int(state.iteration) == 1
    assert float(state.x[0]) > 0.5
    assert int(state.stored) == int(state.position) == 0
    assert not np.asarray(state.pairs).any() and not np.asarray(state.cross).any()
    # With trials enough to satisfy the curvature condition, the pair is good and stored.
    state, _ = run(cosine, [0.5], 1)
    assert int(state.stored) == 1


def test_a_skipped_pair_leaves_a_full_memory_as_it_was():
    state, _ = run(rosenbrock, np.full(100, -1.2), 9, history=7, length=40)
    assert int(state.stored) == 7
    with precision.scope("float64"):
        state = jax.tree.map(jnp.asarray, state)
        # A step along the gradient on which the gradient shrinks: s.y < 0.
        found = _lbfgs._Search(
            low=_lbfgs._LinePoint(jnp.ones(()), state.value - 1, jnp.zeros(())),
            high=_lbfgs._LinePoint(jnp.ones(()), state.value, jnp.zeros(())),
            x=state.x + state.gradient,
            gradient=state.gradient / 2,
            terms=state.terms,
            next_step=jnp.ones(()),
            trials=jnp.ones((), jnp.int32),
            ended=jnp.ones((), bool),
        )
        after = _lbfgs._remember(state, found)
    for name in ("pairs", "norms", "cross", "square", "stored", "position"):
        assert bits(getattr(after, name)) == bits(getattr(state, name))
    np.testing.assert_array_equal(after.x, found.x)


def lying(x):
    """A quadratic whose gradient points the wrong way once x[0] exceeds 1."""
    weights = jnp.arange(1, x.size + 1)
    value, gradient = jnp.sum((x - 3) ** 2 * weights), 2 * (x - 3) * weights
    return (value, value[None]), jnp.where(x[0] > 1, -gradient, gradient)


def test_a_failed_search_empties_the_memory_then_ends_the_run():
    state, record = run(lying, np.zeros(3), 100)
    assert int(state.status) == SEARCH_FAILED
    assert REASONS[int(state.status)] == "line search failed"
    assert int(state.iteration) > 1 and int(state.stored) == 0
    assert float(state.x[0]) > 1
    rows = int(state.iteration)
    assert np.isfinite(record.value[:rows]).all() and np.isnan(record.value[rows:]).all()
    # Both failed searches, with and without memory, are counted beside the successful ones.
    assert int(state.evaluations) > 1 + int(record.evaluations[:rows].sum())


def test_a_direction_that_does_not_descend_gives_way_to_steepest_descent():
    value_and_gradient, start = OBJECTIVES["quadratic"]
    state, _ = run(value_and_gradient, start, 25)
    assert int(state.stored) == 20
    with precision.scope("float64"):
        # With curvatures of the wrong sign the direction is not one of descent any more.
        spoiled = jax.tree.map(jnp.asarray, state._replace(cross=-state.cross))
        after, record = solver(value_and_gradient)(spoiled, 1)
    assert int(after.stored) == 1
    assert float(after.value) < float(state.value)
    assert float(record.step[0]) < 1


def test_stops_when_the_relative_change_is_small():
    state, record = run(*OBJECTIVES["quartic"], 500, change_tolerance=1e-3)
    assert int(state.status) == CHANGE_SMALL
    values = np.asarray(record.value[: int(state.iteration)])
    change = -np.diff(values) / values[:-1]
    assert change[-1] <= 1e-3
    assert (change[:-1] > 1e-3).all()


def test_a_state_that_has_stopped_is_returned_as_it_came():
    value_and_gradient, start = OBJECTIVES["quadratic"]
    state, _ = run(value_and_gradient, start, 2000)
    assert int(state.status) == GRADIENT_SMALL
    with precision.scope("float64"):
        again, record = solver(value_and_gradient)(jax.tree.map(jnp.asarray, state), 10)
        assert bits(again) == bits(state)
        assert np.isnan(record.value).all()


def test_a_start_at_the_minimum_stops_without_a_step():
    value_and_gradient, start = OBJECTIVES["quadratic"]
    state, _ = run(value_and_gradient, np.ones_like(start), 10)
    assert int(state.status) == GRADIENT_SMALL
    assert int(state.evaluations) == 1 and int(state.iteration) == 0


def test_every_status_has_a_sentence():
    assert set(REASONS) == {RUNNING, GRADIENT_SMALL, CHANGE_SMALL, SEARCH_FAILED, NOT_FINITE}
    assert len(set(REASONS.values())) == len(REASONS)


def test_the_pairs_are_updated_in_place():
    size, history = 5000, 20
    with precision.scope("float64"):
        state = initialise(quadratic(size, 10.0), jnp.zeros(size), history)
        solve = functools.partial(advance, quadratic(size, 10.0), length=5)
        compiled = jax.jit(solve, donate_argnums=0).lower(state, 5).compile()
    # One copy of the pairs, were any made, would alone be larger than all that is allotted.
    assert compiled.memory_analysis().temp_size_in_bytes < state.pairs.nbytes
