"""A Markov chain that can be killed between any two samples and goes on bit for bit.

Kernels, step-size adaptation and diagnostics are BlackJAX's; here is what they lack: the chain's
whole state in one file.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from unpinn._errors import UserError
from unpinn._files import read_arrays, sweep, write_arrays
from unpinn.training import Moment, Watcher

# The log density of a vector, with what it depends on passed along so that programs are shared.
LogDensity = Callable[[Any, jax.Array], jax.Array]

INFO = ("acceptance", "divergent", "steps", "step_size", "log_density")


@dataclass(frozen=True)
class Sampler:
    """How to sample.

    Arguments:
        nuts: the no-U-turn sampler instead of plain Hamiltonian Monte Carlo.
        steps: leapfrog steps of a trajectory, for the plain one.
        doublings: at most so many of the trajectory, for the other.
        burn_in: samples that adapt the step size and are thrown away.
        samples: those that are kept.
        target: the acceptance that the step size is adapted to.
        first: the step size that the search for a first one starts from.
    """

    nuts: bool = False
    steps: int = 10
    doublings: int = 5
    burn_in: int = 20
    samples: int = 50
    target: float = 0.8
    first: float = 1e-3

    @property
    def length(self) -> int:
        """All samples."""
        return self.burn_in + self.samples


@dataclass(frozen=True, eq=False)
class Chain:
    """A chain under way: arrays only.

    Arguments:
        state: position, log density and gradient.
        adaptation: the dual averaging's five numbers.
        step_size: the one in use.
        positions: every sample so far, (n, numbers).
        infos: what happened at each, (n, len(INFO)).
    """

    state: tuple[jax.Array, ...]
    adaptation: tuple[jax.Array, ...]
    step_size: jax.Array
    positions: tuple[np.ndarray, ...] = ()
    infos: tuple[np.ndarray, ...] = ()

    def column(self, name: str, sampler: Sampler) -> np.ndarray:
        """One of `INFO` over the samples that are kept."""
        return np.array([info[INFO.index(name)] for info in self.infos[sampler.burn_in :]])


def run_chain(
    sampler: Sampler,
    density: LogDensity,
    given: Any,
    start: jax.Array,
    key: jax.Array,
    *,
    file: Path | None = None,
    digest: str = "",
    watcher: Watcher | None = None,
    interval: float = 10.0,
) -> Chain:
    """Sample from a density.

    Arguments:
        sampler: how.
        density: the log density of `(given, x)`.
        given: what the density depends on.
        start: where the chain starts.
        key: of all randomness; sample k uses the key folded with k.
        file: where the chain is kept; one found there is continued.
        digest: of the configuration; the chain of another is refused.
        watcher: is told after every sample.
        interval: seconds between writes.
    """
    if file is not None:
        sweep(file.parent, file.name)
    chain = _read(file, digest, start) if file is not None and file.exists() else None
    if chain is None:
        chain = _begin(sampler, density, given, start, key)
    begun, before, written = time.monotonic(), len(chain.infos), time.monotonic()
    try:
        while (number := len(chain.infos)) < sampler.length:
            chain = _sample(sampler, density, given, chain, jax.random.fold_in(key, number))
            if watcher is not None:
                rate = (time.monotonic() - begun) / (number + 1 - before)
                watcher(_moment(sampler, chain, rate))
            if file is not None and time.monotonic() - written >= interval:
                _write(file, digest, chain)
                written = time.monotonic()
    except KeyboardInterrupt:
        if file is not None:
            _write(file, digest, chain)
        raise
    return chain


def effective_sample_size(draws: np.ndarray) -> np.ndarray:
    """How many independent draws as many correlated ones are worth, for each column of (n, k)."""
    from blackjax.diagnostics import effective_sample_size as of_chains

    return np.asarray(of_chains(jnp.asarray(draws)[None]), np.float64).reshape(draws.shape[1:])


def _begin(sampler: Sampler, density: LogDensity, given, start, key) -> Chain:
    state, step_size = _first(sampler.target, density, given, start, key, sampler.first)
    adaptation = tuple(
        jnp.asarray(value, start.dtype) for value in _averaging(sampler)[0](step_size)
    )
    return Chain(tuple(state), adaptation, step_size)


def _sample(sampler: Sampler, density: LogDensity, given, chain: Chain, key) -> Chain:
    """One more sample; while burning in, its acceptance adapts the step size."""
    plan = replace(sampler, burn_in=0, samples=0, target=0.0, first=0.0)
    state, info = _transition(plan, density, given, chain.state, chain.step_size, key)
    number = len(chain.infos)
    adaptation, step_size = chain.adaptation, chain.step_size
    if number < sampler.burn_in:
        adaptation, step_size = _adapted(sampler, adaptation, info[0], number)
    values = np.array([*map(float, info), float(chain.step_size), float(state[1])])
    return Chain(
        state, adaptation, step_size,
        (*chain.positions, np.asarray(state[0])), (*chain.infos, values),
    )  # fmt: skip


def _averaging(sampler: Sampler):
    from blackjax.adaptation.step_size import dual_averaging_adaptation

    return dual_averaging_adaptation(sampler.target)


def _adapted(sampler: Sampler, adaptation: tuple, acceptance, number: int):
    from blackjax.adaptation.step_size import DualAveragingAdaptationState

    _, update, final = _averaging(sampler)
    kind = adaptation[0].dtype
    # A trajectory that overflowed tells an acceptance of nothing.
    acceptance = jnp.nan_to_num(jnp.asarray(acceptance, kind))
    state = update(DualAveragingAdaptationState(*adaptation), acceptance)
    last = number == sampler.burn_in - 1
    step_size = final(state) if last else jnp.exp(state.log_step_size)
    return tuple(jnp.asarray(value, kind) for value in state), jnp.asarray(step_size, kind)


@eqx.filter_jit
def _first(target: float, density: LogDensity, given, start, key, guess: float):
    """The chain's first state, and a step size at which one leapfrog step is about accepted."""
    import blackjax
    from blackjax.adaptation.step_size import find_reasonable_step_size

    logdensity = lambda x: density(given, x)  # noqa: E731
    kernel = blackjax.hmc.build_kernel()
    state = blackjax.hmc.init(start, logdensity)
    mass = jnp.ones_like(start)

    def one_step(step_size):
        return lambda k, s: kernel(k, s, logdensity, step_size, mass, 1)

    first = jnp.asarray(guess, start.dtype)
    return state, find_reasonable_step_size(key, one_step, state, first, target)


