"""Derivatives and integrals on a mesh of spectral elements."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unpinn.benchmarks.wake_generator._mesh import Mesh, side_index
from unpinn.benchmarks.wake_generator._nodes import differentiation_matrix, gauss_lobatto


@dataclass(frozen=True)
class Faces:
    """Part of the boundary, point by point.

    Arguments:
        elements: the element of each face, shape `(faces,)`.
        positions: the flat place of each point within its element, shape `(faces, n)`.
        numbers: the number of each point in the mesh, shape `(faces, n)`.
        normal: the outward normal times the quadrature weight, shape `(2, faces, n)`.
        along: maps values on a face to their tangential derivative (with the outward normal to the
            right of the direction) times the quadrature weight, shape `(faces, n, n)`.
    """

    elements: np.ndarray
    positions: np.ndarray
    numbers: np.ndarray
    normal: np.ndarray
    along: np.ndarray

    def restrict(self, field: np.ndarray) -> np.ndarray:
        """Values on the faces of a field given element by element, shape `(..., faces, n)`."""
        flat = field.reshape(*field.shape[:-2], -1)
        return flat[..., self.elements[:, None], self.positions]


class Elements:
    r"""Collocation derivatives and Gauss-Lobatto integrals on curved quadrilaterals.

    Fields are held element by element, shape `(..., elements, n, n)`; vectors of point values,
    shape `(..., points)`, are spread to elements by `scatter`, integrals are summed by `gather`.
    """

    def __init__(self, mesh: Mesh):
        self.mesh = mesh
        nodes, self.weights = gauss_lobatto(mesh.degree)
        self.derivative = differentiation_matrix(nodes)
        x, y = mesh.coordinates
        x_r, x_s = self._local_gradient(x)
        y_r, y_s = self._local_gradient(y)
        jacobian = x_r * y_s - x_s * y_r
        if jacobian.min() <= 0:
            raise ValueError("The mesh has an element that is folded over or left-handed.")
        self.slopes = np.stack([[y_s, -x_s], [-y_r, x_r]]) / jacobian
        self.mass = jacobian * np.outer(self.weights, self.weights)
        # Folded with the weights: what the weak divergence needs.
        self._fluxes = self.slopes * self.mass

    def _local_gradient(self, field: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.matmul(self.derivative, field), np.matmul(field, self.derivative.T)

    def gradient(self, field: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The derivatives of a field along x and y."""
        along_r, along_s = self._local_gradient(field)
        (r_x, r_y), (s_x, s_y) = self.slopes
        return r_x * along_r + s_x * along_s, r_y * along_r + s_y * along_s

    def weak_divergence(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        r"""The integrals $\int (a, b) \cdot \nabla\phi$ over each element, for its every point."""
        (r_x, r_y), (s_x, s_y) = self._fluxes
        along_r = np.matmul(self.derivative.T, r_x * a + r_y * b)
        return along_r + np.matmul(s_x * a + s_y * b, self.derivative)

    def scatter(self, values: np.ndarray) -> np.ndarray:
        """Spread point values, shape `(..., points)`, to the elements."""
        return values[..., self.mesh.numbers]

    def gather(self, field: np.ndarray) -> np.ndarray:
        """Sum contributions of the elements at each point; the transpose of `scatter`."""
        numbers, count = self.mesh.numbers.ravel(), self.mesh.points
        rows = field.reshape(-1, numbers.size)
        sums = np.stack([np.bincount(numbers, row, minlength=count) for row in rows])
        return sums.reshape(*field.shape[:-3], count)

    @cached_property
    def stiffness(self) -> np.ndarray:
        r"""The matrices $\int \nabla\phi_i \cdot \nabla\phi_j$, shape `(elements, n^2, n^2)`."""
        identity = np.eye(len(self.weights))
        along_r = np.kron(self.derivative, identity)
        along_s = np.kron(identity, self.derivative)
        count = self.mesh.elements
        slopes = self.slopes.reshape(2, 2, count, -1, 1)
        mass = self.mass.reshape(count, -1, 1)
        total = 0.0
        for axis in range(2):
            derivative = slopes[0, axis] * along_r + slopes[1, axis] * along_s
            total = total + np.matmul(derivative.swapaxes(1, 2), mass * derivative)
        return np.asarray(total)

    def faces(self, *names: str) -> Faces:
        """The named parts of the boundary."""
        mesh = self.mesh
        rows = np.concatenate([mesh.faces[name] for name in names])
        elements, sides = rows[:, 0], rows[:, 1]
        positions = side_index(mesh.degree)[sides]
        places = mesh.coordinates.reshape(2, mesh.elements, -1)[:, elements[:, None], positions]
        # Along sides 1 and 2 the local direction keeps the domain on its left.
        sign = np.where((sides == 1) | (sides == 2), 1.0, -1.0)
        x_t, y_t = np.einsum("ij,afj->afi", self.derivative, places)
        scale = sign[:, None] * self.weights
        return Faces(
            elements=elements,
            positions=positions,
            numbers=mesh.numbers.reshape(mesh.elements, -1)[elements[:, None], positions],
            normal=np.stack([y_t, -x_t]) * scale,
            along=scale[:, :, None] * self.derivative,
        )
