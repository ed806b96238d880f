"""The best attack on a Gaussian measurement: a threshold on one number.

Somebody's outputs are either all at one end of their bounds or at the other, whichever signs move
the measurement most; everybody else's are known. The likelihood ratio is then a monotone function
of the measurement's projection on the difference, so no attack does better than a threshold on it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from rich.progress import track
from scipy.special import ndtri
from scipy.stats import binomtest

from privgp.plan.bins import Bins
from privgp.plan.columns import StreamedStrategy
from privgp.plan.preview import Plan
from privgp.plan.records import RecordsPlan
from privgp.plan.strategy import Strategy
from privgp.privacy.sensitivity import ENUMERATED_ROWS, person_norms
from privgp.types import Array, Integers
from privgp.vault.measure import exact_measurement
from privgp.vault.sample import add_lattice_noise

BATCH_NUMBERS = 2**16


@dataclass(frozen=True)
class TradeOff:
    """What an attack achieved beside what was promised.

    ``promised_mu``: the Gaussian-DP parameter of the promise; ``mu_low``, ``mu_high``: confidence
    bounds of the attack's own, from Clopper-Pearson bounds of its two error rates, wrong together
    with probability at most ``failure_probability``.
    """

    promised_mu: float
    mu_low: float
    mu_high: float
    false_positive_rate: float
    false_negative_rate: float
    draws: int
    failure_probability: float

    @property
    def holds(self) -> bool:
        """Whether the attack stayed within the promise."""
        return self.mu_low <= self.promised_mu

    @property
    def is_tight(self) -> bool:
        """Whether the noise is no larger than the promise needs, within 10%."""
        return self.mu_high >= 0.9 * self.promised_mu

    def describe(self) -> str:
        verdict = "holds" if self.holds else "IS BROKEN"
        return (
            f"Promise: mu = {self.promised_mu:.4g}. Best attack over {self.draws} draws a side: mu "
            f"between {self.mu_low:.4g} and {self.mu_high:.4g}. The promise {verdict}."
        )


def trade_off(
    plan: Plan | RecordsPlan,
    *,
    draws: int = 20_000,
    noise_scale: float = 1.0,
    failure_probability: float = 1e-6,
    progress: bool = False,
) -> TradeOff:
    """Attack a plan's measurement with the sampler that protects real releases.

    Reads no private data: the neighbouring datasets are the worst there are. ``noise_scale`` below 1
    plants a fault, to see that the audit finds it.
    """
    if not isinstance(plan, Plan | RecordsPlan):
        raise TypeError("trade_off takes a Plan, such as model.plan(X) or model.plan_.")
    if draws < 1 or not 0 < failure_probability < 1 or not noise_scale > 0:
        raise ValueError("draws and noise_scale must be positive, failure_probability in (0, 1).")
    if isinstance(plan, RecordsPlan):
        low, high = worst_records(plan.strategy)
    elif isinstance(plan.strategy, StreamedStrategy):
        low, high = plan.strategy.worst_neighbours()
    else:
        first, second = worst_neighbours(plan.strategy)
        low = exact_measurement(first, plan.strategy)
        high = exact_measurement(second, plan.strategy)
    direction = (high - low) / np.linalg.norm(high - low)
    middle = 0.5 * float((low + high) @ direction)
    errors = []
    for exact, sign in ((low, 1.0), (high, -1.0)):
        noisy = _projections(plan, exact, direction, draws, noise_scale, progress)
        errors.append(int(np.count_nonzero(sign * (noisy - middle) > 0)))
    return _from_errors(
        1.0 / plan.noise.multiplier, errors[0], errors[1], draws, failure_probability
    )


def worst_neighbours(strategy: Strategy) -> tuple[Array, Array]:
    """Two sets of scaled outputs, equal but for the person who can move the measurement most."""
    rows = _most_exposed_rows(strategy)
    signs = _worst_signs(strategy, rows)
    first = np.zeros(len(strategy.index))
    second = first.copy()
    first[rows], second[rows] = -signs, signs
    return first, second


def worst_records(bins: Bins) -> tuple[Array, Array]:
    """What one record adds to the measurement, twice: of all pairs of records the two furthest apart.

    Outputs at the ends and the middle of their bounds suffice: the move is convex in their squares.
    """
    B, w = bins.matrix, bins.energy_weight
    gram, best = B.T @ B, (-1.0, 0, 0, 0.0, 0.0)
    squares = np.diag(gram)
    for u, v in product((-1.0, 0.0, 1.0), repeat=2):
        moved = (1.0 + u * u) * squares[:, None] + (1.0 + v * v) * squares[None, :]
        moved = moved - 2.0 * (1.0 + u * v) * gram + w**2 * (u * u - v * v) ** 2
        i, j = divmod(int(np.argmax(moved)), bins.count)
        best = max(best, (float(moved[i, j]), i, j, u, v))
    _, i, j, u, v = best
    first, second = (
        np.concatenate([B[:, k], B[:, k] * x, [w * x * x]]) for k, x in ((i, u), (j, v))
    )
    return first, second


def _most_exposed_rows(strategy: Strategy) -> Integers:
    people = np.arange(len(strategy.index)) if strategy.people is None else strategy.people
    norms = person_norms(strategy.matrix, strategy.index, people) * strategy.person_weights()
    return np.flatnonzero(people == int(np.argmax(norms)))


def _worst_signs(strategy: Strategy, rows: Integers) -> Array:
    """The signs of one person's outputs that move the measurement most (all +1 for many rows)."""
    if len(rows) > ENUMERATED_ROWS:
        return np.ones(len(rows))
    signs = np.array(list(product((1.0, -1.0), repeat=len(rows))))
    moved = strategy.matrix[:, strategy.index[rows]] @ signs.T
    worst: Array = signs[int(np.argmax(np.square(moved).sum(axis=0)))]
    return worst


def _projections(
    plan: Plan | RecordsPlan,
    exact: Array,
    direction: Array,
    draws: int,
    noise_scale: float,
    progress: bool,
) -> Array:
    """Released measurements projected on a direction, (draws,); many draws share one call."""
    size = len(exact)
    batch = min(draws, max(1, BATCH_NUMBERS // size))
    noise = replace(plan.noise, size=size * batch, std=plan.noise.std * noise_scale)
    tiled = np.tile(exact, batch)
    rounds = range(-(-draws // batch))
    parts = [
        add_lattice_noise(tiled, noise).reshape(batch, size) @ direction
        for _ in track(rounds, description="attacking", disable=not progress)
    ]
    return np.concatenate(parts)[:draws]


def _from_errors(
    promised: float, false_positives: int, false_negatives: int, draws: int, failure: float
) -> TradeOff:
    """Mu = Phi^-1(1 - alpha) - Phi^-1(beta), with each error rate at its Clopper-Pearson bound."""
    level = 1.0 - failure / 2.0
    alpha = binomtest(false_positives, draws).proportion_ci(level, method="exact")
    beta = binomtest(false_negatives, draws).proportion_ci(level, method="exact")
    return TradeOff(
        promised_mu=promised,
        mu_low=float(-ndtri(alpha.high) - ndtri(beta.high)),
        mu_high=float(-ndtri(alpha.low) - ndtri(beta.low)),
        false_positive_rate=false_positives / draws,
        false_negative_rate=false_negatives / draws,
        draws=draws,
        failure_probability=failure,
    )
