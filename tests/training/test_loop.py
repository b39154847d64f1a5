"""The loop: stages in order, divergence, interruption, checkpoints, compilations, what it tells."""

from __future__ import annotations

import io
import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from unpinn._errors import UserError
from unpinn.problem import Grid, Problem, Random, observe
from unpinn.training import (
    Adam,
    Lbfgs,
    Moment,
    Protocol,
    Quiet,
    TerminalLine,
    paper_assimilation,
    paper_inversion,
    train,
)


class Listener:
    """A watcher that remembers, and that may do something at a moment."""

    def __init__(self, act=None):
        self.moments: list[Moment] = []
        self.act = act

    def __call__(self, moment: Moment) -> None:
        self.moments.append(moment)
        if self.act is not None:
            self.act(moment)


def leaves(fit):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(fit.model)]


def same_run(one, other) -> bool:
    return np.array_equal(one.history.rows, other.history.rows, equal_nan=True) and all(
        np.array_equal(a, b) for a, b in zip(leaves(one), leaves(other), strict=True)
    )


# -- stages --------------------------------------------------------------------------------


def test_quasi_newton_goes_on_from_adam_and_stops_with_a_reason(case, tiny):
    listener = Listener()
    protocol = tiny(Adam(epochs=20, rate=1e-2), Lbfgs(iterations=60))
    fit = train(*case, protocol, seed=3, watcher=listener)
    assert fit.history.stages == (("adam", 0), ("lbfgs", 20))
    total = fit.history["total"]
    # Every iteration of a strong-Wolfe search goes down.
    assert np.all(np.diff(total[20:]) < 0)
    assert total[-1] < 0.5 * total[19]
    assert fit.status.reason.startswith("adam: all epochs were run; lbfgs: ")
    assert fit.precision == "float64"
    assert [m.stage for m in listener.moments] == sorted(m.stage for m in listener.moments)
    last = listener.moments[-1]
    assert (last.kind, last.stages, last.epoch) == ("lbfgs", 2, 60)
    assert last.terms["total"] == total[-1] and set(last.terms) == set(fit.history.names)
    assert {"stage1.compile", "stage1.first", "stage1.steady", "stage2.run"} <= set(fit.seconds)
    assert fit.seconds["total"] > 0


def test_quasi_newton_stops_where_the_gradient_is_small(case, tiny):
    fit = train(*case, tiny(Lbfgs(iterations=60, tolerance=1e-1)), seed=3)
    assert len(fit.history) < 60
    assert "gradient tolerance" in fit.status.reason


def test_the_papers_protocols_are_as_printed():
    adam, lbfgs = paper_assimilation().stages
    assert (adam.epochs, adam.rate, adam.groups, adam.betas) == (
        20_000,
        1e-3,
        ("data",),
        (0.9, 0.999),
    )
    assert (lbfgs.iterations, lbfgs.history, lbfgs.tolerance) == (5_000, 50, 1e-8)
    assert paper_assimilation(balance=True).stages[1].balance
    (alone,) = paper_inversion().stages
    assert (alone.epochs, alone.rate, alone.groups) == (20_000, 1e-3, Adam().groups)
    for protocol in (paper_assimilation(), paper_inversion()):
        assert not protocol.scaled
        assert (protocol.architecture.depth, protocol.architecture.width) == (5, 100)


@pytest.mark.parametrize("protocol", [paper_assimilation(True), paper_inversion()])
def test_protocols_are_plain_data(protocol):
    import json

    assert Protocol.from_dict(json.loads(json.dumps(protocol.to_dict()))) == protocol


def test_a_budget_shortens_every_stage():
    short = paper_assimilation().scaled_to(0.02)
    assert [stage.length for stage in short.stages] == [400, 100]
    assert [stage.length for stage in paper_assimilation().with_epochs(5).stages] == [4, 1]
    assert paper_inversion().scaled_to(1.0) == paper_inversion()


