"""Shadow datasets of a membership attack, what they release, and the distributions fitted to that.

The posterior at one point is computed for a stack of datasets by one batched solve:
``mu_D = k0^T (K + s^2 I)^-1 y`` and ``v_D = k(x0, x0) - k0^T (K + s^2 I)^-1 k0``. Fitted are (paper, appendix C)
to means of paths ``t = c tanh(phi / 2) + e``, phi from two Gaussian components, e from one; to variances two
Gaussian components of their logarithm.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, ndtri
from sklearn.gaussian_process.kernels import Kernel
from sklearn.mixture import GaussianMixture

from privgp.gp.kernels.evaluate import evaluate, variance
from privgp.types import Array

BLOCK_NUMBERS = 2**20  # of kernel entries at a time: they stay in the processor's cache

# response(X (rows, inputs)) -> outputs (rows,)
Response = Callable[[Array], Array]


def step(X: Array) -> Array:
    """The paper's response: -1 where the first input is below 1/2, else 1."""
    return np.where(X[..., 0] < 0.5, -1.0, 1.0)


@dataclass(frozen=True)
class Population:
    """The distribution of simulated datasets.

    ``n`` inputs even over a box, outputs ``(1 - m) f(x) + m U(-1, 1)``.

    Attributes
    ----------
    n : rows of a dataset
    low, high : (inputs,), the box
    point, output : the record whose membership is asked for
    response : f, (rows, inputs) to (rows,)
    label_noise : m

    """

    n: int
    low: Array
    high: Array
    point: Array
    output: float
    response: Response = step
    label_noise: float = 0.0

    def draw(self, count: int, member: bool, rng: np.random.Generator) -> tuple[Array, Array]:
        """Datasets X, (count, n, inputs), and y, (count, n).

        Parameters
        ----------
        count
            How many.
        member
            Whether the record replaces the last one of each.
        rng
            Generator of the simulation.

        """
        X = rng.uniform(self.low, self.high, size=(count, self.n, len(self.low)))
        values = np.asarray(self.response(X.reshape(-1, len(self.low))), dtype=float)
        if values.shape != (count * self.n,) or not np.all(np.isfinite(values)):
            raise ValueError("response must return one finite number for every row of inputs.")
        y = (1.0 - self.label_noise) * values.reshape(count, self.n)
        if self.label_noise:
            y += self.label_noise * rng.uniform(-1.0, 1.0, size=y.shape)
        if member:
            X[:, -1], y[:, -1] = self.point, self.output
        return X, y


