"""Gauss-Lobatto-Legendre points of an interval, and polynomials through given points."""

import numpy as np
from numpy.polynomial import legendre


def gauss_lobatto(degree: int) -> tuple[np.ndarray, np.ndarray]:
    """The `degree + 1` Gauss-Lobatto points of [-1, 1] and their quadrature weights.

    The points are -1, 1 and the roots of the Legendre polynomial's derivative $P_N'$; the weights
    are $2 / (N (N + 1) P_N^2)$. Integrates polynomials of degree $2 N - 1$ exactly.

    Example:
        >>> points, weights = gauss_lobatto(2)
        >>> points
        array([-1.,  0.,  1.])
        >>> bool(abs(weights @ points**2 - 2 / 3) < 1e-15)
        True
    """
    polynomial = legendre.Legendre.basis(degree)
    inner = polynomial.deriv().roots().real if degree > 1 else np.empty(0)
    # The points are symmetric; averaging with the mirror image removes the roots' rounding.
    inner = (inner - inner[::-1]) / 2
    points = np.concatenate([[-1.0], inner, [1.0]])
    return points, 2 / (degree * (degree + 1) * polynomial(points) ** 2)


def barycentric_weights(nodes: np.ndarray) -> np.ndarray:
    """The weights of the barycentric interpolation formula through `nodes`."""
    distance = nodes[:, None] - nodes
    np.fill_diagonal(distance, 1.0)
    return 1 / np.prod(distance, axis=1)


def differentiation_matrix(nodes: np.ndarray) -> np.ndarray:
    """The matrix that maps values at `nodes` to the derivative of their interpolant there.

    Example:
        >>> nodes = np.array([-1.0, 0.0, 1.0])
        >>> differentiation_matrix(nodes) @ nodes**2
        array([-2.,  0.,  2.])
    """
    weights = barycentric_weights(nodes)
    distance = nodes[:, None] - nodes
    np.fill_diagonal(distance, 1.0)
    matrix = weights / weights[:, None] / distance
    np.fill_diagonal(matrix, 0.0)
    # A constant has derivative zero exactly.
    np.fill_diagonal(matrix, -matrix.sum(axis=1))
    return matrix


def lagrange_values(nodes: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The Lagrange polynomials of `nodes` at `points`: shape `points.shape + nodes.shape`.

    The product form is used: it stays finite when a point falls on a node.
    """
    distance = np.asarray(points)[..., None] - nodes
    values = np.empty(distance.shape)
    for node, weight in enumerate(barycentric_weights(nodes)):
        values[..., node] = weight * np.prod(np.delete(distance, node, axis=-1), axis=-1)
    return values


def window_differentiation(nodes: np.ndarray, width: int) -> np.ndarray:
    """Finite differences on `nodes`: each row differentiates the interpolant of its neighbours.

    Arguments:
        nodes: increasing places.
        width: how many neighbouring values each derivative uses; its order of accuracy plus one.
    """
    count = len(nodes)
    matrix = np.zeros((count, count))
    for row in range(count):
        start = min(max(row - width // 2, 0), count - width)
        window = slice(start, start + width)
        matrix[row, window] = differentiation_matrix(nodes[window])[row - start]
    return matrix
