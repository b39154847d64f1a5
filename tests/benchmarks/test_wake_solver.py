"""The flow solver behind the wake: each part against an exact solution."""

import numpy as np
import pytest

from unpinn.benchmarks._wake import embedded_harmonics
from unpinn.benchmarks.wake_generator._condensed import CondensedSolver
from unpinn.benchmarks.wake_generator._elements import Elements
from unpinn.benchmarks.wake_generator._flow import FlowProblem, FlowSolver, FlowState
from unpinn.benchmarks.wake_generator._mesh import Mesh, cylinder_mesh, rectangle_mesh
from unpinn.benchmarks.wake_generator._nodes import (
    differentiation_matrix,
    gauss_lobatto,
    lagrange_values,
    window_differentiation,
)
from unpinn.benchmarks.wake_generator._sampling import sampling_matrix
from unpinn.benchmarks.wake_generator._simulation import cylinder_problem, window_places


def bend(x, y):
    """Curve the unit square's elements without moving its sides."""
    bulge = 0.08 * np.sin(np.pi * x) * np.sin(np.pi * y)
    return x + bulge, y - bulge


def bent_square(degree: int) -> Mesh:
    return rectangle_mesh(np.linspace(0, 1, 4), np.linspace(0, 1, 3), degree, bend)


def places(mesh: Mesh) -> np.ndarray:
    found = np.empty((2, mesh.points))
    found[:, mesh.numbers] = mesh.coordinates
    return found


# Points and polynomials


@pytest.mark.parametrize("degree", [1, 2, 3, 8, 12])
def test_quadrature_is_exact_up_to_its_degree(degree):
    points, weights = gauss_lobatto(degree)
    for power in range(2 * degree):
        exact = 2 / (power + 1) if power % 2 == 0 else 0
        assert weights @ points**power == pytest.approx(exact, abs=1e-13)
    assert abs(weights @ points ** (2 * degree) - 2 / (2 * degree + 1)) > 1e-8


@pytest.mark.parametrize("degree", [1, 4, 9])
def test_polynomials_are_differentiated_and_interpolated_exactly(degree):
    nodes = gauss_lobatto(degree)[0]
    polynomial = np.polynomial.Polynomial(np.arange(1.0, degree + 2))
    slope = differentiation_matrix(nodes) @ polynomial(nodes)
    np.testing.assert_allclose(slope, polynomial.deriv()(nodes), atol=1e-10)
    points = np.concatenate([nodes, [-0.33, 0.77]])
    values = lagrange_values(nodes, points) @ polynomial(nodes)
    np.testing.assert_allclose(values, polynomial(points), atol=1e-11)


@pytest.mark.parametrize("width", [3, 6, 11])
def test_finite_differences_are_exact_on_polynomials_of_their_order(width):
    nodes = np.linspace(0, 1, 30) ** 1.2
    matrix = window_differentiation(nodes, width)
    polynomial = np.polynomial.Polynomial(np.ones(width))
    np.testing.assert_allclose(matrix @ polynomial(nodes), polynomial.deriv()(nodes), rtol=1e-8)
    assert np.count_nonzero(matrix, axis=1).max() <= width


# Meshes, integrals and elliptic problems


def test_cylinder_mesh_is_the_documented_one():
    mesh = cylinder_mesh(8)
    assert mesh.elements == 496
    assert {name: len(rows) for name, rows in mesh.faces.items()} == {
        "inflow": 16,
        "outflow": 16,
        "cylinder": 16,
    }
    elements = Elements(mesh)
    assert elements.mass.sum() == pytest.approx(40 * 18 - np.pi / 4, abs=1e-9)
    # Periodic in y: the elements at the bottom and at the top share points.
    bottom = mesh.numbers[np.isclose(mesh.coordinates[1], -9)]
    top = mesh.numbers[np.isclose(mesh.coordinates[1], 9)]
    assert set(bottom) == set(top)


@pytest.mark.parametrize("name", ["inflow", "outflow", "cylinder"])
def test_normals_close_around_the_domain(name):
    elements = Elements(cylinder_mesh(6))
    normal = elements.faces(name).normal.sum(axis=(1, 2))
    expected = {"inflow": [-18, 0], "outflow": [18, 0], "cylinder": [0, 0]}[name]
    np.testing.assert_allclose(normal, expected, atol=1e-12)
    length = np.hypot(*elements.faces("cylinder").normal).sum()
    assert length == pytest.approx(np.pi, abs=1e-6)


