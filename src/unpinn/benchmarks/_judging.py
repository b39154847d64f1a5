"""How a reconstruction is judged against the exact solution of a benchmark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from unpinn import precision
from unpinn._errors import UserError
from unpinn.evaluation import field_errors, mean_shifted, scalar_errors
from unpinn.network import Model

if TYPE_CHECKING:
    from unpinn.benchmarks._benchmark import Benchmark

Predict = Callable[[np.ndarray], Mapping[str, Any]]

# A power of two, so that a network compiles for it once; 100 neurons of so many points take 26 MB.
CHUNK = 65_536


@dataclass(frozen=True)
class Quantity:
    """What is judged as one: a field, several as the components of a vector, or an unknown number.

    Arguments:
        name: what tables call it.
        of: the fields that are its components, or the unknown number.
        shifted: whether the mean is removed first, for a field that is known up to a constant.
        at: a coordinate at each of whose values the mean is removed by itself, for a field that is
            known up to a function of it.

    >>> Quantity("velocity", ("u", "v")).label
    'velocity'
    >>> Quantity("p", ("p",), shifted=True, at="t").label
    'p_shifted_at_t'
    """

    name: str
    of: tuple[str, ...]
    shifted: bool = False
    at: str | None = None

    @property
    def label(self) -> str:
        """Its key among the errors of fields."""
        if not self.shifted:
            return self.name
        return f"{self.name}_shifted" + ("" if self.at is None else f"_at_{self.at}")


def evaluate(benchmark: Benchmark, source: Any, unknowns: Mapping[str, Any] | None) -> dict:
    """Every error of a reconstruction; what `Benchmark.evaluate` gives."""
    predict, found = _predictor(source, unknowns)
    points, rows = benchmark.grid_points(), benchmark.test_rows()
    predicted = _predicted(predict, points, tuple(benchmark.exact))
    truth = benchmark.grid_truth()
    numbers = _unknown_errors(benchmark, found)
    shape = benchmark.test_grid.counts
    fields: dict[str, dict] = {}
    for quantity in _all_quantities(benchmark):
        mine, true = (np.stack([f[n] for n in quantity.of], axis=-1) for f in (predicted, truth))
        if quantity.shifted:
            names = list(benchmark.problem.coordinates)
            groups = None if quantity.at is None else points[:, names.index(quantity.at)]
            fields[quantity.label] = _shifted_errors(mine, true, rows, shape, groups)
        else:
            fields[quantity.label] = _errors(mine, true, rows, shape)
    headline = _of_quantity(benchmark.headline, fields, numbers)
    return {
        "quantity": benchmark.headline.name,
        "l2re": headline["l2re"],
        "state": benchmark.state.name,
        "state_l2re": _of_quantity(benchmark.state, fields, numbers)["l2re"],
        "headline": headline,
        "fields": fields,
        "unknowns": numbers,
    }


def _all_quantities(benchmark: Benchmark) -> list[Quantity]:
    """Every field by itself, and everything that is judged as a vector or without its mean."""
    judged = [Quantity(name, (name,)) for name in benchmark.exact]
    named = (benchmark.headline, benchmark.state, *benchmark.beside)
    return judged + [
        quantity
        for number, quantity in enumerate(named)
        if quantity not in judged
        and quantity not in named[:number]
        and quantity.of[0] in benchmark.exact
    ]


def _errors(predicted, truth, rows, shape) -> dict:
    """Errors over the test rows, and the spectra over the whole grid, which they need."""
    found = field_errors(predicted, truth, shape)
    return found if rows.all() else found | field_errors(predicted[rows], truth[rows])


def _shifted_errors(predicted, truth, rows, shape, groups) -> dict:
    """The same without means; those of the test rows are their own."""
    found = field_errors(*mean_shifted(predicted, truth, groups=groups), shape)
    if rows.all():
        return found
    tested = None if groups is None else groups[rows]
    return found | field_errors(*mean_shifted(predicted[rows], truth[rows], groups=tested))


def _of_quantity(quantity: Quantity, fields: dict, numbers: dict) -> dict:
    if quantity.of[0] in numbers:
        errors = numbers[quantity.of[0]]
        return {
            "l2re": errors["relative"],
            "l1re": errors["relative"],
            "mse": errors["squared"],
            "max_error": errors["absolute"],
        }
    return fields[quantity.label]


def _unknown_errors(benchmark: Benchmark, found: Mapping[str, Any]) -> dict[str, dict]:
    missing = [name for name in benchmark.true_scalars if name not in found]
    if missing:
        raise UserError(
            f"the unknown {missing[0]!r} of {benchmark.name} has no value to judge; pass it in "
            f"unknown_values"
        )
    return {
        name: {"value": float(found[name]), "truth": true, **scalar_errors(found[name], true)}
        for name, true in benchmark.true_scalars.items()
    }


def _predicted(
    predict: Predict, points: np.ndarray, names: tuple[str, ...]
) -> dict[str, np.ndarray]:
    columns = {name: np.empty(len(points)) for name in names}
    for begin in range(0, len(points), CHUNK):
        part = points[begin : begin + CHUNK]
        found = predict(part)
        for name, column in columns.items():
            if name not in found:
                raise UserError(
                    f"the prediction has no {name!r} (only {', '.join(found)}); predict every "
                    "field and unknown field"
                )
            values = np.asarray(found[name], np.float64)
            if values.shape != (len(part),):
                raise UserError(
                    f"the prediction of {name!r} has shape {values.shape} at {len(part)} points; "
                    "give one value a point"
                )
            column[begin : begin + len(part)] = values
    return columns


def _predictor(source: Any, unknowns: Mapping[str, Any] | None) -> tuple[Predict, Mapping]:
    """A function of points and the unknown numbers, from a model, a fit, or a plain function."""
    if isinstance(source, Model):
        model = source
        kind = precision.of(model)

        def predict(points: np.ndarray) -> dict[str, np.ndarray]:
            with precision.scope(kind):
                columns = np.asarray(_columns(model, jnp.asarray(points, np.dtype(kind))))
            return dict(zip(model.layout.columns, columns.T, strict=True))

        if unknowns is None:
            with precision.scope(kind):
                unknowns = {name: float(value) for name, value in model.unknowns().items()}
        return predict, unknowns
    if hasattr(source, "predict"):
        return source.predict, source.unknowns if unknowns is None else unknowns
    if not callable(source):
        raise UserError(
            f"a {type(source).__name__} cannot be judged; pass a fit, a model, or a function from "
            "points (n, dimensions) to a mapping from names to (n,) arrays"
        )
    return source, unknowns or {}


@eqx.filter_jit
def _columns(model: Model, points: jax.Array) -> jax.Array:
    return model.predict(points)
