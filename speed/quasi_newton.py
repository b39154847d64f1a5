"""Compare quasi-Newton solvers on a physics-informed network's loss.

Each case fits a five-layer network to noisy readings of the forced heat equation or of the wave
equation (2,000 data-only Adam epochs in float32), then hands the same start and the same full loss
to one solver. One JSON line a case: iterations, evaluations, seconds (compilation apart), loss.

    python speed/quasi_newton.py --problem heat-forced --solver ours --precision float64
    python speed/quasi_newton.py --iterations 5000 --solver ours --solver scipy
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy.optimize
from jax.flatten_util import ravel_pytree
from scipy.stats import qmc

from unpinn.precision import scope
from unpinn.training._lbfgs import REASONS, RUNNING, advance, initialise

HISTORY = 50
HIDDEN = (100, 100, 100, 100, 100)


class Points(NamedTuple):
    """One problem's points in physical coordinates (x, t), readings and forcing."""

    upper: np.ndarray  # the domain is [0, upper[0]] x [0, upper[1]]
    readings: np.ndarray
    values: np.ndarray
    collocation: np.ndarray
    forcing: np.ndarray
    boundary: np.ndarray


def noisy(values: np.ndarray, high: float, low: float, share: float, seed: int) -> np.ndarray:
    """Add noise `high` to a random `share` of the values and `low` to the rest."""
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(values))
    sigma = np.full(len(values), low)
    sigma[order[: round(share * len(values))]] = high
    return values + sigma * generator.standard_normal(len(values))


