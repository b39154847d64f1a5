"""`unpinn problems`: the list, one problem, and its points as a picture."""

from __future__ import annotations

import pytest

from unpinn.benchmarks import BENCHMARKS, benchmark


def test_the_list_has_every_problem_with_equation_unknowns_and_settings(invoke):
    result = invoke("problems")
    assert result.exit_code == 0
    lines = {line.split()[0]: line for line in result.stdout.splitlines()[1:]}
    assert tuple(lines) == BENCHMARKS
    for name, line in lines.items():
        bench = benchmark(name)
        assert bench.equation in line and str(bench.noise) in line
        assert f" {len(bench.reading_points())} " in line
        unknowns = [*bench.true_scalars, *(f.name for f in bench.problem.unknown_fields)]
        shown = line.split(bench.equation)[1].split()
        assert all(any(word.startswith(name) for word in shown) for name in unknowns)


def test_the_released_settings_are_listed_too(invoke):
    result = invoke("problems", "--preset", "released")
    assert "40% at 0.5 and the rest at 0.01" in result.stdout


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_problem_is_shown(invoke, name):
    result = invoke("problems", name, "--no-picture")
    assert result.exit_code == 0
    bench = benchmark(name)
    facts = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    assert facts["problem"] == f"{name}: {bench.title}"
    assert facts["equation"] == bench.equation
    assert bench.headline.name in facts["judged"] and bench.state.name in facts["judged"]
    assert ("without its mean" in facts["judged"]) == (name in ("nsinv", "stokes"))
    for kind, count in bench.counts().items():
        assert (f"{count} {kind}" in facts["points"]) == bool(count)
    stages = bench.protocol.stages
    assert all(f"{stage.length:,} " in result.stdout for stage in stages)
    assert ("on the readings alone" in result.stdout) == (bench.kind == "assimilation")


def test_one_is_shown_with_its_points_as_a_picture(invoke, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = invoke("problems", "poisson")
    assert "picture     poisson.png\n" in result.stdout
    drawn = tmp_path / "poisson.png"
    assert drawn.read_bytes().startswith(b"\x89PNG")
    # A file of that name may be the user's own.
    drawn.write_text("mine")
    assert "is there already" in invoke("problems", "poisson").stdout
    assert drawn.read_text() == "mine"
    invoke("problems", "poisson", "--picture", "poisson.png")
    assert drawn.stat().st_size > 10_000


@pytest.mark.parametrize(("kind", "start"), [("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_pictures_for_print(invoke, tmp_path, kind, start):
    result = invoke("problems", "heat", "--picture", tmp_path / f"heat.{kind}")
    assert result.exit_code == 0
    assert (tmp_path / f"heat.{kind}").read_bytes().startswith(start)
