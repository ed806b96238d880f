"""The best attacker's look at a release: which of two neighbouring datasets did it come from?

Statistics and bounds are those of docs/proofs/audit.md. A sound mechanism is said to be broken with
probability below 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import chi2

from privgp import Guarantee
from privgp.audit.attacks import train_attack
from privgp.audit.promises import Promise, promise_of
from privgp.audit.result import TradeOff, Trial, from_errors
from tests.adversary.laws import check_noise
from tests.adversary.spying import Event, watched

FAILURE = 1e-6
# Of the bounds of the two error rates of a fixed test. It errs only where both rates are near their
# bounds together: with probability 4e-7 for Gaussian noise, 5e-7 for pure noise (binomial sums).
GAUSSIAN_FAILURE, PURE_FAILURE = 1e-3, 7e-5
# Too little noise is missed with probability below 1e-7 by as many draws of Gaussian noise at epsilon 8,
# and at epsilon 2.5 by as many of one, two and three numbers with Laplace noise.
GAUSSIAN_DRAWS = 2_500
PURE_DRAWS = {1: 9_000, 2: 20_000, 3: 40_000}
# Logarithms of densities at scale 1, up to constants; written here, not taken from the product.
DENSITIES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "gaussian": lambda z: -0.5 * z**2,
    "laplace": lambda z: -np.abs(z),
}


@dataclass(frozen=True)
class Measured:
    """A mechanism that draws what one run on either dataset tells; all draws are attacked together.

    ``run``: spends the budget on a dataset, by the entry point that users call, and returns the fitted
    estimator; ``neighbours``: the two worst datasets; ``draws``: by default
    as many as find noise that is a fifth too small; ``part``: the draw that is attacked, of a mechanism of
    several kinds, with ``promise``, its share; ``worst``: exact numbers as far apart as the mechanism
    assumes, where no two datasets are known that are.
    """

    run: Callable[[Any], Any]
    neighbours: Callable[[], tuple[Any, Any]]
    draws: int | None = None
    part: int | None = None
    promise: Callable[[Guarantee], Promise] = promise_of
    worst: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None

    def looked(self) -> Looked:
        """One run on either dataset: what is sent to the samplers does not depend on their noise."""
        seen: list[list[Event]] = []
        for dataset in self.neighbours():
            with watched() as events:
                guarantee = self.run(dataset).guarantee_
            seen.append(events if self.part is None else [events[self.part]])
        low, high = ([event.exact for event in events] for events in seen)
        if self.worst is not None:
            low, high = ([exact] for exact in self.worst(low[0]))
        looks = [Look(e, *pair) for e, *pair in zip(seen[0], low, high, strict=True)]
        assert [(e.kind, e.scale) for e in seen[0]] == [(e.kind, e.scale) for e in seen[1]]
        promise, moved = self.promise(guarantee), sum(len(look.moved) for look in looks)
        enough = PURE_DRAWS[moved] if promise.mu is None else GAUSSIAN_DRAWS
        return Looked(looks, promise, self.draws or enough)


@dataclass(frozen=True)
class Looked:
    """All that a mechanism drew, to be attacked with its noise or with a share of it."""

    looks: list[Look]
    promise: Promise
    draws: int

    def attack(self, noise_scale: float) -> TradeOff:
        """Draw what the mechanism drew, many times; cut the likelihood ratio where the guarantee is
        tightest."""
        return self._judge(self._errors(noise_scale, self.draws), self.draws)

    def holds(self, noise_scale: float) -> bool:
        """Whether all draws show no fault, and the first half of them none: too little noise mostly
        shows in fewer draws than find it surely."""
        half = self.draws // 2
        errors = self._errors(noise_scale, half)
        if not self._judge(errors, half).holds:
            return False
        errors = errors + self._errors(noise_scale, self.draws - half)
        return self._judge(errors, self.draws).holds

    def _errors(self, noise_scale: float, draws: int) -> np.ndarray:
        """How many fresh draws of either side are taken for the other one."""
        cut = sum(look.cut for look in self.looks)
        ratios = [
            sum(look.ratios(side, draws, noise_scale) for look in self.looks) for side in (0, 1)
        ]
        return np.array([np.count_nonzero(ratios[0] > cut), np.count_nonzero(ratios[1] <= cut)])

    def _judge(self, errors: np.ndarray, draws: int) -> TradeOff:
        failure = PURE_FAILURE if self.promise.mu is None else GAUSSIAN_FAILURE
        return from_errors(self.promise, *map(int, errors), draws, failure)


@dataclass(frozen=True)
class Look:
    """What one draw of numbers tells: the log-ratio of the two laws, and where to cut it.

    Half-way for Gaussian noise; for pure noise a hair below the ratio beyond the higher numbers,
    which with Laplace noise is the largest there is.
    """

    event: Event
    low: np.ndarray
    high: np.ndarray

    @property
    def cut(self) -> float:
        if self.event.kind == "gaussian":
            return 0.0
        beyond = self.high + 1.5 * self.event.scale * np.sign(self.high - self.low)
        return float(self._ratio(beyond, self.low, self.high)) * (1.0 - 1e-9)

    def _ratio(self, z: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        density, scale = DENSITIES[self.event.kind], self.event.scale
        return (density((z - b) / scale) - density((z - a) / scale)).sum(axis=-1)

    @property
    def moved(self) -> np.ndarray:
        """The numbers that differ; with Gaussian noise without the least of them, which together make
        up a hundredth of the squared distance at most: half a percent of what can be told."""
        squares = np.square(self.high - self.low)
        order = np.argsort(squares)
        share = 1e-2 if self.event.kind == "gaussian" else 0.0
        return order[np.cumsum(squares[order]) > share * squares.sum()]

    def ratios(self, side: int, draws: int, noise_scale: float) -> np.ndarray:
        """Of fresh draws of one side, by the sampler that protects."""
        a, b = self.low[self.moved], self.high[self.moved]
        return self._ratio(self.event.again((a, b)[side], draws, noise_scale), a, b)


@dataclass(frozen=True)
class Chosen:
    """A choice among candidates, the first draw of a run.

    ``scale``: ``2 sensitivity / epsilon``, as the guarantee of ``epsilon`` needs it; ``law``: the
    probabilities that docs/proofs/select.md proves at that scale. The last candidate is attacked, and
    the law is held against choices among ten of which one is 2.5 scales better.
    """

    run: Callable[[Any], Any]
    neighbours: Callable[[], tuple[Any, Any]]
    scale: Callable[[], float]
    law: Callable[[np.ndarray, float], np.ndarray]
    epsilon: float
    draws: int = 2500
    worst: Callable[[], tuple[np.ndarray, np.ndarray]] | None = None

    def holds(self, noise_scale: float) -> bool:
        choices = []
        for dataset in self.neighbours():
            with watched(noise_scale) as events:
                self.run(dataset)
            choices.append(events[0])
        exact = [event.exact for event in choices] if self.worst is None else self.worst()
        last = [
            np.count_nonzero(choices[0].again(values, self.draws) == len(values) - 1)
            for values in exact
        ]
        promise = Promise(pairs=((self.epsilon, 0.0),))
        found = from_errors(promise, int(last[0]), self.draws - int(last[1]), self.draws, FAILURE)
        scale = self.scale()
        probe = -2.5 * scale * (np.arange(10) > 0)
        chosen = choices[0].again(probe, self.draws)[:, 0].astype(int)
        expected = self.draws * self.law(probe, scale)
        statistic = np.sum((np.bincount(chosen, minlength=10) - expected) ** 2 / expected)
        return found.holds and bool(statistic <= chi2.isf(1e-7, 9))


@dataclass(frozen=True)
class Released:
    """A mechanism whose draws depend on one another: many releases at once, and a trained attack.

    ``run``: (the fitted estimator, (count, numbers), the noise in them as standard normal
    numbers); noise of another law is a fault too, as guarantees of paths are not tight.
    """

    run: Callable[[Any, int], tuple[Any, np.ndarray, np.ndarray]]
    neighbours: Callable[[], tuple[Any, Any]]
    draws: int = 1500

    def holds(self, noise_scale: float) -> bool:
        pair, noise = self.neighbours(), []

        def sampler(which: int, count: int, tell: Any) -> np.ndarray:
            with watched(noise_scale):
                _, drawn, added = self.run(pair[which], count)
            noise.append(added.ravel())
            return drawn

        promise = promise_of(self.run(pair[0], 1)[0].guarantee_)
        trial = Trial(self.draws, FAILURE, lambda share, doing: None)
        found = train_attack(sampler, promise, trial)
        try:
            check_noise(np.concatenate(noise))
        except AssertionError:
            return False
        return found.holds
