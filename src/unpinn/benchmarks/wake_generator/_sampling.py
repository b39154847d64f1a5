"""Values of a field at arbitrary places of a curved mesh."""

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from unpinn.benchmarks.wake_generator._mesh import Mesh
from unpinn.benchmarks.wake_generator._nodes import (
    differentiation_matrix,
    gauss_lobatto,
    lagrange_values,
)

CANDIDATES = 12
NEWTON_STEPS = 12
LOCAL_TOLERANCE = 1e-9


def sampling_matrix(mesh: Mesh, places: np.ndarray) -> csr_array:
    """The matrix that maps point values of the mesh to values at `places`, shape `(count, 2)`.

    Every place is sought in the elements of its nearest points by inverting their maps with
    Newton's method. The interpolant there is the element's polynomial: no accuracy is lost.
    """
    count, size = len(places), mesh.degree + 1
    elements = _nearest_elements(mesh, places)
    found = np.full(count, -1)
    local = np.zeros((count, 2))
    for candidate in elements.T:
        missing = np.flatnonzero(found < 0)
        if len(missing) == 0:
            break
        guess, inside = _invert(mesh, candidate[missing], places[missing])
        found[missing[inside]] = candidate[missing[inside]]
        local[missing[inside]] = guess[inside]
    if np.any(found < 0):
        raise ValueError(f"{np.count_nonzero(found < 0)} places lie outside the mesh.")
    nodes = gauss_lobatto(mesh.degree)[0]
    along_r, along_s = (lagrange_values(nodes, local[:, axis]) for axis in range(2))
    values = along_r[:, :, None] * along_s[:, None, :]
    rows = np.repeat(np.arange(count), size * size)
    return csr_array(
        (values.ravel(), (rows, mesh.numbers[found].ravel())), shape=(count, mesh.points)
    )


def _nearest_elements(mesh: Mesh, places: np.ndarray) -> np.ndarray:
    """The elements that own each place's nearest points, nearest first."""
    points = mesh.coordinates.reshape(2, -1).T
    _, nearest = cKDTree(points).query(places, k=CANDIDATES)
    return nearest // (mesh.degree + 1) ** 2


def _invert(mesh: Mesh, elements: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Local coordinates of each place in its element, and whether it lies inside."""
    nodes = gauss_lobatto(mesh.degree)[0]
    derivative = differentiation_matrix(nodes)
    corners = mesh.coordinates[:, elements]
    local = np.zeros((len(places), 2))
    shift = np.zeros_like(local)
    for _ in range(NEWTON_STEPS):
        along_r, along_s = (lagrange_values(nodes, local[:, axis]) for axis in range(2))
        slope_r, slope_s = along_r @ derivative, along_s @ derivative
        position = np.einsum("aeij,ei,ej->ea", corners, along_r, along_s)
        frame = np.stack(
            [
                np.einsum("aeij,ei,ej->ea", corners, slope_r, along_s),
                np.einsum("aeij,ei,ej->ea", corners, along_r, slope_s),
            ],
            axis=-1,
        )
        shift = np.linalg.solve(frame, (places - position)[..., None])[..., 0]
        # A place outside may send the iteration away: keep it where the map is still regular.
        local = np.clip(local + shift, -1.1, 1.1)
    converged = np.max(np.abs(shift), axis=1) < LOCAL_TOLERANCE
    inside = np.max(np.abs(local), axis=1) <= 1 + LOCAL_TOLERANCE
    return local, converged & inside
