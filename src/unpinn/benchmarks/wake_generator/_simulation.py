"""The flow past a cylinder from rest: settings, run, record, and safe resumption."""

import time as clock
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from unpinn._errors import UserError
from unpinn.benchmarks.wake_generator._checkpoint import read_checkpoint, write_checkpoint
from unpinn.benchmarks.wake_generator._flow import FlowProblem, FlowSolver, FlowState
from unpinn.benchmarks.wake_generator._mesh import Mesh, cylinder_mesh
from unpinn.benchmarks.wake_generator._sampling import sampling_matrix

VISCOSITY = 0.01
WINDOW_X = np.linspace(1.0, 8.0, 100)
WINDOW_Y = np.linspace(-2.0, 2.0, 50)

# A hundred times the forces of this flow: the run has become unstable.
RUNAWAY_FORCE = 100.0

# The stream takes this long to start; then, for a while, the cylinder turns.
RAMP = 1.0
NUDGE_START, NUDGE_LENGTH, NUDGE_SPEED = 1.0, 3.0, 0.5


@dataclass(frozen=True)
class SimulationSettings:
    """How the flow is computed.

    Arguments:
        degree: the polynomial degree of the elements.
        step: the time step.
        end: the time at which the run stops.
        record: how long before the end the recording of the window begins.
        spacing: the time between recorded frames, a multiple of the step.
    """

    degree: int = 8
    step: float = 0.005
    end: float = 122.0
    record: float = 24.0
    spacing: float = 0.1

    def __post_init__(self) -> None:
        if not 2 <= self.degree <= 16:
            raise UserError(f"The degree must be 2 to 16, not {self.degree}.")
        if not 0 < self.step <= self.end:
            raise UserError(f"The step must be positive and at most the end, not {self.step}.")
        if not 0 < self.record <= self.end:
            raise UserError(f"The record must be positive and at most the end, not {self.record}.")
        ratio = self.spacing / self.step
        if round(ratio) < 1 or abs(ratio - round(ratio)) > 1e-9:
            raise UserError(
                f"The step {self.step} must divide the frame spacing {self.spacing}: choose, for "
                f"example, {self.spacing / max(1, round(ratio)):g}."
            )

    @property
    def steps(self) -> int:
        """How many steps the run takes."""
        return round(self.end / self.step)

    @property
    def first_frame(self) -> int:
        """The step from which frames are recorded."""
        return round((self.end - self.record) / self.step)

    @property
    def stride(self) -> int:
        """The number of steps between frames."""
        return round(self.spacing / self.step)

    def frame_steps(self, upto: int) -> np.ndarray:
        """The steps, up to one, at which frames are recorded."""
        return np.arange(self.first_frame + self.stride, upto + 1, self.stride)


@dataclass(frozen=True)
class Recording:
    """What a run leaves behind.

    Arguments:
        step: the time step.
        force: the force on the cylinder after every step, shape `(steps, 2)`.
        time: the times of the frames, shape `(frames,)`.
        frames: velocity and pressure on the window, shape `(frames, 3, ny, nx)`.
        divergence: the root mean square of the divergence over the domain at the end.
        outflux: what flows out through all boundaries at the end; zero if no mass is lost.
    """

    step: float
    force: np.ndarray
    time: np.ndarray
    frames: np.ndarray
    divergence: float
    outflux: float


def boundary_velocity(x: np.ndarray, y: np.ndarray, time: float) -> np.ndarray:
    """A stream that starts smoothly, and a cylinder that turns briefly to break the symmetry.

    Without the turn the flow would stay symmetric until rounding errors have grown.
    """
    fraction = min(time / RAMP, 1.0)
    stream = fraction**3 * (10 - 15 * fraction + 6 * fraction**2)
    phase = (time - NUDGE_START) / NUDGE_LENGTH
    turn = 2 * NUDGE_SPEED * np.sin(np.pi * phase) ** 2 if 0 < phase < 1 else 0.0
    on_cylinder = np.hypot(x, y) < 1.0
    return np.stack(
        [np.where(on_cylinder, -turn * y, stream), np.where(on_cylinder, turn * x, 0.0)]
    )


def cylinder_problem(mesh: Mesh) -> FlowProblem:
    """The flow past the cylinder at Reynolds number 100."""
    return FlowProblem(
        mesh=mesh,
        viscosity=VISCOSITY,
        walls=("inflow", "cylinder"),
        velocity=boundary_velocity,
        outlets=("outflow",),
    )


def window_places() -> np.ndarray:
    """The places of the window, x fastest, shape `(5000, 2)`."""
    x, y = np.meshgrid(WINDOW_X, WINDOW_Y)
    return np.column_stack([x.ravel(), y.ravel()])


