"""Meshes of curved quadrilaterals, each carrying a tensor grid of Gauss-Lobatto points."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from unpinn.benchmarks.wake_generator._nodes import gauss_lobatto

Predicate = Callable[[np.ndarray, np.ndarray], np.ndarray]

LENGTH_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Mesh:
    """Elements, their points, and how points are shared.

    Arguments:
        coordinates: places of the points, shape `(2, elements, n, n)`; the two local directions
            form a right-handed frame.
        numbers: the number of each point, shape `(elements, n, n)`; points on element edges (the
            skeleton) come first, then each element's interior in turn.
        skeleton: how many points lie on element edges.
        points: how many different points there are.
        faces: named parts of the boundary, each an array of (element, side) rows; sides 0, 1 are
            the ends of the first local direction, 2, 3 those of the second.
    """

    coordinates: np.ndarray
    numbers: np.ndarray
    skeleton: int
    points: int
    faces: Mapping[str, np.ndarray]

    @property
    def degree(self) -> int:
        """The polynomial degree in each local direction."""
        return self.numbers.shape[-1] - 1

    @property
    def elements(self) -> int:
        """The number of elements."""
        return len(self.numbers)


def side_index(degree: int) -> np.ndarray:
    """Flat positions of the points on the four sides of an element, shape `(4, degree + 1)`."""
    grid = np.arange((degree + 1) ** 2).reshape(degree + 1, degree + 1)
    return np.stack([grid[0], grid[-1], grid[:, 0], grid[:, -1]])


def connect(
    coordinates: np.ndarray, boundaries: Mapping[str, Predicate], period_y: float | None = None
) -> Mesh:
    """Join elements where their points coincide, and name the boundary's parts.

    Arguments:
        coordinates: places of the points, shape `(2, elements, n, n)`.
        boundaries: for each name, a test of places; a side belongs if all its points pass.
        period_y: places this far apart in y are the same.
    """
    elements, size = coordinates.shape[1], coordinates.shape[2]
    places = coordinates.reshape(2, -1).T.copy()
    if period_y is not None:
        lowest = places[:, 1].min()
        wrapped = places[:, 1] > lowest + period_y - LENGTH_TOLERANCE
        places[wrapped, 1] -= period_y
    pairs = cKDTree(places).query_pairs(LENGTH_TOLERANCE, output_type="ndarray")
    ones = np.ones(len(pairs), dtype=bool)
    graph = coo_array((ones, (pairs[:, 0], pairs[:, 1])), shape=(len(places), len(places)))
    points, labels = connected_components(graph, directed=False)

    inner = np.zeros((elements, size, size), dtype=bool)
    inner[:, 1:-1, 1:-1] = True
    is_inner = np.zeros(points, dtype=bool)
    is_inner[labels] = inner.ravel()
    # In element order, so that interiors can be reached by reshaping.
    order = np.concatenate([np.flatnonzero(~is_inner), labels[inner.ravel()]])
    rank = np.empty(points, dtype=np.intp)
    rank[order] = np.arange(points)

    sides = coordinates.reshape(2, elements, -1)[:, :, side_index(size - 1)]
    faces = {name: np.argwhere(test(*sides).all(axis=-1)) for name, test in boundaries.items()}
    return Mesh(
        coordinates=coordinates,
        numbers=rank[labels].reshape(elements, size, size),
        skeleton=int(np.count_nonzero(~is_inner)),
        points=points,
        faces=faces,
    )


def rectangle_mesh(
    columns: np.ndarray,
    rows: np.ndarray,
    degree: int,
    deform: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None,
) -> Mesh:
    """A rectangle cut along the given lines; its sides are west, east, south and north.

    Arguments:
        columns: increasing x of the lines.
        rows: increasing y of the lines.
        degree: the polynomial degree.
        deform: a smooth map of the plane that bends the elements; it must keep the sides' places.
    """
    x, y = _cells(columns, rows, degree)
    west, east, south, north = columns[0], columns[-1], rows[0], rows[-1]
    coordinates = np.stack([x, y] if deform is None else deform(x, y))
    return connect(
        coordinates,
        {
            "west": lambda x, y: np.isclose(x, west),
            "east": lambda x, y: np.isclose(x, east),
            "south": lambda x, y: np.isclose(y, south),
            "north": lambda x, y: np.isclose(y, north),
        },
    )


def cylinder_mesh(degree: int = 8) -> Mesh:
    """496 elements around a circle of diameter 1, in [-15, 25] x [-9, 9], periodic in y.

    A square of half-width 1 around the circle is filled with four layers of 16 elements that
    pass from the circle to the square; around it lie rectangles, 28 by 16 less those of the square,
    that grow away from it. Boundaries: inflow, outflow, cylinder.
    """
    half, count = 1.0, 4
    middle = np.linspace(-half, half, count + 1)
    upstream = -graded(half, 15.0, 5, 0.5)[::-1]
    downstream = graded(half, 25.0, 19, 0.5)
    beside = graded(half, 9.0, 6, 0.6)
    columns = np.concatenate([upstream[:-1], middle, downstream[1:]])
    rows = np.concatenate([-beside[:0:-1], middle, beside[1:]])
    x, y = _cells(columns, rows, degree)
    kept = np.maximum(np.abs(x.mean((1, 2))), np.abs(y.mean((1, 2)))) > half
    layers = graded(0.0, 1.0, 4, 0.22)
    rings = _rings(layers, half, count, degree)
    coordinates = np.concatenate([np.stack([x, y])[:, kept], rings], axis=1)
    return connect(
        coordinates,
        {
            "inflow": lambda x, y: np.isclose(x, columns[0]),
            "outflow": lambda x, y: np.isclose(x, columns[-1]),
            "cylinder": lambda x, y: np.isclose(np.hypot(x, y), 0.5),
        },
        period_y=rows[-1] - rows[0],
    )


def graded(start: float, stop: float, count: int, first: float) -> np.ndarray:
    """Lines from `start` to `stop`; the spacing begins with `first`, grows by a constant factor.

    Example:
        >>> graded(0.0, 7.0, 3, 1.0).round(6)
        array([0., 1., 3., 7.])
    """
    powers = np.arange(count)
    factor = brentq(lambda q: first * np.sum(q**powers) - (stop - start), 0.1, 10.0, xtol=1e-14)
    lines = start + np.concatenate([[0.0], np.cumsum(first * factor**powers)])
    lines[-1] = stop
    return lines


def _cells(columns: np.ndarray, rows: np.ndarray, degree: int) -> tuple[np.ndarray, np.ndarray]:
    fraction = (gauss_lobatto(degree)[0] + 1) / 2
    x = columns[:-1, None] * (1 - fraction) + columns[1:, None] * fraction
    y = rows[:-1, None] * (1 - fraction) + rows[1:, None] * fraction
    shape = (len(x), len(y), degree + 1, degree + 1)
    flat = (-1, degree + 1, degree + 1)
    return (
        np.broadcast_to(x[:, None, :, None], shape).reshape(flat),
        np.broadcast_to(y[None, :, None, :], shape).reshape(flat),
    )


def _rings(layers: np.ndarray, half: float, count: int, degree: int) -> np.ndarray:
    """Elements between the circle of radius 1/2 and the square, first local direction outward."""
    fraction = (gauss_lobatto(degree)[0] + 1) / 2
    depth = layers[:-1, None] * (1 - fraction) + layers[1:, None] * fraction
    part = (np.arange(count)[:, None] + fraction) / count
    elements = []
    for quarter in range(4):
        turn = quarter * np.pi / 2
        angle = turn - np.pi / 4 + part * np.pi / 2
        circle = 0.5 * np.stack([np.cos(angle), np.sin(angle)])
        along = half * (2 * part - 1)
        outer = np.stack([np.full_like(along, half), along])
        rotation = np.round([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        square = np.einsum("ij,jab->iab", rotation, outer)
        blend = depth[None, :, None, :, None]
        ring = (1 - blend) * circle[:, None, :, None, :] + blend * square[:, None, :, None, :]
        elements.append(ring.reshape(2, -1, degree + 1, degree + 1))
    return np.concatenate(elements, axis=1)
