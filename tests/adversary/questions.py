"""Adversarial sequences of questions: seeded, short, and made of everything that ever hurt."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SUBNORMAL = np.array([5e-324, -5e-324, 1e-310, -1e-310, 2.2250738585072014e-308])
KINDS = ("far", "near", "clustered", "duplicated", "subnormal", "huge", "zeros", "edges")
RESTARTS = ("none", "process", "bytes", "file")


@dataclass(frozen=True)
class Step:
    """Points to ask, and how the custodian restarts afterwards; ``outside``: they must be refused."""

    points: np.ndarray
    outside: bool = False
    restart: str = "none"


def sequence(
    seed: int, box: tuple[tuple[float, float], ...], reach: float | None
) -> tuple[Step, ...]:
    """Two or three questions of one to five points.

    ``reach``: how far they go beyond the box; None where the box is the declared domain.
    """
    rng = np.random.default_rng([12, seed])
    low, high = np.array(box).T
    asked = np.empty((0, len(box)))
    steps = []
    for _ in range(rng.integers(2, 4)):
        if reach is None and rng.random() < 0.1:
            steps.append(Step(_outside(rng, low, high), outside=True))
            continue
        points = _points(rng, low, high, asked, reach)
        restart = RESTARTS[rng.choice(4, p=(0.5, 0.41, 0.08, 0.01))]
        steps.append(Step(points, restart=restart))
        asked = np.vstack([asked, points])
    return tuple(steps)


def _points(
    rng: np.random.Generator,
    low: np.ndarray,
    high: np.ndarray,
    asked: np.ndarray,
    reach: float | None,
) -> np.ndarray:
    """One to five points of one kind, about a centre that may have been asked before."""
    kind, count, columns = KINDS[rng.integers(len(KINDS))], int(rng.integers(1, 6)), len(low)
    share = rng.random((count, columns))
    spread = low * (1 - share) + high * share
    centre = asked[rng.integers(len(asked))] if len(asked) and rng.random() < 0.6 else spread[0]
    if kind == "near":
        apart = 10.0 ** rng.uniform(-15, -3, (count, 1)) * rng.choice([-1, 1], (count, 1))
        found = centre + apart * (1.0 if rng.random() < 0.5 else np.maximum(np.abs(centre), 1e-300))
    elif kind == "clustered":
        found = centre + 3e-9 * np.arange(1, count + 1)[:, None]
    elif kind == "duplicated":
        found = np.repeat(centre[None], count, axis=0)
        found[count // 2 :] = spread[0]
    elif kind == "subnormal":
        found = rng.choice(SUBNORMAL, (count, columns))
    elif kind == "huge":
        found = np.where(share > 0.5, high, low) * (
            1.0 - 2.0**-52 * rng.integers(9, size=(count, 1))
        )
    elif kind == "zeros":
        found = np.resize([0.0, -0.0], (count, columns))
    elif kind == "edges":
        ends = np.stack([low, high, np.nextafter(low, high), np.nextafter(high, low)])
        found = ends[rng.integers(4, size=count)]
    elif reach is None:
        found = spread
    else:  # nothing is declared, so as far as numbers go
        found = rng.choice([-1, 1], (count, columns)) * 10.0 ** rng.uniform(
            8, np.log10(reach), (count, columns)
        )
        found[: count // 2] = spread[: count // 2]
    return np.clip(found, low, high) if reach is None else found


def _outside(rng: np.random.Generator, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Points of which one lies just outside, or far away."""
    points = np.stack([low, high, 0.5 * low + 0.5 * high])
    column = rng.integers(len(low))
    wrong = (
        np.nextafter(low[column], -np.inf), np.nextafter(high[column], np.inf),
        max(1e18, 4e18 * high[column]), -max(1e18, 4e18 * high[column]), 1e300, np.inf, np.nan,
    )  # fmt: skip
    points[rng.integers(3), column] = wrong[rng.integers(len(wrong))]
    return points
