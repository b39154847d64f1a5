"""The wake's generator: each part against an exact solution, the shipped wake against physics."""

import io
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from unpinn._errors import UserError
from unpinn.benchmarks._wake import WakeHarmonics, embedded_harmonics, load_wake
from unpinn.benchmarks.wake_generator import (
    Check,
    Recording,
    SimulationSettings,
    aligned,
    check_equations,
    check_figures,
    check_wake,
    extract_harmonics,
    shifted,
    simulate,
    write_wake,
)
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

SHIPPED = Path(str(resources.files("unpinn.benchmarks") / "data" / "cylinder_wake.npz"))


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


# Runs, interruption, and records

QUICK = SimulationSettings(degree=3, step=0.02, end=2.5, record=1.0, spacing=0.1)


@pytest.fixture(scope="module")
def quick_recording() -> Recording:
    return simulate(QUICK)


def test_interrupted_run_ends_bitwise_equal(tmp_path, quick_recording):
    checkpoint = tmp_path / "run.checkpoint"

    def interrupt(line):
        if "t =    2.00" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(QUICK, checkpoint, checkpoint_seconds=0.0, report=interrupt)
    lines: list[str] = []
    resumed = simulate(QUICK, checkpoint, report=lines.append)
    assert "continuing from run.checkpoint at t = 1.980" in lines[0]
    np.testing.assert_array_equal(resumed.force, quick_recording.force)
    np.testing.assert_array_equal(resumed.frames, quick_recording.frames)
    assert len(resumed.frames) == len(resumed.time) == 10
    assert list(tmp_path.iterdir()) == [checkpoint]


def test_checkpoint_of_another_run_or_damaged_is_refused(tmp_path, quick_recording):
    checkpoint = tmp_path / "run.checkpoint"
    simulate(QUICK, checkpoint)
    other = SimulationSettings(degree=4, step=0.02, end=3.0, record=1.0)
    with pytest.raises(UserError, match="another degree and end"):
        simulate(other, checkpoint)
    content = checkpoint.read_bytes()
    checkpoint.write_bytes(content[: len(content) // 2])
    with pytest.raises(UserError, match="Cannot read the checkpoint"):
        simulate(QUICK, checkpoint)
    arrays = dict(np.load(io.BytesIO(content), allow_pickle=False))
    np.savez(tmp_path / "cut.npz", **(arrays | {"force": arrays["force"][:-1]}))
    with pytest.raises(UserError, match="damaged"):
        simulate(QUICK, tmp_path / "cut.npz")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"degree": 1}, "degree must be 2 to 16"),
        ({"step": 0.0}, "step must be positive"),
        ({"step": 0.03}, "must divide the frame spacing"),
        ({"record": 200.0}, "record must be positive and at most the end"),
    ],
)
def test_impossible_settings_are_one_sentence(change, message):
    with pytest.raises(UserError, match=message):
        SimulationSettings(**change)


def test_unstable_run_says_so():
    settings = SimulationSettings(degree=8, step=0.1, end=30.0, record=1.0)
    with pytest.raises(UserError, match=r"unstable at t = .*: use a smaller step than 0\.1"):
        simulate(settings)


def recording_of(wake: WakeHarmonics, start: float, end: float) -> Recording:
    """What a run would leave behind if its flow were the given wake."""
    step = 0.005
    time = step * np.arange(1, round(end / step) + 1)
    angle = 2 * np.pi * time / wake.period
    force = np.stack([1.38 + 0.01 * np.cos(2 * angle), 0.337 * np.sin(angle)], axis=1) / 2
    frames = np.arange(start + 0.1, end + 1e-9, 0.1)
    return Recording(step, force, frames, wake.fields(frames), divergence=0.0, outflux=0.0)


@pytest.mark.parametrize("delay", [0.0, 1.7, 4.4])
def test_harmonics_are_recovered_from_frames_whatever_the_phase(delay, tmp_path):
    reference = embedded_harmonics()
    simulated = extract_harmonics(recording_of(shifted(reference, delay), 10.0, 34.0))
    assert simulated.wake.period == pytest.approx(reference.period, rel=1e-7)
    assert simulated.drag == pytest.approx(1.38, rel=1e-6)
    assert simulated.lift_amplitude == pytest.approx(0.337, rel=1e-4)
    assert simulated.unsteadiness < 1e-5
    np.testing.assert_allclose(simulated.wake.harmonics, reference.harmonics, atol=1e-5)

    write_wake(tmp_path / "wake.npz", simulated)
    with np.load(tmp_path / "wake.npz") as ours, np.load(SHIPPED) as theirs:
        assert set(ours.files) == set(theirs.files)
        assert all(ours[k].shape == theirs[k].shape for k in ours.files)
        assert all(ours[k].dtype == theirs[k].dtype for k in ours.files)
    np.testing.assert_allclose(load_wake(tmp_path / "wake.npz").u, load_wake().u, atol=1e-5)


