"""What is known of a kernel on a declared box: its least value, and whether it is exponential.

Every supported kernel is stationary and positive, and all but the periodic one fall with the
distance, so the least value stands at opposite corners of the box. Proof: docs/proofs/kernels.md.
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

from privgp.gp.kernels.evaluate import SUPPORTED
from privgp.gp.kernels.proved import careful_error, careful_values
from privgp.types import Array


def least_value(kernel: Kernel, widths: Array) -> float:
    """A lower bound of k(x, x') over x, x' in a box with sides ``widths`` (inputs,), rounded down.

    For a sum or a product the bounds of the parts are added or multiplied, which is sound as none is
    negative. A part whose error is not proved has the bound 0.
    """
    if isinstance(kernel, Sum):
        return _down(least_value(kernel.k1, widths) + least_value(kernel.k2, widths))
    if isinstance(kernel, Product):
        return _down(least_value(kernel.k1, widths) * least_value(kernel.k2, widths))
    if isinstance(kernel, ConstantKernel):
        return float(kernel.constant_value)
    if not isinstance(kernel, RBF | RationalQuadratic | ExpSineSquared):
        raise ValueError(f"kernel {type(kernel).__name__} is not supported: use {SUPPORTED}.")
    corner = np.nextafter(np.asarray(widths, dtype=float), np.inf)  # widths are differences
    if isinstance(kernel, ExpSineSquared):
        corner = np.minimum(corner, 0.5 * kernel.periodicity)  # there it is least
    try:
        error = careful_error(kernel, corner)
    except ValueError:
        return 0.0
    value = float(careful_values(kernel, np.zeros((1, len(corner))), corner[None, :])[0, 0])
    return _down(max(value - error, 0.0))


def _down(value: float) -> float:
    return math.nextafter(value, 0.0)


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
