"""Whether one more charge fits: a privacy filter, valid however charges depend on earlier answers.

What is spent has three parts: epsilons, squared Gaussian parameters ``mu^2``, and deltas. Before the
first Gaussian mechanism the epsilons must stay within the account's epsilon and the deltas within
its delta. With the first one the account fixes how much of both may ever go to other steps, and

    delta_mu(epsilon - most_epsilon) + most_delta <= delta

bounds the ``mu^2`` from then on. ``compose`` allows more, but not to somebody who chooses charges by
looking at answers. Proofs: docs/proofs/ledger.md.

Amounts are whole numbers of 1e-40, rounded up: no spending is so small that it costs nothing. An epsilon or a
delta is read as the decimal it is written as, so that ten times 0.1 is 1. The float may be larger by half a
unit in its last place: the proof states who pays for that."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from fractions import Fraction
from typing import Self

from scipy.special import log_expit, ndtri_exp

from privgp.privacy.budget import gaussian_delta, least_epsilon
from privgp.privacy.guarantee import Event, Guarantee

UNIT = 10**40
MOST = 10**12 * UNIT
SMALL = 0.01  # below, the quantile is computed from a difference that cancels


def up(value: Fraction) -> int:
    """A number that is not negative, in units of 1e-40, rounded up; ValueError above 1e12."""
    amount = math.ceil(value * UNIT)
    if value < 0 or amount > MOST:
        raise ValueError("a charge must lie between 0 and 1e12.")
    return amount


def decimal(value: float) -> int:
    """An epsilon or a delta in units of 1e-40, by its shortest decimal."""
    if not math.isfinite(value):
        raise ValueError("a charge must be finite.")
    return up(Fraction(repr(float(value))))


def mu_square(noise_multiplier: float) -> int:
    """``mu^2 = 1 / c^2`` of a Gaussian mechanism in units of 1e-40, of the very float c."""
    if not 0 < noise_multiplier < math.inf:
        raise ValueError("a noise multiplier must be positive and finite.")
    return up(1 / Fraction(noise_multiplier) ** 2)


def mu_square_of_pure(epsilon: float) -> int:
    """``mu^2`` of the least Gaussian mechanism that an epsilon-private step is a post-processing
    of.

    ``mu = 2 Phi^-1(e^eps / (1 + e^eps))``, at most ``sqrt(pi / 2) eps``; in units of 1e-40.
    """
    if not 0 <= epsilon < math.inf:
        raise ValueError("a charge must be finite.")
    most = Fraction(math.pi) / 2 * Fraction(epsilon) ** 2 * (1 + Fraction(1, 10**12))
    if epsilon < SMALL:
        return up(most)
    mu = -2.0 * float(ndtri_exp(log_expit(-epsilon))) * (1.0 + 1e-9)
    return up(min(most, Fraction(mu) ** 2))


def below(amount: int) -> float:
    """The amount as a float that is not larger."""
    exact = Fraction(amount, UNIT)
    near = float(exact)
    return near if Fraction(near) <= exact else math.nextafter(near, -math.inf)


def decimal_below(amount: int) -> float:
    """The amount as a float whose decimal is not larger: charged again, it fits."""
    near = float(Fraction(amount, UNIT))
    while Fraction(repr(near)) * UNIT > amount:
        near = math.nextafter(near, -math.inf)
    return near


def above(amount: int) -> float:
    """The amount as a float that is not smaller."""
    return -below(-amount)


LATTICE = UNIT // 10**18  # epsilon that one measurement's lattice adds, at most
EPSILON_ROOM = 2**40  # parts of epsilon and of delta that are set aside for lattices, at least one
DELTA_ROOM = 2**32
FLOAT_ERROR = 2.0**-36  # of the Gaussian curve, relative
MACHINES = 10**9  # the part of a cost by which two machines may differ
SHARE = 8  # the part of delta at which a step that is no sum of known ones is first counted
MOST_EQUAL = 2**30


@dataclass(frozen=True)
class Cost:
    """The cost of a charge, in units of 1e-40.

    Attributes
    ----------
    epsilon : epsilon of pure steps, and of steps that are counted by (epsilon, delta)
    mu2 : squared Gaussian-DP parameters
    delta : delta of lattices, and of steps that are counted by (epsilon, delta)

    """

    epsilon: int = 0
    mu2: int = 0
    delta: int = 0

    def covers(self, other: Self) -> bool:
        """Whether this is no less, except for the last digits in which machines compute differently."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return all(mine >= theirs - theirs // MACHINES for mine, theirs in pairs)


@dataclass(frozen=True)
class Spent:
    """The total of all charges so far, in units of 1e-40.

    Attributes
    ----------
    epsilon, mu2, delta : sums of the costs
    most_epsilon, most_delta : all that may ever go to steps that are not Gaussian; None before
        the first Gaussian one

    """

    epsilon: int = 0
    mu2: int = 0
    delta: int = 0
    most_epsilon: int | None = None
    most_delta: int | None = None


