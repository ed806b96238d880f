"""What a guarantee allows: the least false-negative rate beta at each false-positive rate alpha.
(epsilon, delta)-privacy: ``max(0, 1 - delta - e^eps alpha, e^-eps (1 - delta - alpha))``;
mu-Gaussian privacy: ``Phi(Phi^-1(1 - alpha) - mu)``."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, TypedDict, Unpack

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.kernels.evaluate import variance
from privgp.privacy.budget import check_budget
from privgp.privacy.guarantee import Event, Guarantee
from privgp.privacy.posterior_mean import mean_sensitivity, posterior_shape
from privgp.privacy.rdp import PathCurve, delta_for, influence_and_shift
from privgp.question.rules import domain_pairs
from privgp.types import Array, Bounds, UserData

SMALL_DELTA = 1e-3
MOST_EPSILON = 700.0  # beyond, exp(epsilon) is infinite
# Where a guarantee that holds at every epsilon is read from; fewer points only make the test milder.
EPSILONS = np.concatenate([[0.0], np.geomspace(0.01, 500.0, 96)])


@dataclass(frozen=True)
class Promise:
    """Trade-off curves: the least false-negative rate at each false-positive rate.

    Attributes
    ----------
    mu : parameter of Gaussian privacy, if that is guaranteed
    pairs : (epsilon, delta), each of which holds
    slack : the lattice's share of delta, taken off the Gaussian curve

    """

    mu: float | None = None
    pairs: tuple[tuple[float, float], ...] = ()
    slack: float = 0.0

    @classmethod
    def of(cls, *steps: Event) -> Self:
        """The guarantee of steps with these costs, all of them Gaussian or all of them pure."""
        epsilons = [epsilon for event in steps for epsilon in event.pure_epsilons]
        pairs = ((math.fsum(epsilons), 0.0),) if epsilons else ()
        mus = [1.0 / c for event in steps for c in event.noise_multipliers]
        slack = math.fsum(event.delta_slack for event in steps)
        return cls(math.hypot(*mus) if mus else None, pairs, slack)

    def false_negative_rate(self, false_positive_rate: object) -> Array:
        """The least false-negative rates that the guarantee allows at each ``false_positive_rate``."""
        alpha = np.clip(np.asarray(false_positive_rate, dtype=float), 0.0, 1.0)
        beta = np.zeros(alpha.shape)
        if self.mu is not None:
            beta = np.maximum(beta, ndtr(-ndtri(alpha) - self.mu) - self.slack)
        for epsilon, delta in self.pairs:
            beta = np.maximum(beta, 1.0 - delta - math.exp(epsilon) * alpha)
            beta = np.maximum(beta, math.exp(-epsilon) * (1.0 - delta - alpha))
        return beta

    def equivalent_mu(self, false_positive_rate: float) -> float:
        """The Gaussian parameter of the best attack that is allowed at this ``false_positive_rate``."""
        if self.mu is not None and not self.pairs:
            return self.mu
        beta = float(self.false_negative_rate(false_positive_rate))
        if beta <= 0.0:  # nothing is guaranteed there
            return math.inf
        return float(-ndtri(false_positive_rate) - ndtri(beta))

    def describe(self) -> str:
        """The guarantee in a few words."""
        if self.mu is not None:
            return f"mu = {self.mu:.4g}"
        if not self.pairs:
            return f"nothing below epsilon {EPSILONS[-1]:g}"
        # of a whole curve, the pair whose delta is nearest to what people would call small
        distances = [abs(math.log(max(delta, 1e-300) / SMALL_DELTA)) for _, delta in self.pairs]
        epsilon, delta = self.pairs[int(np.argmin(distances))]
        if len(self.pairs) == 1:
            return f"epsilon = {epsilon:.4g}, delta = {delta:.4g}"
        return f"epsilon = {epsilon:.4g} at delta = {delta:.2g}, one of {len(self.pairs)} pairs"


def promise_of(given: UserData) -> Promise:
    """A guarantee from a Guarantee, from (epsilon, delta), or from anything with
    ``delta_at(epsilon)``.

    Raises
    ------
    TypeError, ValueError
        It is none of them, or no valid budget.

    """
    if isinstance(given, Promise):
        return given
    if isinstance(given, Guarantee):
        if all(
            e.noise_multipliers and not (e.path_curves or e.pure_epsilons) for e in given.events
        ):
            slack = max(event.delta_slack for event in given.events)
            return Promise(mu=max(event.mu for event in given.events), slack=slack)
        return _profile(given.delta_at, given.epsilon)
    if hasattr(given, "delta_at"):
        return _profile(given.delta_at)
    try:
        epsilon, delta = (float(number) for number in given)
    except (TypeError, ValueError):
        raise TypeError("promise must be a Guarantee or a pair (epsilon, delta).") from None
    if not (epsilon == 0.0 and 0 < delta < 1):
        check_budget(epsilon, delta, pure=True)
    return Promise(pairs=((epsilon, delta),))


class PathOptions(TypedDict, total=False):
    """Options of ``renyi_curve``."""

    x_bounds: Bounds
    reach: float
    centred: bool
    paper: bool


def path_promise(
    kernel: Kernel,
    noise_variance: float,
    n: int,
    n_paths: float = 1,
    **options: Unpack[PathOptions],
) -> Promise | None:
    """The guarantee of posterior paths at every epsilon.

    Parameters
    ----------
    kernel, noise_variance
        Kernel and noise variance of the posterior.
    n
        How many records it is given.
    n_paths
        How many paths are released; for ``inf``, the exact posterior, nothing is guaranteed.
    **options
        As in ``renyi_curve``.

    Returns
    -------
    Guarantee or None

    """
    if n_paths == math.inf:
        return None
    curve = renyi_curve(kernel, noise_variance, n, int(n_paths), **options)
    return _profile(lambda epsilon: delta_for([curve], epsilon))


def renyi_curve(
    kernel: Kernel,
    noise_variance: float,
    n: int,
    n_paths: int = 1,
    *,
    x_bounds: Bounds = (0.0, 1.0),
    reach: float = 1.0,
    centred: bool = False,
    paper: bool = False,
) -> PathCurve:
    """The Renyi curve of ``n_paths`` posterior paths of n records, outputs within ``reach`` of 0.

    Parameters
    ----------
    kernel, noise_variance
        Kernel and noise variance of the posterior.
    n
        How many records it is given.
    n_paths
        How many paths are released.
    x_bounds
        The box of the inputs, (low, high) or one such pair per input.
    reach
        The largest absolute output.
    centred
        Paths about zero, which reveal the covariance alone.
    paper
        The paper's own bounds instead of the least that are proved.

    """
    low, high = np.array(domain_pairs("x_bounds", x_bounds)).T
    shape = posterior_shape(kernel, noise_variance, high - low, n)
    moved = 0.0 if centred else mean_sensitivity(shape, "paper" if paper else "auto").value
    terms = influence_and_shift(
        sensitivity=reach * moved, influence=shape.influence, kernel_variance=variance(kernel)
    )
    return PathCurve(*terms, n_paths, "paper" if paper else "sharp")


def _profile(delta_at: Callable[[float], float], extra: float = math.inf) -> Promise:
    """The pairs (epsilon, delta) that say something, delta < 1; of equal deltas the least epsilon."""
    pairs: dict[float, float] = {}
    for epsilon in np.sort(np.append(EPSILONS, [extra] if extra <= MOST_EPSILON else [])):
        delta = float(delta_at(float(epsilon)))
        if delta < 1.0:
            pairs.setdefault(delta, float(epsilon))
    return Promise(pairs=tuple((epsilon, delta) for delta, epsilon in pairs.items()))
