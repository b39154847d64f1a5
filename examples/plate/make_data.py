"""Writes sensors.csv: a finite-volume solution on 400 x 200 cells, as an infrared camera sees it.

The camera's picture is averaged over 30 x 15 blocks. Its six read-out channels take the columns in
turn; one is badly calibrated (it reads warm), and some pixels are dead or hot.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.interpolate import RectBivariateSpline
from scipy.sparse import coo_matrix
from scipy.sparse.linalg import spsolve

WIDTH, HEIGHT, HEATING, EDGE = 0.2, 0.1, 1.5e6, 20.0
NOISE = 0.15  # K


def conductivity(x, y):
    return 45.0 - 27.0 * np.exp(-((x - 0.135) ** 2 + (y - 0.045) ** 2) / (2 * 0.022**2))


def temperature(nx=400, ny=200):
    """Cell centres and the temperature there, by two-point fluxes with harmonic means."""
    dx, dy = WIDTH / nx, HEIGHT / ny
    x, y = (np.arange(nx) + 0.5) * dx, (np.arange(ny) + 0.5) * dy
    k = conductivity(x[:, None], y[None, :])
    number = np.arange(nx * ny).reshape(nx, ny)
    rows, columns, entries = [], [], []
    right = np.full((nx, ny), HEATING * dx * dy)
    diagonal = np.zeros((nx, ny))

    def couple(a, b, ka, kb, ratio):
        value = 2 * ka * kb / (ka + kb) * ratio
        for one, other in ((a, b), (b, a)):
            rows.append(one.ravel())
            columns.append(other.ravel())
            entries.append(-value.ravel())
            np.add.at(diagonal.ravel(), one.ravel(), value.ravel())

    couple(number[:-1], number[1:], k[:-1], k[1:], dy / dx)
    couple(number[:, :-1], number[:, 1:], k[:, :-1], k[:, 1:], dx / dy)
    # A cooled edge lies half a cell from its row of cells.
    edges = ((np.s_[0, :], dy / dx), (np.s_[-1, :], dy / dx), (np.s_[:, 0], dx / dy),
             (np.s_[:, -1], dx / dy))  # fmt: skip
    for edge, ratio in edges:
        diagonal[edge] += 2 * k[edge] * ratio
        right[edge] += 2 * k[edge] * ratio * EDGE
    rows.append(number.ravel())
    columns.append(number.ravel())
    entries.append(diagonal.ravel())
    where = (np.concatenate(rows), np.concatenate(columns))
    matrix = coo_matrix((np.concatenate(entries), where), shape=(nx * ny, nx * ny)).tocsr()
    return x, y, spsolve(matrix, right.ravel()).reshape(nx, ny)


def true_readings(points):
    """What faultless pixels would read at (x, y)."""
    return RectBivariateSpline(*temperature(), kx=3, ky=3).ev(*points.T)[:, None]


def main():
    random = np.random.default_rng(5)
    # 30 x 15 pixels, each reading the temperature at its middle.
    px, py = (np.arange(30) + 0.5) * WIDTH / 30, (np.arange(15) + 0.5) * HEIGHT / 15
    places = np.stack(np.meshgrid(px, py, indexing="ij"), -1).reshape(-1, 2)
    truth = true_readings(places)[:, 0]
    error = NOISE * random.standard_normal(len(truth))
    channel = 1 + np.arange(len(places)) // 15 % 6
    error[channel == 3] += 4.0 + 1.5 * random.standard_normal((channel == 3).sum())
    hot = random.choice(np.flatnonzero(channel != 3), 14, replace=False)
    error[hot] += random.choice([-1, 1], 14) * random.uniform(3, 15, 14)
    table = pd.DataFrame({
        "sensor": [f"channel {c}" for c in channel],
        "x [mm]": (1000 * places[:, 0]).round(3),
        "y [mm]": (1000 * places[:, 1]).round(3),
        "temperature [degC]": (truth + error).round(2),
    })  # fmt: skip
    table.loc[random.choice(len(table), 12, replace=False), "temperature [degC]"] = np.nan
    table.to_csv(Path(__file__).with_name("sensors.csv"), index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
