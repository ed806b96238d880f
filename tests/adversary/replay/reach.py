"""How far two runs are apart before the noise, as a share of what their guarantee states.

Both sides are in the terms in which a guarantee adds up. Gaussian noise: the root of the sum of
``(|move|_2 / std)^2`` against the ``mu`` of the guarantee. Pure noise and choices: the sum of
``|move|_1 / scale`` and of ``2 |move|_max / scale`` against the sum of pure epsilons. Sample paths: the
root of the Renyi divergence between the two normal distributions against that of the stated curve. Only
the numbers that were drawn for, and the guarantee that was given out, come from the product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from privgp import Guarantee
from privgp.privacy.noise import DELTA_SLACK
from tests.adversary.replay.freezing import Draw

PURE: dict[str, Callable[[np.ndarray], float]] = {
    "laplace": lambda move: float(np.abs(move).sum()),
    "choice": lambda move: 2.0 * float(np.abs(move).max()),
}
ORDERS = (1.5, 2.0, 3.0)


def reached(
    models: tuple[Any, Any], one: Sequence[Draw], other: Sequence[Draw]
) -> dict[str, float]:
    """The share of the stated privacy loss that is reached, by kind of noise.

    ``models``: what either run fitted or wrote, with its ``guarantee_``; ``one``, ``other``: the draws.
    """
    guarantee: Guarantee = models[0].guarantee_
    if guarantee.path_curves:
        return {"paths": _reached_by_paths(models, one, other)}
    moves = [(a.kind, (b.exact - a.exact) / a.scale) for a, b in zip(one, other, strict=True)]
    gaussian = math.hypot(*(float(np.linalg.norm(m)) for kind, m in moves if kind == "gaussian"))
    pure = math.fsum(PURE[kind](move) for kind, move in moves if kind in PURE)
    epsilons = max(math.fsum(event.pure_epsilons) for event in guarantee.events)
    if not (guarantee.mu or epsilons):  # under an assumption: nothing but epsilon is stated
        epsilons = guarantee.epsilon
    if guarantee.delta_slack > DELTA_SLACK and not guarantee.mu:
        gaussian = 0.0  # a release of which only epsilon and delta are stated, after a choice
    parts = {"gaussian": (gaussian, guarantee.mu), "pure": (pure, epsilons)}
    return {
        kind: apart / stated if stated else math.inf
        for kind, (apart, stated) in parts.items()
        if stated or apart
    }


def _reached_by_paths(models: tuple[Any, Any], one: Sequence[Draw], other: Sequence[Draw]) -> float:
    laws = [_normal(model, draws) for model, draws in zip(models, (one, other), strict=True)]
    (curve,) = models[0].guarantee_.path_curves
    orders = [order for order in ORDERS if order < curve.limit]
    shares = [curve.paths * _renyi(order, *laws[0], *laws[1]) / curve.at(order) for order in orders]
    return math.sqrt(max(shares))


def _normal(model: Any, draws: Sequence[Draw]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of one path at the points that were asked for. Every question draws standard
    normal numbers z first, then ``mean + L z`` with lattice noise."""
    kept = model._kept.contents.draws
    paths, points = kept.normals.shape[1], len(kept.points)
    L = np.zeros((points, points))
    for place, row in enumerate(kept.lower.rows):
        L[place, : place + 1] = row
    values = np.hstack([draw.exact.reshape(paths, -1) for draw in draws[1::2]])
    means = values - kept.normals.T @ L.T
    assert np.allclose(means, means[0])
    return means[0], L @ L.T + draws[1].scale ** 2 * np.eye(points)


def _renyi(
    order: float, mean: np.ndarray, C: np.ndarray, other: np.ndarray, D: np.ndarray
) -> float:
    """The Renyi divergence between two normal distributions."""
    between = order * D + (1.0 - order) * C
    move = other - mean
    logs = [np.linalg.slogdet(matrix)[1] for matrix in (between, C, D)]
    spread = logs[0] - (1.0 - order) * logs[1] - order * logs[2]
    shift = 0.5 * order * float(move @ np.linalg.solve(between, move))
    return shift - float(spread) / (2.0 * (order - 1.0))