def grid(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return all pairs of the two axes, one a row."""
    return np.stack(np.meshgrid(x, t, indexing="ij"), axis=-1).reshape(-1, 2)


def ends(count: int, upper_time: float) -> np.ndarray:
    """Return `count` equidistant times at x = 0 and as many at x = 1."""
    return grid(np.array([0.0, 1.0]), np.linspace(0.0, upper_time, count))


def heat_forced(seed: int) -> Points:
    """u_t - u_xx = 4 pi^2 (1 - 2t) u*, u* = exp(-4 pi^2 t^2) sin(2 pi x), u = 0 at both ends."""
    upper = np.array([1.0, 0.02])

    def exact(points: np.ndarray) -> np.ndarray:
        x, t = points.T
        return np.exp(-4 * np.pi**2 * t**2) * np.sin(2 * np.pi * x)

    readings = grid(np.linspace(0.2, 0.8, 20), np.linspace(0.0, 0.02, 20))
    collocation = qmc.Sobol(2, seed=seed).random_base2(9)[:320] * upper
    forcing = 4 * np.pi**2 * (1 - 2 * collocation[:, 1]) * exact(collocation)
    values = noisy(exact(readings), np.sqrt(0.5), 0.1, 0.4, seed)
    return Points(upper, readings, values, collocation, forcing, ends(40, 0.02))


def wave(seed: int) -> Points:
    """u_tt - u_xx = 0, u = sin(2 pi x) sin(2 pi t), u = 0 at both ends."""
    upper = np.array([1.0, 1.0])
    columns = np.concatenate([np.linspace(0.0, 0.2, 10), np.linspace(0.8, 1.0, 10)])
    readings = grid(columns, np.linspace(0.0, 1.0, 60))
    exact = np.prod(np.sin(2 * np.pi * readings), axis=1)
    collocation = qmc.Sobol(2, seed=seed).random_base2(12)[:2160] * upper
    values = noisy(exact, np.sqrt(0.5), 0.1, 0.2, seed)
    return Points(upper, readings, values, collocation, np.zeros(2160), ends(120, 1.0))


PROBLEMS: dict[str, tuple[Callable[[int], Points], int]] = {
    # The second entry is the order of the time derivative in the equation.
    "heat-forced": (heat_forced, 1),
    "wave": (wave, 2),
}


def fresh_network(seed: int) -> list[tuple[jax.Array, jax.Array]]:
    """Draw weights and biases uniformly in +-1/sqrt(fan-in)."""
    sizes = (2, *HIDDEN, 1)
    layers = []
    for key, inputs, outputs in zip(
        jax.random.split(jax.random.key(seed), len(sizes) - 1), sizes[:-1], sizes[1:], strict=True
    ):
        bound = 1 / np.sqrt(inputs)
        weight_key, bias_key = jax.random.split(key)
        weight = jax.random.uniform(weight_key, (inputs, outputs), jnp.float32, -bound, bound)
        bias = jax.random.uniform(bias_key, (outputs,), jnp.float32, -bound, bound)
        layers.append((weight, bias))
    return layers


def field(layers, inputs):
    """Evaluate the network at scaled inputs."""
    hidden = inputs
    for weight, bias in layers[:-1]:
        hidden = jnp.tanh(hidden @ weight + bias)
    return (hidden @ layers[-1][0] + layers[-1][1])[:, 0]


def derivatives(layers, inputs, scale, time_order: int):
    """Return u_xx and the time derivative of that order (1 or 2), by Taylor channels.

    With h = tanh(z): h' = (1 - h^2) z', h'' = (1 - h^2) (z'' - 2 h z'^2).
    """
    weight, bias = layers[0]
    value = inputs @ weight + bias
    first = [jnp.broadcast_to(scale[axis] * weight[axis], value.shape) for axis in (0, 1)]
    second = [jnp.zeros_like(value)] * time_order
    for weight, bias in layers[1:]:
        hidden = jnp.tanh(value)
        slope = 1 - hidden * hidden
        second = [
            (slope * (z2 - 2 * hidden * z1 * z1)) @ weight
            for z1, z2 in zip(first, second, strict=False)
        ]
        first = [(slope * z1) @ weight for z1 in first]
        value = hidden @ weight + bias
    in_time = (first if time_order == 1 else second)[1]
    return second[0][:, 0], in_time[:, 0]


class Case(NamedTuple):
    """One start and one objective, in the precision of the scope it was made in."""

    x: jax.Array
    objective: Callable  # x -> (loss, terms)
    value_and_gradient: Callable  # x -> ((loss, terms), gradient)


def pretrained(points: Points, seed: int, epochs: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Fit the readings alone with Adam in float32."""
    with scope("float32"):
        inputs, values = jnp.asarray(2 * points.readings / points.upper - 1), points.values
        layers = fresh_network(seed)
        optimiser = optax.adam(1e-3)

        def epoch(carry, _):
            layers, moments = carry
            loss = lambda layers: jnp.mean((field(layers, inputs) - values) ** 2)  # noqa: E731
            updates, moments = optimiser.update(jax.grad(loss)(layers), moments)
            return (optax.apply_updates(layers, updates), moments), None

        run = jax.jit(lambda carry: jax.lax.scan(epoch, carry, None, length=epochs)[0])
        return jax.tree.map(np.asarray, run((layers, optimiser.init(layers)))[0])


def make_case(points: Points, time_order: int, layers, precision: str) -> Case:
    """Build the full loss: mean squares of misfit, equation and boundary, all weights 1."""
    flat, unravel = ravel_pytree(jax.tree.map(lambda leaf: jnp.asarray(leaf, precision), layers))
    scaled = [
        jnp.asarray(2 * part / points.upper - 1, precision)
        for part in (points.readings, points.boundary, points.collocation)
    ]
    known = jnp.concatenate(scaled[:2])
    values = jnp.asarray(points.values, precision)
    forcing = jnp.asarray(points.forcing, precision)
    scale = jnp.asarray(2 / points.upper, precision)

    def objective(x):
        layers = unravel(x)
        u = field(layers, known)
        u_xx, in_time = derivatives(layers, scaled[2], scale, time_order)
        misfit, boundary = u[: len(values)] - values, u[len(values) :]
        residuals = (misfit, in_time - u_xx - forcing, boundary)
        terms = jnp.stack([jnp.mean(residual**2) for residual in residuals])
        return terms.sum(), terms

    return Case(flat, objective, jax.value_and_grad(objective, has_aux=True))


class Outcome(NamedTuple):
    """What a solver did."""

    x: np.ndarray
    iterations: int
    evaluations: int
    compile_seconds: float
    seconds: float
    cpu_seconds: float  # of all threads: comparable even on a machine that others use too
    stopped: str


def timed(function: Callable, *arguments):
    """Compile, then run; return the result and three times: compiling, running, CPUs running."""
    begin = time.perf_counter()
    compiled = jax.jit(function).lower(*arguments).compile()
    middle, cpu = time.perf_counter(), time.process_time()
    result = jax.block_until_ready(compiled(*arguments))
    end = time.perf_counter()
    return result, (middle - begin, end - middle, time.process_time() - cpu)


def ours(case: Case, iterations: int) -> Outcome:
    """The package's own flat-vector L-BFGS."""

    def solve(x):
        state = initialise(case.value_and_gradient, x, HISTORY)
        return advance(case.value_and_gradient, state, iterations, length=iterations)[0]

    state, seconds = timed(solve, case.x)
    reason = REASONS[int(state.status)]
    counts = int(state.iteration), int(state.evaluations)
    return Outcome(np.asarray(state.x), *counts, *seconds, reason)


def with_optax(case: Case, iterations: int) -> Outcome:
    """Optax's L-BFGS with its zoom line search, the same memory and trials."""
    search = optax.scale_by_zoom_linesearch(
        max_linesearch_steps=25, initial_guess_strategy="one", slope_rtol=1e-4, curv_rtol=0.9
    )
    optimiser = optax.lbfgs(memory_size=HISTORY, linesearch=search)
    loss = lambda x: case.objective(x)[0]  # noqa: E731
    value_and_gradient = optax.value_and_grad_from_state(loss)

    def iterate(_, carry):
        x, state, trials = carry
        value, gradient = value_and_gradient(x, state=state)
        updates, state = optimiser.update(
            gradient, state, x, value=value, grad=gradient, value_fn=loss
        )
        trials += state[-1].info.num_linesearch_steps.astype(jnp.int32)
        return optax.apply_updates(x, updates), state, trials

    def solve(x):
        carry = x, optimiser.init(x), jnp.zeros((), jnp.int32)
        x, _, trials = jax.lax.fori_loop(0, iterations, iterate, carry)
        return x, trials

    (x, trials), seconds = timed(solve, case.x)
    return Outcome(np.asarray(x), iterations, 1 + int(trials), *seconds, REASONS[RUNNING])


def with_optimistix(case: Case, iterations: int) -> Outcome:
    """Optimistix's L-BFGS (Armijo backtracking); one of its steps is one evaluation."""
    import optimistix

    solver = optimistix.LBFGS(rtol=0.0, atol=0.0, history_length=HISTORY)

    def solve(x):
        found = optimistix.minimise(
            lambda x, _: case.objective(x)[0], solver, x, max_steps=iterations, throw=False
        )
        all_used = found.result == optimistix.RESULTS.nonlinear_max_steps_reached
        return found.value, found.stats["num_steps"], all_used

    (x, steps, all_used), seconds = timed(solve, case.x)
    stopped = REASONS[RUNNING] if bool(all_used) else "stopped by itself"
    return Outcome(np.asarray(x), int(steps), int(steps), *seconds, stopped)


def with_scipy(case: Case, iterations: int) -> Outcome:
    """SciPy's L-BFGS-B, which works in float64 whatever the objective's precision."""
    begin = time.perf_counter()
    compiled = jax.jit(case.value_and_gradient).lower(case.x).compile()
    middle, cpu = time.perf_counter(), time.process_time()

    def evaluate(x):
        (value, _), gradient = compiled(np.asarray(x, case.x.dtype))
        return float(value), np.asarray(gradient, np.float64)

    options = {"maxcor": HISTORY, "maxiter": iterations, "maxfun": 30 * iterations, "maxls": 25}
    found = scipy.optimize.minimize(
        evaluate,
        np.asarray(case.x, np.float64),
        jac=True,
        method="L-BFGS-B",
        options={**options, "ftol": 0.0, "gtol": 1e-8},
    )
    seconds = middle - begin, time.perf_counter() - middle, time.process_time() - cpu
    return Outcome(found.x, found.nit, found.nfev, *seconds, found.message)


SOLVERS = {"ours": ours, "optax": with_optax, "optimistix": with_optimistix, "scipy": with_scipy}


def main(arguments: list[str] | None = None) -> None:
    """Print one JSON line for each problem, precision and solver asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", action="append", choices=PROBLEMS)
    parser.add_argument("--precision", action="append", choices=("float32", "float64"))
    parser.add_argument("--solver", action="append", choices=SOLVERS)
    parser.add_argument("--iterations", type=int, default=500)
    parser.add_argument("--adam", type=int, default=2000, help="data-only epochs before")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--repeat", type=int, default=1, help="rounds, for ratios in alternation")
    chosen = parser.parse_args(arguments)
    for problem in chosen.problem or PROBLEMS:
        make_points, time_order = PROBLEMS[problem]
        points = make_points(chosen.seed)
        layers = pretrained(points, chosen.seed, chosen.adam)
        for precision in chosen.precision or ("float64", "float32"):
            for _ in range(chosen.repeat):
                for solver in chosen.solver or SOLVERS:
                    line = measure(points, time_order, layers, precision, solver, chosen.iterations)
                    print(json.dumps({"problem": problem, **line}), flush=True)


def measure(points, time_order, layers, precision, solver, iterations) -> dict:
    """Run one solver; the losses reported are evaluated in float64, whatever it worked in."""
    with scope("float64"):
        judge = make_case(points, time_order, layers, "float64")
        evaluate = jax.jit(judge.objective)
        start = evaluate(judge.x)[0]
    with scope(precision):
        case = make_case(points, time_order, layers, precision)
        outcome = SOLVERS[solver](case, iterations)
    with scope("float64"):
        loss, terms = evaluate(jnp.asarray(outcome.x, "float64"))
    return {
        "precision": precision,
        "solver": solver,
        "iterations": outcome.iterations,
        "evaluations": outcome.evaluations,
        "seconds": round(outcome.seconds, 3),
        "cpu_seconds": round(outcome.cpu_seconds, 3),
        "compile_seconds": round(outcome.compile_seconds, 3),
        "start": float(start),
        "loss": float(loss),
        "terms": [float(term) for term in terms],
        "stopped": outcome.stopped,
    }


if __name__ == "__main__":
    main()
