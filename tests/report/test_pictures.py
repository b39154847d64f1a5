"""Pictures: what is drawn, on which scales, with nothing cut off, and what is refused."""

from __future__ import annotations

import io
import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.figure import Figure
from matplotlib.text import Text

from unpinn._errors import UserError
from unpinn.benchmarks import BENCHMARKS, benchmark
from unpinn.report import _panels, _pictures
from unpinn.report._pictures import (
    comparison,
    loss_history,
    partition_map,
    point_layout,
    reading_layout,
    time_slices,
    triptych,
    unknown_trajectories,
)

SHAPE = (12, 9)
POINTS = np.stack(
    [
        part.ravel()
        for part in np.meshgrid(np.linspace(0, 1, 12), np.linspace(0, 2, 9), indexing="ij")
    ],
    axis=1,
)
EXACT = np.sin(3 * POINTS[:, 0]) + POINTS[:, 1]
SOLID = np.stack(
    [p.ravel() for p in np.meshgrid(*(np.linspace(0, 1, n) for n in (6, 5, 7)), indexing="ij")], 1
)
SOLID_EXACT = SOLID[:, 0] + 10 * SOLID[:, 2]
PLACES = np.random.default_rng(0).random((60, 3))
BAD = np.arange(60) % 3 == 0
SIGMA = np.where(BAD, 1.0, 0.1)
ROWS = np.exp(-np.arange(2500.0) / 500)[:, None] * [2.0, 1.0, 0.5]
FLAT = {"axes": ("x", "t"), "shape": SHAPE}
DEEP = {"axes": ("x", "y", "t"), "shape": (6, 5, 7)}

PICTURES = {
    "triptych": lambda: triptych(POINTS, EXACT, 1.1 * EXACT, **FLAT, name="a"),
    "a perfect triptych": lambda: triptych(POINTS, EXACT, EXACT, **FLAT),
    "a constant field": lambda: triptych(POINTS, 0 * EXACT, 0 * EXACT, **FLAT),
    "comparison": lambda: comparison(
        POINTS, EXACT, {"PINN": 1.4 * EXACT, "P-PINN": 0.9 * EXACT}, **FLAT
    ),
    "one method": lambda: comparison(POINTS, EXACT, {"PINN": EXACT}, **FLAT),
    "slices": lambda: time_slices(SOLID, SOLID_EXACT, SOLID_EXACT + 1, **DEEP),
    "readings": lambda: reading_layout(PLACES, SIGMA, BAD, axes=("x", "y", "t")),
    "points": lambda: point_layout(
        PLACES, PLACES, {"wall": PLACES[:9], "more": PLACES[:9], "first": PLACES[9:20]},
        axes=("x", "y", "t"),
    ),
    "points of two coordinates": lambda: point_layout(
        PLACES[:, :2], PLACES[:, :2], {}, axes=("x", "y"), domain=[(0, 1), (0, 0.02)]
    ),
    "partition": lambda: partition_map(
        PLACES, BAD, axes=("x", "y", "t"), is_bad=~BAD, score=SIGMA, threshold=0.5
    ),
    "partition of readings": lambda: partition_map(PLACES[:, :2], BAD, axes=("x", "y")),
    "losses": lambda: loss_history(
        ("total", "data", "heat"), ROWS, stages={"adam": 0, "bfgs": 900}
    ),
    "unknowns": lambda: unknown_trajectories(("a", "b", "c"), ROWS, truth={"a": 0.0}),
}  # fmt: skip


def image_of(panel):
    (mesh,) = [c for c in panel.collections if isinstance(c, QuadMesh)]
    return mesh


def main_panels(figure):
    return [a for a in figure.axes if a.get_label() != "<colorbar>"]


def markers(figure):
    """How many markers of each legend entry are drawn, over all panels."""
    return {
        c.get_label(): len(c.get_offsets())
        for a in main_panels(figure)
        for c in a.collections
        if isinstance(c, PathCollection)
    }


# -- laws over all pictures ----------------------------------------------------------------


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_is_a_figure_that_can_be_written(name):
    before = dict(matplotlib.rcParams)
    figure = PICTURES[name]()
    assert isinstance(figure, Figure)
    for kind in ("png", "pdf", "svg"):
        file = io.BytesIO()
        figure.savefig(file, format=kind)
        assert file.tell() > 2_000
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("name", PICTURES)
def test_nothing_is_cut_off_or_too_small_to_read(name):
    figure = PICTURES[name]()
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    box, slack = figure.get_tightbbox(canvas.get_renderer()), 0.01
    assert box.x0 >= -slack and box.x1 <= figure.get_figwidth() + slack
    assert box.y0 >= -slack and box.y1 <= figure.get_figheight() + slack
    texts = [t for t in figure.findobj(Text) if t.get_text()]
    assert texts and min(text.get_fontsize() for text in texts) >= 6.5
    assert figure.get_figwidth() <= 9


