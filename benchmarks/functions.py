"""Functions whose truth is known, for judging error bars: heights over ages, and maps.

None of them was drawn from a prior of this software, and nothing is tuned to one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privgp.types import Array

BOUNDS = (60.0, 200.0)
RANGE = 90.0
NOISE = 6.0
SIDE = 21  # places along each side of a map


@dataclass(frozen=True)
class Truth:
    """One function of one or two inputs in [0, 90], with values in [60, 200].

    ``f``: at rows of inputs; ``draw``: inputs from a generator and a number of rows;
    ``noise``: std of an output about f at rows of inputs.
    """

    name: str
    f: Callable[[Array], Array]
    draw: Callable[[np.random.Generator, int], Array]
    rows: int = 300
    noise: Callable[[Array], Array] = lambda X: np.full(len(X), NOISE)

    @property
    def columns(self) -> int:
        return int(self.draw(np.random.default_rng(0), 1).shape[1])

    def places(self) -> Array:
        """Where coverage is judged: all over the range."""
        if self.columns == 1:
            return np.linspace(0.0, RANGE, 91)[:, None]
        side = np.linspace(0.0, RANGE, SIDE)
        return np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)

    def sample(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Inputs and clipped outputs of one data set."""
        X = self.draw(rng, self.rows)
        return X, np.clip(self.f(X) + rng.normal(0.0, self.noise(X)), *BOUNDS)


def _uniform(columns: int) -> Callable[[np.random.Generator, int], Array]:
    return lambda rng, rows: rng.uniform(0.0, RANGE, (rows, columns))


def _young(rng: np.random.Generator, rows: int) -> Array:
    return RANGE * rng.beta(1.0, 3.0, (rows, 1))


def _with_gap(rng: np.random.Generator, rows: int) -> Array:
    x = rng.uniform(0.0, RANGE - 22.0, (rows, 1))
    return np.where(x > 32.0, x + 22.0, x)


def _towns(rng: np.random.Generator, rows: int) -> Array:
    towns = np.array([[20.0, 25.0], [65.0, 30.0], [45.0, 70.0]])
    near = towns[rng.integers(0, 3, rows)] + rng.normal(0.0, 9.0, (rows, 2))
    anywhere = rng.uniform(0.0, RANGE, (rows, 2))
    return np.clip(np.where(rng.uniform(size=(rows, 1)) < 0.7, near, anywhere), 0.0, RANGE)


def _peak(X: Array, centre: float, width: float) -> Array:
    return np.asarray(np.exp(-0.5 * np.square((X[:, 0] - centre) / width)))


def _hill(X: Array, east: float, north: float, width: float) -> Array:
    squares = (X[:, 0] - east) ** 2 + (X[:, 1] - north) ** 2
    return np.asarray(np.exp(-0.5 * squares / width**2))


def growth(X: Array) -> Array:
    return 165.0 - 90.0 * np.exp(-X[:, 0] / 8.0)


def _wave(X: Array) -> Array:
    return 130.0 + 35.0 * np.sin(2.0 * np.pi * X[:, 0] / 60.0)


LINE, MAP = _uniform(1), _uniform(2)

TRUTHS = (
    Truth("growth", growth, LINE),
    Truth("growth, young", growth, _young),
    Truth("flat", lambda X: np.full(len(X), 120.0), LINE),
    Truth("linear", lambda X: 90.0 + 0.9 * X[:, 0], LINE),
    Truth("wave", _wave, LINE),
    Truth("wave with a gap", _wave, _with_gap),
    Truth("wave, uneven noise", _wave, LINE, noise=lambda X: 2.0 + 14.0 * X[:, 0] / RANGE),
    Truth("seasons", lambda X: 130.0 + 25.0 * np.sin(2.0 * np.pi * X[:, 0] / 22.5), LINE),
    Truth("narrow bump", lambda X: 110.0 + 60.0 * _peak(X, 55.0, 4.0), LINE),
    Truth("wide bump", lambda X: 110.0 + 60.0 * _peak(X, 35.0, 12.0), LINE),
    Truth("step", lambda X: 100.0 + 50.0 / (1.0 + np.exp(-(X[:, 0] - 40.0) / 1.5)), LINE),
    Truth("jump", lambda X: np.where(X[:, 0] < 52.0, 150.0 - 0.4 * X[:, 0], 90.0 + 0.3 * X[:, 0]), LINE),
    Truth("flat map", lambda X: np.full(len(X), 120.0), MAP, 500),
    Truth("hill", lambda X: 105.0 + 60.0 * _hill(X, 55.0, 40.0, 22.0), MAP, 500),
    Truth(
        "towns",
        lambda X: 95.0 + 70.0 * _hill(X, 20.0, 25.0, 9.0) + 45.0 * _hill(X, 65.0, 30.0, 14.0),
        _towns,
        500,
    ),
    Truth("border", lambda X: np.where(X[:, 0] + 0.5 * X[:, 1] < 65.0, 105.0, 150.0), MAP, 500),
    Truth("plane", lambda X: 80.0 + 0.6 * X[:, 0] + 0.5 * X[:, 1], MAP, 500),
)  # fmt: skip
