"""Nothing is lost: kills, full disks, directories that cannot be written, several processes."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import sys
import threading
import types
from pathlib import Path

import kills
import pytest
import victim

from unpinn import UserError, _files
from unpinn._files import read_json, write_bytes
from unpinn.runs import Configuration, RunDirectory, _lock, execute_or_read, pose
from unpinn.study import Store
from unpinn.study._store import BusyError
from unpinn.training import Adam, Protocol, train
from unpinn.training._checkpoint import Checkpoint


@pytest.fixture
def server(tmp_path):
    """Does work that is to be killed."""
    server = kills.Server(tmp_path / "cache")
    yield server
    server.close()


# -- kills ------------------------------------------------------------------------------------


def test_a_training_that_is_killed_a_few_times_ends_as_one_that_is_left_alone(server, tmp_path):
    tally, whole = kills.attack(server, "adam", 4, tmp_path, seed=3, each=2)
    assert tally.kills == 4 and tally.runs >= 2
    assert tally.good, tally
    assert whole.moments > 2 and whole.writes > 2


@pytest.mark.slow
@pytest.mark.parametrize("work", [*kills.ALONE, *kills.WITH_WORKERS])
def test_eight_kills_of_every_kind_of_work_change_nothing(work, server, tmp_path):
    tally, _ = kills.attack(server, work, 8, tmp_path, seed=0)
    assert tally.kills == 8
    assert tally.good, tally


def test_a_damaged_file_is_noticed(tmp_path):
    # The check of the kills must be able to fail.
    write_bytes(tmp_path / "metrics.json", b'{"l2re": 0.1}')
    _files.write_arrays(tmp_path / "fit.safetensors", {"a": victim.np.ones(3)})
    assert kills.damaged(tmp_path) == []
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:-2])
    assert len(kills.damaged(tmp_path)) == 2


# -- full disks -------------------------------------------------------------------------------


def trained(directory: Path) -> str:
    problem, observations = victim.decay()
    protocol = Protocol((Adam(epochs=40, rate=1e-2),), architecture=victim.TINY)
    fit = train(
        problem, observations, protocol, directory=directory, watcher=lambda _: None,
        checkpoint_interval=0.0,
    )  # fmt: skip
    return victim.digest_of_fit(fit)


def full_from(number: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Have the disk be full once so many files were written; gives how many have been."""
    written = [0]
    opened = os.fdopen

    def fdopen(handle: int, mode: str):
        written[0] += 1
        file = opened(handle, mode)
        if written[0] < number:
            return file

        def write(content: bytes) -> int:
            # A disk takes what it can before it says so.
            file.write(content[: len(content) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        return contextlib.closing(types.SimpleNamespace(write=write, close=file.close))

    system = types.SimpleNamespace(**vars(os))
    system.fdopen = fdopen
    monkeypatch.setattr(_files, "os", system)
    return written


@pytest.mark.parametrize("number", [1, 2, 5])
def test_a_disk_that_fills_while_training_leaves_the_last_checkpoint(number, tmp_path, monkeypatch):
    undisturbed = trained(tmp_path / "whole")
    with monkeypatch.context() as patch:
        full_from(number, patch)
        with pytest.raises(UserError, match=r"cannot write .*: no space left on device"):
            trained(tmp_path / "full")
    left = list((tmp_path / "full").iterdir())
    assert all(not path.name.endswith(_files.PARTIAL) for path in left)
    assert kills.damaged(tmp_path / "full") == []
    assert bool(left) == (number > 1)
    assert trained(tmp_path / "full") == undisturbed


def run_of(folder: Path, directory: Path) -> str:
    posed = pose(Configuration(str(folder / "decay.py"), "ppinn", seed=7))
    run = execute_or_read(posed, directory, pictures=False)
    return victim.digest_of([victim.digest_of_fit(run.fit), victim.substance(run.records)])


@pytest.mark.slow
def test_a_disk_that_fills_at_any_file_of_a_run_loses_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(Checkpoint, "due", lambda self: True)
    victim.statement(tmp_path)
    # That this problem file was run is noted once, outside of the run's directory.
    pose(Configuration(str(tmp_path / "decay.py"), "ppinn", seed=7))
    with monkeypatch.context() as patch:
        written = full_from(10**9, patch)
        undisturbed = run_of(tmp_path, tmp_path / "whole")
    assert written[0] > 20
    for number in range(1, written[0] + 1, 4):
        with monkeypatch.context() as patch:
            full_from(number, patch)
            with pytest.raises(UserError, match=r"cannot write .*: no space left on device"):
                run_of(tmp_path, tmp_path / "full")
        assert kills.damaged(tmp_path / "full") == []
        assert not RunDirectory(tmp_path / "full").finished
        # Every other time it goes on where it stopped, and else from nothing.
        assert run_of(tmp_path, tmp_path / "full") == undisturbed
        shutil.rmtree(tmp_path / "full")


@contextlib.contextmanager
def mounted(place: Path, options: str):
    """A file system of its own, where this process may mount one."""
    place.mkdir()
    told = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(told, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.slow
def test_a_disk_that_is_really_full_and_then_has_room_again(tmp_path):
    undisturbed = trained(tmp_path / "whole")
    with mounted(tmp_path / "small", "size=128k") as small:
        ballast = small / "ballast"
        ballast.write_bytes(b"0" * (128 << 10))
        with pytest.raises(UserError, match=r"cannot write .*: no space left on device"):
            trained(small / "run")
        assert kills.damaged(small / "run") == []
        ballast.unlink()
        assert trained(small / "run") == undisturbed


# -- directories that cannot be written ---------------------------------------------------------


def told_last(result) -> str:
    """The last line of what a command printed, which has no traceback."""
    assert "Traceback" not in result.output
    return result.output.strip().splitlines()[-1]


@pytest.mark.slow
def test_a_directory_that_may_only_be_read_is_told_before_any_work(tmp_path, run_cli):
    victim.statement(tmp_path)
    with mounted(tmp_path / "still", "size=1m") as still:
        run_of(tmp_path, still / "run")
        before = victim.files_of(still / "run")
        told = ["mount", "-o", "remount,ro", str(still)]
        subprocess.run(told, check=True)
        for out in (still / "run", still / "other"):
            result = run_cli("run", tmp_path / "decay.py", "--seed", 7, "--out", out, "--force")
            assert result.exit_code == 2 and "read-only file system" in told_last(result)
        with pytest.raises(UserError, match=r"cannot (make|write).*read-only file system"):
            Store(still / "store").claimed("0" * 16, {}).__enter__()
        # What was there can still be read.
        assert victim.files_of(still / "run") == before


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no directory that refuses everybody")
def test_a_directory_that_refuses_even_the_superuser_is_told_in_a_sentence(tmp_path, run_cli):
    victim.statement(tmp_path)
    result = run_cli("run", tmp_path / "decay.py", "--out", "/proc/self/unpinn")
    assert result.exit_code == 2
    assert told_last(result).startswith("unpinn: cannot make the directory /proc/self/unpinn: ")
    with pytest.raises(UserError, match="cannot make the directory"):
        Store(Path("/proc/self/unpinn")).claimed("0" * 16, {}).__enter__()
    with pytest.raises(UserError, match="cannot write /proc/self/notes"):
        write_bytes(Path("/proc/self/notes.txt"), b"")


def test_a_file_in_the_way_of_a_directory_is_left_alone(tmp_path, run_cli):
    victim.statement(tmp_path)
    (tmp_path / "taken").write_text("mine")
    for out in (tmp_path / "taken", tmp_path / "taken" / "run"):
        result = run_cli("run", tmp_path / "decay.py", "--out", out)
        assert result.exit_code == 2 and told_last(result).startswith("unpinn: ")
    assert (tmp_path / "taken").read_text() == "mine"


# -- several processes ------------------------------------------------------------------------


def test_a_run_that_another_process_is_at_is_refused(tmp_path):
    # The lock's own file alone: the rest of the package takes seconds to import.
    script = (
        "import sys, pathlib, importlib.util as u\n"
        "spec = u.spec_from_file_location('lock', sys.argv[2]); lock = u.module_from_spec(spec)\n"
        "spec.loader.exec_module(lock)\n"
        "with lock.locked(pathlib.Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    victim.statement(tmp_path)
    posed = pose(Configuration(str(tmp_path / "decay.py"), "pinn", epochs=5))
    store = Store(tmp_path / "store")
    for place in (tmp_path / "run", store.place("0" * 16).path):
        place.mkdir(parents=True)
        other = subprocess.Popen(
            [sys.executable, "-c", script, place, _lock.__file__],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert other.stdout.readline() == "held\n"
        if place.name == "run":
            with pytest.raises(UserError, match=f"is in use by process {other.pid} on .*; wait"):
                execute_or_read(posed, place, pictures=False)
        else:
            with pytest.raises(BusyError, match=f"process {other.pid}"):
                store.claimed("0" * 16, {}).__enter__()
        assert [path.name for path in place.iterdir()] == ["lock"]
        # However the other ends, the lock is gone with it.
        other.kill()
        other.communicate()
    execute_or_read(posed, tmp_path / "run", pictures=False)
    with store.claimed("0" * 16, {}):
        pass


def test_a_file_that_several_write_at_once_is_always_one_of_theirs(tmp_path):
    target, contents = tmp_path / "notes.json", [f'"{"abcd"[k] * 5000}"' for k in range(4)]
    stop = threading.Event()

    def write(content: str) -> None:
        while not stop.is_set():
            write_bytes(target, content.encode())

    write_bytes(target, contents[0].encode())
    writers = [threading.Thread(target=write, args=(content,)) for content in contents]
    for writer in writers:
        writer.start()
    seen = {read_json(target) for _ in range(300)}
    stop.set()
    for writer in writers:
        writer.join()
    assert seen <= {content.strip('"') for content in contents}
    assert [path.name for path in tmp_path.iterdir()] == ["notes.json"]


@pytest.mark.slow
def test_two_processes_at_one_store_share_the_work_and_at_one_run_take_turns(server, tmp_path):
    other = kills.Server(tmp_path / "cache")
    ends: dict[tuple[str, int], kills.Ended] = {}

    def work(name: str, number: int, at: kills.Server) -> None:
        ends[name, number] = at.run(name, tmp_path / name)

    for name in ("study", "unlearning"):
        both = [
            threading.Thread(target=work, args=(name, number, at))
            for number, at in enumerate((server, other))
        ]
        for one in both:
            one.start()
        for one in both:
            one.join()
        assert kills.damaged(tmp_path / name) == []
    other.close()
    for name in ("study", "unlearning"):
        alone = server.run(name, tmp_path / f"{name}-alone")
        # Done by whoever came first, and read by whoever asks now.
        again = server.run(name, tmp_path / name)
        assert again.digest == alone.digest
        assert alone.digest in {ends[name, 0].digest, ends[name, 1].digest}
    refused = [end for end in (ends["unlearning", 0], ends["unlearning", 1]) if end.said]
    assert len(refused) <= 1
    assert all("is in use by process" in end.said for end in refused)
