"""Groups of inputs whose sums are measured with Laplace noise.

A row's output enters one sum only, so its change moves one number, and the noise of one number is
all it needs: pure epsilon, whatever the number of groups. See docs/proofs/partition.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.linalg import eigh

from privgp.gp.threads import one_thread_of_loops
from privgp.plan.designs.noise_aware import Hypothesis
from privgp.types import Array, Integers

NUMBERS = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 96)
COORDINATES = 24  # leading directions of the prior that tell inputs apart
PATIENCE = 2


def partition(
    hypotheses: Sequence[Hypothesis], mass: Array, left: Callable[[Integers], float]
) -> Integers:
    """The group of every input, (inputs,), such that the groups leave least to be explained.

    Groups are k-means clusters in the prior's own distance ``E (f(x) - f(x'))^2``, averaged over
    the hypotheses, of all rows or of those that tell of the targets. Their number is the best of
    a ladder, then of its neighbours between the rungs.

    Parameters
    ----------
    hypotheses
        With weights.
    mass
        (inputs,), the sum of row weights at every input.
    left
        The error that groups leave, from the group of every input.

    """
    places = _coordinates(hypotheses, mass)
    weights = mass, mass * _relevance(hypotheses, mass)
    found: dict[int, tuple[float, Integers]] = {}

    def evaluate_number(number: int) -> float:
        if number not in found:
            groups = [_groups(places, weight, number) for weight in weights]
            tries = [(left(g), g) for g in groups]
            found[number] = min(tries, key=lambda one: one[0])
        return found[number][0]

    ladder = [number for number in NUMBERS if number <= len(places)]
    best, worse = ladder[0], 0
    with one_thread_of_loops():  # for matrices this small, two threads only wait for each other
        for number in ladder:
            if evaluate_number(number) <= evaluate_number(best):
                best, worse = number, 0
            else:
                worse += 1
            if worse > PATIENCE:
                break
        for number in _between(best, ladder):
            best = number if evaluate_number(number) < evaluate_number(best) else best
    return found[best][1]


def _between(number: int, ladder: Sequence[int]) -> list[int]:
    """Half-way to the rungs below and above."""
    place = ladder.index(number)
    others = [*ladder[max(place - 1, 0) : place], *ladder[place + 1 : place + 2]]
    return [half for half in ((number + other) // 2 for other in others) if half not in ladder]


def _coordinates(hypotheses: Sequence[Hypothesis], mass: Array) -> Array:
    """Inputs as points whose squared distance is the prior's, except for its weak directions."""
    per_row = np.maximum(mass, 1e-300)[:, None]
    places = np.hstack(
        [_principal(np.sqrt(h.weight) * h.factor / per_row, mass) for h in hypotheses]
    )
    return _principal(places, mass)


def _principal(places: Array, mass: Array) -> Array:
    """The coordinates along the leading principal directions."""
    count = min(COORDINATES, places.shape[1])
    size = places.shape[1]
    _, vectors = eigh(
        (places.T * mass) @ places, subset_by_index=(size - count, size - 1), check_finite=False
    )
    return np.asarray(places @ vectors)


def _relevance(hypotheses: Sequence[Hypothesis], mass: Array) -> Array:
    """How much an input tells of the targets: the weighted sum of squared covariances with them."""
    told = np.zeros(len(mass))
    for h in hypotheses:
        factor = h.factor / np.maximum(mass, 1e-300)[:, None]
        each = np.einsum("ij,ij->i", factor @ h.gram, factor)
        told += h.weight * np.maximum(each, 0.0) / max(float(each.max()), 1e-300)
    return told + 1e-6


def _groups(places: Array, mass: Array, number: int) -> Integers:
    if number == len(places):
        return np.arange(len(places))
    if number == 1:
        return np.zeros(len(places), dtype=np.int64)
    from sklearn.cluster import KMeans  # slow to import

    found = KMeans(number, n_init=1, random_state=0, max_iter=50)
    found.fit(places, sample_weight=mass)
    return np.asarray(np.unique(found.labels_, return_inverse=True)[1])