# -- divergence ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "epochs", [300, 50, 1], ids=["within a chunk", "between chunks", "with the last step"]
)
def test_a_rate_beyond_reason_stops_and_keeps_the_last_good_state(case, tiny, epochs):
    protocol = tiny(Adam(epochs=10, rate=1e-2), Adam(epochs=epochs, rate=1e12), scaled=False)
    fit = train(*case, protocol, seed=3)
    good = train(*case, tiny(Adam(epochs=10, rate=1e-2), scaled=False), seed=3)
    assert fit.status.code == "diverged" and not fit.status.good
    assert "diverged after epoch 0; kept that state" in fit.status.reason
    assert all(np.array_equal(a, b) for a, b in zip(leaves(fit), leaves(good), strict=True))
    assert len(fit.history) < 310


def test_what_is_not_a_number_stops_every_kind_of_stage(tiny):
    problem = Problem(
        coordinates={"x": (0, 1)},
        fields=["u"],
        equations={"root": lambda u, x: u.x - jnp.sqrt(x - 2.0)},
        collocation=Grid(5),
    )
    observations = observe(problem, np.linspace(0, 1, 6)[:, None], np.linspace(0, 1, 6))
    fit = train(problem, observations, tiny(Adam(epochs=5), Lbfgs(iterations=5)))
    assert fit.status.code == "diverged"
    assert fit.status.reason.count("diverged after epoch 0") == 2
    assert all(np.isfinite(leaf).all() for leaf in leaves(fit))


# -- interruption and checkpoints ----------------------------------------------------------

