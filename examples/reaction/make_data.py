"""Writes sensors.csv: finite volumes on 500 cells, integrated to 1e-8, as fourteen probes read it.

Odd probes see substance a only, even ones both. Probe P6 has a wrong dilution factor; P11 drops
out at times and then shows chance.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.integrate import solve_ivp
from scipy.interpolate import RectBivariateSpline
from scipy.sparse import diags, kron

LENGTH, END = 0.01, 72_000.0
DIFFUSION_A, DIFFUSION_B, RATE = 1.2e-9, 0.7e-9, 1.6e-6
NOISE = 0.8  # mol/m^3
TRUTH = {"diffusion_a": DIFFUSION_A, "diffusion_b": DIFFUSION_B, "rate": RATE}


def solution(cells=500):
    """Cell centres, times, and both concentrations there."""
    step = LENGTH / cells
    x = (np.arange(cells) + 0.5) * step
    front = 1 / (1 + np.exp((x - LENGTH / 2) / 6e-4))
    start = np.concatenate([120.0 * front, 80.0 * (1 - front)])

    def spread(c):
        flux = np.diff(c) / step
        return np.diff(np.concatenate([[0.0], flux, [0.0]])) / step

    def change(t, state):
        a, b = state[:cells], state[cells:]
        reaction = RATE * a * b
        return np.concatenate(
            [DIFFUSION_A * spread(a) - reaction, DIFFUSION_B * spread(b) - reaction]
        )

    times = np.linspace(0, END, 241)
    # Neighbours, and the other substance in the same cell: all that a change depends on.
    near = diags([np.ones(cells), np.ones(cells - 1), np.ones(cells - 1)], [0, 1, -1])
    pattern = kron(np.ones((2, 2)), near)
    found = solve_ivp(
        change, (0, END), start, "BDF", times, rtol=1e-8, atol=1e-8, jac_sparsity=pattern
    )
    return x, times, found.y[:cells], found.y[cells:]


def true_readings(points):
    """What faultless probes would read at (x, t): both concentrations."""
    x, times, *fields = solution()
    return np.stack([RectBivariateSpline(x, times, f).ev(*points.T) for f in fields], axis=1)


def main():
    random = np.random.default_rng(3)
    x, times, a, b = solution()
    read_a, read_b = (RectBivariateSpline(x, times, field) for field in (a, b))
    parts = []
    for number, place in enumerate(np.linspace(0.0004, 0.0096, 14), start=1):
        when = np.sort(random.uniform(0, END, 40))
        both = np.stack([read_a.ev(place, when), read_b.ev(place, when)], axis=1)
        error = NOISE * random.standard_normal(both.shape)
        if number == 6:
            error += 0.45 * both
        if number == 11:
            out = random.random(40) < 0.5
            error += out[:, None] * 25 * random.standard_normal(both.shape)
        values = (both + error).round(2)
        if number % 2:
            values[:, 1] = np.nan
        parts.append(pd.DataFrame({
            "sensor": f"P{number}", "t [h]": (when / 3600).round(4), "x [mm]": 1000 * place,
            "a [mol/m^3]": values[:, 0], "b [mol/m^3]": values[:, 1],
        }))  # fmt: skip
    table = pd.concat(parts).sort_values("t [h]", kind="stable").round(4)
    table.to_csv(Path(__file__).with_name("sensors.csv"), index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
