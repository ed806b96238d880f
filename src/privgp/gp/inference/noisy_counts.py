"""The Gaussian process behind counts in the bins of a grid, each with its own noise.

Bin c has a Poisson number of points of mean ``e_c exp(f(c))``, and that number plus noise is known. The
likelihood of f(c) is the sum over all numbers of points. Expectation propagation finds for every bin the
normal observation of f(c) that stands for it given all others, so that nearly empty bins, where the
likelihood is far from normal, count as what they are.

Two families of models are averaged over: smooth ones, and ones that are constant within a bin and also have
a part of their own in every bin, for points that lie in few places. Everything here is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.linalg.lapack import dpotri
from scipy.special import gammaln, logsumexp, xlogy
from scipy.stats import norm as normal
from scipy.stats import qmc
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from privgp.gp.inference.posterior import Component, Posterior
from privgp.gp.priors import Hyperparameters, InputMap, Prior
from privgp.types import Array

STEP, LEAST = (
    0.04,
    np.log(1e-4),
)  # of the logarithm of a mean count, on which likelihoods are tabulated
MANY, CLEAR = (
    300.0,
    20.0,
)  # from this count on, and this many stds of the noise, a normal stands for it
SHARES = (0.9,) * 6 + (0.6,) * 6 + (0.3,) * 8  # of the way, step by step
CLOSE = 0.02
LEVEL_STD = 2.0  # of the level of f about that of an even spread
FIRST, BEST, AGAIN = 12, 3, 6  # models tried of every family, then about the best ones
NEAR = 0.4  # prior stds about these
KEPT = 8  # models at most
WEAK = 1e-3  # weights below it say nothing
SHORT = 2.0  # bins: smooth models have no shorter lengthscale
OWN = 0.1  # bins: the lengthscale of a bin's own part, which no other bin shares


@dataclass(frozen=True)
class NoisyCounts:
    """Noisy counts in bins.

    Attributes
    ----------
    values : array, (bins,)
        Counts, with noise.
    expected : array, (bins,)
        What each would be at f = 0, positive.
    noise_std : float
        Of the noise on each.
    is_laplace : bool
        Whether the noise is Laplace noise, and not normal.
    centres : array, (bins, inputs)
        Where the bins are.
    widths : array, (inputs,)
        Of a bin.
    low, high : array, (inputs,)
        The ends of the domain.

    """

    values: Array
    expected: Array
    noise_std: float
    is_laplace: bool
    centres: Array
    widths: Array
    low: Array
    high: Array

    @cached_property
    def is_many(self) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Where a normal observation stands for the count, (bins,)."""
        return np.asarray(self.values > max(MANY, CLEAR * self.noise_std))

    @cached_property
    def grid(self) -> Array:
        """Logarithms of mean counts, (steps,)."""
        few = self.values[~self.is_many]
        top = 2.0 * float(few.max(initial=4.0)) + 12.0 * self.noise_std + 30.0
        return np.arange(LEAST, np.log(top), STEP)

    @cached_property
    def log_likelihood(self) -> Array:
        """For the noisy counts, where these are few, at every mean count of the grid, (bins, steps)."""
        few = self.values[~self.is_many]
        numbers = np.arange(np.exp(self.grid[-1]) + 1.0)
        poisson = np.exp(
            xlogy(numbers, np.exp(self.grid)[:, None])
            - np.exp(self.grid)[:, None]
            - gammaln(numbers + 1.0)
        )
        apart = np.abs(few[:, None] - numbers) / self.noise_std
        noise = np.exp(-np.sqrt(2.0) * apart) if self.is_laplace else np.exp(-0.5 * apart**2)
        return np.asarray(np.log(np.maximum(noise @ poisson.T, 1e-300)))

    @property
    def of_many(self) -> tuple[Array, Array]:
        """Value and variance of the logarithm of the mean count, as large counts tell them."""
        large = np.maximum(self.values, 1.0)
        return np.log(large), (large + self.noise_std**2) / large**2


@dataclass(frozen=True)
class Sites:
    """Normal observations of f at the bins: precision and precision times value, (bins,) each."""

    precision: Array
    shift: Array


@dataclass(frozen=True)
class Found:
    """One model given noisy counts."""

    sites: Sites
    factor: Array
    log_evidence: float

    @property
    def values(self) -> Array:
        return self.sites.shift / self.sites.precision