@eqx.filter_jit
def _transition(sampler: Sampler, density: LogDensity, given, state, step_size, key):
    import blackjax

    logdensity = lambda x: density(given, x)  # noqa: E731
    mass = jnp.ones_like(state[0])
    state = blackjax.mcmc.hmc.HMCState(*state)
    if sampler.nuts:
        kernel = blackjax.nuts.build_kernel()
        state, info = kernel(key, state, logdensity, step_size, mass, sampler.doublings)
    else:
        kernel = blackjax.hmc.build_kernel()
        state, info = kernel(key, state, logdensity, step_size, mass, sampler.steps)
    return tuple(state), (info.acceptance_rate, info.is_divergent, info.num_integration_steps)


def _moment(sampler: Sampler, chain: Chain, rate: float) -> Moment:
    done = len(chain.infos)
    burning = done <= sampler.burn_in
    terms = dict(zip(INFO, chain.infos[-1].tolist(), strict=True))
    first, count = (0, sampler.burn_in) if burning else (sampler.burn_in, sampler.samples)
    return Moment(
        1 if burning else 2, 2, "nuts" if sampler.nuts else "hmc", done - first, count, terms,
        float(chain.step_size), rate * (first + count - done),
    )  # fmt: skip


def _write(file: Path, digest: str, chain: Chain) -> None:
    arrays = {f"state.{k}": np.asarray(part) for k, part in enumerate(chain.state)}
    arrays |= {f"adaptation.{k}": np.asarray(part) for k, part in enumerate(chain.adaptation)}
    arrays["step_size"] = np.asarray(chain.step_size)
    if chain.infos:
        arrays["positions"], arrays["infos"] = np.stack(chain.positions), np.stack(chain.infos)
    write_arrays(file, arrays, {"digest": digest})


def _read(file: Path, digest: str, start: jax.Array) -> Chain:
    arrays, about = read_arrays(file)
    if not isinstance(about, dict) or about.get("digest") != digest:
        raise UserError(
            f"{file} is the chain of a run with another configuration; choose another output "
            "directory, or delete it to start afresh"
        )
    pick = lambda name, count: tuple(jnp.asarray(arrays[f"{name}.{k}"]) for k in range(count))  # noqa: E731
    try:
        chain = Chain(
            pick("state", 3), pick("adaptation", 5), jnp.asarray(arrays["step_size"]),
            tuple(arrays.get("positions", ())), tuple(arrays.get("infos", ())),
        )  # fmt: skip
    except (KeyError, TypeError) as error:
        raise UserError(f"{file} is not a chain of this package ({error!r})") from None
    positions, infos = arrays.get("positions", np.empty((0, *start.shape))), arrays.get("infos", ())
    same = positions.shape[1:] == start.shape and len(positions) == len(infos)
    if not same or chain.state[0].shape != start.shape or chain.state[0].dtype != start.dtype:
        raise UserError(f"{file} holds a chain of another model; delete it to start afresh")
    return chain
