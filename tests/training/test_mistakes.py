"""Every mistake that training can be asked to make is one sentence, before anything is trained."""

from __future__ import annotations

import numpy as np
import pytest

from unpinn._errors import UserError
from unpinn.network import Architecture
from unpinn.problem import Condition, Grid, Problem, Scalar, Sobol, observe
from unpinn.training import Adam, Lbfgs, Protocol, train

POINTS = np.array([[0.1, 0.2], [0.5, 0.5], [0.9, 0.7]])


def stated(**parts) -> Problem:
    usual = {
        "coordinates": {"x": (0, 1), "t": (0, 1)},
        "fields": ["u"],
        "equations": {"wave": lambda u: u.tt - u.xx},
        "collocation": Grid(3, 3),
    }
    return Problem(**{**usual, **parts})


def read(values=(1.0, 2.0, 3.0), points=POINTS, **parts):
    problem = stated()
    return observe(problem, points, np.array(values), **parts)


MISTAKES = {
    "unknown name": (lambda: stated(equations={"wave": lambda u, speed: u.tt}), "'speed'"),
    "misspelt derivative": (lambda: stated(equations={"wave": lambda u: u.tz}), "wave.*u.tz"),
    "order that no network gives": (
        lambda: stated(equations={"wave": lambda u: u.d("x", 30, "t")}),
        "wave.*order 31 is asked for.*no more than order 30",
    ),
    "two orders for one coordinate": (
        lambda: stated(equations={"wave": lambda u: u.d("x", 2, 3)}), r"wave.*u\.d\('x', 2, 3\)",
    ),
    "scalar residual": (lambda: stated(equations={"wave": lambda u: 1.0}), "wave.*a single number"),
    "residual of a wrong count": (
        lambda: stated(equations={"wave": lambda u: u.value[:2]}),
        "wave.*gave shape",
    ),
    "residual that raises": (
        lambda: stated(equations={"wave": lambda u: u.tt / {}}),
        "wave.*raised TypeError",
    ),
    "not a number among readings": (lambda: read((1.0, np.nan, 3.0)), "no value at all"),
    "infinite reading": (lambda: read((1.0, np.inf, 3.0)), "row 1 reads infinity"),
    "reading outside": (lambda: read(points=POINTS + 1.0), "outside the domain"),
    "readings of a wrong shape": (lambda: read((1.0, 2.0)), "3 points but 2 values"),
    "unknown quantity": (lambda: read(quantities=["v"]), "'v' is neither a field"),
    "negative sigma": (lambda: read(sigma=-1.0), "sigma must be finite and above zero"),
    "empty subdomain": (
        lambda: stated(collocation=Grid(3, 3, where=lambda x: x > 2)).collocation_points(0),
        "keeps no point",
    ),
    "nearly empty subdomain": (
        lambda: stated(collocation=Sobol(5, where=lambda x: x > 2)).collocation_points(0),
        "keeps almost no point",
    ),
    "condition outside": (
        lambda: stated(conditions=[Condition("end", lambda u: u, at={"x": 2.0})]),
        "outside",
    ),
    "unknown outside its bounds": (lambda: Scalar("c", 3.0, bounds=(0, 1)), "not strictly inside"),
    "no stage": (lambda: Protocol(()), "at least one stage"),
    "rate of zero": (lambda: Adam(rate=0.0), "rate above zero"),
    "unknown group": (lambda: Adam(groups=("dta",)), "groups must be among"),
    "no group": (lambda: Lbfgs(groups=()), "groups must be among"),
    "negative length": (lambda: Adam(epochs=-1), "whole number of epochs"),
    "unknown precision": (lambda: Adam(precision="float16"), "precision 'float16' is not known"),
    "whole dropout": (lambda: Adam(dropout=1.0), "dropout must be in"),
    "empty batch": (lambda: Adam(batch=0), "a batch needs 1 reading"),
    "no memory": (lambda: Lbfgs(history=0), "history of 1 pair"),
    "unknown architecture": (lambda: Architecture("mpl"), "'mpl' is not known"),
    "no width": (lambda: Architecture(width=0), "width and a depth of 1"),
    "budget of nothing": (lambda: Protocol().scaled_to(0.0), "above zero"),
    "fewer epochs than stages": (
        lambda: Protocol((Adam(), Lbfgs())).with_epochs(1), "need an epoch each",
    ),
    "a protocol's garbage": (lambda: Protocol.from_dict({"stages": [{}]}), "not a protocol"),
    "data alone without data": (
        lambda: train(stated(), None, Protocol((Adam(groups=("data",)),))),
        "trains on the data alone, but there are no readings",
    ),
    "weights without readings": (
        lambda: train(stated(), None, Protocol(), weights=np.ones(3)),
        "without readings",
    ),
    "weights of a wrong length": (
        lambda: train(stated(), read(), Protocol(), weights=np.ones(2)),
        "weights must be 3 finite numbers",
    ),
    "weights of nothing": (
        lambda: train(stated(), read(), Protocol(), weights=np.zeros(3)),
        "every weight is zero",
    ),
    "negative weights": (
        lambda: train(stated(), read(), Protocol(), weights=[1.0, -1.0, 1.0]),
        "weights must be 3 finite numbers",
    ),
    "weight of an unknown term": (
        lambda: train(stated(), read(), Protocol(weights={"wav": 1.0})), "no term 'wav'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_sentence(name):
    make, words = MISTAKES[name]
    with pytest.raises(UserError, match=words) as caught:
        make()
    told = str(caught.value)
    assert "\n" not in told and 15 < len(told) < 300


def test_a_directory_that_cannot_be_written_is_told(case, tiny, tmp_path):
    (tmp_path / "file").write_text("")
    arguments = {"directory": tmp_path / "file" / "run", "checkpoint_interval": 0.0}
    with pytest.raises(UserError, match="cannot write"):
        train(*case, tiny(Adam(epochs=3)), **arguments)