@dataclass(frozen=True)
class Budget:
    """An account's total, in units of 1e-40.

    Attributes
    ----------
    epsilon, delta : the total
    reserve : the part of epsilon that Gaussian noise never gets

    """

    epsilon: int
    delta: int
    reserve: int = 0

    def after(self, spent: Spent, guarantee: Guarantee) -> tuple[Cost, Spent] | None:
        """The cost of the guarantee and the new total, counted in the first way that fits.

        Returns
        -------
        (Cost, Spent) or None
            None if the charge does not fit in any way.

        """
        for cost in ways(guarantee, self):
            for then in self._add_cost(spent, cost):
                if self.holds(then):
                    return cost, then
        return None

    def holds(self, spent: Spent) -> bool:
        """Whether all that was charged is within the total."""
        if spent.most_epsilon is None or spent.most_delta is None:
            plain = spent.epsilon <= self.epsilon and spent.delta <= self.delta
            return plain and spent.mu2 == 0
        within = spent.epsilon <= spent.most_epsilon and spent.delta <= spent.most_delta
        return within and self._has_room(spent.mu2, spent.most_epsilon, spent.most_delta)

    def left(self, spent: Spent) -> float:
        """The epsilon that is left at the account's delta, rounded down.

        After a Gaussian mechanism: the total, less what pure steps spent, less what the Gaussian
        ones use at the part of delta that other steps cannot take.
        """
        left = self.epsilon - spent.epsilon
        if spent.most_epsilon is None or spent.most_delta is None:
            return max(0.0, decimal_below(left))
        multiplier, room = _multiplier(spent.mu2), below(self.delta - spent.most_delta)
        used = least_epsilon(lambda e: gaussian_delta(e, multiplier) * (1.0 + FLOAT_ERROR), room)
        return max(0.0, math.nextafter(below(left) - used, -math.inf))

    def _add_cost(self, spent: Spent, cost: Cost) -> Iterator[Spent]:
        """The account with this cost; with its first Gaussian mechanism the split is fixed."""
        then = replace(
            spent,
            epsilon=spent.epsilon + cost.epsilon,
            mu2=spent.mu2 + cost.mu2,
            delta=spent.delta + cost.delta,
        )
        if spent.most_epsilon is not None or not cost.mu2:
            yield then
            return
        equal = self._equal_charges(then, cost)
        lattices = max(-(-self.epsilon // EPSILON_ROOM), 2 * equal * LATTICE)
        slacks = max(-(-self.delta // DELTA_ROOM), 2 * equal * cost.delta)
        yield replace(
            then,
            most_epsilon=max(then.epsilon, self.reserve) + lattices,
            most_delta=then.delta + slacks,
        )

    def _equal_charges(self, spent: Spent, cost: Cost) -> int:
        """About how many charges like the first Gaussian one will fit: room is left for as many."""
        count = 1
        while count < MOST_EQUAL and self._has_room(
            2 * count * cost.mu2, spent.epsilon, spent.delta
        ):
            count *= 2
        return count

    def _has_room(self, mu2: int, most_epsilon: int, most_delta: int) -> bool:
        if most_epsilon > self.epsilon or most_delta >= self.delta:
            return False
        tail = gaussian_delta(below(self.epsilon - most_epsilon), _multiplier(mu2))
        return tail * (1.0 + FLOAT_ERROR) <= below(self.delta - most_delta)


def ways(guarantee: Guarantee, budget: Budget) -> Iterator[Cost]:
    """All that a guarantee may be counted as, best first; each is a valid guarantee on its own.

    Parameters
    ----------
    guarantee
        The guarantee of the release.
    budget
        Budget of the account, whose delta decides at which epsilon a curve is read from.

    """
    events = guarantee.events
    steps = all(each.noise_multipliers or each.pure_epsilons for each in events)
    curves = any(each.path_curves for each in events)
    named = all(each.noise_multipliers or each.pure_epsilons or each.path_curves for each in events)
    if guarantee.others and not named:
        raise ValueError("a guarantee of several batches must name the steps of each.")
    if steps and not curves:
        yield _most([_cost(each) for each in events])
        if any(each.pure_epsilons for each in events):
            yield _most([_cost(each, as_gaussian=True) for each in events])
    if guarantee.is_pure:
        return
    if steps or curves:  # a curve: some delta for some epsilon
        delta = below(budget.delta // SHARE)
        if 0 < delta < guarantee.delta:
            epsilon = guarantee.epsilon_at(delta)
            if epsilon < math.inf:
                yield Cost(decimal(epsilon), 0, decimal(delta))
    epsilon = guarantee.epsilon
    # A guarantee is proved where it is made; ``delta_at`` rounds up once more, by less than this.
    rounded = epsilon + 1e-9 * max(epsilon, 1.0)
    if guarantee.delta_at(rounded) > guarantee.delta:  # it says less than its steps spend
        epsilon = guarantee.epsilon_at(guarantee.delta)
    if epsilon < math.inf:
        yield Cost(decimal(epsilon), 0, decimal(guarantee.delta))


def _cost(event: Event, *, as_gaussian: bool = False) -> Cost:
    """What known steps cost, pure ones as they are or as the Gaussian ones that they are within."""
    lattices = LATTICE * len(event.noise_multipliers)
    gaussian, slack = sum(map(mu_square, event.noise_multipliers)), decimal(event.delta_slack)
    if as_gaussian:
        pure = sum(map(mu_square_of_pure, event.pure_epsilons))
        return Cost(lattices, gaussian + pure, slack)
    return Cost(sum(map(decimal, event.pure_epsilons)) + lattices, gaussian, slack)


def _most(costs: Sequence[Cost]) -> Cost:
    """A cost that covers each of these: everybody spends one of them, and it is not known whose."""
    parts = zip(*(astuple(each) for each in costs), strict=True)
    return Cost(*map(max, parts))


def _multiplier(mu2: int) -> float:
    """The noise multiplier of a sum of mu^2, rounded down."""
    if mu2 == 0:
        return math.inf
    mu = math.nextafter(math.sqrt(above(mu2)), math.inf)
    return math.nextafter(1.0 / mu, 0.0)
