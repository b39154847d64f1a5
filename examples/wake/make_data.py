"""Writes sensors.csv: particle tracks in a simulated wake (spectral elements, Reynolds number 100).

The simulation comes with the package as harmonics in time; it is put into the units of a small
channel: cylinder of 100 mm, stream of 50 mm/s, a syrup of 5e-5 m^2/s. Six cameras look at strips
of the channel. Camera 4 lost its calibration; camera 2 mistakes particles for one another at times.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.interpolate import RegularGridInterpolator

from unpinn.benchmarks._wake import embedded_harmonics

DIAMETER, STREAM = 0.1, 0.05  # m, m/s; the viscosity is DIAMETER * STREAM / 100
READINGS = 3000
NOISE = 0.0008  # m/s
TRUTH = {"viscosity": DIAMETER * STREAM / 100}


def velocities(place):
    """Both velocities in m/s at (x, y, t) in diameters and in the time of one diameter."""
    wake = embedded_harmonics()
    times = np.linspace(0, 3.0, 121)
    frames = wake.fields(times)  # (times, u v p, y, x), all without units
    return STREAM * np.stack([
        RegularGridInterpolator((times, wake.y, wake.x), frames[:, k], method="cubic")(
            place[:, [2, 1, 0]]
        )
        for k in (0, 1)
    ], axis=1)  # fmt: skip


def true_readings(points):
    """What faultless cameras would read at (x, y, t) in m and s."""
    # Times were written in thousandths, and the last may lie a rounding beyond the simulation.
    place = points / [DIAMETER, DIAMETER, DIAMETER / STREAM]
    return velocities(np.clip(place, [1, -1.5, 0], [4, 1.5, 3]))


def main():
    random = np.random.default_rng(23)
    place = np.stack([
        random.uniform(1, 4, READINGS), random.uniform(-1.5, 1.5, READINGS),
        random.uniform(0, 3, READINGS),
    ], axis=1)  # fmt: skip
    velocity = velocities(place)
    camera = np.minimum(((place[:, 0] - 1) / 0.5).astype(int), 5) + 1
    error = NOISE * random.standard_normal(velocity.shape)
    lost = camera == 4
    error[lost] += -0.25 * velocity[lost] + 0.012 * random.standard_normal((lost.sum(), 2))
    mistaken = (camera == 2) & (random.random(READINGS) < 0.35)
    error[mistaken] += 0.03 * random.standard_normal((mistaken.sum(), 2))
    read = (1000 * (velocity + error)).round(2)
    # Some tracks are too short to tell the velocity across.
    read[random.random(READINGS) < 0.1, 1] = np.nan
    table = pd.DataFrame({
        "sensor": [f"camera {c}" for c in camera],
        "t [s]": (place[:, 2] * DIAMETER / STREAM).round(3),
        "x [mm]": (1000 * DIAMETER * place[:, 0]).round(2),
        "y [mm]": (1000 * DIAMETER * place[:, 1]).round(2),
        "u [mm/s]": read[:, 0],
        "v [mm/s]": read[:, 1],
    })  # fmt: skip
    table = table.sort_values("t [s]", kind="stable")
    table.to_csv(Path(__file__).with_name("sensors.csv"), index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