def find_sites(counts: NoisyCounts, K: Array, start: Sites | None = None) -> Found:
    """Expectation propagation.

    Parameters
    ----------
    counts : NoisyCounts
        What is known.
    K : array, (bins, bins)
        The prior covariance of f.
    start : Sites, optional
        From which to begin, such as those of a similar model.

    Raises
    ------
    numpy.linalg.LinAlgError
        The covariance could not be factored.

    """
    few, offset = np.flatnonzero(~counts.is_many), np.log(counts.expected)
    grid, table = counts.grid, counts.log_likelihood
    log_many, variance_many = counts.of_many
    if start is None:
        start = Sites(np.full(len(K), 1e-4), np.zeros(len(K)))
    precision, shift = start.precision.copy(), start.shift.copy()
    many = counts.is_many
    precision[many] = 1.0 / variance_many[many]
    shift[many] = precision[many] * (log_many - offset)[many]
    for share in SHARES:
        factor, mean, spread = _condition(K, precision, shift)
        cavity = 1.0 / np.maximum(1.0 / spread - precision, 1e-9)
        centre = cavity * (mean / spread - shift)
        weights, log_norm = _tilt(table, grid, (centre + offset)[few], cavity[few])
        tilted = weights @ grid
        left = np.maximum(weights @ np.square(grid) - tilted**2, STEP**2 / 12.0)
        new = np.maximum(1.0 / left - 1.0 / cavity[few], 1e-6)
        moved = new * (tilted - offset[few]) + (tilted - offset[few] - centre[few]) / cavity[few]
        change = np.abs(new / precision[few] - 1.0).max(initial=0.0)
        precision[few] += share * (new - precision[few])
        shift[few] += share * (moved - shift[few])
        if change < CLOSE:
            break
    factor, _, _ = _condition(K, precision, shift)
    values, variances = shift / precision, 1.0 / precision
    solved = cho_solve((factor, True), values, check_finite=False)
    evidence = -0.5 * float(values @ solved) - float(np.log(np.diag(factor)).sum())
    both = cavity[few] + variances[few]
    evidence += float(
        np.sum(log_norm + 0.5 * np.log(both) + 0.5 * (centre - values)[few] ** 2 / both)
    )
    return Found(Sites(precision, shift), factor, evidence)


def _condition(K: Array, precision: Array, shift: Array) -> tuple[Array, Array, Array]:
    """The factor of the observations' covariance, and mean and variance of f at every bin."""
    variances = 1.0 / precision
    S = K.copy()
    S.flat[:: len(S) + 1] += variances
    factor = cholesky(S, lower=True, overwrite_a=True, check_finite=False)
    inverse, info = dpotri(factor, lower=1)
    if info != 0:
        raise np.linalg.LinAlgError("the covariance could not be inverted.")
    values = shift * variances
    mean = values - variances * cho_solve((factor, True), values, check_finite=False)
    spread = variances - variances**2 * np.diag(inverse)
    return factor, mean, np.clip(spread, 1e-9 * variances, (1.0 - 1e-9) * variances)


def _tilt(table: Array, grid: Array, centre: Array, cavity: Array) -> tuple[Array, Array]:
    """The normal distributions times the likelihoods, of sum 1 over the grid, and the logarithms of what
    they integrate to."""
    logs = table - 0.5 * np.square(grid - centre[:, None]) / cavity[:, None]
    most = logs.max(axis=1, keepdims=True)
    weights = np.exp(logs - most)
    total = weights.sum(axis=1)
    log_norm = np.log(total) + most[:, 0] - 0.5 * np.log(2.0 * np.pi * cavity) + np.log(STEP)
    return weights / total[:, None], log_norm


@dataclass(frozen=True)
class Family:
    """Models by standard normal numbers.

    Attributes
    ----------
    size : int
        How many numbers a model takes.
    at : callable
        From (size,) to a model.

    """

    size: int
    at: Callable[[Array], Hyperparameters]