def posteriors(
    kernel: Kernel, noise_variance: float, X: Array, y: Array, point: Array
) -> tuple[Array, Array]:
    """Posterior means and variances at ``point`` for many datasets, (count,) each.

    All kernels are stationary, ``k(x, z) = k(x - z, 0)``: one call serves a block of datasets.

    Parameters
    ----------
    kernel, noise_variance
        Kernel and noise variance of the posterior.
    X
        (count, n, inputs).
    y
        (count, n).
    point
        (inputs,).

    """
    count, n, _ = X.shape
    size = max(1, BLOCK_NUMBERS // (n * n))
    blocks = (slice(start, start + size) for start in range(0, count, size))
    parts = [_block(kernel, noise_variance, X[block], y[block], point) for block in blocks]
    means, variances = zip(*parts, strict=True)
    return np.concatenate(means), np.concatenate(variances)


def _block(
    kernel: Kernel, noise_variance: float, X: Array, y: Array, point: Array
) -> tuple[Array, Array]:
    count, n, inputs = X.shape
    prior = variance(kernel)
    i, j = np.tril_indices(n, -1)
    pairs = X[:, i] - X[:, j]  # (count, n (n - 1) / 2, inputs): each pair of rows once
    away = X - point
    distances = np.concatenate([pairs, away], axis=1).reshape(-1, inputs)
    values = evaluate(kernel, distances, np.zeros((1, inputs))).reshape(count, -1)
    place = np.zeros((n, n), dtype=np.int64)
    place[i, j] = place[j, i] = np.arange(len(i))
    K = values.take(place.ravel(), axis=1).reshape(count, n, n)
    K[:, np.arange(n), np.arange(n)] = prior + noise_variance
    cross = values[:, len(i) :]
    solved = np.linalg.solve(K, np.stack([y, cross], axis=2))
    mean = np.einsum("cn,cn->c", cross, solved[..., 0])
    var = prior - np.einsum("cn,cn->c", cross, solved[..., 1])
    return mean, np.maximum(var, np.finfo(float).tiny)


NODES = 32
GROUPS = 200
ENOUGH = 1e-7  # of the mean log density: a hundredth of what 10,000 draws can tell
# of (log odds of the share, m1, log tau1, m2, log tau2, log s)
BOUNDS = [(-8, 8), (-12, 12), (-6, 3), (-12, 12), (-6, 3), (np.log(1e-4), np.log(1e4))]
# Quantiles of a standard normal: edges and middles of intervals of equal probability.
_EDGES = ndtri(np.arange(NODES + 1) / NODES)
_MIDDLES = ndtri((np.arange(NODES) + 0.5) / NODES)


@dataclass(frozen=True)
class MeanLaw:
    """Density of the mean of the released values.

    The integral over phi is a sum over intervals of equal probability, each a normal density as
    wide as the interval: exact for many intervals, and smooth however small s is.

    Attributes
    ----------
    parameters : (share, m1, log tau1, m2, log tau2, log s), the share as log odds
    scale : c, what the values are divided by

    """

    parameters: tuple[float, ...]
    scale: float

    def logpdf(self, t: Array) -> Array:
        """Log density of means, (draws,)."""
        blocks = np.array_split(np.asarray(t) / self.scale, -(-len(t) // 1000))
        parts = [logsumexp(self._exponents(block), axis=1) for block in blocks]
        return np.asarray(np.concatenate(parts) - np.log(self.scale))

    def _exponents(self, t: Array) -> Array:
        """Log of weight times density of every interval, (t, 2 NODES)."""
        odds, *components, log_noise = self.parameters
        means, log_spreads = np.reshape(components, (2, 2, 1)).swapaxes(0, 1)
        spreads, share = np.exp(log_spreads), float(expit(odds))
        centres, ends = (np.tanh(0.5 * (means + spreads * at)) for at in (_MIDDLES, _EDGES))
        widths = np.diff(ends, axis=1)
        variances = (np.exp(2.0 * log_noise) + np.square(widths) / 12.0).ravel()
        weights = np.repeat([share, 1.0 - share], NODES) / NODES
        heights = np.log(weights) - 0.5 * np.log(2.0 * np.pi * variances)
        return np.asarray(heights - 0.5 * np.square(t[:, None] - centres.ravel()) / variances)


@dataclass(frozen=True)
class VarianceLaw:
    """Density of the logarithm of the variance of the released values: two normal components."""

    mixture: GaussianMixture

    def logpdf(self, t: Array) -> Array:
        """Log density of logarithms of variances, (draws,)."""
        return np.asarray(self.mixture.score_samples(np.reshape(t, (-1, 1))))


@dataclass(frozen=True)
class Released:
    """Many simulated releases at one place.

    Attributes
    ----------
    means : (draws,), of the paths' values
    log_variances : (draws,), with several paths; otherwise None

    """

    means: Array
    log_variances: Array | None

    @property
    def statistics(self) -> tuple[Array, ...]:
        """The arrays that an attack looks at."""
        return (self.means,) if self.log_variances is None else (self.means, self.log_variances)


@dataclass(frozen=True)
class Laws:
    """The fitted distributions of every statistic, with the record and without it."""

    inside: tuple[MeanLaw | VarianceLaw, ...]
    outside: tuple[MeanLaw | VarianceLaw, ...]

    def score(self, seen: Released) -> Array:
        """Log-likelihood ratios, member over not: the mean's plus the variance's."""
        parts = zip(self.inside, self.outside, seen.statistics, strict=True)
        return np.asarray(sum(a.logpdf(t) - b.logpdf(t) for a, b, t in parts))


def fit_laws(inside: Released, outside: Released, spread: float) -> Laws:
    """Fit what datasets with the record and without it release.

    Parameters
    ----------
    inside, outside
        Releases with the record and without it.
    spread
        a bound of the means' absolute values.

    """

    def fit_statistics(means: Array, *log_variances: Array) -> tuple[MeanLaw | VarianceLaw, ...]:
        return fit_means(means, spread), *map(fit_variances, log_variances)

    return Laws(fit_statistics(*inside.statistics), fit_statistics(*outside.statistics))


def fit_means(values: Array, scale: float) -> MeanLaw:
    """Maximum likelihood, on means of 200 groups of neighbouring values; the better of two starts.

    Parameters
    ----------
    values
        (draws,), means of released values.
    scale
        c, a bound of their absolute values.

    """
    ordered = np.sort(np.asarray(values) / scale)
    t = np.array([part.mean() for part in np.array_split(ordered, min(GROUPS, len(ordered)))])
    spread = max(float(t.std()), 1e-6)
    centre = float(np.clip(t.mean(), -0.9, 0.9))
    lower, upper = np.arctanh(np.clip(np.quantile(t, [0.15, 0.85]), -0.95, 0.95)) * 2.0
    middle = 2.0 * np.arctanh(centre)
    starts = (
        [0.0, lower, 0.0, upper, 0.0, np.log(0.3 * spread)],
        [0.0, middle - 0.3, -1.0, middle + 0.3, -1.0, np.log(spread)],
    )

    def loss(p: Array) -> float:
        return -float(np.mean(MeanLaw(tuple(p), 1.0).logpdf(t)))

    stop = {"ftol": ENOUGH}
    results = [minimize(loss, at, method="L-BFGS-B", bounds=BOUNDS, options=stop) for at in starts]
    best = min(results, key=lambda result: float(result.fun))
    return MeanLaw(tuple(float(p) for p in best.x), scale)


def fit_variances(values: Array) -> VarianceLaw:
    """Maximum likelihood of two components for logarithms of variances."""
    mixture = GaussianMixture(2, random_state=0, reg_covar=1e-8, tol=1e-5)
    return VarianceLaw(mixture.fit(np.reshape(values, (-1, 1))))