def simulate(
    settings: SimulationSettings,
    checkpoint: Path | None = None,
    checkpoint_seconds: float = 120.0,
    report: Callable[[str], None] = lambda line: None,
) -> Recording:
    """Run the flow from rest, or from where an interrupted run was saved.

    Arguments:
        settings: how the flow is computed.
        checkpoint: a file that holds the run's state, written at intervals and at the end; a
            run killed at any moment continues from it and ends with the same numbers.
        checkpoint_seconds: the time between two writings.
        report: receives a line of progress for every unit of time.
    """
    mesh = cylinder_mesh(settings.degree)
    solver = FlowSolver(cylinder_problem(mesh), settings.step)
    sampler = sampling_matrix(mesh, window_places())
    force = np.zeros((settings.steps, 2))
    frames = np.zeros((len(settings.frame_steps(settings.steps)), 3, len(WINDOW_Y), len(WINDOW_X)))
    state = FlowState(0, np.zeros((1, 2, mesh.points)), np.zeros(mesh.points))
    if checkpoint is not None and checkpoint.is_file():
        state = _restore(checkpoint, settings, mesh, force, frames)
        report(f"continuing from {checkpoint.name} at t = {state.step * settings.step:.3f}")

    saved = clock.monotonic()
    progress = _Progress(settings, state.step, report)
    while state.step < settings.steps:
        with np.errstate(over="ignore", invalid="ignore"):
            state = solver.advance(state)
            force[state.step - 1] = solver.force(state, "cylinder")
        done = state.step
        if not np.all(np.abs(force[done - 1]) < RUNAWAY_FORCE):
            raise UserError(
                f"The flow became unstable at t = {done * settings.step:.3f}: use a smaller step "
                f"than {settings.step}."
            )
        since = done - settings.first_frame
        if since > 0 and since % settings.stride == 0:
            fields = np.concatenate([state.velocity[0], state.pressure[None]])
            frames[since // settings.stride - 1] = (sampler @ fields.T).T.reshape(frames.shape[1:])
        progress.tell(done, force[done - 1])
        finished = done == settings.steps
        if checkpoint is not None and (finished or clock.monotonic() - saved > checkpoint_seconds):
            _save(checkpoint, settings, state, force, frames)
            saved = clock.monotonic()
    return Recording(
        step=settings.step,
        force=force,
        time=settings.frame_steps(settings.steps) * settings.step,
        frames=frames,
        divergence=solver.divergence(state),
        outflux=solver.outflux(state, "inflow", "outflow", "cylinder"),
    )


class _Progress:
    """A line for every unit of time, with the time left judged by this run's own pace."""

    def __init__(
        self, settings: SimulationSettings, first_step: int, report: Callable[[str], None]
    ):
        self.settings, self.first_step, self.report = settings, first_step, report
        self.unit = max(1, round(1 / settings.step))
        self.began = clock.monotonic()

    def tell(self, done: int, force: np.ndarray) -> None:
        if done % self.unit:
            return
        settings = self.settings
        pace = (clock.monotonic() - self.began) / (done - self.first_step)
        left = pace * (settings.steps - done)
        drag, lift = 2 * force
        self.report(
            f"t = {done * settings.step:7.2f} of {settings.end:g}   drag {drag:8.5f}   "
            f"lift {lift:8.5f}   {left / 60:5.1f} minutes left"
        )


def _save(
    checkpoint: Path,
    settings: SimulationSettings,
    state: FlowState,
    force: np.ndarray,
    frames: np.ndarray,
) -> None:
    arrays = {
        "step": np.array(state.step),
        "velocity": state.velocity,
        "pressure": state.pressure,
        "force": force[: state.step],
        "frames": frames[: len(settings.frame_steps(state.step))],
    }
    write_checkpoint(checkpoint, asdict(settings), arrays)


def _restore(
    checkpoint: Path,
    settings: SimulationSettings,
    mesh: Mesh,
    force: np.ndarray,
    frames: np.ndarray,
) -> FlowState:
    arrays = read_checkpoint(
        checkpoint,
        asdict(settings),
        keys=("step", "velocity", "pressure", "force", "frames"),
    )
    step = int(arrays["step"])
    recorded = len(settings.frame_steps(step))
    shapes = {
        "velocity": (min(step + 1, 3), 2, mesh.points),
        "pressure": (mesh.points,),
        "force": (step, 2),
        "frames": (recorded, *frames.shape[1:]),
    }
    if step > settings.steps or any(arrays[key].shape != shapes[key] for key in shapes):
        raise UserError(f"The checkpoint {checkpoint.name!r} is damaged: delete it to start again.")
    force[:step] = arrays["force"]
    frames[:recorded] = arrays["frames"]
    return FlowState(step, arrays["velocity"], arrays["pressure"])
