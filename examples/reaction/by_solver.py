"""What the same readings tell a solver that knows which of them are bad: how sure can one be?

    python examples/reaction/by_solver.py

Least squares in the three coefficients and in both profiles after the first hour, each a cubic
spline through ten values; finite volumes in space, half steps of the reaction around the
diffusion's in time. Prints each coefficient, its standard deviation, and how far off it is.
"""

import runpy
from pathlib import Path

import numpy as np
from scipy.interpolate import CubicSpline, RectBivariateSpline
from scipy.linalg import solve_banded
from scipy.optimize import least_squares

from unpinn.readings import load_problem_file

FOLDER = Path(__file__).parent
CELLS, STEPS, KNOTS = 100, 240, 10


class Solver:
    """Both concentrations at all times, from the coefficients' logarithms and the profiles."""

    def __init__(self, length, begin, end):
        self.x = (np.arange(CELLS) + 0.5) * length / CELLS
        self.t = np.linspace(begin, end, STEPS + 1)
        self.knots = np.linspace(0, length, KNOTS)

    def __call__(self, numbers):
        step = self.t[1] - self.t[0]
        first, second, rate = np.exp(numbers[:3])
        ratios = np.array([first, second]) * step / (self.x[1] - self.x[0]) ** 2 / 2
        values = 50 * numbers[3:].reshape(2, KNOTS)
        now = CubicSpline(self.knots, values, axis=1, bc_type="clamped")(self.x)
        frames = [now]
        for _ in range(STEPS):
            now = self.reacted(now, rate, step / 2)
            now = np.stack([self.spread(c, r) for c, r in zip(now, ratios, strict=True)])
            now = self.reacted(now, rate, step / 2)
            frames.append(now)
        return np.stack(frames)

    def reacted(self, now, rate, step):
        """By the midpoint rule."""
        half = now - step / 2 * rate * now[0] * now[1]
        return now - step * rate * half[0] * half[1]

    def spread(self, c, ratio):
        """By Crank and Nicolson, without flux at the ends."""
        bands = np.zeros((3, CELLS))
        bands[0, 1:] = bands[2, :-1] = -ratio
        bands[1] = 1 + 2 * ratio
        bands[1, [0, -1]] = 1 + ratio
        known = c + ratio * np.diff(np.concatenate([[0.0], np.diff(c), [0.0]]))
        return solve_banded((1, 1), bands, known)


def main():
    made = runpy.run_path(str(FOLDER / "make_data.py"))
    stated = load_problem_file(FOLDER / "problem.py")
    readings = stated.read_data(FOLDER / "sensors.csv")[0]
    points, values, noise = readings.points, readings.values, made["NOISE"]
    error = np.nanmax(np.abs(values - made["true_readings"](points)), axis=1)
    there = (error <= 4 * noise)[:, None] & ~np.isnan(values)
    begin, end = stated.problem.coordinates["t"]
    solve = Solver(made["LENGTH"], begin, end)

    def misfits(numbers):
        frames = solve(numbers)
        parts = []
        for k in (0, 1):
            field = RectBivariateSpline(solve.t, solve.x, frames[:, k])
            x, t = points[there[:, k]].T
            parts.append((field.ev(t, x) - values[there[:, k], k]) / noise)
        return np.concatenate(parts)

    x, times, *fields = made["solution"](200)
    profiles = [RectBivariateSpline(x, times, f).ev(solve.knots, begin) / 50 for f in fields]
    truth = np.log(list(made["TRUTH"].values()))
    found = least_squares(misfits, np.concatenate([truth, *profiles]), x_scale="jac")
    deviations = np.sqrt(np.diag(np.linalg.inv(found.jac.T @ found.jac)))
    for name, value, true, deviation in zip(
        made["TRUTH"], found.x, truth, deviations, strict=False
    ):
        far = (value - true) / deviation
        print(
            f"{name}: {np.exp(value):.4g} +- {deviation:.1%}, {far:+.1f} deviations from the truth"
        )


if __name__ == "__main__":
    main()
