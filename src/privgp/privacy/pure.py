"""Pure epsilon-private steps, such as a choice, beside Gaussian measurements of the same records.
Any e-private step is a post-processing of a coin whose privacy loss is +e with probability
``e^e / (1 + e^e)``, else -e, so with Gaussian mechanisms of parameter mu the whole satisfies
``delta(eps) = sum over signs of p(signs) delta_mu(eps - signs . e)``: docs/proofs/select.md."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

from scipy.optimize import brentq
from scipy.special import expit

from privgp.privacy.budget import gaussian_delta, gaussian_multiplier

MOST_COINS = 10  # beyond, the smallest are taken as one step of their sum, which promises no less


def total_epsilon(pure_epsilons: Sequence[float]) -> float:
    """The sum, rounded up: what pure steps guarantee together with delta = 0."""
    total = math.fsum(pure_epsilons)
    if Fraction(total) < sum(map(Fraction, pure_epsilons)):
        return math.nextafter(total, math.inf)
    return total


def mix_delta(epsilon: float, mu: float, pure_epsilons: Sequence[float]) -> float:
    """delta(epsilon), at any real epsilon, of pure steps and Gaussian ones together.

    Parameters
    ----------
    epsilon
        a real number, which may be negative.
    mu
        The Gaussian-DP parameter of all Gaussian steps; 0 if there are none.
    pure_epsilons
        One per pure step; beyond 10 the smallest are added up, which guarantees no less.

    """
    if mu == 0 and epsilon >= total_epsilon(pure_epsilons):
        return 0.0
    coins = sorted(pure_epsilons, reverse=True)
    if len(coins) > MOST_COINS:
        coins = [*coins[: MOST_COINS - 1], math.fsum(coins[MOST_COINS - 1 :])]
    whole, multiplier = 0.0, 1.0 / mu if mu > 0 else math.inf
    for signs in product((1.0, -1.0), repeat=len(coins)):
        losses = [sign * coin for sign, coin in zip(signs, coins, strict=True)]
        probability = math.prod(float(expit(loss)) for loss in losses)
        whole += probability * gaussian_delta(epsilon - math.fsum(losses), multiplier)
    return min(1.0, whole * (1.0 + 1e-12))


def epsilon_left(epsilon: float, delta: float, spent: float) -> float:
    """The largest e for which an (e, delta)-private Gaussian mechanism fits beside a pure step.

    Parameters
    ----------
    epsilon, delta
        The budget of both together.
    spent
        The epsilon of the pure step.

    Returns
    -------
    float
        Never less than ``epsilon - spent``, which adding up allows.

    """
    least = epsilon - spent

    def excess(share: float) -> float:
        multiplier = gaussian_multiplier(share, delta * (1.0 - 1e-6))
        return mix_delta(epsilon * (1.0 - 1e-9), 1.0 / multiplier, [spent]) - delta * (1.0 - 1e-5)

    if excess(least) >= 0 or excess(epsilon) <= 0:
        return least
    root = float(brentq(excess, least, epsilon, xtol=1e-9 * epsilon)) * (1.0 - 1e-8)
    return max(least, root)
