"""Writes sensors.csv: the beam's first two modes, as ten accelerometers and four gauges read them.

u(x, t) = sum of a_n sin(n pi x / L) cos(w_n t), w_n = (n pi / L)^2 sqrt(EI / m), which solves the
equation exactly. Accelerometer A3 was calibrated for another range, A7 has a loose cable.
"""

from pathlib import Path

import numpy as np
import pandas as pd

LENGTH, MASS, HALF_HEIGHT = 2.0, 7.8, 0.01
STIFFNESS = 2.6e4
AMPLITUDES = {1: 1.0e-3, 2: 0.06e-3}
NOISE = (0.3, 0.4)  # m/s^2, µm/m
TRUTH = {"stiffness": STIFFNESS}


def second_derivatives(x, t):
    """Acceleration and strain."""
    acceleration = strain = 0.0
    for mode, amplitude in AMPLITUDES.items():
        wave = mode * np.pi / LENGTH
        frequency = wave**2 * np.sqrt(STIFFNESS / MASS)
        shape = amplitude * np.sin(wave * x) * np.cos(frequency * t)
        acceleration = acceleration - frequency**2 * shape
        strain = strain + HALF_HEIGHT * wave**2 * shape
    return acceleration, strain


def true_readings(points):
    """What faultless instruments would read at (x, t): accelerations, strains."""
    acceleration, strain = second_derivatives(*points.T)
    return np.stack([acceleration, 1e6 * strain], axis=1)


def main():
    random = np.random.default_rng(11)
    parts = []
    for number, place in enumerate(np.linspace(0.15, 1.85, 10), start=1):
        times = np.sort(random.uniform(0, 0.06, 60))
        acceleration, _ = second_derivatives(place, times)
        noise = NOISE[0] * random.standard_normal(60)
        if number == 3:
            noise += 0.7 * acceleration
        if number == 7:
            noise += (random.random(60) < 0.5) * 12 * random.standard_normal(60)
        parts.append(pd.DataFrame({
            "sensor": f"A{number}", "t [ms]": 1000 * times, "x [mm]": 1000 * place,
            "acceleration [m/s^2]": acceleration + noise,
        }))  # fmt: skip
    for number, place in enumerate((0.4, 0.8, 1.2, 1.6), start=1):
        times = np.sort(random.uniform(0, 0.06, 40))
        _, strain = second_derivatives(place, times)
        parts.append(pd.DataFrame({
            "sensor": f"G{number}", "t [ms]": 1000 * times, "x [mm]": 1000 * place,
            "strain [µm/m]": 1e6 * strain + NOISE[1] * random.standard_normal(40),
        }))  # fmt: skip
    table = pd.concat(parts).sort_values("t [ms]", kind="stable")
    table = table[["sensor", "t [ms]", "x [mm]", "acceleration [m/s^2]", "strain [µm/m]"]].round(3)
    table.to_csv(Path(__file__).with_name("sensors.csv"), index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
