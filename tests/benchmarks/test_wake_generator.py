"""The wake's generator: its runs and records, and the shipped wake against physics."""

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

SHIPPED = Path(str(resources.files("unpinn.benchmarks") / "data" / "cylinder_wake.npz"))


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
    assert simulated.strouhal == pytest.approx(0.1694, abs=3e-4)
    assert simulated.drag == pytest.approx(1.380, abs=0.004)
    assert simulated.lift_amplitude == pytest.approx(0.337, abs=0.002)
    checks = {check.name: check.measured for check in check_equations(simulated.wake)}
    assert checks["b1 by least squares"] == pytest.approx(1, abs=1e-4)
    assert checks["b2 by least squares"] == pytest.approx(0.01, abs=5e-5)
    reference = embedded_harmonics().harmonics
    difference = np.linalg.norm(simulated.wake.harmonics[:, :2] - reference[:, :2])
    assert difference < 0.002 * np.linalg.norm(reference[:, :2])
