"""How far two runs are apart before the noise, as a share of what their guarantee states.

Both sides are in the terms in which a guarantee adds up. Gaussian noise: the root of the sum of
``(|move|_2 / std)^2`` against the ``mu`` of the guarantee. Pure noise and choices: the sum of
``|move|_1 / scale`` and of ``2 |move|_max / scale`` against the sum of pure epsilons. Neither takes
anything from the product but the numbers that it drew for and the guarantee that it gave out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from privgp import Guarantee
from tests.adversary.replay.freezing import Draw

PURE = {
    "laplace": lambda move: float(np.abs(move).sum()),
    "choice": lambda move: 2.0 * float(np.abs(move).max()),
}
ROUNDING = 1e-9  # an exact sum is compared with a rounded one


def reached(one: Sequence[Draw], other: Sequence[Draw], guarantee: Guarantee) -> dict[str, float]:
    """The share of the stated privacy loss that is reached, by kind of noise."""
    moves = [(a.kind, (b.exact - a.exact) / a.scale) for a, b in zip(one, other, strict=True)]
    gaussian = math.hypot(*(float(np.linalg.norm(m)) for kind, m in moves if kind == "gaussian"))
    pure = math.fsum(PURE[kind](move) for kind, move in moves if kind in PURE)
    epsilons = max(math.fsum(event.pure_epsilons) for event in guarantee.events)
    if not guarantee._names_mechanism:  # a guarantee under an assumption states its epsilon alone
        epsilons = guarantee.epsilon
    parts = {"gaussian": (gaussian, guarantee.mu), "pure": (pure, epsilons)}
    return {
        kind: (apart / stated if stated else math.inf)
        for kind, (apart, stated) in parts.items()
        if stated or apart
    }
