"""The membership attack over ridges, scales, numbers of paths and seeds, sharing datasets.

With the ridge r fixed the posterior mean does not depend on sigma and the variance is sigma^2 v_D,
so one set of shadow datasets serves all sigmas and numbers of paths.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from sklearn.gaussian_process.kernels import Kernel, Matern

from privgp.audit.members import draw_release
from privgp.audit.promises import MOST_EPSILON, Promise, renyi_curve
from privgp.audit.result import Membership, measure_success
from privgp.audit.shadows import Population, fit_laws, posteriors
from privgp.privacy.rdp import epsilon_for
from privgp.types import Array

RECORDS, DELTA, LENGTHSCALE = 10, 0.05, 1.0
RATES = (0.01, 0.1)
FAILURE = 1e-6  # how often the bounds of one attack's rates may be wrong
POPULATION = Population(RECORDS, np.zeros(1), np.ones(1), np.array([0.5]), 1.0)

# the posterior means and unit variances of members and others, to learn from and to test on
Sides = tuple[tuple[Array, Array], ...]


@dataclass(frozen=True)
class Setting:
    """One attack: ridge r, kernel scale sigma (inf: centred paths), number of paths L."""

    r: float
    sigma: float
    paths: float = 1

    @cache  # noqa: B019 (a few dozen frozen values)
    def epsilon(self, *, paper: bool) -> float:
        """What L paths guarantee at delta = 0.05: as printed, or with the sharper bounds."""
        if self.paths == math.inf:
            return math.inf
        centred = self.sigma == math.inf
        scale = 1.0 if centred else self.sigma**2
        curve = renyi_curve(
            kernel(scale), scale * self.r**2, RECORDS, int(self.paths), centred=centred, paper=paper
        )
        return epsilon_for([curve], DELTA, "paper" if paper else "sharp")


def kernel(scale: float) -> Kernel:
    """sigma^2 exp(-|x - x'| / l)."""
    return scale * Matern(LENGTHSCALE, nu=0.5)


def shadow_sides(r: float, count: int, rng: np.random.Generator) -> Sides:
    """Datasets with and without the record, twice, and their posteriors under ridge r."""
    sides = []
    for member in (True, False, True, False):
        X, y = POPULATION.draw(count, member, rng)
        sides.append(posteriors(Matern(LENGTHSCALE, nu=0.5), r**2, X, y, POPULATION.point))
    return tuple(sides)


def attack(setting: Setting, sides: Sides, rng: np.random.Generator) -> Membership:
    """The attack on paths of these posteriors."""
    centred = setting.sigma == math.inf
    sigma = 1.0 if centred else setting.sigma
    seen = [
        draw_release(
            np.zeros(len(mean)) if centred else mean, sigma**2 * var, setting.paths, sigma, rng
        )
        for mean, var in sides
    ]
    laws = fit_laws(seen[0], seen[1], 1.0)
    return measure_success(
        laws, seen[1], seen[2], seen[3], RATES, FAILURE, None,
        n=RECORDS, n_paths=float(setting.paths), shadows=len(sides[0][0]),
    )  # fmt: skip


@dataclass(frozen=True)
class Attacks:
    """All attacks on one setting, one for each seed.

    excess: (seeds, 2), true-positive rates above the false-positive rates, 1% and 10%
    within: (seeds, 2), whether the attack stayed within the printed epsilon and the sharper one
    """

    excess: Array
    within: Array


def stays_within(setting: Setting, found: Membership) -> tuple[bool, bool]:
    """Whether the attack did no better than the printed epsilon and the sharper one allow.

    An epsilon above 700 allows every attack.
    """
    printed, sharper = (
        epsilon > MOST_EPSILON or replace(found, promise=Promise(pairs=((epsilon, DELTA),))).holds
        for epsilon in (setting.epsilon(paper=True), setting.epsilon(paper=False))
    )
    return printed, sharper


def attacks_on(
    settings: Sequence[Setting], seeds: int, shadows: int, tell: Callable[[float], None]
) -> dict[Setting, Attacks]:
    """Every setting attacked once per seed."""
    ridges = sorted({setting.r for setting in settings})
    found: dict[Setting, list[list[float]]] = {setting: [] for setting in settings}
    within: dict[Setting, list[tuple[bool, bool]]] = {setting: [] for setting in settings}
    for seed in range(seeds):
        for k, r in enumerate(ridges):
            tell((seed + k / len(ridges)) / seeds)
            rng = np.random.default_rng([seed, k])
            sides = shadow_sides(r, shadows, rng)
            for setting in (s for s in settings if s.r == r):
                result = attack(setting, sides, rng)
                found[setting].append([result.true_positive_rate_at(a) - a for a in RATES])
                within[setting].append(stays_within(setting, result))
    return {s: Attacks(np.array(found[s]), np.array(within[s])) for s in settings}
