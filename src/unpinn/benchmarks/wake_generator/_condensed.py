"""Direct solution of symmetric elliptic systems by static condensation."""

import numpy as np
from scipy.sparse import coo_array, csc_array
from scipy.sparse.linalg import splu

from unpinn.benchmarks.wake_generator._mesh import Mesh


class CondensedSolver:
    r"""Factor a sum of element matrices once; solve with many right-hand sides.

    The unknowns inside an element couple only to those on its edges. Eliminating them leaves

    $$ S = \sum_e (A_{ss} - A_{si} A_{ii}^{-1} A_{is}) $$

    on the skeleton, a sparse matrix that is factored by SuperLU with a minimum-degree ordering.

    Arguments:
        mesh: the mesh.
        matrices: the element matrices, symmetric, shape `(elements, n^2, n^2)`.
        fixed: numbers of points whose value is given; they lie on the skeleton.
    """

    def __init__(self, mesh: Mesh, matrices: np.ndarray, fixed: np.ndarray):
        self.skeleton, self.points, self.elements = mesh.skeleton, mesh.points, mesh.elements
        inside = np.zeros(mesh.numbers.shape[1:], dtype=bool)
        inside[1:-1, 1:-1] = True
        interior, edge = np.flatnonzero(inside), np.flatnonzero(~inside)
        self.edge_numbers = mesh.numbers.reshape(mesh.elements, -1)[:, edge]

        edge_interior = matrices[:, edge[:, None], interior]
        self.inverse = np.linalg.inv(matrices[:, interior[:, None], interior])
        self.lift = np.matmul(edge_interior, self.inverse)
        schur = matrices[:, edge[:, None], edge] - np.matmul(
            self.lift, edge_interior.swapaxes(1, 2)
        )

        rows = np.broadcast_to(self.edge_numbers[:, :, None], schur.shape).ravel()
        columns = np.broadcast_to(self.edge_numbers[:, None, :], schur.shape).ravel()
        size = (self.skeleton, self.skeleton)
        condensed = csc_array(coo_array((schur.ravel(), (rows, columns)), shape=size))
        self.fixed = np.unique(fixed)
        self.free = np.setdiff1d(np.arange(self.skeleton), self.fixed)
        self.coupling = condensed[self.free][:, self.fixed]
        self.factors = splu(
            csc_array(condensed[self.free][:, self.free]),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )

    def solve(self, right: np.ndarray, given: np.ndarray | float = 0.0) -> np.ndarray:
        """The solution at all points.

        Arguments:
            right: right-hand sides, shape `(systems, points)`.
            given: the values at the fixed points in increasing order of their numbers, shape
                `(systems, fixed)` or a number.
        """
        systems = len(right)
        # Elements first, systems last: one batched product serves all systems.
        inner = right[:, self.skeleton :].reshape(systems, self.elements, -1).transpose(1, 2, 0)
        lifted = np.matmul(self.lift, inner)
        edges = self.edge_numbers.ravel()
        solution = np.empty((systems, self.points))
        values = np.broadcast_to(given, (systems, len(self.fixed)))
        reduced = np.stack(
            [
                right[system, : self.skeleton]
                - np.bincount(edges, lifted[:, :, system].ravel(), minlength=self.skeleton)
                for system in range(systems)
            ]
        )
        free_right = reduced[:, self.free].T - self.coupling @ values.T
        solution[:, self.free] = self.factors.solve(free_right).T
        solution[:, self.fixed] = values

        on_edges = solution[:, self.edge_numbers].transpose(1, 2, 0)
        inside = np.matmul(self.inverse, inner) - np.matmul(self.lift.swapaxes(1, 2), on_edges)
        solution[:, self.skeleton :] = inside.transpose(2, 0, 1).reshape(systems, -1)
        return solution
