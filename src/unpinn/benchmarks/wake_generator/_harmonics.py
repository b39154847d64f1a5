"""From a recorded flow to its temporal harmonics."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import minimize_scalar

from unpinn._errors import UserError
from unpinn.benchmarks._wake import WakeHarmonics, embedded_harmonics, temporal_basis
from unpinn.benchmarks.wake_generator._checkpoint import write_archive
from unpinn.benchmarks.wake_generator._simulation import WINDOW_X, WINDOW_Y, Recording

HARMONICS = 8
TERMS = 2 * HARMONICS + 1
# Over fewer cycles the harmonics and the period cannot be told from a drift.
FEWEST_CYCLES = 2


@dataclass(frozen=True)
class SimulatedWake:
    """A periodic wake and the numbers that sum it up.

    Arguments:
        wake: the harmonics of velocity and pressure on the window.
        drag: the mean drag coefficient.
        lift_amplitude: the amplitude of the lift coefficient, half its range.
        unsteadiness: the part of the recorded fluctuations that does not repeat (relative root mean
            square); small once the flow has reached its cycle.
    """

    wake: WakeHarmonics
    drag: float
    lift_amplitude: float
    unsteadiness: float

    @property
    def strouhal(self) -> float:
        """The shedding frequency in units of stream speed over diameter."""
        return 1 / self.wake.period


def extract_harmonics(recording: Recording) -> SimulatedWake:
    """The harmonics of a recording, with time measured as in the embedded wake."""
    begin = recording.time[0]
    time = recording.step * np.arange(1, len(recording.force) + 1)
    kept = time >= begin
    drag, lift = 2 * recording.force[kept].T
    period = shedding_period(time[kept], lift)
    cycles = int((time[-1] - begin) // period)
    if cycles < FEWEST_CYCLES:
        raise UserError(
            f"The recording holds {cycles} cycles of shedding where {FEWEST_CYCLES} are needed: "
            "run longer, or record more of the end."
        )
    basis = temporal_basis(time[kept], period, TERMS)
    forces = np.linalg.lstsq(basis, np.column_stack([drag, lift]), rcond=None)[0]
    fine = temporal_basis(np.linspace(0, period, 1000, endpoint=False), period, TERMS)
    smooth_lift = fine @ forces[:, 1]

    frames = recording.frames.reshape(len(recording.frames), -1)
    basis = temporal_basis(recording.time, period, TERMS)
    coefficients = np.linalg.lstsq(basis, frames, rcond=None)[0]
    rest = np.linalg.norm(frames - basis @ coefficients)
    moving = np.linalg.norm(frames - frames.mean(axis=0))
    harmonics = coefficients.reshape(TERMS, *recording.frames.shape[1:])
    wake = WakeHarmonics(x=WINDOW_X, y=WINDOW_Y, period=period, harmonics=harmonics)
    return SimulatedWake(
        wake=aligned(wake, embedded_harmonics()),
        drag=float(forces[0, 0]),
        lift_amplitude=float(np.ptp(smooth_lift) / 2),
        unsteadiness=float(rest / moving),
    )


def shedding_period(time: np.ndarray, lift: np.ndarray) -> float:
    """The period whose harmonics fit the lift best."""
    above = lift > lift.mean()
    rising = np.flatnonzero(~above[:-1] & above[1:])
    if len(rising) < FEWEST_CYCLES + 1:
        raise UserError(
            f"The lift oscillates fewer than {FEWEST_CYCLES} times in the recording: run longer, "
            "or record more of the end."
        )
    guess = (time[rising[-1]] - time[rising[0]]) / (len(rising) - 1)

    def misfit(logarithm: float) -> float:
        basis = temporal_basis(time, guess * np.exp(logarithm), TERMS)
        rest = lift - basis @ np.linalg.lstsq(basis, lift, rcond=None)[0]
        return float(np.linalg.norm(rest))

    found = minimize_scalar(misfit, bounds=(-0.05, 0.05), method="bounded", options={"xatol": 1e-9})
    return float(guess * np.exp(found.x))


def shifted(wake: WakeHarmonics, delay: float) -> WakeHarmonics:
    """The same flow seen `delay` later: `shifted(wake, d)` at 0 is `wake` at d."""
    angle = 2 * np.pi * delay / wake.period * np.arange(1, len(wake.harmonics) // 2 + 1)
    cosine, sine = (part[:, None, None, None] for part in (np.cos(angle), np.sin(angle)))
    even, odd = wake.harmonics[1::2], wake.harmonics[2::2]
    harmonics = np.array(wake.harmonics, dtype=np.float64)
    harmonics[1::2] = cosine * even + sine * odd
    harmonics[2::2] = cosine * odd - sine * even
    return WakeHarmonics(x=wake.x, y=wake.y, period=wake.period, harmonics=harmonics)


def aligned(wake: WakeHarmonics, reference: WakeHarmonics) -> WakeHarmonics:
    """The wake with its time origin moved to match a reference on the same window.

    The origin is where the first harmonics of the cross velocity agree best. A flow that mirrors
    the reference is the reference half a period later, so it needs nothing more.
    """
    ours, theirs = (w.harmonics[1, 1] - 1j * w.harmonics[2, 1] for w in (wake, reference))
    angle = np.angle(np.sum(theirs * np.conj(ours)))
    return shifted(wake, float(angle) / (2 * np.pi) * wake.period)


def write_wake(path: Path, simulated: SimulatedWake) -> None:
    """Write the harmonics file that `load_wake` reads."""
    wake = simulated.wake
    contents = {
        "x": wake.x,
        "y": wake.y,
        "period": np.array(wake.period),
        "harmonics": wake.harmonics.astype(np.float32),
        "strouhal": np.array(simulated.strouhal),
        "drag": np.array(simulated.drag),
        "lift_amplitude": np.array(simulated.lift_amplitude),
    }
    write_archive(path, contents, compress=True)