def default_families(counts: NoisyCounts) -> tuple[Family, Family]:
    """Smooth models, and ones that are constant within bins with a part of its own in each."""
    inputs, span = len(counts.widths), counts.high - counts.low
    each = np.rint(span / counts.widths)
    stepped = InputMap(bins=np.column_stack([counts.low, counts.widths, each]))

    def lengthscale(z: Array, least: float) -> Array:
        own = z[1 : 1 + inputs] if inputs > 1 else np.zeros(1)
        found = 0.25 * span * np.exp(0.9 * z[0] + 0.4 * own)
        return np.asarray(np.maximum(found, np.where(each > 2.0, least, 0.0) * counts.widths))

    def smooth(z: Array) -> Hyperparameters:
        kernel = ConstantKernel(1.44 * np.exp(1.2 * z[-1])) * Matern(lengthscale(z, SHORT), nu=2.5)
        return Hyperparameters(kernel + ConstantKernel(LEVEL_STD**2), 1.0)

    def rough(z: Array) -> Hyperparameters:
        shared = ConstantKernel(1.44 * np.exp(1.2 * z[-2])) * Matern(lengthscale(z, 1.0), nu=2.5)
        own = ConstantKernel(0.36 * np.exp(2.0 * z[-1])) * RBF(OWN * counts.widths)
        return Hyperparameters(shared + own + ConstantKernel(LEVEL_STD**2), 1.0, stepped)

    size = 2 + (inputs if inputs > 1 else 0)
    return Family(size, smooth), Family(size + 1, rough)


def learn_counts(counts: NoisyCounts, priors: Sequence[Prior]) -> tuple[Hyperparameters, ...]:
    """Weighted models, most plausible first: some of every family are tried, then more about the best.

    Parameters
    ----------
    counts : NoisyCounts
        What is known.
    priors : sequence of Prior
        Of a kernel that was given; none: the default families.

    """
    families: Sequence[Family] = [Family(prior.size, prior.at) for prior in priors]
    families = families or default_families(counts)
    tried: list[tuple[float, int, Array]] = []
    start: Sites | None = None
    for place, family in enumerate(families):
        for z in _draws(family.size, FIRST):
            found = _try(counts, family.at(z), start)
            if found is not None:
                start = found.sites
                tried.append((found.log_evidence - 0.5 * float(z @ z), place, z))
    if not tried:
        return (families[0].at(np.zeros(families[0].size)),)
    best = sorted(tried, key=lambda each: -each[0])[:BEST]
    models, logs = [], []
    for _, place, about in best:
        same = np.array([z for _, other, z in best if other == place])
        for z in about + NEAR * np.vstack([0.0 * about, _draws(len(about), AGAIN)]):
            found = _try(counts, families[place].at(z), start)
            if found is None:
                continue
            start = found.sites
            near = normal.logpdf(z, same, NEAR).sum(axis=1)
            proposal = logsumexp(near) - np.log(len(best))
            models.append(families[place].at(z))
            logs.append(found.log_evidence + float(normal.logpdf(z).sum()) - proposal)
    weights = np.exp(np.array(logs) - logsumexp(logs))
    order = [i for i in np.argsort(-weights)[:KEPT] if weights[i] > WEAK]
    total = weights[order].sum()
    return tuple(replace(models[i], weight=float(weights[i] / total)) for i in order)


def _draws(size: int, count: int) -> Array:
    """The centre, and numbers that are spread like standard normal ones, (count, size)."""
    even = qmc.Sobol(size, seed=0).random_base2(int(np.ceil(np.log2(count))))[: count - 1]
    return np.vstack([np.zeros(size), normal.ppf(np.clip(even, 1e-3, 1.0 - 1e-3))])


def _try(counts: NoisyCounts, model: Hyperparameters, start: Sites | None) -> Found | None:
    try:
        found = find_sites(counts, model.covariance(counts.centres), start)
    except np.linalg.LinAlgError:  # the budget is spent, so the others must do
        return None
    return found if np.isfinite(found.log_evidence) else None


def counts_posterior(counts: NoisyCounts, models: Sequence[Hyperparameters]) -> Posterior:
    """The logarithm of the intensity relative to the expected one, under every model.

    Raises
    ------
    numpy.linalg.LinAlgError
        No model could be conditioned.

    """
    components = []
    for model in models:
        found = _try(counts, model, None)
        if found is None:
            continue
        variances = 1.0 / found.sites.precision
        noise = counts.noise_std**2
        private = noise / (noise + np.maximum(counts.values, 1.0))
        mean_weights = cho_solve((found.factor, True), found.values)
        held = mean_weights, np.eye(len(variances)), found.factor, variances * private
        components.append(Component(model, counts.centres, *held))
    if not components:
        raise np.linalg.LinAlgError("no model could be conditioned.")
    total = sum(c.model.weight for c in components)
    shared = [replace(c, model=replace(c.model, weight=c.model.weight / total)) for c in components]
    return Posterior(tuple(shared), 0.0)