def test_folded_element_is_refused():
    with pytest.raises(ValueError, match="folded"):
        Elements(rectangle_mesh(np.array([0.0, 1.0]), np.array([0.0, 1.0]), 3, lambda x, y: (y, x)))


def elliptic_error(degree: int, reaction: float) -> float:
    """Solve `-Lap u + reaction u = f` on bent elements, u given on three sides, its flux on one."""
    mesh = bent_square(degree)
    elements = Elements(mesh)
    x, y = mesh.coordinates
    exact = np.exp(x) * np.sin(2 * y)
    north = elements.faces("north")
    slope_x, slope_y = north.restrict(exact), north.restrict(2 * np.exp(x) * np.cos(2 * y))
    flux = slope_x * north.normal[0] + slope_y * north.normal[1]
    right = elements.gather(elements.mass * (3 + reaction) * exact)
    right += np.bincount(north.numbers.ravel(), flux.ravel(), minlength=mesh.points)

    matrices = elements.stiffness.copy()
    diagonal = np.arange(matrices.shape[-1])
    matrices[:, diagonal, diagonal] += reaction * elements.mass.reshape(len(matrices), -1)
    fixed = np.unique(elements.faces("west", "east", "south").numbers)
    values = np.empty(mesh.points)
    values[mesh.numbers] = exact
    solver = CondensedSolver(mesh, matrices, fixed)
    one, double = solver.solve(np.stack([right, 2 * right]), np.outer([1, 2], values[fixed]))
    np.testing.assert_allclose(double, 2 * one, atol=1e-12)
    return np.abs(one - values).max()


@pytest.mark.parametrize("reaction", [0.0, 50.0], ids=["poisson", "helmholtz"])
def test_elliptic_solution_converges_spectrally_on_bent_elements(reaction):
    errors = np.array([elliptic_error(degree, reaction) for degree in (3, 5, 7, 9, 11)])
    assert np.all(errors[1:] < errors[:-1] / 20)
    assert errors[-1] < 1e-9


def test_poisson_converges_spectrally_on_the_cylinder_mesh():
    errors = []
    for degree in (4, 6, 8):
        mesh = cylinder_mesh(degree)
        elements = Elements(mesh)
        x, y = mesh.coordinates
        wave = np.pi / 9
        exact = np.cos(0.4 * x) * np.cos(wave * y)
        gradient = np.stack(
            [-0.4 * np.sin(0.4 * x) * np.cos(wave * y), -wave * np.cos(0.4 * x) * np.sin(wave * y)]
        )
        right = elements.gather(elements.mass * (0.16 + wave**2) * exact)
        walls = elements.faces("inflow", "cylinder")
        flux = np.sum(walls.restrict(gradient) * walls.normal, axis=0)
        right += np.bincount(walls.numbers.ravel(), flux.ravel(), minlength=mesh.points)
        fixed = np.unique(elements.faces("outflow").numbers)
        values = np.empty(mesh.points)
        values[mesh.numbers] = exact
        solution = CondensedSolver(mesh, elements.stiffness, fixed).solve(
            right[None], values[fixed]
        )
        errors.append(np.abs(solution[0] - values).max())
    assert errors[1] < errors[0] / 20
    assert errors[2] < errors[1] / 20


def test_sampling_reproduces_polynomials_on_bent_elements():
    mesh = bent_square(7)
    points = np.random.default_rng(0).uniform(size=(300, 2))
    points[:4] = [[0, 0], [1, 1], [0, 1], [1 / 3, 1 / 2]]
    x, y = places(mesh)
    # The map is curved, so only x and y themselves are polynomials of the local coordinates.
    sampled = sampling_matrix(mesh, points) @ np.column_stack([x, y, 2 * x - y])
    expected = np.column_stack([points, 2 * points[:, 0] - points[:, 1]])
    np.testing.assert_allclose(sampled, expected, atol=1e-12)
    with pytest.raises(ValueError, match="1 places lie outside"):
        sampling_matrix(mesh, np.array([[0.5, 0.5], [1.2, 0.5]]))


def test_window_is_sampled_in_the_order_of_the_file():
    mesh = cylinder_mesh(5)
    sampled = sampling_matrix(mesh, window_places()) @ places(mesh).T
    x, y = sampled.T.reshape(2, 50, 100)
    np.testing.assert_allclose(x, np.broadcast_to(embedded_harmonics().x, x.shape), atol=1e-10)
    np.testing.assert_allclose(y, np.broadcast_to(embedded_harmonics().y[:, None], y.shape))


# The flow solver

DECAY = 0.05


