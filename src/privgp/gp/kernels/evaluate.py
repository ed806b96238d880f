"""scikit-learn's kernels as they are, evaluated at BLAS speed and differentiated in reverse.

``value_and_pullback(kernel, X, Z)`` returns ``K`` and a function that turns the gradient of any
scalar with respect to ``K`` into its gradient with respect to ``kernel.theta`` (the logarithms of
the free hyperparameters, in scikit-learn's order), without forming one matrix per hyperparameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.special import gamma, kv
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    ExpSineSquared,
    Kernel,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
    WhiteKernel,
)

from privgp.types import Array

Pullback = Callable[[Array], Array]

SUPPORTED = (
    "RBF, Matern, RationalQuadratic, ExpSineSquared, ConstantKernel, and their sums and products"
)
BLOCK_ENTRIES = 2**21
CACHED_ENTRIES = 2**15  # several arrays of so many numbers stay in the processor's cache


def split_noise(kernel: Kernel) -> tuple[Kernel | None, WhiteKernel | None]:
    """Take the WhiteKernel out of a top-level sum: (kernel without it, the WhiteKernel or None)."""
    if isinstance(kernel, WhiteKernel):
        return None, kernel
    if isinstance(kernel, Sum):
        left, left_white = split_noise(kernel.k1)
        right, right_white = split_noise(kernel.k2)
        if left_white is not None and right_white is not None:
            raise ValueError("kernel holds two WhiteKernels: give the noise variance once.")
        white = left_white or right_white
        if left is None or right is None:
            return left if right is None else right, white
        return (kernel if white is None else Sum(left, right)), white
    return kernel, None


def check_kernel(kernel: Any, n_features: int) -> None:
    """Refuse a kernel that cannot be evaluated on inputs with ``n_features`` columns."""
    if isinstance(kernel, Sum | Product):
        check_kernel(kernel.k1, n_features)
        check_kernel(kernel.k2, n_features)
        return
    if isinstance(kernel, WhiteKernel):
        raise ValueError(
            "kernel holds a WhiteKernel inside a product: put it into the top-level sum, "
            "where it becomes the noise variance, or give noise_variance."
        )
    if not isinstance(kernel, RBF | Matern | RationalQuadratic | ExpSineSquared | ConstantKernel):
        raise ValueError(f"kernel {type(kernel).__name__} is not supported: use {SUPPORTED}.")
    if isinstance(kernel, RBF):
        scales = np.atleast_1d(kernel.length_scale)
        if scales.ndim != 1 or scales.size not in (1, n_features):
            raise ValueError(
                f"kernel has {scales.size} lengthscales but the inputs have {n_features} columns."
            )
    if isinstance(kernel, ExpSineSquared) and n_features > 1:
        raise ValueError("kernel ExpSineSquared is a covariance of one input only.")
    for parameter in kernel.hyperparameters:
        values = np.atleast_1d(getattr(kernel, parameter.name))
        if not (np.all(np.isfinite(values)) and np.all(values > 0)):
            raise ValueError(f"kernel hyperparameter {parameter.name} must be positive and finite.")
    if isinstance(kernel, Matern) and not kernel.nu > 0:
        raise ValueError("kernel Matern needs nu > 0.")


def evaluate(kernel: Kernel, X: Array, Z: Array | None = None) -> Array:
    """The covariance matrix k(X, Z), (rows of X, rows of Z); k(X, X) when Z is not given.

    Large matrices are filled by blocks of rows, so that nothing else of their size is held.
    """
    columns = X if Z is None else Z
    if X.shape[0] * columns.shape[0] <= BLOCK_ENTRIES:
        return value_and_pullback(kernel, X, Z)[0]
    out = np.empty((X.shape[0], columns.shape[0]))
    step = max(1, BLOCK_ENTRIES // columns.shape[0])
    for start in range(0, X.shape[0], step):
        out[start : start + step] = value_and_pullback(kernel, X[start : start + step], columns)[0]
    if Z is None:
        np.fill_diagonal(out, diagonal(kernel, X))
    return out


def diagonal(kernel: Kernel, X: Array) -> Array:
    """k(x, x) for every row of X; constant, as all supported kernels are stationary."""
    return np.full(X.shape[0], variance(kernel))


def variance(kernel: Kernel) -> float:
    """The prior variance k(x, x)."""
    if isinstance(kernel, Sum):
        return variance(kernel.k1) + variance(kernel.k2)
    if isinstance(kernel, Product):
        return variance(kernel.k1) * variance(kernel.k2)
    return float(kernel.constant_value) if isinstance(kernel, ConstantKernel) else 1.0


def value_and_pullback(kernel: Kernel, X: Array, Z: Array | None = None) -> tuple[Array, Pullback]:
    """k(X, Z) and the map from dL/dK to dL/dtheta."""
    K, pull = _value_and_pullback(kernel, X, Z)
    if K.size == 1:  # nothing but constants
        K = np.full((X.shape[0], (X if Z is None else Z).shape[0]), K.item())
    return K, pull


def _value_and_pullback(kernel: Kernel, X: Array, Z: Array | None) -> tuple[Array, Pullback]:
    """The same with a constant as one number, (1, 1)."""
    if isinstance(kernel, Sum):
        left, pull_left = _value_and_pullback(kernel.k1, X, Z)
        right, pull_right = _value_and_pullback(kernel.k2, X, Z)
        return left + right, lambda G: np.concatenate([pull_left(G), pull_right(G)])
    if isinstance(kernel, Product):
        left, pull_left = _value_and_pullback(kernel.k1, X, Z)
        right, pull_right = _value_and_pullback(kernel.k2, X, Z)
        return left * right, lambda G: np.concatenate([pull_left(G * right), pull_right(G * left)])
    if isinstance(kernel, ConstantKernel):
        return _constant(kernel)
    if isinstance(kernel, ExpSineSquared):
        return _periodic(kernel, X, Z)
    if isinstance(kernel, RationalQuadratic):
        return _rational_quadratic(kernel, X, Z)
    if isinstance(kernel, RBF):  # Matern is a subclass of RBF
        return _stationary(kernel, X, Z)
    raise ValueError(f"kernel {type(kernel).__name__} is not supported: use {SUPPORTED}.")


def squared_distances(X: Array, Z: Array | None = None) -> Array:
    """Squared distances by one matrix product, after centring against cancellation."""
    centre = X.mean(axis=0)
    X = X - centre
    columns = X if Z is None else Z - centre
    out = X @ (-2.0 * columns.T)
    lengths, others = np.einsum("ij,ij->i", X, X), np.einsum("ij,ij->i", columns, columns)
    for rows in _cached(out):
        part = out[rows]
        part += lengths[rows, None]
        part += others
        np.maximum(part, 0.0, out=part)
    if Z is None:
        np.fill_diagonal(out, 0.0)
    return out


def _constant(kernel: ConstantKernel) -> tuple[Array, Pullback]:
    value = float(kernel.constant_value)
    free = not kernel.hyperparameter_constant_value.fixed
    return np.array([[value]]), lambda G: np.array([value * G.sum()]) if free else np.empty(0)


def _stationary(kernel: RBF, X: Array, Z: Array | None) -> tuple[Array, Pullback]:
    """RBF and Matern: K = phi(d^2), so dK/dlog l_j = -2 phi'(d^2) (x_j - z_j)^2 / l_j^2."""
    scales = np.broadcast_to(np.asarray(kernel.length_scale, float), (X.shape[1],))
    X = X / scales
    Z = None if Z is None else Z / scales
    squared = squared_distances(X, Z)
    nu = kernel.nu if isinstance(kernel, Matern) else np.inf
    K = _profile(squared, nu)

    def pull(G: Array) -> Array:
        if kernel.hyperparameter_length_scale.fixed:
            return np.empty(0)
        W = G * _slope(squared, nu)
        if not kernel.anisotropic:
            return np.array([np.vdot(W, squared)])
        centre = X.mean(axis=0)
        left = X - centre
        right = left if Z is None else Z - centre
        moments = W.sum(axis=1) @ left**2 + W.sum(axis=0) @ right**2
        return np.asarray(moments - 2.0 * np.einsum("ij,ij->j", left, W @ right))

    return K, pull


