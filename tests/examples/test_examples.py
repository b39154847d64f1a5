"""The five examples of one's own data: each is read, runs by one command, and can be made anew."""

from __future__ import annotations

import json
import runpy
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from unpinn.readings import load_problem_file

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples"

# Readings, rows of the file, sensors, and what is measured.
EXAMPLES = {
    "river": (345, 355, 10, ("c",)),
    "beam": (760, 760, 14, ("acceleration", "strain")),
    "plate": (438, 450, 6, ("temperature",)),
    "reaction": (537, 560, 14, ("a", "b")),
    "wake": (3000, 3000, 6, ("u", "v")),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_read_in_the_problems_units(name):
    kept, rows, sensors, quantities = EXAMPLES[name]
    stated = load_problem_file(FOLDER / name / "problem.py")
    observations, report = stated.read_data(FOLDER / name / "sensors.csv")
    assert (report.kept, report.rows, report.sensors) == (kept, rows, sensors)
    assert observations.quantities == quantities and stated.problem.name == name
    # Units of the file were converted: readings fill the domain of the problem.
    ends = np.array(list(stated.problem.coordinates.values()))
    width = ends[:, 1] - ends[:, 0]
    reach = observations.points.max(axis=0) - observations.points.min(axis=0)
    assert (reach > 0.75 * width).all() and (reach <= width).all()
    # Everything that a report tells has a unit.
    scalars = [scalar.name for scalar in stated.problem.scalars]
    told = {*stated.problem.coordinates, *quantities, *scalars}
    assert told <= set(stated.problem.source["units"])


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_command_is_in_the_file(name):
    command = f"unpinn run examples/{name}/problem.py --data examples/{name}/sensors.csv"
    assert command in (FOLDER / name / "problem.py").read_text().splitlines()
    assert command in (ROOT / "docs" / "own-data.md").read_text()


@pytest.mark.parametrize("name", ["river", "beam"])
def test_the_data_can_be_made_anew(name, tmp_path):
    made_anew(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plate", "reaction", "wake"])
def test_the_data_of_longer_simulations_can_be_made_anew(name, tmp_path):
    made_anew(name, tmp_path)


def made_anew(name, folder):
    """Run a copy of the example's script and compare what it writes with what is there."""
    script = shutil.copy(FOLDER / name / "make_data.py", folder)
    runpy.run_path(str(script), run_name="__main__")
    made, there = (pd.read_csv(place / "sensors.csv") for place in (folder, FOLDER / name))
    assert list(made.columns) == list(there.columns) and len(made) == len(there)
    for column in made:
        if made[column].dtype.kind == "f":
            # Solvers of another machine may round the last written digit the other way.
            size = np.nanmax(np.abs(there[column]))
            np.testing.assert_allclose(made[column], there[column], atol=1e-3 * size, rtol=0)
        else:
            assert made[column].tolist() == there[column].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_shortened_run_writes_everything(name, run_cli, tmp_path):
    out, folder = tmp_path / "out", FOLDER / name
    result = run_cli(
        "run", folder / "problem.py", "--data", folder / "sensors.csv", "--epochs", 60, "--out", out
    )
    assert result.exit_code == 0, result.output
    written = {path.name for path in out.iterdir()}
    assert {"index.html", "suspects.csv", "suspects-by-sensor.csv", "unknowns.json"} <= written
    assert len(pd.read_csv(out / "suspects.csv")) == EXAMPLES[name][0]
    assert (out / "index.html").stat().st_size < 5e6
    found = json.loads((out / "unknowns.json").read_text())["unknowns"]
    problem = load_problem_file(folder / "problem.py").problem
    assert list(found) == [scalar.name for scalar in problem.scalars]


@pytest.mark.slow
def test_a_solver_finds_the_reactions_coefficients_within_chance(capsys):
    runpy.run_path(str(FOLDER / "reaction" / "by_solver.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["diffusion_a", "diffusion_b", "rate"]
    found = [float(line.split()[1]) for line in lines]
    assert found == pytest.approx([1.2e-9, 0.7e-9, 1.6e-6], rel=0.06)
    assert all(abs(float(line.split()[4])) < 3 for line in lines)