def test_pictures_leave_pyplot_alone():
    script = (
        "import sys, numpy as np\n"
        "from unpinn.report._pictures import loss_history\n"
        "assert 'matplotlib' not in sys.modules\n"
        "loss_history(('total',), np.ones((3, 1)))\n"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.stdout.strip() == "False", result.stderr


# -- fields --------------------------------------------------------------------------------


def test_a_triptych_shares_the_exact_scale_and_shows_the_error():
    prediction = EXACT + 0.5 * POINTS[:, 0]
    exact, predicted, error = map(
        image_of, main_panels(triptych(POINTS, EXACT, prediction, **FLAT, name="a"))
    )
    assert exact.get_clim() == predicted.get_clim() == (EXACT.min(), EXACT.max())
    assert error.get_clim() == pytest.approx((0, 0.5))
    assert exact.get_cmap().name == predicted.get_cmap().name == "viridis"
    assert error.get_cmap().name == "magma_r"
    # Matplotlib's rows are the second coordinate.
    np.testing.assert_allclose(exact.get_array().reshape(9, 12), EXACT.reshape(SHAPE).T)
    np.testing.assert_allclose(
        error.get_array().reshape(9, 12), (0.5 * POINTS[:, 0]).reshape(SHAPE).T, atol=1e-12
    )


def test_a_triptych_tells_the_error_and_what_is_beyond_the_scale():
    figure = triptych(POINTS, EXACT, 1.1 * EXACT, **FLAT)
    titles = [panel.get_title() for panel in main_panels(figure)]
    assert titles == ["exact u", "predicted u", "|error|, relative L² 0.1"]
    bars = [image_of(panel).colorbar for panel in main_panels(figure)[1:]]
    assert [bar.extend for bar in bars] == ["max", "neither"]
    lower = triptych(POINTS, EXACT, EXACT - 1, **FLAT)
    assert image_of(main_panels(lower)[1]).colorbar.extend == "min"


def test_lengths_are_drawn_alike_and_short_times_are_not():
    flat = POINTS * [1, 0.01]
    for points, aspect in ((POINTS, 1), (flat, "auto")):
        panel = main_panels(triptych(points, EXACT, EXACT, **FLAT))[0]
        assert panel.get_aspect() == aspect


def test_a_comparison_draws_all_methods_on_shared_scales():
    predictions = {"PINN": 1.4 * EXACT, "P-PINN": 0.9 * EXACT}
    panels = main_panels(comparison(POINTS, EXACT, predictions, **FLAT))
    exact, first, second, cut, *errors = panels
    scales = {image_of(panel).get_clim() for panel in (exact, first, second)}
    assert scales == {(EXACT.min(), EXACT.max())}
    largest = 0.4 * np.abs(EXACT).max()
    for panel in errors:
        assert image_of(panel).get_clim() == pytest.approx((0, largest))
    assert [p.get_title() for p in (first, second)] == ["PINN, error 0.4", "P-PINN, error 0.1"]
    lines = {line.get_label(): line.get_ydata() for line in cut.lines}
    assert set(lines) == {"exact", "PINN", "P-PINN"}
    np.testing.assert_allclose(lines["P-PINN"], 0.9 * EXACT.reshape(SHAPE)[:, 4])


def test_slices_show_the_first_and_last_time_on_one_scale():
    figure = time_slices(SOLID, SOLID_EXACT, SOLID_EXACT + 1, **DEEP, count=3)
    panels = np.array(main_panels(figure)).reshape(3, 3)
    assert [panel.get_title() for panel in panels[0]] == ["t = 0", "t = 0.5", "t = 1"]
    assert {image_of(p).get_clim() for p in panels[:2].ravel()} == {(0.0, 11.0)}
    assert all(image_of(p).get_clim() == pytest.approx((0, 1)) for p in panels[2])
    last = image_of(panels[0, 2]).get_array().reshape(5, 6)
    np.testing.assert_allclose(last, SOLID_EXACT.reshape(6, 5, 7)[..., -1].T)


# -- points --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BENCHMARKS)
def test_readings_of_every_benchmark_are_all_drawn_in_two_classes(name):
    bench = benchmark(name)
    drawn = bench.readings(42)
    domain = list(bench.problem.coordinates.values())
    figure = reading_layout(
        drawn.observations.points, drawn.sigma_true, drawn.is_bad,
        axes=tuple(bench.problem.coordinates), domain=domain,
    )  # fmt: skip
    found = markers(figure)
    assert len(found) == 2
    good, bad = found
    assert found[bad] == drawn.is_bad.sum() and found[good] == (~drawn.is_bad).sum()
    assert f"σ = {bench.noise.high:.3g}" in bad and f"σ = {bench.noise.low:.3g}" in good
    (panel,) = main_panels(figure)
    assert panel.get_xlim()[0] <= domain[0][0] and panel.get_xlim()[1] >= domain[0][1]


def test_readings_at_one_place_do_not_hide_each_other():
    places = np.array([[x, y] for x in range(3) for y in range(3)], float)
    points = np.repeat(places, 25, axis=0)
    shifted = _panels.spread(points)
    assert len(np.unique(shifted, axis=0)) == len(points)
    # Every reading stays nearest to its own place.
    distance = np.linalg.norm(shifted[:, None] - places[None], axis=2)
    np.testing.assert_array_equal(places[distance.argmin(axis=1)], points)
    alone = np.random.default_rng(0).random((20, 2))
    np.testing.assert_array_equal(_panels.spread(alone), alone)


def test_conditions_on_the_same_points_are_drawn_once():
    found = markers(PICTURES["points"]())
    assert found["wall, more (9)"] == 9 and found["first (11)"] == 11


@pytest.mark.parametrize(
    ("is_bad", "expected"),
    [
        (None, {"retained (40)": 40, "suspect (20)": 20}),
        (BAD, {"good, retained (40)": 40, "bad, suspect (20)": 20}),
        (~BAD, {"good, but suspect (20)": 20, "bad, but retained (40)": 40}),
    ],
)
def test_a_partition_is_drawn_by_class(is_bad, expected):
    found = markers(partition_map(PLACES, BAD, axes=("x", "y", "t"), is_bad=is_bad))
    assert found == expected


def test_scores_are_counted_once_each():
    score = np.geomspace(1e-3, 10, 60)
    score[0] = 0.0
    figure = partition_map(PLACES, score > 1, axes=("x", "y", "t"), score=score, threshold=1.0)
    histogram = main_panels(figure)[1]
    heights = [patch.get_height() for patch in histogram.patches]
    assert sum(heights) == 60
    assert [line.get_xdata()[0] for line in histogram.lines] == [1.0]


# -- histories -----------------------------------------------------------------------------


def test_losses_are_drawn_with_the_total_in_black():
    figure = PICTURES["losses"]()
    (panel,) = figure.axes
    lines = {line.get_label(): line for line in panel.lines if not line.get_label().startswith("_")}
    assert set(lines) == {"total", "data", "heat"}
    assert lines["total"].get_color() == "#000000"
    assert len({line.get_color() for line in lines.values()}) == 3
    assert panel.get_yscale() == "log"
    assert {text.get_text() for text in panel.texts} == {"adam", "bfgs"}


def test_long_histories_are_thinned_to_means_and_keep_their_gaps():
    rows = np.stack([np.arange(2500.0), np.full(2500, np.nan)], axis=1)
    rows[2000:, 1] = 3.0
    epochs, drawn = _panels.thinned(rows)
    assert len(drawn) <= _panels.MOST_DRAWN
    np.testing.assert_allclose(drawn[:, 0] + 1, epochs)
    assert np.isnan(drawn[epochs < 1999, 1]).all() and (drawn[epochs > 2002, 1] == 3).all()


def test_unknowns_are_drawn_with_their_true_value():
    rows = np.linspace(0, 2, 50)[:, None]
    (panel,) = unknown_trajectories(("c",), rows, truth={"c": 2.0}).axes
    assert panel.get_title(loc="left") == "c = 2   (true 2, dashed)"
    found, true = panel.lines
    np.testing.assert_allclose(found.get_ydata(), rows[:, 0])
    assert set(true.get_ydata()) == {2.0}


# -- refusals ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "culprit"),
    [
        (lambda: triptych(POINTS[:-1], EXACT, EXACT, **FLAT), "no grid"),
        (lambda: triptych(POINTS, EXACT, EXACT[:-1], **FLAT), "prediction has 107 values"),
        (lambda: triptych(SOLID, SOLID_EXACT, SOLID_EXACT, **DEEP), "time_slices"),
        (lambda: time_slices(POINTS, EXACT, EXACT, **FLAT), "triptych"),
        (lambda: comparison(POINTS, EXACT, {}, **FLAT), "at least one"),
        (lambda: reading_layout(PLACES, SIGMA[:3], BAD, axes=("x", "y")), "sigma has shape"),
        (lambda: reading_layout(PLACES[:, :1], SIGMA, BAD, axes=("x",)), "points must be"),
        (lambda: partition_map(PLACES, BAD[:4], axes=("x", "y")), "suspect has shape"),
        (lambda: partition_map(PLACES, BAD, axes=("x", "y"), score=0 * SIGMA), "above zero"),
        (lambda: loss_history(("total",), ROWS), "history of 1 columns"),
        (lambda: unknown_trajectories(("a", "b", "c"), ROWS[:0]), "non-empty"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(call, culprit):
    with pytest.raises(UserError, match=culprit) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_every_public_picture_is_covered():
    public = {n for n, f in vars(_pictures).items()
              if callable(f) and getattr(f, "__module__", "") == _pictures.__name__
              and not n.startswith("_")}  # fmt: skip
    assert public == {
        "triptych", "comparison", "time_slices", "reading_layout", "point_layout",
        "partition_map", "loss_history", "unknown_trajectories",
    }  # fmt: skip
