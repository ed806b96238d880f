"""What an attack achieved beside what was promised."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from scipy.special import betainccinv, betaincinv, ndtri

from privgp.audit.promises import Promise


@dataclass(frozen=True)
class TradeOff:
    """The error rates of one attack on fresh draws beside the least that were promised.

    ``promised_mu``: the Gaussian-DP parameter of the promise (of another kind of promise: what it
    allows at the attack's false-positive rate); ``mu_low``, ``mu_high``: confidence bounds of the
    attack's own, from Clopper-Pearson bounds of its two error rates, wrong together with
    probability at most ``failure_probability``. ``false_positive_bounds`` and
    ``false_negative_bounds``: those bounds. ``attack``: what was done, in words.
    """

    promised_mu: float
    mu_low: float
    mu_high: float
    false_positive_rate: float
    false_negative_rate: float
    draws: int
    failure_probability: float
    false_positive_bounds: tuple[float, float] = (0.0, 1.0)
    false_negative_bounds: tuple[float, float] = (0.0, 1.0)
    promise: Promise = field(default_factory=Promise)
    attack: str = "the best threshold on one number"

    @property
    def holds(self) -> bool:
        """Whether the attack stayed within the promise."""
        return self.mu_low <= self.promised_mu

    @property
    def is_tight(self) -> bool:
        """Whether the noise is no larger than the promise needs, within 10%."""
        return self.mu_high >= 0.9 * self.promised_mu

    def epsilon_low(self, delta: float) -> float:
        """The epsilon at this delta that the attack disproves anything below of; 0 if it finds nothing.

        ``log((1 - beta - delta) / alpha)`` with both error rates at their upper bounds, or with
        their roles exchanged.
        """
        alpha, beta = self.false_positive_bounds[1], self.false_negative_bounds[1]
        found = 0.0
        for a, b in ((alpha, beta), (beta, alpha)):
            if 1.0 - b - delta > 0.0:
                found = max(found, math.log((1.0 - b - delta) / a))
        return found

    def describe(self) -> str:
        verdict = "holds" if self.holds else "IS BROKEN"
        return (
            f"Promise: {self.promise.describe()}. Attack: {self.attack}, {self.draws} draws a side: "
            f"mu between {self.mu_low:.4g} and {self.mu_high:.4g} where {self.promised_mu:.4g} is "
            f"allowed (wrong with probability {self.failure_probability:g}). The promise {verdict}."
        )

    def plot(self, ax: Any = None) -> Any:
        """Both error rates with their bounds beside the promised curve, as a figure."""
        from privgp.audit.plots import plot_trade_off

        return plot_trade_off(self, ax)


def clopper_pearson(count: int, draws: int, failure: float) -> tuple[float, float]:
    """Bounds of a probability of which ``count`` of ``draws`` events were seen; together wrong with
    probability at most ``failure``."""
    tail = 0.5 * failure
    low = betaincinv(count, draws - count + 1, tail) if count > 0 else 0.0
    high = betainccinv(count + 1, draws - count, tail) if count < draws else 1.0
    return float(low), float(high)


def from_errors(
    promise: Promise,
    false_positives: int,
    false_negatives: int,
    draws: int,
    failure: float,
    attack: str = TradeOff.attack,
) -> TradeOff:
    """Mu = Phi^-1(1 - alpha) - Phi^-1(beta), with each error rate at its Clopper-Pearson bound."""
    alpha = clopper_pearson(false_positives, draws, failure / 2.0)
    beta = clopper_pearson(false_negatives, draws, failure / 2.0)
    return TradeOff(
        promised_mu=promise.equivalent_mu(alpha[1]),
        mu_low=float(-ndtri(alpha[1]) - ndtri(beta[1])),
        mu_high=float(-ndtri(alpha[0]) - ndtri(beta[0])),
        false_positive_rate=false_positives / draws,
        false_negative_rate=false_negatives / draws,
        draws=draws,
        failure_probability=failure,
        false_positive_bounds=alpha,
        false_negative_bounds=beta,
        promise=promise,
        attack=attack,
    )
