"""Unknown fields in short: their extremes are the picture's, with the band that intervals have."""

from __future__ import annotations

import numpy as np
import pytest

import unpinn
from unpinn.report import write_page
from unpinn.report._facts import number
from unpinn.report._field_grids import field_grids
from unpinn.report._unknown_fields import extremes_of
from unpinn.training import Adam, Protocol


@pytest.fixture(scope="module")
def fit():
    """A rod whose conductivity is sought, barely trained."""
    problem = unpinn.Problem(
        coordinates={"x": (0.0, 2.0)},
        fields=["u"],
        unknowns=[unpinn.Field("k", scale=0.5, offset=3.0)],
        equations={"conduction": lambda u, k: k * u.xx + k.x * u.x + 1.0},
        collocation=unpinn.Grid(12),
    )
    problem.source["units"] = {"x": "mm", "k": "W/(m K)"}
    random = np.random.default_rng(2)
    x = random.uniform(0, 2, 30)
    readings = unpinn.observe(problem, {"x": x}, x * (2 - x) / 6, ("u",))
    architecture = unpinn.Architecture(width=6, depth=2)
    return unpinn.train(problem, readings, Protocol((Adam(30),), architecture=architecture), seed=1)


def test_extremes_are_those_of_the_picture_with_their_band(fit):
    from unpinn.rivals import intervals

    (least, greatest), told = extremes_of(fit)
    (grid,) = field_grids(fit, ("k",))
    assert (least.which, greatest.which) == ("least", "greatest")
    assert least.value == pytest.approx(grid.values.min()) and least.unit == "W/(m K)"
    assert greatest.value == pytest.approx(grid.values.max())
    place = grid.across[1][grid.values.ravel().argmin()]
    assert least.place == f"x = {number(place, 3)} mm"
    low, high = intervals(fit, "linearised").band(np.array([[place]]), "k")
    assert least.interval == pytest.approx((low[0], high[0])) and low[0] < least.value < high[0]
    assert "90%" in told and least.before is None and least.before_interval is None


def test_a_page_tells_them_where_no_number_is_sought(fit, tmp_path):
    text = write_page(fit, tmp_path / "page.html").read_text()
    least, greatest = extremes_of(fit)[0]
    assert 'id="unknowns"' in text and 'href="#unknowns"' in text
    for end in (least, greatest):
        assert f"<strong>{number(end.value)}</strong>" in text and end.place in text


def test_without_unknown_fields_there_is_nothing_to_tell(reported):
    assert extremes_of(reported.fit) == ([], "")
