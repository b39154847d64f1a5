"""Run a method on a posed problem, in a directory from which an interrupted run goes on."""

from __future__ import annotations

import contextlib
import difflib
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from unpinn._errors import UserError
from unpinn._files import read_json, write_json
from unpinn.problem import Problem
from unpinn.report import write_report, write_suspects
from unpinn.rivals import Method, Task, method_named, run_method
from unpinn.runs._configuration import Configuration
from unpinn.runs._directory import FORMAT, RunDirectory
from unpinn.runs._metrics import check_records, metrics_record
from unpinn.runs._outputs import write_history
from unpinn.runs._pictures import write_pictures
from unpinn.runs._posed import Posed
from unpinn.training import Fit, Watcher, load

BASELINE = "pinn"

# Told in a few words which part of a run begins.
Announce = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run.

    Arguments:
        posed: what was asked.
        fits: by method, the baseline first where there is one.
        records: one for each of them, as in metrics.json.
        directory: where everything was written, if it was.
    """

    posed: Posed
    fits: dict[str, Fit]
    records: list[dict[str, Any]]
    directory: Path | None = None

    @property
    def fit(self) -> Fit:
        """The result."""
        return list(self.fits.values())[-1]


def execute(
    posed: Posed,
    directory: Any = None,
    *,
    force: bool = False,
    baseline: Fit | None = None,
    watcher: Watcher | None = None,
    announce: Announce | None = None,
    pictures: bool = True,
) -> Run:
    """Run what was posed.

    Arguments:
        posed: what to do, from `pose`.
        directory: where to keep everything; nothing is kept without one.
        force: discard an earlier run that is there.
        baseline: the plain network, where it was trained before on the same settings.
        watcher: is told how training goes.
        announce: is told which part begins.
        pictures: whether to draw.
    """
    method = check_method(posed)
    work = _Work(posed, method, baseline, watcher, announce or (lambda text: None))
    if directory is None:
        return work.run(None)
    place = RunDirectory(Path(directory))
    with place.entered(posed.description(), force):
        run = replace(work.run(place.checkpoints), directory=place.path)
        _write(run, place, announce or (lambda text: None), pictures)
    return run


def execute_or_read(posed: Posed, directory: Any, **options: Any) -> Run:
    """`execute`, unless the same run is there, finished; then what it has written."""
    place = RunDirectory(Path(directory))
    if options.get("force") or not (place.is_run() and place.finished):
        return execute(posed, directory, **options)
    description = {"format": FORMAT, **posed.description()}
    if read_json(place.configuration) != description:
        # Entering it says which setting differs.
        return execute(posed, directory, **options)
    fit, records = read_run(directory, posed.problem)
    fits = {fit.method: fit}
    if len(records) > 1 and fit.before is not None:
        fits = {BASELINE: fit.before, fit.method: fit}
    return Run(posed, fits, records, place.path)


def check_method(posed: Posed) -> Method:
    """The method asked for, refused before anything is trained where it cannot be run so."""
    method = method_named(posed.configuration.method)
    for name in posed.configuration.options:
        if name not in method.options:
            close = difflib.get_close_matches(name, method.options, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            known = ", ".join(method.options) or "none"
            raise UserError(f"method {method.name!r} has no option {name!r} (it has {known}){hint}")
    if method.needs_truth and posed.readings is None:
        raise UserError(
            f"method {method.name!r} must be told the true noise of every reading, which only "
            "benchmarks know"
        )
    return method


def read_run(directory: Any, problem: Problem | None = None) -> tuple[Fit, list[dict[str, Any]]]:
    """A finished run's fit and records.

    Arguments:
        directory: where it was written.
        problem: what it is a run of, where that is a file of the user's own.
    """
    place = RunDirectory(Path(directory))
    if not place.is_run():
        raise UserError(f"{place.path} is not a run's directory; `unpinn run` makes one")
    if not place.finished:
        raise UserError(f"the run in {place.path} is not finished; repeat its command to go on")
    return load(place.fit, problem), check_records(read_json(place.metrics), place.metrics, True)


def read_configuration(directory: Any) -> Configuration:
    """What the run in a directory is a run of."""
    place = RunDirectory(Path(directory))
    if not place.is_run():
        raise UserError(f"{place.path} is not a run's directory; `unpinn run` makes one")
    try:
        return Configuration.from_dict(read_json(place.configuration))
    except (TypeError, AttributeError) as error:
        told = " ".join(str(error).split())[:200]
        raise UserError(f"{place.configuration} is not a run's configuration ({told})") from None


@dataclass(frozen=True, eq=False)
class _Work:
    """The parts of a run, in order."""

    posed: Posed
    method: Method
    baseline: Fit | None
    watcher: Watcher | None
    announce: Announce

    def run(self, directory: Path | None) -> Run:
        fits: dict[str, Fit] = {}
        if self.method.needs_baseline:
            fits[BASELINE] = self._baseline(directory)
        self.announce(self.method.name)
        fit = run_method(self.method.name, self._task(directory, fits.get(BASELINE)))
        if self.posed.reading_report is not None:
            fit = fit.with_details(reading=self.posed.reading_report.as_dict())
        fits[self.method.name] = fit
        return Run(self.posed, fits, [metrics_record(f, self.posed) for f in fits.values()])

    def _baseline(self, directory: Path | None) -> Fit:
        """The plain network: passed, finished before an interruption, or trained now."""
        if self.baseline is not None:
            return self.baseline
        kept = None if directory is None else directory / "baseline-fit"
        if kept is not None and (kept / "fit.json").exists():
            return load(kept, self.posed.problem)
        self.announce(BASELINE)
        # The same settings that another method might be run with, but none of that method's own.
        task = replace(self._task(directory, None), options={})
        fit = run_method(BASELINE, replace(task, directory=task.place("baseline")))
        if kept is not None:
            fit.save(kept)
        return fit

    def _task(self, directory: Path | None, baseline: Fit | None) -> Task:
        posed = self.posed
        return Task(
            posed.problem, posed.observations, posed.protocol, posed.configuration.seed,
            baseline=baseline,
            recipe=posed.recipe,
            true_sigma=posed.sigma_true if self.method.needs_truth else None,
            options=dict(posed.configuration.options),
            directory=directory,
            watcher=self.watcher,
        )  # fmt: skip


def _write(run: Run, place: RunDirectory, announce: Announce, pictures: bool) -> None:
    announce("writing")
    fits = list(run.fits.values())
    fit = run.fit
    if fit.before is None and len(fits) > 1:
        fit = replace(fit, before=fits[0])
    fit.save(place.fit, overwrite=True)
    write_history(place.path / "history.parquet", fits)
    # What diverged may hold numbers that cannot be drawn; its record matters more.
    readings = run.posed.observations
    drawable = bool(np.isfinite(fit.misfits(readings)[readings.present]).all())
    if drawable and pictures:
        write_pictures(place.pictures, run.fits, run.posed)
        write_report(fit, place.path, overwrite=True)
    elif drawable:
        write_suspects(fit, place.path / "suspects.csv")
    write_json(place.metrics, run.records)
    with contextlib.suppress(OSError):
        shutil.rmtree(place.checkpoints)
