r"""Whether a wake is what it claims to be: its figures, its equations, and their coefficients.

The checks see only the stored harmonics, so that a shipped file and a fresh one are judged alike.
Time derivatives are exact; space derivatives are finite differences of the tenth order on the
window, whose outermost four lines are left out because one-sided differences are less accurate.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unpinn._errors import UserError
from unpinn.benchmarks._wake import WakeHarmonics, read_harmonics, temporal_basis
from unpinn.benchmarks.wake_generator._nodes import window_differentiation

STENCIL = 11
MARGIN = 4
# Products of the stored harmonics miss those that were cut off; the lowest ones hardly notice.
JUDGED_HARMONICS = 4
VISCOSITY = 0.01


@dataclass(frozen=True)
class Check:
    """One figure of a wake against what it should be.

    Arguments:
        name: what is measured.
        measured: its value.
        expected: the value that it should have.
        tolerance: the largest acceptable difference.
    """

    name: str
    measured: float
    expected: float
    tolerance: float

    @property
    def passed(self) -> bool:
        """Whether the difference is acceptable."""
        return bool(abs(self.measured - self.expected) <= self.tolerance)


def check_figures(strouhal: float, drag: float, lift_amplitude: float) -> list[Check]:
    """The shedding frequency and the forces, against the known ones of this flow."""
    return [
        Check("Strouhal number", strouhal, 0.1694, 0.001),
        Check("mean drag", drag, 1.380, 0.005),
        Check("lift amplitude", lift_amplitude, 0.337, 0.004),
    ]


def check_equations(wake: WakeHarmonics) -> list[Check]:
    """The conservation of mass and momentum, and the coefficients that least squares recovers."""
    terms = equation_terms(wake)
    b1, b2 = fitted_coefficients(terms)
    imbalance = (
        terms.acceleration
        + terms.convection
        + terms.pressure_gradient
        - VISCOSITY * terms.laplacian
    )
    return [
        Check("divergence (relative)", _size(terms.divergence) / _size(terms.slopes), 0.0, 2e-4),
        Check("residual (relative)", _size(imbalance) / _size(terms.acceleration), 0.0, 1e-3),
        Check("b1 by least squares", b1, 1.0, 1e-4),
        Check("b2 by least squares", b2, 0.01, 2e-5),
    ]


def check_wake(path: Path) -> list[Check]:
    """Every check of a harmonics file that carries its forces."""
    wake = read_harmonics(path)
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
        missing = [key for key in ("drag", "lift_amplitude") if key not in archive.files]
        if missing:
            raise UserError(
                f"Wake file {path.name!r} lacks {' and '.join(missing)}: generate it again."
            )
        drag, lift_amplitude = float(archive["drag"]), float(archive["lift_amplitude"])
    return [*check_figures(1 / wake.period, drag, lift_amplitude), *check_equations(wake)]


@dataclass(frozen=True)
class EquationTerms:
    """The terms of the equations on the window's inner places and at times over one period.

    Arguments:
        acceleration: time derivative of the velocity, shape `(nt, 2, ny, nx)`, as the next three.
        convection: the velocity carried by itself.
        pressure_gradient: the gradient of the pressure.
        laplacian: the Laplacian of the velocity.
        divergence: the velocity's divergence, shape `(nt, ny, nx)`.
        slopes: all derivatives of the velocity, shape `(2, nt, 2, ny, nx)`.
    """

    acceleration: np.ndarray
    convection: np.ndarray
    pressure_gradient: np.ndarray
    laplacian: np.ndarray
    divergence: np.ndarray
    slopes: np.ndarray


def equation_terms(wake: WakeHarmonics) -> EquationTerms:
    """Evaluate each term and keep its lowest harmonics."""
    # As many instants as make quadratic terms exact.
    count = 2 * len(wake.harmonics)
    time = np.arange(count) / count * wake.period
    fields = wake.fields(time)
    along = window_differentiation(wake.x, STENCIL)
    across = window_differentiation(wake.y, STENCIL)
    slope_x, slope_y = fields @ along.T, np.matmul(across, fields)
    laplacian = slope_x[:, :2] @ along.T + np.matmul(across, slope_y[:, :2])
    u, v = fields[:, :1], fields[:, 1:2]
    convection = u * slope_x[:, :2] + v * slope_y[:, :2]

    basis = temporal_basis(time, wake.period, 2 * JUDGED_HARMONICS + 1)
    projection = basis @ np.linalg.pinv(basis)

    def kept(term: np.ndarray) -> np.ndarray:
        inner = term[..., MARGIN:-MARGIN, MARGIN:-MARGIN]
        return np.tensordot(projection, inner, axes=1)

    return EquationTerms(
        acceleration=kept(wake.fields(time, derivative=1)[:, :2]),
        convection=kept(convection),
        pressure_gradient=kept(np.stack([slope_x[:, 2], slope_y[:, 2]], axis=1)),
        laplacian=kept(laplacian),
        divergence=kept(slope_x[:, 0] + slope_y[:, 1]),
        slopes=np.stack([kept(slope_x[:, :2]), kept(slope_y[:, :2])]),
    )


def fitted_coefficients(terms: EquationTerms) -> tuple[float, float]:
    r"""The $b_1, b_2$ that minimise $u_t + b_1 u \cdot \nabla u + \nabla p - b_2 \nabla^2 u$."""
    matrix = np.column_stack([terms.convection.ravel(), -terms.laplacian.ravel()])
    right = -(terms.acceleration + terms.pressure_gradient).ravel()
    b1, b2 = np.linalg.lstsq(matrix, right, rcond=None)[0]
    return float(b1), float(b2)


def _size(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))
