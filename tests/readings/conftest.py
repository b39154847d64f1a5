"""A problem whose readings are read in these tests, and files of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from unpinn.problem import Problem, Scalar, Sobol


def heat(T, k):
    return T.t - k * T.xx


@pytest.fixture(scope="session")
def rod() -> Problem:
    """Heat in a rod of two metres, watched for an hour: temperature and flux are read."""
    return Problem(
        coordinates={"x": (0.0, 2.0), "t": (0.0, 3600.0)},
        fields=["T"],
        unknowns=[Scalar("k", initial=1.0, bounds=(0, None))],
        equations={"heat": heat},
        measurements={"flux": lambda T: -T.x},
        collocation=Sobol(8),
        name="rod",
    )


@pytest.fixture
def write(tmp_path: Path):
    """Write a text to a file of this test and give its path."""

    def written(text: str | bytes, name: str = "sensors.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return written
