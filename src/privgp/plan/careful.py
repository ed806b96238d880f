"""Kernel values whose rounding error is bounded for any points, near or far.

Distances come from differences, not from a matrix product: with ``s`` the squared scaled distance of
n_columns, ``|error of s| <= (n_columns + 5) u s``. As ``s |k'(s)| <= 1/2`` and a profile takes at most
a dozen operations, one kernel errs by at most ``(n_columns + 64) u`` of its variance.
"""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    Kernel,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
)

from privgp.plan.kernels import _profile
from privgp.privacy.sensitivity import UNIT_ROUNDOFF
from privgp.types import Array

CAREFUL = "RBF, Matern with nu 0.5, 1.5 or 2.5, RationalQuadratic, ConstantKernel"


def careful_values(kernel: Kernel, X: Array, Z: Array) -> Array:
    """k(X, Z), (rows of X, rows of Z)."""
    if isinstance(kernel, Sum):
        return careful_values(kernel.k1, X, Z) + careful_values(kernel.k2, X, Z)
    if isinstance(kernel, Product):
        return careful_values(kernel.k1, X, Z) * careful_values(kernel.k2, X, Z)
    if isinstance(kernel, ConstantKernel):
        return np.full((len(X), len(Z)), float(kernel.constant_value))
    squared = _scaled_squares(kernel.length_scale, X, Z)
    if isinstance(kernel, RationalQuadratic):
        return np.asarray((1.0 + squared / (2.0 * kernel.alpha)) ** -kernel.alpha)
    return _profile(squared, kernel.nu if isinstance(kernel, Matern) else np.inf)


def careful_error(kernel: Kernel, columns: int) -> float:
    """A bound of the error of ``careful_values``, as a share of the variance; refuses others."""
    if isinstance(kernel, Sum | Product):
        return (
            careful_error(kernel.k1, columns)
            + careful_error(kernel.k2, columns)
            + 4.0 * UNIT_ROUNDOFF
        )
    if isinstance(kernel, ConstantKernel):
        return 0.0
    if isinstance(kernel, Matern) and kernel.nu not in (0.5, 1.5, 2.5, np.inf):
        raise ValueError(f"kernel Matern(nu={kernel.nu:g}) is not available here: use {CAREFUL}.")
    if not isinstance(kernel, RBF | RationalQuadratic):
        raise ValueError(
            f"kernel {type(kernel).__name__} is not available here: use {CAREFUL}, and their sums "
            "and products."
        )
    return (columns + 64) * UNIT_ROUNDOFF


def _scaled_squares(length_scale: float | Array, X: Array, Z: Array) -> Array:
    """Sum over columns of ``((x_j - z_j) / l_j)^2``."""
    scales = np.broadcast_to(np.asarray(length_scale, float), (X.shape[1],))
    out = np.zeros((len(X), len(Z)))
    for x, z, scale in zip(X.T, Z.T, scales, strict=True):
        difference = np.subtract.outer(x, z)
        difference /= scale
        difference *= difference
        out += difference
    return out