KINDS = {
    "adam": Adam(epochs=60, rate=1e-2, schedule="cosine"),
    "batches": Adam(epochs=60, rate=1e-2, batch=10),
    "dropout": Adam(epochs=60, rate=1e-2, dropout=0.2, decay=0.01),
    "lbfgs": Lbfgs(iterations=40, history=5),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupted_run_ends_as_one_that_was_not(case, tiny, tmp_path, kind):
    protocol = tiny(
        Adam(epochs=5, rate=1e-2, rescale="measured", balance=True), KINDS[kind], Adam(epochs=3)
    )

    def interrupt(moment):
        if moment.stage == 2 and moment.epoch >= 20:
            raise KeyboardInterrupt

    whole = train(*case, protocol, seed=4)
    with pytest.raises(KeyboardInterrupt):
        train(*case, protocol, seed=4, directory=tmp_path, watcher=Listener(interrupt))
    listener = Listener()
    rest = train(*case, protocol, seed=4, directory=tmp_path, watcher=listener)
    assert (listener.moments[0].stage, listener.moments[0].epoch) > (2, 20)
    assert same_run(whole, rest)
    assert whole.details == rest.details and whole.status == rest.status
    optimisers = zip(whole.optimiser, rest.optimiser, strict=True)
    assert all(np.array_equal(a, b) for a, b in optimisers)


@pytest.fixture
def interrupted(case, tiny, tmp_path):
    """The arguments of a run, and the directory in which it was interrupted."""

    def interrupt(moment):
        if moment.epoch >= 3:
            raise KeyboardInterrupt

    arguments = {"protocol": tiny(Adam(epochs=6)), "seed": 1, "directory": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        train(*case, **arguments, watcher=Listener(interrupt))
    return arguments


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 2},
        {"weights": np.full(36, 2.0)},
        {"scales": {"transport": 3.0}},
        {"extras": {"log_scale": 0.0}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_runs_checkpoint_is_refused(case, interrupted, change):
    with pytest.raises(UserError, match="is the checkpoint of a run with another configuration"):
        train(*case, **{**interrupted, **change})


def test_a_checkpoint_is_of_its_penalty_protocol_and_readings(case, interrupted, tiny):
    from unpinn.training import Huber

    for change in ({"penalty": Huber(0.1)}, {"protocol": tiny(Adam(epochs=7))}):
        with pytest.raises(UserError, match="another configuration"):
            train(*case, **{**interrupted, **change})
    with pytest.raises(UserError, match="another configuration"):
        train(case.problem, case.observations.take(slice(0, 30)), **interrupted)
    assert len(train(*case, **interrupted).history) == 6


@pytest.mark.parametrize("keep", [0.0, 0.5, 0.99])
def test_a_damaged_checkpoint_is_told_in_a_sentence(case, interrupted, keep):
    path = interrupted["directory"] / "checkpoint.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content))])
    with pytest.raises(UserError, match="is not a readable safetensors file"):
        train(*case, **interrupted)


def test_checkpoints_are_written_as_often_as_asked(case, tiny, tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    seen = Listener(lambda moment: there.append(path.exists()))
    there: list[bool] = []
    train(*case, tiny(Adam(epochs=4)), directory=tmp_path, watcher=seen)
    assert there == [False] * 4
    there.clear()
    arguments = {"directory": tmp_path, "watcher": seen, "checkpoint_interval": 0.0}
    train(*case, tiny(Adam(epochs=4)), **arguments)
    assert there == [False, True, True, True]


# -- compilations --------------------------------------------------------------------------


def compiled(caplog, name: str) -> int:
    """How many programs of that name were compiled since the log was cleared."""
    begin = f"Finished XLA compilation of jit({name})"
    return sum(record.getMessage().startswith(begin) for record in caplog.records)


@pytest.mark.parametrize(
    ("stage", "program"),
    [
        (Adam(epochs=700, rate=1e-4), "adam_epochs"),
        (Adam(epochs=150, rate=1e-4, batch=11, schedule="cosine"), "adam_epochs"),
        (Lbfgs(iterations=120, history=4, tolerance=0.0), "_lbfgs_advance"),
    ],
    ids=["adam", "batches", "lbfgs"],
)
def test_a_stage_compiles_once_whatever_its_length_rate_seed_and_weights(
    case, caplog, tiny, stage, program
):
    import dataclasses

    # A problem that no other test has compiled.
    problem = dataclasses.replace(case.problem, collocation=Random(23), name=program + str(stage))
    caplog.set_level(logging.DEBUG, logger="jax")
    with jax.log_compiles():
        train(problem, case.observations, tiny(stage), seed=1)
        assert compiled(caplog, program) == 1
        caplog.clear()
        longer = dataclasses.replace(stage.scaled_to(1.3), weights={"data": 2.0})
        train(problem, case.observations, tiny(longer), seed=2)
        assert compiled(caplog, program) == 0


def test_no_python_runs_between_epochs(case, tiny):
    import dataclasses

    calls, moments = [], []

    def transport(u, c):
        calls.append(1)
        return u.t + c * u.x

    problem = dataclasses.replace(case.problem, equations={"transport": transport})
    train(problem, case.observations, tiny(Adam(epochs=2)), watcher=moments.append)
    traced, _ = len(calls), moments.clear()
    fit = train(problem, case.observations, tiny(Adam(epochs=1000)), watcher=moments.append)
    assert len(fit.history) == 1000
    # The residual is never called again, and the loop is back in Python a hundred times.
    assert len(calls) == traced and len(moments) == 100


# -- what it tells -------------------------------------------------------------------------


def test_the_terminals_line_names_stage_terms_and_time():
    stream = io.StringIO()
    terms = {"total": 1.5, "data": float("nan"), "c": 2.0}
    line = TerminalLine(stream)
    line(Moment(1, 2, "adam", 10, 20, terms, 1e-3, 4.2))
    line(Moment(1, 2, "adam", 20, 20, terms, 1e-3, None))
    first, second = stream.getvalue().split("\r")[1:]
    assert "adam 1/2  10/20" in first and "total 1.5" in first and "4 s left" in first
    assert "data" not in first and not first.endswith("\n") and second.endswith("\n")


def test_nothing_is_printed_without_a_terminal(case, tiny, capfd):
    train(*case, tiny(Adam(epochs=2)))
    Quiet()(Moment(1, 1, "adam", 1, 2, {}, 1.0, None))
    assert capfd.readouterr() == ("", "")
