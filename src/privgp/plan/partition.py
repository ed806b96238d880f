"""Groups of inputs whose sums are measured with Laplace noise.

A row's output enters one sum only, so its change moves one number, and the noise of one number is
all it needs: pure epsilon, whatever the number of groups. See docs/proofs/partition.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.cluster import KMeans

from privgp.plan.aware import Hypothesis, gain
from privgp.types import Array, Integers

NUMBERS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 28, 33, 40, 48, 57, 68, 81, 96)
COORDINATES = 24  # leading directions of the prior that tell inputs apart
SAMPLE = 3000  # inputs that groups are found from; the others join the nearest


def partition(
    hypotheses: Sequence[Hypothesis], mass: Array, noise: float, tolerance: int = 4
) -> tuple[Array, float]:
    """The groups that explain most of the targets, as rows of ones, and what they explain.

    ``mass``: (inputs,), the sum of row weights at every input; ``noise``: variance of the noise on
    every sum. Groups are k-means clusters in the prior's own distance
    ``E (f(x) - f(x'))^2``, averaged over the hypotheses; their number is the best of a ladder,
    which is left after ``tolerance`` steps without a gain.
    """
    places = np.hstack([_coordinates(h, mass) for h in hypotheses])
    step = max(1, len(places) // SAMPLE)
    best: tuple[float, Array] | None = None
    worse = 0
    for number in NUMBERS:
        if number > len(places):
            break
        labels = _groups(places, mass, number, step)
        B = _indicators(labels)
        explained = gain(B, hypotheses, noise)[0]
        if best is None or explained > best[0]:
            best, worse = (explained, B), 0
        else:
            worse += 1
            if worse > tolerance:
                break
    assert best is not None
    return best[1], best[0]


def _coordinates(h: Hypothesis, mass: Array) -> Array:
    """Inputs as points whose squared distance is the prior's, but for its weak directions."""
    factor = h.factor / np.maximum(mass, 1e-300)[:, None]
    values, vectors = np.linalg.eigh((factor.T * mass) @ factor)
    return np.asarray(factor @ vectors[:, np.argsort(values)[-COORDINATES:]])


def _groups(places: Array, mass: Array, number: int, step: int) -> Integers:
    if number == len(places):
        return np.arange(len(places))
    found = KMeans(number, n_init=2, random_state=0, max_iter=100)
    found.fit(places[::step], sample_weight=mass[::step])
    labels = found.predict(places)
    return np.asarray(np.unique(labels, return_inverse=True)[1])


def _indicators(labels: Integers) -> Array:
    """One row per group: 1 at its inputs, 0 elsewhere."""
    return np.asarray(labels == np.arange(labels.max() + 1)[:, None], dtype=float)