def _cached(matrix: Array) -> Iterator[slice]:
    """Blocks of rows, small enough that one operation after another finds them in the cache."""
    step = max(1, CACHED_ENTRIES // max(1, matrix.shape[1]))
    for first in range(0, len(matrix), step):
        yield slice(first, first + step)


def _profile(squared: Array, nu: float) -> Array:
    """Phi of the Matern family as a function of the squared scaled distance, (rows, columns)."""
    out = np.empty_like(squared)
    for rows in _cached(squared):
        out[rows] = _profile_of(squared[rows], nu)
    return out


def _profile_of(squared: Array, nu: float) -> Array:
    if nu == np.inf:
        return np.exp(-0.5 * squared)
    if nu not in (0.5, 1.5, 2.5):
        return _bessel(squared, nu, 0.0)
    distance = np.sqrt(2.0 * nu * squared)
    decay = np.exp(-distance)
    if nu == 0.5:
        return decay
    if nu == 2.5:  # 1 + d + d^2 / 3 by Horner, in place
        third = distance / 3.0
        third += 1.0
        distance *= third
    distance += 1.0
    distance *= decay
    return distance


def _slope(squared: Array, nu: float) -> Array:
    """-2 phi' of the Matern family, (rows, columns)."""
    out = np.empty_like(squared)
    for rows in _cached(squared):
        out[rows] = _slope_of(squared[rows], nu)
    return out


def _slope_of(squared: Array, nu: float) -> Array:
    if nu == np.inf:
        return np.exp(-0.5 * squared)
    if nu not in (0.5, 1.5, 2.5):
        return 2.0 * nu * _bessel(squared, nu, 1.0)
    distance = np.sqrt(2.0 * nu * squared)
    decay = np.exp(-distance)
    if nu == 0.5:
        return np.divide(decay, distance, out=np.zeros_like(decay), where=distance > 0)
    return 3.0 * decay if nu == 1.5 else (5.0 / 3.0) * decay * (1.0 + distance)


def _bessel(squared: Array, nu: float, order: float) -> Array:
    """2^(1-nu)/Gamma(nu) d^(nu-order) K_(nu-order)(d), d^2 = 2 nu squared; at 0 its limit for
    order 0, which is 1, and 0 otherwise, where it is multiplied by a zero distance."""
    distance = np.sqrt(2.0 * nu * np.where(squared > 0, squared, 1.0))
    power = nu - order
    values = 2.0 ** (1.0 - nu) / gamma(nu) * distance**power * kv(power, distance)
    return np.where(squared > 0, values, 1.0 if order == 0 else 0.0)


def rational_profile(ratio: Array, alpha: float) -> Array:
    """``(1 + ratio)^-alpha``, by a formula whose error does not grow with alpha."""
    return np.asarray(np.exp(-alpha * np.log1p(ratio)))


def _rational_quadratic(
    kernel: RationalQuadratic, X: Array, Z: Array | None
) -> tuple[Array, Pullback]:
    alpha, scale = float(kernel.alpha), float(kernel.length_scale)
    ratio = squared_distances(X / scale, None if Z is None else Z / scale) / (2.0 * alpha)
    base = 1.0 + ratio
    K = rational_profile(ratio, alpha)

    def pull(G: Array) -> Array:
        gradient = []
        if not kernel.hyperparameter_alpha.fixed:
            gradient.append(alpha * np.vdot(G, K * (ratio / base - np.log1p(ratio))))
        if not kernel.hyperparameter_length_scale.fixed:
            gradient.append(2.0 * alpha * np.vdot(G, K * ratio / base))
        return np.array(gradient)

    return K, pull


def _periodic(kernel: ExpSineSquared, X: Array, Z: Array | None) -> tuple[Array, Pullback]:
    scale, period = float(kernel.length_scale), float(kernel.periodicity)
    phase = np.pi / period * np.sqrt(squared_distances(X, Z))
    sine = np.sin(phase)
    K = np.exp(-2.0 * (sine / scale) ** 2)

    def pull(G: Array) -> Array:
        gradient = []
        if not kernel.hyperparameter_length_scale.fixed:
            gradient.append(np.vdot(G, K * sine**2) * 4.0 / scale**2)
        if not kernel.hyperparameter_periodicity.fixed:
            gradient.append(np.vdot(G, K * sine * np.cos(phase) * phase) * 4.0 / scale**2)
        return np.array(gradient)

    return K, pull
