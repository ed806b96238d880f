"""Data shared by the tests. Real data lie beside the project and are never part of it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# Machines that run these tests are noisy: a slow example is no failure.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")

DATA = Path(
    os.environ.get("PRIVGP_DATA", Path(__file__).resolve().parents[1].parent / "shared" / "data")
)


def real_data(name: str) -> Path:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{name} is not beside the project (looked in {DATA}; set PRIVGP_DATA).")
    return path


@pytest.fixture(scope="session")
def kung() -> tuple[np.ndarray, np.ndarray]:
    """Ages and heights of 287 women of the Dobe !Kung census."""
    table = np.loadtxt(real_data("kung.csv"), delimiter=",", skiprows=1)
    return table[:, :1], table[:, 1]