def vortices(x, y, time):
    """Taylor and Green's vortices, carried by a steady stream."""
    x, y, size = x - time, y - time / 2, np.exp(-2 * DECAY * np.pi**2 * time)
    return np.stack(
        [
            1 - size * np.cos(np.pi * x) * np.sin(np.pi * y),
            0.5 + size * np.sin(np.pi * x) * np.cos(np.pi * y),
        ]
    )


def vortices_pressure(x, y, time):
    x, y, size = x - time, y - time / 2, np.exp(-4 * DECAY * np.pi**2 * time)
    return -size / 4 * (np.cos(2 * np.pi * x) + np.cos(2 * np.pi * y))


REYNOLDS = 40
GROWTH = REYNOLDS / 2 - np.sqrt(REYNOLDS**2 / 4 + 4 * np.pi**2)


def kovasznay(x, y, time):
    """Kovasznay's steady flow behind a grid."""
    size = np.exp(GROWTH * x)
    return np.stack(
        [
            1 - size * np.cos(2 * np.pi * y),
            GROWTH / (2 * np.pi) * size * np.sin(2 * np.pi * y),
        ]
    )


def kovasznay_pressure(x, y, time):
    return (1 - np.exp(2 * GROWTH * x)) / 2


ALL_SIDES = ("west", "east", "south", "north")


def flow_errors(problem: FlowProblem, step: float, end: float) -> tuple[float, float]:
    """The largest errors of velocity and pressure, from exact initial values."""
    x, y = places(problem.mesh)
    past = np.stack([problem.velocity(x, y, -level * step) for level in range(3)])
    state = FlowState(0, past, problem.pressure(x, y, 0.0))
    solver = FlowSolver(problem, step)
    for _ in range(round(end / step)):
        state = solver.advance(state)
    velocity = np.abs(state.velocity[0] - problem.velocity(x, y, end)).max()
    return velocity, np.abs(state.pressure - problem.pressure(x, y, end)).max()


def test_time_stepping_is_of_third_order():
    problem = FlowProblem(bent_square(10), DECAY, ALL_SIDES, vortices, ("east",), vortices_pressure)
    errors = np.array([flow_errors(problem, 0.5 / count, 0.5) for count in (40, 80, 160)])
    orders = np.log2(errors[:-1] / errors[1:])
    assert np.all(orders > 2.8)
    assert errors[-1, 0] < 3e-6


def test_kovasznay_flow_converges_spectrally():
    errors = []
    for degree in (4, 6, 8):
        mesh = rectangle_mesh(np.linspace(-0.5, 1, 4), np.linspace(-0.5, 0.5, 3), degree)
        problem = FlowProblem(
            mesh, 1 / REYNOLDS, ALL_SIDES, kovasznay, ("east",), kovasznay_pressure
        )
        errors.append(flow_errors(problem, 0.004, 0.4))
    errors = np.array(errors)
    assert np.all(errors[1:] < errors[:-1] / 15)
    assert errors[-1, 0] < 1e-6


def test_force_on_a_known_field():
    # By Gauss's theorem on the disc of radius 1/2: minus the mean pressure slope times its area,
    # plus the viscosity times the mean of the divergence of the strain.
    mesh = cylinder_mesh(6)
    x, y = places(mesh)
    state = FlowState(0, np.stack([x**2 + y**2, 3 * x**2 + 2 * y**2])[None], 4 * x)
    solver = FlowSolver(cylinder_problem(mesh), 0.01)
    area = np.pi / 4
    expected = [area * (6 * 0.01 - 4), area * 14 * 0.01]
    np.testing.assert_allclose(solver.force(state, "cylinder"), expected, atol=1e-5)


def test_first_steps_past_the_cylinder_keep_mass_and_symmetry():
    mesh = cylinder_mesh(5)
    solver = FlowSolver(cylinder_problem(mesh), 0.01)
    state = FlowState(0, np.zeros((1, 2, mesh.points)), np.zeros(mesh.points))
    drags = []
    for _ in range(100):
        state = solver.advance(state)
        drag, lift = 2 * solver.force(state, "cylinder")
        assert abs(lift) < 1e-9  # the flow is symmetric until the cylinder turns, at t = 1
        drags.append(drag)
    assert np.all(np.isfinite(drags))
    assert max(drags) > 1
    assert solver.outflux(state, "inflow") == pytest.approx(-18)
    assert solver.outflux(state, "inflow", "outflow", "cylinder") == pytest.approx(0, abs=1e-9)
    assert solver.divergence(state) < 2e-3
    for _ in range(20):
        state = solver.advance(state)
    assert abs(solver.force(state, "cylinder")[1]) > 1e-4
