"""Covariances computed a second way, in float64 or in 50 digits: what kept draws are held against.

Arrays of mpmath numbers are numpy arrays of objects, so one text serves both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
from sklearn.gaussian_process.kernels import (
    ConstantKernel,
    ExpSineSquared,
    Kernel,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
)

mpmath.mp.dps = 50


@dataclass(frozen=True)
class Digits:
    """Arithmetic: how to read float64 numbers, and functions of arrays of what was read."""

    read: Callable[[Any], np.ndarray]
    exp: Callable[[Any], np.ndarray]
    sin: Callable[[Any], np.ndarray]
    sqrt: Callable[[Any], np.ndarray]
    power: Callable[[Any, Any], np.ndarray]
    pi: Any


def _each(function: Callable[..., Any], arguments: int) -> Callable[..., np.ndarray]:
    return np.frompyfunc(function, arguments, 1)


FLOAT = Digits(lambda x: np.asarray(x, dtype=float), np.exp, np.sin, np.sqrt, np.power, np.pi)
FIFTY = Digits(
    _each(mpmath.mpf, 1),
    _each(mpmath.exp, 1),
    _each(mpmath.sin, 1),
    _each(mpmath.sqrt, 1),
    _each(mpmath.power, 2),
    +mpmath.mp.pi,
)


def kernel_values(kernel: Kernel, X: np.ndarray, Z: np.ndarray, digits: Digits) -> np.ndarray:
    """k(X, Z) from its definition, coordinate differences first."""
    if isinstance(kernel, Sum):
        return kernel_values(kernel.k1, X, Z, digits) + kernel_values(kernel.k2, X, Z, digits)
    if isinstance(kernel, Product):
        return kernel_values(kernel.k1, X, Z, digits) * kernel_values(kernel.k2, X, Z, digits)
    if isinstance(kernel, ConstantKernel):
        return digits.read(np.full((len(X), len(Z)), float(kernel.constant_value)))
    scales = digits.read(np.broadcast_to(np.asarray(kernel.length_scale, float), X.shape[1:]))
    apart = digits.read(X)[:, None, :] - digits.read(Z)[None, :, :]
    if isinstance(kernel, ExpSineSquared):
        phase = digits.read(_phases(X[:, 0], Z[:, 0], Fraction(float(kernel.periodicity))))
        sine = digits.sin(digits.pi * phase) / scales[0]
        return digits.exp(-2 * sine * sine)
    with np.errstate(over="ignore", under="ignore"):
        squares = ((apart / scales) ** 2).sum(axis=2)
    if isinstance(kernel, RationalQuadratic):
        alpha = digits.read(float(kernel.alpha))
        if digits is FLOAT:  # 1 + tiny loses digits
            return np.exp(-alpha * np.log1p(squares / (2 * alpha)))
        return digits.power(1 + squares / (2 * alpha), -alpha)
    nu = kernel.nu if isinstance(kernel, Matern) else np.inf
    if nu == np.inf:
        return digits.exp(-squares / 2)
    root = digits.sqrt(squares * round(2 * nu))
    if nu == 0.5:
        return digits.exp(-root)
    if nu == 1.5:
        return (1 + root) * digits.exp(-root)
    return (1 + root + root * root / 3) * digits.exp(-root)


def _phases(x: np.ndarray, z: np.ndarray, period: Fraction) -> np.ndarray:
    """Differences in periods, less whole periods, in rational arithmetic: sines of large numbers
    lose digits. As mpmath numbers, so that either arithmetic may read them."""
    left, right = ([Fraction(float(v)) / period for v in values] for values in (x, z))
    shares = [[(a - b) - round(a - b) for b in right] for a in left]
    return np.array([[mpmath.mpf(s.numerator) / s.denominator for s in row] for row in shares])


def lower_factor(matrix: np.ndarray) -> np.ndarray:
    """The Cholesky factor; ArithmeticError where the matrix is not positive."""
    if matrix.dtype != object:
        try:
            return np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            raise ArithmeticError("not positive") from None
    size = len(matrix)
    L = matrix * 0
    for i in range(size):
        for j in range(i):
            L[i, j] = (matrix[i, j] - L[i, :j] @ L[j, :j]) / L[j, j]
        left = matrix[i, i] - L[i, :i] @ L[i, :i]
        if not left > 0:
            raise ArithmeticError("not positive")
        L[i, i] = mpmath.sqrt(left)
    return L


def solved(lower: np.ndarray, right: np.ndarray) -> np.ndarray:
    """``lower^-1 right``, (rows, columns)."""
    if lower.dtype != object:
        return np.linalg.solve(lower, right)
    out = right + 0 * right
    for i in range(len(lower)):
        out[i] = (out[i] - lower[i, :i] @ out[:i]) / lower[i, i]
    return out


def relative_error(found: np.ndarray, wanted: np.ndarray) -> float:
    """The Frobenius norm of ``L^-1 (found - wanted) L^-T`` for ``wanted = L L^T``."""
    L = lower_factor(wanted)
    half = solved(L, found - wanted)
    whole = solved(L, half.T.copy())
    return float(np.sqrt(float((whole * whole).sum())))
