"""Shadow datasets, and the posterior at one point for a stack of them by one batched solve:
``mu_D = k0^T (K + s^2 I)^-1 y`` and ``v_D = k(x0, x0) - k0^T (K + s^2 I)^-1 k0``."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

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
