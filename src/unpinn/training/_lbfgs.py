"""Limited-memory BFGS on a flat vector, wholly inside one compiled loop.

Two pure functions and a visible state: `initialise` evaluates the start, `advance` runs a number of
iterations. What must survive a restart is in `LbfgsState`, arrays only.

The direction uses the compact form of the inverse Hessian (Byrd, Nocedal and Schnabel 1994). With
the steps S and the gradient differences Y as rows, R the upper triangle of S Y^T, D its diagonal
and gamma = s.y / y.y of the newest pair,

    H g = gamma g + S^T p - gamma Y^T r,   R r = S g,   R^T p = (D + gamma Y Y^T) r - gamma Y g.

S Y^T and Y Y^T are kept and gain one column an iteration, so that long vectors are met in three
matrix-vector products instead of two hundred short operations. These products wait for memory, so
the pairs are stored in float32, as unit vectors with their norms beside. Only the direction feels
it, by a rounding of float32 or so; point, gradient and line search keep the type of x.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.linalg import solve_triangular

RUNNING, GRADIENT_SMALL, CHANGE_SMALL, SEARCH_FAILED, NOT_FINITE = range(5)

REASONS = {
    RUNNING: "the iterations asked for were used up",
    GRADIENT_SMALL: "the largest gradient component fell to the gradient tolerance",
    CHANGE_SMALL: "the relative change of the objective fell to the change tolerance",
    SEARCH_FAILED: "line search failed",
    NOT_FINITE: "the objective or its gradient is not finite",
}

SUFFICIENT_DECREASE = 1e-4
CURVATURE = 0.9

ValueAndGradient = Callable[[jax.Array], tuple[tuple[jax.Array, jax.Array], jax.Array]]


class LbfgsState(NamedTuple):
    """Everything a run needs to go on: arrays only, to be saved and restored bit for bit."""

    x: jax.Array
    value: jax.Array
    gradient: jax.Array
    terms: jax.Array  # what the objective returned beside its value
    pairs: jax.Array  # (history, 2, n) float32: slots, each a step and a gradient difference / norm
    norms: jax.Array  # (history, 2): what the pairs were divided by
    cross: jax.Array  # (history, history): s_i . y_j, right wherever i is not newer than j
    square: jax.Array  # (history, history): y_i . y_j
    stored: jax.Array  # how many slots hold a pair in use
    position: jax.Array  # the slot that the next pair will take
    iteration: jax.Array
    evaluations: jax.Array
    status: jax.Array  # a key of REASONS


class LbfgsRecord(NamedTuple):
    """What happened at each iteration of one `advance`; rows not reached hold nan (counts: 0)."""

    terms: jax.Array  # (length, terms)
    value: jax.Array
    step: jax.Array  # the accepted multiple of the quasi-Newton direction
    evaluations: jax.Array  # of the objective, in this iteration's line search


def initialise(value_and_gradient: ValueAndGradient, x: jax.Array, history: int = 50) -> LbfgsState:
    """Evaluate the start and return a state with an empty memory.

    Arguments:
        value_and_gradient: maps x to `((value, terms), gradient)`, as `jax.value_and_grad` of a
            function with an auxiliary vector does.
        x: the starting vector; its type decides the precision of everything.
        history: how many pairs are remembered.
    """
    (value, terms), gradient = value_and_gradient(x)
    finite = jnp.isfinite(value) & jnp.isfinite(gradient).all()
    # Each count is an array of its own: a buffer given away (donated) may be given only once.
    return LbfgsState(
        x=x,
        value=value,
        gradient=gradient,
        terms=terms,
        pairs=jnp.zeros((history, 2, x.size), jnp.float32),
        norms=jnp.zeros((history, 2), x.dtype),
        cross=jnp.zeros((history, history), x.dtype),
        square=jnp.zeros((history, history), x.dtype),
        stored=jnp.zeros((), jnp.int32),
        position=jnp.zeros((), jnp.int32),
        iteration=jnp.zeros((), jnp.int32),
        evaluations=jnp.ones((), jnp.int32),
        status=jnp.where(finite, RUNNING, NOT_FINITE).astype(jnp.int32),
    )


def advance(
    value_and_gradient: ValueAndGradient,
    state: LbfgsState,
    iterations: jax.Array | int,
    *,
    length: int,
    gradient_tolerance: float = 1e-8,
    change_tolerance: float = 0.0,
    maximum_line_search: int = 25,
) -> tuple[LbfgsState, LbfgsRecord]:
    """Run up to `iterations` more iterations of L-BFGS with a strong-Wolfe line search.

    Meant to be compiled by the caller, with the state donated. A line search that fails empties the
    memory; one that fails from an empty memory ends the run. `REASONS[int(state.status)]` says why
    a run stopped; a state that has stopped is returned as it came.

    Arguments:
        value_and_gradient: as in `initialise`.
        state: where to go on from.
        iterations: how many at most; may be traced, and is cut to `length`.
        length: the number of rows of the record (static).
        gradient_tolerance: stop when no component of the gradient is larger.
        change_tolerance: stop when an iteration lowers the value by no more than this fraction.
        maximum_line_search: evaluations allowed in one line search.

    >>> def objective(x):
    ...     terms = x * x * jnp.array([1.0, 10.0])
    ...     return terms.sum(), terms
    >>> value_and_gradient = jax.value_and_grad(objective, has_aux=True)
    >>> state = initialise(value_and_gradient, jnp.array([3.0, -2.0]), history=5)
    >>> state, record = advance(value_and_gradient, state, 20, length=20)
    >>> bool(state.value < 1e-12), REASONS[int(state.status)]
    (True, 'the largest gradient component fell to the gradient tolerance')
    """
    limit = jnp.minimum(iterations, length)
    dtype = state.value.dtype
    record = LbfgsRecord(
        terms=jnp.full((length, *state.terms.shape), jnp.nan, state.terms.dtype),
        value=jnp.full(length, jnp.nan, dtype),
        step=jnp.full(length, jnp.nan, dtype),
        evaluations=jnp.zeros(length, jnp.int32),
    )

    def going(carry):
        state, _, done = carry
        return (state.status == RUNNING) & (done < limit)

    def iterate(carry):
        state, record, done = carry
        direction, slope, first_step, stored = _direction(state)
        found = _search_line(
            value_and_gradient, state, direction, slope, first_step, maximum_line_search
        )
        moved = found.low.step > 0
        small_change = state.value - found.low.value <= change_tolerance * jnp.abs(state.value)
        status = jnp.where(small_change, CHANGE_SMALL, RUNNING)
        status = jnp.where(_flat(found.gradient, gradient_tolerance), GRADIENT_SMALL, status)
        # An empty memory means that the failed direction was steepest descent already.
        failed = jnp.where(stored == 0, SEARCH_FAILED, RUNNING)
        state = _remember(state._replace(stored=jnp.where(moved, stored, 0)), found)
        state = state._replace(
            iteration=state.iteration + moved,
            status=jnp.where(moved, status, failed).astype(jnp.int32),
        )
        row = LbfgsRecord(found.terms, found.low.value, found.low.step, found.trials)
        record = jax.tree.map(
            lambda rows, new: rows.at[done].set(jnp.where(moved, new, rows[done])), record, row
        )
        return state, record, done + moved

    arrived = (state.status == RUNNING) & _flat(state.gradient, gradient_tolerance)
    state = state._replace(status=jnp.where(arrived, GRADIENT_SMALL, state.status))
    state, record, _ = lax.while_loop(going, iterate, (state, record, jnp.zeros((), jnp.int32)))
    return state, record


def _flat(gradient, tolerance):
    return jnp.abs(gradient).max() <= tolerance


def _direction(state: LbfgsState):
    """Return the search direction, its slope, the first step to try and the pairs it rests on.

    Without pairs, or where rounding has spoiled the direction, it is steepest descent.
    """
    history = state.cross.shape[0]
    # Oldest slot first; of these the last `stored` are in use.
    order = (state.position + jnp.arange(history)) % history
    used = jnp.arange(history) >= history - state.stored
    both = used[:, None] & used
    cross = jnp.where(both, jnp.triu(state.cross[order][:, order]), 0)
    square = jnp.where(both, state.square[order][:, order], 0)
    diagonal = jnp.diagonal(cross)
    upper = cross + jnp.diag(jnp.where(used, 0, 1).astype(cross.dtype))
    gamma = jnp.where(state.stored > 0, diagonal[-1] / square[-1, -1], 1)

    products = _products(state, state.gradient)[order]
    along_steps, along_differences = jnp.where(used, products.T, 0)
    r = solve_triangular(upper, along_steps)
    right = diagonal * r + gamma * (square @ r) - gamma * along_differences
    p = solve_triangular(upper, right, trans=1)
    weights = jnp.zeros((history, 2), p.dtype).at[order].set(jnp.stack([-p, gamma * r], axis=1))
    direction = _combination(state, weights) - gamma * state.gradient

    slope = direction @ state.gradient
    usable = (state.stored > 0) & (slope < 0)
    direction = jnp.where(usable, direction, -state.gradient)
    slope = jnp.where(usable, slope, -(state.gradient @ state.gradient))
    first_step = jnp.where(usable, 1, jnp.minimum(1, 1 / jnp.linalg.norm(state.gradient)))
    return direction, slope, first_step, jnp.where(usable, state.stored, 0)


def _remember(state: LbfgsState, found: _Search) -> LbfgsState:
    """Move to the point found and store the pair, unless its curvature is not clearly positive."""
    history = state.cross.shape[0]
    pair = jnp.stack([found.x - state.x, found.gradient - state.gradient])
    norms = jnp.linalg.norm(pair, axis=1)
    curvature = pair[0] @ pair[1]
    slot = state.position
    products = _products(state, pair[1]).at[slot].set(jnp.stack([curvature, norms[1] ** 2]))
    # Asking that all products be finite also makes the update below wait for the last reading of
    # the pairs: only then, and without a branch, does the compiler update them in place.
    keep = (curvature > jnp.finfo(norms.dtype).eps * norms.prod()) & jnp.isfinite(products).all()
    unit_pair = (pair / norms[:, None]).astype(state.pairs.dtype)
    column = jnp.where(keep, products[:, 0], state.cross[:, slot])
    overlap = jnp.where(keep, products[:, 1], state.square[slot])
    return state._replace(
        x=found.x,
        value=found.low.value,
        gradient=found.gradient,
        terms=found.terms,
        pairs=state.pairs.at[slot].set(jnp.where(keep, unit_pair, state.pairs[slot])),
        norms=state.norms.at[slot].set(jnp.where(keep, norms, state.norms[slot])),
        cross=state.cross.at[:, slot].set(column),
        square=state.square.at[slot].set(overlap).at[:, slot].set(overlap),
        stored=jnp.minimum(state.stored + keep, history),
        position=(slot + keep) % history,
        evaluations=state.evaluations + found.trials,
    )


def _products(state: LbfgsState, vector: jax.Array) -> jax.Array:
    """Return the inner products of all pairs with a vector, (history, 2)."""
    norm = jnp.linalg.norm(vector)
    rows = state.pairs.reshape(state.norms.size, -1)
    products = rows @ (vector / norm).astype(rows.dtype)
    return products.reshape(state.norms.shape).astype(vector.dtype) * (norm * state.norms)


def _combination(state: LbfgsState, weights: jax.Array) -> jax.Array:
    """Return the sum of all pairs, each times its weight, (history, 2)."""
    weights = weights * state.norms
    largest = jnp.maximum(jnp.abs(weights).max(), jnp.finfo(weights.dtype).tiny)
    rows = state.pairs.reshape(weights.size, -1)
    total = (weights / largest).reshape(-1).astype(rows.dtype) @ rows
    return total.astype(weights.dtype) * largest


class _LinePoint(NamedTuple):
    step: jax.Array
    value: jax.Array
    slope: jax.Array


class _Search(NamedTuple):
    """A line search under way: the wanted step lies between `low` and `high`.

    `low` has the least value among the points with sufficient decrease, and x, gradient and terms
    are its own, so whatever ends the search leaves the best point at hand. `high.step` is infinite
    until the interval is closed.
    """

    low: _LinePoint
    high: _LinePoint
    x: jax.Array
    gradient: jax.Array
    terms: jax.Array
    next_step: jax.Array
    trials: jax.Array
    ended: jax.Array


def _search_line(value_and_gradient, state, direction, slope, first_step, maximum) -> _Search:
    """Find a strong-Wolfe step (bracketing and zooming, Nocedal and Wright, algorithms 3.5, 3.6).

    A trial where the objective is not finite only closes the interval from above.
    """
    start = _LinePoint(jnp.zeros_like(slope), state.value, slope)
    smallest_change = jnp.finfo(slope.dtype).eps * jnp.abs(state.value)

    def try_step(search: _Search) -> _Search:
        low, high, step = search.low, search.high, search.next_step
        x = state.x + step * direction
        (value, terms), gradient = value_and_gradient(x)
        trial = _LinePoint(step, value, gradient @ direction)
        finite = jnp.isfinite(value) & jnp.isfinite(gradient).all()
        decreased = value <= start.value + SUFFICIENT_DECREASE * step * start.slope
        curved = jnp.abs(trial.slope) <= -CURVATURE * start.slope
        # An equal value alone is no progress: a short enough step in any direction has it.
        better = finite & decreased & ((value < low.value) | (curved & (value == low.value)))

        uphill = trial.slope * (high.step - low.step) >= 0
        high = _choose(better, _choose(uphill, low, high), trial)
        next_step = _next_step(low, high, trial, better, search.trials)
        low = _choose(better, trial, low)
        # Once the interval is too short for the objective to tell its ends apart, give up.
        blurred = jnp.abs(high.step - low.step) * -start.slope <= smallest_change
        trials = search.trials + 1
        x, gradient, terms = _choose(
            better, (x, gradient, terms), (search.x, search.gradient, search.terms)
        )
        ended = (better & curved) | blurred | (trials >= maximum)
        return _Search(low, high, x, gradient, terms, next_step, trials, ended)

    search = _Search(
        low=start,
        high=_LinePoint(jnp.full_like(slope, jnp.inf), start.value, slope),
        x=state.x,
        gradient=state.gradient,
        terms=state.terms,
        next_step=first_step,
        trials=jnp.zeros((), jnp.int32),
        ended=jnp.zeros((), bool),
    )
    return lax.while_loop(lambda search: ~search.ended, try_step, search)


def _choose(condition, yes, no):
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def _next_step(previous_low, high, trial, better, trials):
    """Return the next step to try: a safeguarded cubic's, in the interval or beyond an open one."""
    low = _choose(better, trial, previous_low)
    # Beyond: the cubic through the last two points, 1.1 to 4 times as far as between them.
    stride = low.step - previous_low.step
    beyond = _cubic_minimiser(previous_low, low)
    beyond = jnp.where(jnp.isfinite(beyond), beyond, jnp.inf)
    beyond = jnp.clip(beyond, low.step + 1.1 * stride, low.step + 4 * stride)
    # Inside: away from the ends by a tenth, and halving every third time, so that it must shrink.
    width = high.step - low.step
    fraction = (_cubic_minimiser(low, high) - low.step) / width
    fraction = jnp.where(trials % 3 == 2, 0.5, jnp.clip(fraction, 0.1, 0.9))
    fraction = jnp.where(jnp.isfinite(high.value), fraction, 0.1)
    fraction = jnp.where(jnp.isfinite(fraction), fraction, 0.5)
    return jnp.where(jnp.isfinite(width), low.step + fraction * width, beyond)


def _cubic_minimiser(a: _LinePoint, b: _LinePoint):
    """Return where the cubic with these values and slopes is least, nan where it is nowhere."""
    mean = a.slope + b.slope - 3 * (a.value - b.value) / (a.step - b.step)
    root = jnp.sign(b.step - a.step) * jnp.sqrt(mean * mean - a.slope * b.slope)
    return b.step - (b.step - a.step) * (b.slope + root - mean) / (b.slope - a.slope + 2 * root)
