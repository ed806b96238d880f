"""What is known of a kernel on a declared box: its least value, and whether it is exponential.

Every supported kernel is stationary and positive, and all but the periodic one fall with the
distance, so the least value stands at opposite corners of the box.
"""

from __future__ import annotations

import math

import numpy as np
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    ExpSineSquared,
    Kernel,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
)

from privgp.plan.kernels import SUPPORTED, evaluate
from privgp.types import Array

ROUNDED_DOWN = 1.0 - 1e-12


def least_value(kernel: Kernel, widths: Array) -> float:
    """A lower bound of k(x, x') over x, x' in a box with sides ``widths`` (inputs,).

    Exact up to rounding for one kernel and for products and sums of kernels that fall with the
    distance; the bounds of the parts are added and multiplied, which is sound as none is negative.
    """
    if isinstance(kernel, Sum):
        return least_value(kernel.k1, widths) + least_value(kernel.k2, widths)
    if isinstance(kernel, Product):
        return least_value(kernel.k1, widths) * least_value(kernel.k2, widths)
    if isinstance(kernel, ConstantKernel):
        return float(kernel.constant_value)
    if isinstance(kernel, ExpSineSquared):
        phase = min(math.pi * float(np.linalg.norm(widths)) / kernel.periodicity, 0.5 * math.pi)
        return math.exp(-2.0 * (math.sin(phase) / kernel.length_scale) ** 2) * ROUNDED_DOWN
    if isinstance(kernel, RBF | Matern | RationalQuadratic):
        corners = np.vstack([np.zeros_like(widths), widths])
        with np.errstate(all="ignore"):
            value = float(evaluate(kernel, corners)[0, 1])
        return value * ROUNDED_DOWN if math.isfinite(value) and value > 0 else 0.0
    raise ValueError(f"kernel {type(kernel).__name__} is not supported: use {SUPPORTED}.")


def exponential_rate(kernel: Kernel) -> float | None:
    """``q`` where k(x, x') = k(x, x) exp(-q |x - x'|) for one input, 0 for a constant; else None.

    Products of such kernels are such kernels; a sum is one only if all its parts are constant.
    """
    if isinstance(kernel, ConstantKernel):
        return 0.0
    if isinstance(kernel, Matern) and kernel.nu == 0.5:
        return 1.0 / float(np.max(kernel.length_scale))
    if isinstance(kernel, Product | Sum):
        rates = (exponential_rate(kernel.k1), exponential_rate(kernel.k2))
        if rates[0] is None or rates[1] is None:
            return None
        if isinstance(kernel, Product):
            return rates[0] + rates[1]
        return 0.0 if rates == (0.0, 0.0) else None
    return None
