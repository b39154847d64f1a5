"""Studies on the workers of a Dask scheduler, and on jobs of a queue."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.study.conftest import ELSEWHERE, PLAN, SLOWLY, substance
from tests.study.test_local import wait_until_under_way

from unpinn import UserError
from unpinn.study import Cluster, Store, connect, missing, run_study
from unpinn.study._cluster import perform_text
from unpinn.study._perform import DONE, FAILED, THERE

# Dask's own code leaves sockets and event loops to the collector.
pytestmark = pytest.mark.filterwarnings(
    "default::ResourceWarning", "default::DeprecationWarning", "default::UserWarning",
    "default::pytest.PytestUnraisableExceptionWarning", "default::RuntimeWarning",
)  # fmt: skip


@pytest.fixture
def cluster(tmp_path):
    """A scheduler and two worker processes that work somewhere else than the study."""
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
            local_directory=str(elsewhere), silence_logs=50,
        ) as there,
        distributed.Client(there) as client,
    ):  # fmt: skip
        client.run(os.chdir, str(elsewhere))
        yield Cluster(client)


@pytest.mark.slow
def test_a_cluster_gets_the_results_of_this_process(studied, decay, tmp_path, cluster, monkeypatch):
    # Named as it lies beside the study, which the workers' directories do not.
    monkeypatch.chdir(tmp_path)
    decay()
    from unpinn.study import Choice, graph_of, read_plan

    graph = graph_of([read_plan("decay.toml")], Choice("quick", (1, 2)))
    assert [*graph.nodes] == [*studied.graph.nodes]
    store = Store(Path("store"))
    assert cluster.workers == 2
    summary = run_study(graph, store, cluster)
    assert summary.failed == {}
    for address in graph.nodes:
        assert substance(store.record(address)) == substance(studied.store.record(address))


@pytest.mark.slow
def test_a_killed_worker_of_a_cluster_costs_no_run(decay, tmp_path, cluster):
    alone = PLAN.replace('["pinn", "ppinn"]', '["pinn"]')
    graph, store = decay(alone, more=SLOWLY, epochs=4_000), Store(tmp_path / "store")
    first = next(iter(graph.nodes))
    killed: list[int] = []

    def kill():
        killed.append(wait_until_under_way(store, first))
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    summary = run_study(graph, store, cluster)
    killer.join()
    assert killed and summary.failed == {}
    undisturbed = Store(tmp_path / "undisturbed")
    run_study(graph, undisturbed, cluster)
    for address in graph.nodes:
        assert substance(store.record(address)) == substance(undisturbed.record(address))


@pytest.mark.slow
def test_a_run_that_nobody_waits_for_any_more_keeps_a_checkpoint_and_ends(decay, tmp_path, cluster):
    graph, store = decay(more=SLOWLY, epochs=200_000), Store(tmp_path / "store")
    job = missing(graph, store)[0]
    future = cluster._client.submit(perform_text, job.text(), pure=False)
    process = wait_until_under_way(store, job.address)
    future.cancel()
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            with store.claimed(job.address, {}):
                break
        except Exception:
            time.sleep(0.1)
    else:
        raise AssertionError("the run was not given up")
    os.kill(process, 0)
    assert not store.done(job.address) and any(store.place(job.address).checkpoints.rglob("*.*"))
    # The worker lives, and takes other work.
    assert cluster._client.submit(sum, [1, 2]).result(timeout=30) == 3


@pytest.mark.slow
def test_where_a_baseline_failed_the_others_are_not_begun(decay, tmp_path, cluster):
    broken = f"{ELSEWHERE}\nif elsewhere:\n    problem = 3\n"
    graph, store = decay(more=broken), Store(tmp_path / "store")
    summary = run_study(graph, store, cluster)
    assert {*summary.failed} == {*graph.nodes}
    begun = [reason for reason in summary.failed.values() if not reason.startswith("its baseline")]
    assert len(begun) == 2 and all("decay.py" in reason for reason in begun)


@pytest.mark.slow
def test_a_scheduler_that_goes_away_is_told_in_one_sentence(decay, tmp_path):
    pytest.importorskip("distributed", reason="Dask is not installed")
    graph, store = decay(more=SLOWLY, epochs=200_000), Store(tmp_path / "store")
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0",
               "--no-dashboard", "--scheduler-file", str(tmp_path / "scheduler.json")]  # fmt: skip
    scheduler = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        address = scheduler_address(tmp_path / "scheduler.json")
        executor = connect(address, slurm=False, workers=None)
        threading.Timer(2.0, scheduler.kill).start()
        with pytest.raises(UserError, match="the Dask scheduler is gone"):
            run_study(graph, store, executor)
    finally:
        scheduler.kill()
        scheduler.wait()


def scheduler_address(file: Path, patience: float = 60.0) -> str:
    import json

    until = time.monotonic() + patience
    while time.monotonic() < until:
        if file.exists() and file.read_text().strip():
            return json.loads(file.read_text())["address"]
        time.sleep(0.1)
    raise AssertionError("the scheduler did not start")


# -- Slurm ---------------------------------------------------------------------------------

# What stands in for Slurm: keeps the job's script, as Slurm does, since whoever hands it in removes
# it at once, and runs it here in the background.
SBATCH = """#!/bin/sh
cp "$1" "{folder}/script-$$.sh"
setsid sh "{folder}/script-$$.sh" >"{folder}/worker-$$.log" 2>&1 &
echo $! >"{folder}/process-$$"
echo "Submitted batch job $$"
"""
SCANCEL = '#!/bin/sh\nfor job; do kill "$(cat "{folder}/process-$job")"; done\n'
SETTINGS = {
    "jobqueue.slurm.cores": 1, "jobqueue.slurm.memory": "2GB", "jobqueue.slurm.queue": "short",
    "jobqueue.slurm.account": "physics", "jobqueue.slurm.walltime": "02:00:00",
    "jobqueue.slurm.interface": "lo", "jobqueue.slurm.scheduler-options": {"dashboard": False},
    "jobqueue.slurm.job-script-prologue": ["export OMP_NUM_THREADS=1"],
}  # fmt: skip


@pytest.fixture
def queue(tmp_path, monkeypatch) -> Path:
    """A folder with `sbatch` and `scancel` in it, which are found first."""
    folder = tmp_path / "queue"
    folder.mkdir()
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        script = folder / name
        script.write_text(text.format(folder=folder))
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


@pytest.mark.slow
def test_slurm_jobs_are_submitted_as_configured_and_do_the_study(studied, tmp_path, queue):
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed")
    import dask

    with dask.config.set(SETTINGS):
        executor = connect(None, slurm=True, workers=2)
        try:
            store = Store(tmp_path / "store")
            assert run_study(studied.graph, store, executor).failed == {}
        finally:
            executor._client.cluster.close()
            executor._client.close()
    for address in studied.graph.nodes:
        assert substance(store.record(address)) == substance(studied.store.record(address))
    scripts = [path.read_text() for path in queue.glob("script-*.sh")]
    assert len(scripts) == 2
    for script in scripts:
        lines = script.splitlines()
        assert lines[0].startswith("#!/")
        assert {"#SBATCH -p short", "#SBATCH -A physics", "#SBATCH -t 02:00:00"} <= {*lines}
        assert "#SBATCH --cpus-per-task=1" in lines and "#SBATCH -n 1" in lines
        assert "export OMP_NUM_THREADS=1" in lines
        (worker,) = [line for line in lines if "dask" in line and line.startswith(sys.executable)]
        assert "tcp://" in worker and "--nthreads 1" in worker


@pytest.mark.slow
def test_a_queue_that_is_not_described_is_told_so(monkeypatch):
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed")
    with pytest.raises(UserError, match=r"state cores, memory .* under jobqueue.slurm"):
        connect(None, slurm=True, workers=1)


@pytest.mark.slow
def test_a_scheduler_that_does_not_answer_is_told_so():
    pytest.importorskip("distributed", reason="Dask is not installed")
    with pytest.raises(UserError, match=r"no Dask scheduler answers at tcp://127.0.0.1:1 \("):
        connect("tcp://127.0.0.1:1", slurm=False, workers=None)


# -- without a cluster ---------------------------------------------------------------------


@pytest.mark.parametrize(("module", "slurm"), [("distributed", False), ("dask_jobqueue", True)])
def test_without_dask_the_extra_is_named(monkeypatch, module, slurm):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UserError, match=r"not installed; install unpinn\[cluster\]"):
        connect("tcp://127.0.0.1:1", slurm=slurm, workers=None)


def test_a_job_is_done_the_same_outside_a_cluster(studied, tmp_path):
    job = missing(studied.graph, Store(tmp_path / "store"))[1]
    lost = {"address": "0" * 16, "status": FAILED, "reason": "it broke"}
    outcome = perform_text(job.text(), lost)
    assert outcome["status"] == FAILED and outcome["reason"] == "its baseline failed (it broke)"
    there = missing(studied.graph, Store(tmp_path / "store"))[0]
    text = there.text().replace(str(tmp_path / "store"), str(studied.store.path))
    assert perform_text(text)["status"] in (THERE, DONE)
