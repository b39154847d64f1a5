r"""Where in wave number an error lives.

The error on an n_x by n_y grid is taken through the two-dimensional discrete Fourier transform
without normalisation,

$$F(k_x, k_y) = \sum_{i,j} e_{ij} \exp(-2 \pi i (k_x i / n_x + k_y j / n_y)),$$

each wave number being the signed integer of least magnitude among its aliases, so that
$r = \sqrt{k_x^2 + k_y^2}$ counts oscillations across the grid. The three bands are those named by
Takamoto et al. (PDEBench, 2022), read as closed intervals of r: low [0, 4], middle [5, 12], high
[13, inf). As r is rarely whole, 4 < r < 5 and 12 < r < 13 belong to no band.

Third axis: on an (x, y, t) grid the transform is taken over x and y at every time, and |F|^2 is
averaged over the times. Components of a vector field are averaged in the same way.
"""

from typing import NamedTuple

import numpy as np

from unpinn._errors import UserError
from unpinn.evaluation._checks import Numbers, numbers

BANDS = {"low": (0.0, 4.0), "mid": (5.0, 12.0), "high": (13.0, np.inf)}
"""The closed interval of wave numbers of each band."""


class SpectralErrors(NamedTuple):
    """Root mean square of the transformed error by band; None where the grid cannot hold it."""

    low: float | None
    mid: float | None
    high: float | None


def power_spectrum(error_grid: Numbers, *, vector: bool = False) -> tuple[np.ndarray, np.ndarray]:
    r"""The power |F|^2 of an error and the radius r of its wave numbers, both (n_x, n_y).

    Parseval's law holds: the powers sum to $n_x n_y$ times the sum of squared errors (averaged over
    times and components, if any).

    Arguments:
        error_grid: the error on the grid, (x, y) or (x, y, t).
        vector: whether one further, last axis holds the components of a vector field.

    >>> power, radius = power_spectrum([[1.0, -1.0], [1.0, -1.0]])
    >>> power.tolist(), radius[0].tolist()
    ([[0.0, 16.0], [0.0, 0.0]], [0.0, 1.0])
    """
    error = numbers("error_grid", error_grid)
    axes = error.ndim - int(vector)
    if axes not in (2, 3):
        layout = "(x, y, components) or (x, y, t, components)" if vector else "(x, y) or (x, y, t)"
        raise UserError(f"error_grid has shape {error.shape}; arrange it as {layout}.")
    columns, rows = error.shape[:2]
    planes = error.reshape(columns, rows, -1)
    # One plane at a time keeps the complex transform of a long series out of memory.
    power = np.zeros((columns, rows))
    for plane in np.moveaxis(planes, -1, 0):
        transform = np.fft.fft2(plane)
        power += transform.real**2 + transform.imag**2
    wave_x = np.fft.fftfreq(columns, 1 / columns)
    wave_y = np.fft.fftfreq(rows, 1 / rows)
    return power / planes.shape[-1], np.hypot(wave_x[:, None], wave_y[None, :])


def spectral_errors(
    error_grid: Numbers, *, vector: bool = False, normalised: bool = False
) -> SpectralErrors:
    """Root mean square of the transformed error in the low, middle and high band.

    Without normalisation the numbers grow with the grid: compare them on one grid only. The
    normalised ones are divided by the number of points of the (x, y) grid, which makes the low and
    the middle band independent of how finely a periodic error is sampled.

    Arguments:
        error_grid: the error on the grid, (x, y) or (x, y, t).
        vector: whether one further, last axis holds the components of a vector field.
        normalised: whether to divide the transform by the number of points in space.

    >>> import numpy as np
    >>> low, mid, high = spectral_errors(np.full((16, 16), 0.875))
    >>> low, mid, high  # 224 at the origin, one of the 49 wave numbers of the low band
    (32.0, 0.0, None)
    """
    power, radius = power_spectrum(error_grid, vector=vector)
    scale = power.size if normalised else 1
    # Squared integer radii are compared exactly; hypot may round 13 to just below itself.
    squared_radius = np.rint(radius**2)
    found: dict[str, float | None] = {}
    for name, (lowest, highest) in BANDS.items():
        inside = (squared_radius >= lowest**2) & (squared_radius <= highest**2)
        found[name] = float(np.sqrt(power[inside].mean()) / scale) if inside.any() else None
    return SpectralErrors(**found)
