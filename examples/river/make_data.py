"""Writes sensors.csv: the closed solution of a decaying pulse, as nine loggers and a boat read it.

c(x, t) = m / sqrt(4 pi D s) exp(-(x - a - v t)^2 / (4 D s) - k t) with s = t + age, which solves
the equation exactly. Logger S4 is fouled (it reads low and drifts), S8 has a loose cable.
"""

from pathlib import Path

import numpy as np
import pandas as pd

VELOCITY, DISPERSION, DECAY = 0.42, 15.0, 9e-5
START, AGE, MASS = 350.0, 1200.0, 600.0  # m, s, mg m / L
NOISE = 0.012  # mg/L
TRUTH = {"velocity": VELOCITY, "dispersion": DISPERSION, "decay": DECAY}


def concentration(x, t):
    spread = 4 * DISPERSION * (t + AGE)
    place = x - START - VELOCITY * t
    return MASS / np.sqrt(np.pi * spread) * np.exp(-(place**2) / spread - DECAY * t)


def true_readings(points):
    """What faultless instruments would read at (x, t)."""
    return concentration(*points.T)[:, None]


def main():
    random = np.random.default_rng(7)
    rows = []
    for number, place in enumerate(np.linspace(200, 2800, 9), start=1):
        times = np.sort(random.uniform(0, 5400, 26))
        truth = concentration(place, times)
        error = NOISE * random.standard_normal(26)
        if number == 4:
            error += -0.35 * truth + 0.18 * times / 5400
        if number == 8:
            loose = random.random(26) < 0.6
            error += loose * 0.35 * random.standard_normal(26)
        rows += zip([f"S{number}"] * 26, times, [place] * 26, truth + error, strict=True)
    times = np.sort(random.uniform(0, 5400, 120))
    places = np.clip(350 + 0.42 * times + random.normal(0, 500, 120), 20, 2980)
    values = concentration(places, times) + NOISE * random.standard_normal(120)
    rows += zip(["boat"] * 120, times, places, values, strict=True)
    table = pd.DataFrame(rows, columns=["sensor", "t", "x", "c"]).sort_values("t", kind="stable")
    written = pd.DataFrame({
        "sensor": table.sensor,
        "t [min]": (table.t / 60).round(3),
        "x [km]": (table.x / 1000).round(4),
        "c [ug/L]": (table.c * 1000).round(1),
    })  # fmt: skip
    # Loggers lose a value now and then, and one line was sent twice.
    written.loc[random.choice(len(written), 9, replace=False), "c [ug/L]"] = np.nan
    written = pd.concat([written.iloc[:200], written.iloc[[199]], written.iloc[200:]])
    written.to_csv(Path(__file__).with_name("sensors.csv"), index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