def test_shift_is_a_shift_in_time():
    wake = embedded_harmonics()
    late = shifted(wake, 0.8).fields(np.array([0.0, 1.0]))
    np.testing.assert_allclose(late, wake.fields(np.array([0.8, 1.8])), atol=1e-12)


def test_mirrored_flow_is_aligned():
    wake = embedded_harmonics()
    signs = np.array([1, -1, 1])[:, None, None]
    mirrored = WakeHarmonics(wake.x, wake.y, wake.period, wake.harmonics[:, :, ::-1] * signs)
    assert np.abs(mirrored.harmonics - wake.harmonics).max() > 1
    np.testing.assert_allclose(aligned(mirrored, wake).harmonics, wake.harmonics, atol=2e-3)


def test_too_short_recordings_are_refused(quick_recording):
    with pytest.raises(UserError, match="run longer"):
        extract_harmonics(quick_recording)
    with pytest.raises(UserError, match="run longer"):
        extract_harmonics(recording_of(embedded_harmonics(), 10.0, 18.0))


# The checks


def test_shipped_wake_passes_every_check():
    checks = check_wake(SHIPPED)
    assert len(checks) == 7
    assert [check for check in checks if not check.passed] == []


def _scaled(field: int, factor: float, harmonic: slice = slice(None)):
    def change(harmonics):
        harmonics[harmonic, field] *= factor

    return change


SPOILED = {
    "pressure": (_scaled(2, 1.01), {"residual (relative)", "b1 by least squares"}),
    "cross velocity": (_scaled(1, 1.01), {"divergence (relative)"}),
    "mean stream": (_scaled(0, 1.001, slice(0, 1)), {"residual (relative)"}),
    "third harmonic": (_scaled(0, 0.9, slice(5, 7)), {"divergence (relative)"}),
}


@pytest.mark.parametrize("name", SPOILED)
def test_spoiled_wake_fails(name):
    spoil, expected = SPOILED[name]
    wake = embedded_harmonics()
    harmonics = np.array(wake.harmonics, dtype=np.float64)
    spoil(harmonics)
    checks = check_equations(WakeHarmonics(wake.x, wake.y, wake.period, harmonics))
    assert expected <= {check.name for check in checks if not check.passed}


def test_wrong_period_fails_the_equations():
    wake = embedded_harmonics()
    checks = check_equations(WakeHarmonics(wake.x, wake.y, 1.005 * wake.period, wake.harmonics))
    assert "b1 by least squares" in {check.name for check in checks if not check.passed}


def test_figures_fail_outside_their_tolerance():
    assert all(check.passed for check in check_figures(0.169445, 1.37999, 0.337025))
    assert not any(check.passed for check in check_figures(0.172, 1.37, 0.33))
    assert not Check("b1", float("nan"), 1.0, 0.1).passed


def test_file_without_forces_is_named(tmp_path):
    with np.load(SHIPPED) as archive:
        np.savez(tmp_path / "bare.npz", **{k: archive[k] for k in archive.files if k != "drag"})
    with pytest.raises(UserError, match=r"bare\.npz.* lacks drag"):
        check_wake(tmp_path / "bare.npz")


def command_line():
    import typer

    from unpinn.benchmarks.wake_generator.__main__ import generate

    application = typer.Typer()
    application.command()(generate)
    return application


def test_command_line_checks_a_file(tmp_path):
    passed = CliRunner().invoke(command_line(), ["--verify", str(SHIPPED)])
    assert passed.exit_code == 0
    assert "Strouhal" in passed.output
    (tmp_path / "broken.npz").write_bytes(b"no archive")
    failed = CliRunner().invoke(command_line(), ["--verify", str(tmp_path / "broken.npz")])
    assert failed.exit_code == 2
    assert "broken.npz" in failed.output
    absent = CliRunner().invoke(command_line(), ["--output", str(tmp_path / "no" / "wake.npz")])
    assert absent.exit_code == 2
    assert "create it first" in absent.output


@pytest.mark.slow
def test_coarse_run_from_rest_reproduces_the_wake(tmp_path):
    settings = SimulationSettings(degree=5, step=0.00625, end=85.0, record=15.0)
    simulated = extract_harmonics(simulate(settings))
    assert simulated.strouhal == pytest.approx(0.1694, abs=1e-3)
    assert simulated.drag == pytest.approx(1.380, abs=0.01)
    assert simulated.lift_amplitude == pytest.approx(0.337, abs=0.01)
    checks = {check.name: check.measured for check in check_equations(simulated.wake)}
    assert checks["b1 by least squares"] == pytest.approx(1, abs=2e-3)
    assert checks["b2 by least squares"] == pytest.approx(0.01, abs=2e-4)
    reference = embedded_harmonics().harmonics
    difference = np.linalg.norm(simulated.wake.harmonics[:, :2] - reference[:, :2])
    assert difference < 0.01 * np.linalg.norm(reference[:, :2])
