"""Compares an example's run with the truth, which only its make_data.py knows.

    python examples/check.py river runs/river

Prints every unknown with its interval, and how the suspects compare with the readings that are
truly bad: those whose error is more than four times that of a faultless instrument.
"""

from __future__ import annotations

import argparse
import runpy
from pathlib import Path
from typing import Any

import numpy as np

from unpinn.rivals import intervals
from unpinn.runs import problem_of_run, read_run

FAR = 4.0


def bad_readings(fit: Any, made: dict[str, Any]) -> np.ndarray:
    """Which readings are truly bad, (N,)."""
    points = fit.observations.points
    error = np.abs(fit.observations.values - made["true_readings"](points))
    return np.nanmax(error / np.array(made["NOISE"]), axis=1) > FAR


def numbers(fit: Any, truth: dict[str, float]) -> list[str]:
    """A line for every unknown number."""
    found = intervals(fit, "linearised").unknowns
    lines = []
    for name, true in truth.items():
        low, high = found[name]
        told = "covered" if low <= true <= high else "missed"
        ends = f"{low:.5g} to {high:.5g}"
        lines.append(f"  {name}: true {true:.5g}, found {fit.unknowns[name]:.5g}, {ends}, {told}")
    return lines


def conductivity(fit: Any, made: dict[str, Any]) -> list[str]:
    """The plate's unknown is a field: its band at the pixels, and where the patch is."""
    across, up = (np.linspace(0.0, end, 41)[1:-1] for end in (made["WIDTH"], made["HEIGHT"]))
    points = np.stack([part.ravel() for part in np.meshgrid(across, up, indexing="ij")], axis=1)
    true, found = made["conductivity"](*points.T), fit.predict(points, "k")
    low, high = intervals(fit, "linearised").band(points, "k")
    error = np.sqrt(np.mean((found - true) ** 2) / np.mean(true**2))
    inside = np.mean((low <= true) & (true <= high))
    worst = found.argmin()
    place = ", ".join(f"{value:.3f}" for value in points[worst])
    deepest = ", ".join(f"{value:.3f}" for value in points[true.argmin()])
    return [
        f"  k: relative error {error:.1%}; the band holds the truth in {inside:.0%} of the plate",
        f"  worst spot: true {true.min():.3g} at ({deepest}), found {found[worst]:.3g} "
        f"({low[worst]:.3g} to {high[worst]:.3g}) at ({place})",
    ]


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser()
    parser.add_argument("example", choices=["river", "beam", "plate", "reaction", "wake"])
    parser.add_argument("run", type=Path)
    options = parser.parse_args()
    folder = Path(__file__).parent / options.example
    made = runpy.run_path(str(folder / "make_data.py"))
    fit = read_run(options.run, problem_of_run(options.run, folder / "problem.py"))[0]
    if fit.before is None or fit.partition is None:
        parser.error(f"{options.run} has unlearned nothing")
    for told, one in (("before", fit.before), ("after", fit)):
        print(f"{told}, {one.status.code}, {one.seconds['total']:.0f} s")
        lines = (
            conductivity(one, made) if options.example == "plate" else numbers(one, made["TRUTH"])
        )
        print("\n".join(lines))
    bad, suspect = bad_readings(fit, made), fit.partition.suspect
    print(f"suspect {suspect.sum()}, truly bad {bad.sum()}, both {(bad & suspect).sum()}")


if __name__ == "__main__":
    main()
