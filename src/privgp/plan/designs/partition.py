"""Groups of inputs whose sums are measured with Laplace noise.

A row's output enters one sum only, so its change moves one number, and the noise of one number is
all it needs: pure epsilon, whatever the number of groups. See docs/proofs/partition.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from privgp.plan.designs.noise_aware import Hypothesis
from privgp.types import Array, Integers

NUMBERS = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 96)
COORDINATES = 24  # leading directions of the prior that tell inputs apart
SAMPLE = 1500  # inputs that groups are found from; the others join the nearest
PATIENCE = 2


def partition(hypotheses: Sequence[Hypothesis], mass: Array, noise: float) -> tuple[Array, float]:
    """The groups that explain most of the targets, as rows of ones, and what they explain.

    ``mass``: (inputs,), the sum of row weights at every input; ``noise``: variance of the noise on
    every sum. Groups are k-means clusters in the prior's own distance ``E (f(x) - f(x'))^2``,
    averaged over the hypotheses, of all rows or of those that tell of the targets. Their number is
    the best of a ladder, then of its neighbours between the rungs.
    """
    places = np.hstack([_coordinates(h, mass) for h in hypotheses])
    step = -(-len(places) // SAMPLE)
    weights = mass, mass * _relevance(hypotheses, mass)
    found: dict[int, tuple[float, Integers]] = {}

    def tried(number: int) -> float:
        if number not in found:
            groups = [_groups(places, weight, number, step) for weight in weights]
            told = [(explained_by_groups(g, hypotheses, noise), g) for g in groups]
            found[number] = max(told, key=lambda one: one[0])
        return found[number][0]

    ladder = [number for number in NUMBERS if number <= len(places)]
    best, worse = ladder[0], 0
    with threadpool_limits(1):  # for matrices this small, two threads only wait for each other
        for number in ladder:
            if tried(number) >= tried(best):
                best, worse = number, 0
            else:
                worse += 1
            if worse > PATIENCE:
                break
        for number in _between(best, ladder):
            best = number if tried(number) > tried(best) else best
    value, groups = found[best]
    indicators = groups == np.arange(groups.max() + 1)[:, None]  # one row per group
    return indicators.astype(float), value


def explained_by_groups(labels: Integers, hypotheses: Sequence[Hypothesis], noise: float) -> float:
    """What sums over groups explain: ``explained`` of their indicators, without the zeros."""
    rows = np.arange(len(labels))
    B = csr_array((np.ones(len(labels)), (labels, rows)))
    value = 0.0
    for h in hypotheses:
        U = B @ h.factor
        S = U @ U.T
        S.flat[:: len(S) + 1] += np.bincount(labels, h.noise) + noise
        L = cholesky(S, lower=True, overwrite_a=True, check_finite=False)
        value += h.weight * float(np.vdot(cho_solve((L, True), U @ h.gram, check_finite=False), U))
    return value


def _between(number: int, ladder: Sequence[int]) -> list[int]:
    """Half-way to the rungs below and above."""
    place = ladder.index(number)
    others = [*ladder[max(place - 1, 0) : place], *ladder[place + 1 : place + 2]]
    return [half for half in ((number + other) // 2 for other in others) if half not in ladder]


def _coordinates(h: Hypothesis, mass: Array) -> Array:
    """Inputs as points whose squared distance is the prior's, but for its weak directions."""
    factor, (values, vectors) = h.factor, h.spectrum
    if np.any(mass != 1.0):
        factor = h.factor / np.maximum(mass, 1e-300)[:, None]
        values, vectors = np.linalg.eigh((factor.T * mass) @ factor)
    return np.asarray(factor @ vectors[:, np.argsort(values)[-COORDINATES:]])


def _relevance(hypotheses: Sequence[Hypothesis], mass: Array) -> Array:
    """How much an input tells of the targets: the weighted sum of squared covariances with them."""
    told = np.zeros(len(mass))
    for h in hypotheses:
        factor = h.factor / np.maximum(mass, 1e-300)[:, None]
        each = np.einsum("ij,ij->i", factor @ h.gram, factor)
        told += h.weight * np.maximum(each, 0.0) / max(float(each.max()), 1e-300)
    return told + 1e-6


def _groups(places: Array, mass: Array, number: int, step: int) -> Integers:
    if number == len(places):
        return np.arange(len(places))
    if number == 1:
        return np.zeros(len(places), dtype=np.int64)
    from sklearn.cluster import KMeans  # slow to import

    found = KMeans(number, n_init=1, random_state=0, max_iter=50)
    found.fit(places[::step], sample_weight=mass[::step])
    labels = found.predict(places)
    return np.asarray(np.unique(labels, return_inverse=True)[1])
