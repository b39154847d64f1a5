"""A fit on disk: JSON for what people read, safetensors for arrays, never anything that runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from unpinn import precision
from unpinn._errors import UserError
from unpinn._files import plain, read_arrays, read_json, write_arrays, write_json
from unpinn.network import Layout, Model, make_model
from unpinn.problem import Observations, Problem
from unpinn.training._history import History
from unpinn.training._protocol import Protocol
from unpinn.training._records import (
    Status,
    Versions,
    partition_arrays,
    partition_from,
    pruning_arrays,
    pruning_from,
)

if TYPE_CHECKING:
    from unpinn.training._fit import Fit

FORMAT = 1


def save(fit: Fit, directory: Any, overwrite: bool = False) -> None:
    """Write a fit to a directory; `fit.json` is written last, so a directory with it is whole."""
    path = Path(directory)
    if (path / "fit.json").exists() and not overwrite:
        raise UserError(f"{path} already holds a fit; choose another directory or overwrite=True")
    arrays: dict[str, np.ndarray] = _model_arrays("model", fit.model)
    if fit.members is not None:
        arrays |= _model_arrays("members", fit.members)
    arrays |= {f"optimiser.{k:03d}": leaf for k, leaf in enumerate(fit.optimiser)}
    arrays["history"] = fit.history.rows
    about: dict[str, Any] = {}
    if fit.observations is not None:
        more, about["observations"] = _observation_arrays(fit.observations)
        arrays |= more
    for name, record, pack in (
        ("partition", fit.partition, partition_arrays),
        ("pruning", fit.pruning, pruning_arrays),
    ):
        if record is not None:
            more, about[name] = pack(record)  # type: ignore[arg-type]
            arrays |= {f"{name}.{key}": value for key, value in more.items()}
    write_arrays(path / "fit.safetensors", arrays)
    if fit.before is not None:
        save(fit.before, path / "before", overwrite)
    write_json(path / "fit.json", {**_description(fit), **about})


def load(directory: Any, problem: Problem | None = None) -> Fit:
    """Read a fit back.

    A fit of one of the package's benchmarks finds its problem by name. For any other the problem
    must be passed: it is Python code of the user's own, which is never read from a file here.
    """
    from unpinn.training._fit import Fit

    path = Path(directory)
    about = read_json(path / "fit.json")
    try:
        if about["format"] != FORMAT:
            raise UserError(f"{path} was written in format {about['format']}, not {FORMAT}")
        problem = problem or _find_problem(path, about["problem"])
        if not _is_of(problem, about):
            raise UserError(f"{path} holds a fit of another problem than the one passed")
        arrays, _ = read_arrays(path / "fit.safetensors")
        protocol = Protocol.from_dict(about["protocol"])
        model = _model("model", arrays, about["model"], problem, protocol)
        members = about.get("members") and _model(
            "members", arrays, about["model"], problem, protocol
        )
        parts: dict[str, Any] = {
            name: unpack(_under(arrays, name), about[name]) if name in about else None
            for name, unpack in (("partition", partition_from), ("pruning", pruning_from))
        }
        observations = (
            _observations(arrays, about["observations"]) if "observations" in about else None
        )
        stages = tuple((str(kind), int(start)) for kind, start in about["history"]["stages"])
        return Fit(
            problem, observations, model, protocol, int(about["seed"]),
            History(tuple(about["history"]["names"]), arrays["history"], stages),
            Status(**about["status"]), about["seconds"], about["method"], about["recipe"],
            before=load(path / "before", problem) if about["before"] else None,
            members=members or None,
            optimiser=tuple(_under(arrays, "optimiser").values()),
            details=about["details"], versions=Versions(**about["versions"]), **parts,
        )  # fmt: skip
    except (
        KeyError, TypeError, AttributeError, IndexError, ValueError, OverflowError
    ) as error:  # fmt: skip
        if isinstance(error, UserError):
            raise
        raise UserError(f"{path} is not a fit of this package ({error!r})") from None


def _description(fit: Fit) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "problem": {
            "name": fit.problem.name,
            "source": plain(fit.problem.source),
            "fingerprint": fit.problem.fingerprint,
        },
        "method": fit.method,
        "recipe": fit.recipe,
        "seed": fit.seed,
        "status": dataclasses.asdict(fit.status),
        "unknowns": fit.unknowns,
        "neurons": list(fit.model.network.widths),
        "protocol": fit.protocol.to_dict(),
        "seconds": dict(fit.seconds),
        "details": plain(fit.details),
        "versions": dataclasses.asdict(fit.versions),
        "history": {"names": fit.history.names, "stages": fit.history.stages},
        "before": fit.before is not None,
        "members": fit.members is not None,
        "model": {
            "layout": dataclasses.asdict(fit.model.layout),
            "extras": list(fit.model.extras),
            "precision": fit.precision,
            # Which encoder entries a compacted gated network still uses.
            "picks": getattr(fit.model.network, "picks", None),
        },
    }


def _is_of(problem: Problem, about: dict[str, Any]) -> bool:
    """Whether a fit is of this problem, as far as can be told.

    A fingerprint follows the byte code, which every version of Python writes differently: what
    another version wrote is known by its names.
    """
    told, layout = about["problem"], about["model"]["layout"]
    if told["fingerprint"] == problem.fingerprint:
        return True
    minor = lambda version: str(version).split(".")[:2]  # noqa: E731
    if minor(about["versions"]["python"]) == minor(Versions.here().python):
        return False
    names = (list(problem.coordinates), list(problem.columns))
    return told["name"] == problem.name and names == (layout["coordinates"], layout["columns"])


def _find_problem(path: Path, about: dict[str, Any]) -> Problem:
    source = about["source"]
    if "benchmark" in source:
        from unpinn.benchmarks import benchmark

        return benchmark(source["benchmark"], source.get("preset", "paper")).problem
    where = source.get("file", "a problem defined in Python")
    raise UserError(
        f"{path} holds a fit of {where}; pass that problem, as in load(directory, problem)"
    )


def _model_arrays(name: str, model: Model) -> dict[str, np.ndarray]:
    leaves = jax.tree_util.tree_leaves_with_path(model)
    return {f"{name}{jax.tree_util.keystr(path)}": np.asarray(leaf) for path, leaf in leaves}


def _model(name: str, arrays, about, problem: Problem, protocol: Protocol) -> Model:
    """Fill the stored arrays, whatever their sizes, into the protocol's architecture."""
    layout = _layout(about["layout"], problem)
    # Only the order of its arrays is wanted, so that it is drawn as small as can be.
    drawn = protocol.architecture
    if drawn.depth > len(arrays):
        raise ValueError(f"{drawn.depth} layers in {len(arrays)} arrays")
    options = {key: 1 if key == "features" else value for key, value in drawn.options.items()}
    smallest = dataclasses.replace(drawn, width=1, options=options)
    with precision.scope("float32"):
        skeleton = make_model(
            problem, None, smallest, 0, layout.scaled,
            layout.columns[len(problem.columns) :], dict.fromkeys(about["extras"], 0.0),
        )  # fmt: skip
    leaves, structure = jax.tree_util.tree_flatten_with_path(skeleton)
    with precision.scope(about["precision"]):
        found = [jnp.asarray(arrays[f"{name}{jax.tree_util.keystr(p)}"]) for p, _ in leaves]
        filled = jax.tree_util.tree_unflatten(structure, found)
        network = filled.network
        if about["picks"] is not None:
            picks = tuple(tuple(int(place) for place in pick) for pick in about["picks"])
            network = dataclasses.replace(network, picks=picks)
        model = Model(network, filled.scalars, filled.extras, layout, problem.scalars)
        _check_shapes(model, name == "members")
    return model


