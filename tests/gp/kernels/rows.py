"""The rows of the shared suite: a new kernel is one more row of ``ROWS`` and passes every test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    ExpSineSquared,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
)

ONE, TWO, FIVE = 1.0, np.array([1.0, 7.0]), np.array([1.0, 0.3, 1.0, 1e-3, 50.0])


@dataclass(frozen=True)
class Row:
    """A kernel, or a sum or product of kernels.

    ``make(unit, extra)``: the kernel whose unit of distance is ``unit``.
    ``exact(kernel, d)``: its value at the differences d, in mpmath; None for sums and products.
    ``text``: the short text of ``make(2.0, middle of extras)``, if there is one.
    ``extras``: another parameter, over all that is allowed.
    ``shapes``: lengthscales in that unit.
    ``most``: the largest distance in that unit.
    ``room``: how far lengthscales go from the unit.
    ``proved``: whether the error of its values is.
    """

    name: str
    make: Callable[[Any, float], Any]
    exact: Callable[[Any, list[Any]], Any] | None = None
    text: str | None = None
    extras: Sequence[float] = (1.0,)
    shapes: Sequence[Any] = (ONE, TWO, FIVE)
    most: float = 1e101
    room: float = 1.0
    proved: bool = True

    @property
    def middle(self) -> float:
        return self.extras[len(self.extras) // 2]


def squared(kernel: Any, d: list[Any]) -> Any:
    scales = np.broadcast_to(kernel.length_scale, len(d))
    return mp.fsum((a / mp.mpf(float(b))) ** 2 for a, b in zip(d, scales, strict=True))


def rational(kernel: Any, d: list[Any]) -> Any:
    alpha = mp.mpf(float(kernel.alpha))
    return mp.exp(-alpha * mp.log1p(squared(kernel, d) / (2 * alpha)))


def matern(kernel: Any, d: list[Any]) -> Any:
    nu = getattr(kernel, "nu", np.inf)
    if nu == np.inf:
        return mp.exp(-squared(kernel, d) / 2)
    t = mp.sqrt(2 * mp.mpf(nu) * squared(kernel, d))
    return {0.5: 1, 1.5: 1 + t, 2.5: 1 + t + t * t / 3}[nu] * mp.exp(-t)


def periodic(kernel: Any, d: list[Any]) -> Any:
    sine = mp.sin(mp.pi * d[0] / mp.mpf(float(kernel.periodicity)))
    return mp.exp(-2 * (sine / mp.mpf(float(kernel.length_scale))) ** 2)


ROWS = [
    Row("rbf", lambda unit, _: RBF(unit), matern, "rbf(2)"),
    Row("matern12", lambda unit, _: Matern(unit, nu=0.5), matern, "matern12(2)"),
    Row("matern32", lambda unit, _: Matern(unit, nu=1.5), matern, "matern32(2)"),
    Row("matern52", lambda unit, _: Matern(unit, nu=2.5), matern, "matern52(2)"),
    Row("matern-inf", lambda unit, _: Matern(unit, nu=np.inf), matern),
    Row("matern-other", lambda unit, _: Matern(unit, nu=3.2), proved=False),
    Row(
        "rational",
        lambda unit, alpha: RationalQuadratic(unit, alpha),
        rational,
        "rq(2, 20)",
        (1e-50, 1e-6, 0.3, 1.0, 20.0, 1e5, 1e9, 1e16, 1e50),
        (ONE,),
    ),
    Row(
        "periodic",
        lambda unit, scale: ExpSineSquared(scale, unit),
        periodic,
        "periodic(1, 2)",
        (1e-50, 1e-9, 0.2, 1.0, 5.0, 1e50),
        (ONE,),
        1e12,
    ),
    Row(
        "constant times",
        lambda unit, v: v * Matern(unit, nu=1.5),
        None,
        "0.1*matern32(2)",
        (1e-100, 0.1, 1e100),
    ),
    Row(
        "sum",
        lambda unit, v: RBF(unit) + v * Matern(3 * unit, nu=2.5),
        None,
        "rbf(2) + 0.3*matern52(6)",
        (1e-90, 0.3, 1e90),
        room=3.0,
    ),
    Row(
        "product of sums",
        lambda unit, v: (
            (RBF(unit) + ConstantKernel(v)) * (v * Matern(unit, nu=0.5) + RBF(2 * unit))
            + ConstantKernel(0.1) * ConstantKernel(0.7)
        ),
        None,
        None,  # a product of two numbers is read as one number
        (1e-40, 0.3, 1e40),
        room=2.0,
    ),
    Row(
        "periodic that decays",
        lambda unit, alpha: (
            3.0 * ExpSineSquared(0.7, unit) * RationalQuadratic(20 * unit, alpha)
            + 0.1 * RBF(0.1 * unit)
        ),
        None,
        "3*periodic(0.7, 2)*rq(40, 2.5) + 0.1*rbf(0.2)",
        (0.5, 2.5, 1e5),
        (ONE,),
        1e12,
        20.0,
    ),
]
PROVED = [row for row in ROWS if row.proved]
EXACT = {type(row.make(1.0, 1.0)): row.exact for row in ROWS if row.exact is not None}


def exactly(kernel: Any, x: Any, z: Any) -> Any:
    """One kernel value, from the floats as they are."""
    if isinstance(kernel, Sum):
        return exactly(kernel.k1, x, z) + exactly(kernel.k2, x, z)
    if isinstance(kernel, Product):
        return exactly(kernel.k1, x, z) * exactly(kernel.k2, x, z)
    if isinstance(kernel, ConstantKernel):
        return mp.mpf(float(kernel.constant_value))
    d = [mp.mpf(float(a)) - mp.mpf(float(b)) for a, b in zip(x, z, strict=True)]
    return EXACT[type(kernel)](kernel, d)
