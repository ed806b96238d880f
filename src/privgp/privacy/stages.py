"""A budget for the same rows, divided between several measurements of them.

Gaussian noise loses nothing: with shares s_k of ``mu^2`` all stages tell as much as one measurement.
Pure epsilons add up, but information is proportional to their squares: ``sum s_k^2`` of it remains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

from privgp.privacy.budget import check_budget, gaussian_epsilon, gaussian_multiplier
from privgp.privacy.noise import GAUSSIAN, PURE

Budgets = tuple[tuple[float, float], ...]
BELOW = 1.0 - 1e-6  # so that lattice and rounding stay within the total


@dataclass(frozen=True)
class Stages:
    """How to measure the same rows several times within one budget.

    Attributes
    ----------
    mechanism : the noise distribution to use in all stages
    budgets : (epsilon, delta) of each, for ``fit`` and then ``refine``
    errors : by noise distribution, the expected error once all is spent if every stage measures
        the same; a later one that uses the first release does better

    """

    mechanism: str
    budgets: Budgets
    errors: dict[str, float]

    def describe(self) -> str:
        """The stages and the expected errors in a few sentences. Nothing private is in them."""
        each = ", then ".join(f"epsilon {e:.4g}, delta {d:.3g}" for e, d in self.budgets)
        told = [f"{law.capitalize()} noise: {error:.4g}" for law, error in self.errors.items()]
        return (
            f"Measure with {self.mechanism.capitalize()} noise: {each}.\n"
            f"Expected error once all is spent, if every stage measured the same: {'; '.join(told)}.\n"
            "Nothing has been spent: this needs no output."
        )


def check_shares(shares: object) -> tuple[float, ...]:
    """Positive shares of a budget, scaled to sum to 1; ValueError unless there are two or more."""
    given = tuple(shares) if isinstance(shares, Sequence) else ()
    plain = all(isinstance(s, Real) and 0.0 < float(s) < math.inf for s in given)
    if len(given) < 2 or not plain:
        raise ValueError(f"shares must be two or more positive numbers, got {shares!r}.")
    total = math.fsum(map(float, given))
    return tuple(float(s) / total for s in given)


def information_share(law: str, shares: Sequence[float]) -> float:
    """The epsilon at which one measurement tells what all stages do, as a share of the total.

    Parameters
    ----------
    law
        The noise distribution; Gaussian noise loses nothing.
    shares
        Shares of the stages, adding up to 1.

    """
    return math.hypot(*shares) if law in PURE else 1.0


def share_out(law: str, epsilon: float, delta: float, shares: Sequence[float]) -> Budgets:
    """Budgets of the stages that compose to at most (epsilon, delta).

    Parameters
    ----------
    law
        The noise distribution of all stages.
    epsilon, delta
        The total.
    shares
        Shares of mu^2 for Gaussian noise, of epsilon for pure noise.

    Returns
    -------
    tuple of (epsilon, delta)
        One per share; with pure noise every delta is 0.

    """
    check_budget(epsilon, delta, pure=law in PURE)
    if law != GAUSSIAN:
        return tuple((BELOW * epsilon * share, 0.0) for share in shares)
    mu = BELOW / gaussian_multiplier(epsilon, delta)
    return tuple(
        (gaussian_epsilon(share * delta, 1.0 / (mu * math.sqrt(share))), share * delta)
        for share in shares
    )