def _layout(about: Mapping[str, Any], problem: Problem) -> Layout:
    """The stored names and units, if they are of this problem and are numbers."""
    numbers = {
        name: tuple(float(number) for number in about[name])
        for name in ("centre", "half", "offset", "scale")
    }
    layout = Layout(
        tuple(about["coordinates"]), tuple(about["columns"]), **numbers,
        space=tuple(bool(summed) for summed in about["space"]), scaled=bool(about["scaled"]),
    )  # fmt: skip
    inputs, outputs = len(problem.coordinates), len(layout.columns)
    lengths = [len(part) for part in (*numbers.values(), layout.space)]
    if (
        layout.coordinates != tuple(problem.coordinates)
        or layout.columns[: len(problem.columns)] != problem.columns
        or lengths != [inputs, inputs, outputs, outputs, inputs]
        or not np.isfinite([*numbers["centre"], *numbers["offset"]]).all()
        or not all(0 < abs(size) < np.inf for size in (*numbers["half"], *numbers["scale"]))
    ):
        raise ValueError("its layout is not one of this problem")
    return layout


def _check_shapes(model: Model, stacked: bool) -> None:
    """See that arrays of these shapes make a network, without computing anything."""

    def look(model: Model, points: jax.Array):
        return model.predict(points), model.unknowns()

    several = eqx.filter_vmap(look, in_axes=(eqx.if_array(0), None)) if stacked else look
    points = jax.ShapeDtypeStruct((1, len(model.layout.coordinates)), jnp.float32)
    fields, unknowns = eqx.filter_eval_shape(several, model, points)
    beyond = int(stacked)
    if fields.shape[beyond:] != (1, len(model.layout.columns)):
        raise ValueError("its arrays are no network of this problem")
    if any(len(value.shape) != beyond for value in unknowns.values()):
        raise ValueError("an unknown number is an array")


def _observation_arrays(observations: Observations):
    arrays = {
        "observations.points": observations.points,
        "observations.values": observations.values,
    }
    if observations.sigma is not None:
        arrays["observations.sigma"] = observations.sigma
    sensor = None
    if observations.sensor is not None and observations.sensor.dtype.kind in "biuf":
        arrays["observations.sensor"] = observations.sensor
    elif observations.sensor is not None:
        names, codes = np.unique(observations.sensor.astype("U"), return_inverse=True)
        arrays["observations.sensor"] = codes.astype(np.int32)
        sensor = names.tolist()
    return arrays, {"quantities": observations.quantities, "sensors": sensor}


def _observations(arrays, about) -> Observations:
    sensor = arrays.get("observations.sensor")
    if about["sensors"] is not None:
        sensor = np.array(about["sensors"])[sensor]
    return Observations(
        arrays["observations.points"], arrays["observations.values"],
        tuple(about["quantities"]), arrays.get("observations.sigma"), sensor,
    )  # fmt: skip


def _under(arrays: dict[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    prefix = f"{name}."
    return {k[len(prefix) :]: arrays[k] for k in sorted(arrays) if k.startswith(prefix)}
