"""How far a field or an unknown is from the truth."""

from collections.abc import Sequence

import numpy as np

from unpinn._errors import UserError
from unpinn.evaluation._checks import Numbers, grid, numbers, same_shape
from unpinn.evaluation._spectra import spectral_errors


def relative_l2(prediction: Numbers, truth: Numbers) -> float:
    r"""Relative L2 error, $\|\hat q - q\|_2 / \|q\|_2$ over all entries.

    >>> relative_l2([3.0, 5.0], [3.0, 4.0])
    0.2
    """
    prediction, truth = same_shape(prediction=prediction, truth=truth)
    error, size = np.linalg.norm((prediction - truth).ravel()), np.linalg.norm(truth.ravel())
    return _ratio(float(error), float(size))


def relative_l1(prediction: Numbers, truth: Numbers) -> float:
    r"""Relative L1 error, $\sum |\hat q - q| / \sum |q|$ over all entries.

    >>> relative_l1([3.0, 5.0], [-1.0, 3.0])
    1.5
    """
    prediction, truth = same_shape(prediction=prediction, truth=truth)
    return _ratio(float(np.abs(prediction - truth).sum()), float(np.abs(truth).sum()))


def mean_square(prediction: Numbers, truth: Numbers) -> float:
    """Mean of the squared error over all entries (points and components).

    >>> mean_square([1.0, 5.0], [0.0, 3.0])
    2.5
    """
    prediction, truth = same_shape(prediction=prediction, truth=truth)
    return float(np.mean((prediction - truth) ** 2))


def maximum_error(prediction: Numbers, truth: Numbers) -> float:
    """Largest absolute error over all entries.

    >>> maximum_error([1.0, 5.0], [0.0, 3.0])
    2.0
    """
    prediction, truth = same_shape(prediction=prediction, truth=truth)
    return float(np.abs(prediction - truth).max())


def mean_shifted(
    prediction: Numbers,
    truth: Numbers,
    *,
    groups: Numbers | None = None,
    vector: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Prediction and truth, each with its own mean removed.

    For a quantity that the problem fixes only up to a constant, such as the pressure of an
    incompressible flow without a pressure condition.

    Arguments:
        prediction: the field as predicted.
        truth: the field as it is, in the same shape.
        groups: labels of the first axis, such as the time of every row, when the constant is free
            in each group; then the mean of each group is removed. By default there is one group.
        vector: whether the last axis holds components, each with its own constant.

    >>> shifted, reference = mean_shifted([11.0, 13.0], [1.0, 3.0])
    >>> shifted.tolist(), reference.tolist()
    ([-1.0, 1.0], [-1.0, 1.0])
    """
    prediction, truth = same_shape(prediction=prediction, truth=truth)
    if vector and prediction.ndim < 2:
        raise UserError(
            f"prediction has shape {prediction.shape}, which has no axis of components; "
            "leave `vector` false or pass (rows, components)."
        )
    length = len(prediction) if prediction.ndim else 1
    labels = np.zeros(length, int) if groups is None else _labels(groups, length)
    return _centred(prediction, labels, vector), _centred(truth, labels, vector)


def field_errors(
    prediction: Numbers, truth: Numbers, grid_shape: Sequence[int] | None = None
) -> dict[str, float | None]:
    """Every error of one field, by the name it has in the tables.

    `l2re`, `l1re` (None where the truth is zero everywhere), `mse`, `max_error` and `rms_truth`,
    the scale with which they hang together: mse = (l2re rms_truth)^2. On a grid of two or three
    axes also `fmse_low`, `fmse_mid`, `fmse_high` and the same three with `_normalised` behind, as
    `spectral_errors` defines them (None where the grid is too coarse for the band).

    Arguments:
        prediction: (rows,), (rows, components), or arranged as the grid with or without a last
            axis of components.
        truth: the same for the field as it is.
        grid_shape: points along each axis, x and y first and time third; the rows run through it
            with the last axis fastest.

    >>> errors = field_errors([2.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0], grid_shape=(2, 2))
    >>> errors["l2re"], errors["l1re"], errors["max_error"], errors["fmse_high"]
    (1.0, 1.0, 1.0, None)
    """
    prediction, truth = same_shape(prediction=prediction, truth=truth)
    error = prediction - truth
    size, mean_of_squares = np.abs(truth).sum(), float(np.mean(error**2))
    rms_truth = float(np.sqrt(np.mean(truth**2)))
    found: dict[str, float | None] = {
        "l2re": float(np.sqrt(mean_of_squares) / rms_truth) if rms_truth > 0 else None,
        "l1re": float(np.abs(error).sum() / size) if size > 0 else None,
        "mse": mean_of_squares,
        "max_error": float(np.abs(error).max()),
        "rms_truth": rms_truth,
    }
    if grid_shape is None:
        return found
    arranged = _arranged(error, grid("grid_shape", grid_shape))
    if arranged.ndim in (3, 4):
        bands = spectral_errors(arranged, vector=True)._asdict()
        points = arranged.shape[0] * arranged.shape[1]
        found |= {f"fmse_{name}": value for name, value in bands.items()}
        found |= {
            f"fmse_{name}_normalised": None if value is None else value / points
            for name, value in bands.items()
        }
    return found


def scalar_errors(estimate: Numbers, truth: Numbers) -> dict[str, float | None]:
    """Absolute, squared and relative error of one unknown number; relative is None at truth 0.

    >>> scalar_errors(1.5, 2.0)
    {'absolute': 0.5, 'squared': 0.25, 'relative': 0.25}
    """
    values = []
    for name, given in (("estimate", estimate), ("truth", truth)):
        array = numbers(name, given)
        if array.size != 1:
            raise UserError(
                f"{name} has {array.size} values; pass one number, or a field to `field_errors`."
            )
        values.append(float(array.reshape(())))
    absolute = abs(values[0] - values[1])
    relative = absolute / abs(values[1]) if values[1] != 0 else None
    return {"absolute": absolute, "squared": absolute**2, "relative": relative}


def _ratio(error: float, size: float) -> float:
    if size == 0:
        raise UserError(
            "truth is zero everywhere, so a relative error does not exist; use `mean_square`."
        )
    return error / size


def _labels(groups: Numbers, length: int) -> np.ndarray:
    labels = np.asarray(groups)
    if labels.shape != (length,):
        raise UserError(
            f"groups has shape {labels.shape}; pass one label for each of the {length} rows."
        )
    return np.unique(labels, return_inverse=True)[1].reshape(length)


def _centred(values: np.ndarray, labels: np.ndarray, vector: bool) -> np.ndarray:
    components = values.shape[-1] if vector else 1
    blocks = values.reshape(len(labels), -1, components)
    counts = np.bincount(labels) * blocks.shape[1]
    centred = np.empty_like(blocks)
    for component in range(components):
        column = blocks[:, :, component]
        means = np.bincount(labels, weights=column.sum(axis=1)) / counts
        centred[:, :, component] = column - means[labels][:, None]
    return centred.reshape(values.shape)


def _arranged(error: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The error on its grid, with one last axis of components."""
    on_grid = error.shape[: len(shape)] == shape and error.ndim <= len(shape) + 1
    in_rows = error.ndim in (1, 2) and error.shape[0] == np.prod(shape)
    if not on_grid and not in_rows:
        raise UserError(
            f"prediction has shape {error.shape}, which is not the grid {shape}; "
            f"pass {int(np.prod(shape))} rows or arrange it as the grid."
        )
    return error.reshape(*shape, -1)
