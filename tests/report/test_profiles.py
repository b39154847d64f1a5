"""Curves of a field at a few times: what is drawn, nothing cut off, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from unpinn._errors import UserError
from unpinn.problem import Grid
from unpinn.report._profiles import time_profiles

SHAPE = (12, 9)
POINTS = Grid(*SHAPE).draw({"x": (0, 1), "t": (0, 0.02)})
EXACT = np.sin(3 * POINTS[:, 0]) + 100 * POINTS[:, 1]
FOUND = {"PINN": 1.4 * EXACT, "P-PINN": 0.9 * EXACT}
FLAT = {"axes": ("x", "t"), "shape": SHAPE}


@pytest.fixture(scope="module")
def figure() -> Figure:
    return time_profiles(POINTS, EXACT, FOUND, **FLAT, name="T", count=3)


def test_every_method_is_drawn_at_the_first_middle_and_last_time_on_one_scale(figure):
    panels = figure.axes
    assert [panel.get_title() for panel in panels] == ["t = 0", "t = 0.01", "t = 0.02"]
    assert len({panel.get_ylim() for panel in panels}) == 1
    truth = EXACT.reshape(SHAPE)
    for panel, k in zip(panels, (0, 4, 8), strict=True):
        curves = {line.get_label(): line.get_ydata() for line in panel.lines}
        assert list(curves) == ["exact", "PINN", "P-PINN"]
        np.testing.assert_allclose(curves["exact"], truth[:, k])
        np.testing.assert_allclose(curves["P-PINN"], 0.9 * truth[:, k])
    styles = {(line.get_color(), line.get_linestyle()) for line in panels[0].lines}
    assert len(styles) == 3


def test_nothing_is_cut_off_or_too_small_to_read(figure):
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    box, slack = figure.get_tightbbox(canvas.get_renderer()), 0.01
    assert box.x0 >= -slack and box.x1 <= figure.get_figwidth() + slack
    assert box.y0 >= -slack and box.y1 <= figure.get_figheight() + slack
    assert min(t.get_fontsize() for t in figure.findobj(Text) if t.get_text()) >= 6.5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"axes": ("x", "y", "t")}, "time_slices draws 3"),
        ({"predictions": {}}, "at least one method"),
        ({"exact": EXACT[1:]}, "exact has 107 values"),
        ({"predictions": {"PINN": EXACT[:7]}}, "PINN has 7 values"),
    ],
)
def test_what_does_not_fit_is_refused(change, words):
    given = {"points": POINTS, "exact": EXACT, "predictions": FOUND, **FLAT, **change}
    with pytest.raises(UserError, match=words):
        time_profiles(**given)
