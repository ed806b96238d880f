"""The kernels that privgp supports: one row each, and their sums and products."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Product, Sum, WhiteKernel

from privgp.gp.kernels.kind import KernelKind, Notation
from privgp.gp.kernels.matern import MATERN_KIND, RBF_KIND
from privgp.gp.kernels.periodic import PERIODIC
from privgp.gp.kernels.rational_quadratic import RATIONAL_QUADRATIC

T = TypeVar("T")

CONSTANT = KernelKind(
    ConstantKernel,
    ("constant_value",),
    unit=None,
    profile=lambda kernel, s: np.full(s.shape, float(kernel.constant_value)),
    derivatives={"constant_value": lambda kernel, s, K: K},
    error_units=lambda kernel, widths: 0.0,
    limits=(1e-100, 1e100),
    exponential_rate=lambda kernel: 0.0,
    shortest_scale=lambda kernel: np.inf,
)
KINDS: tuple[KernelKind, ...] = (RBF_KIND, MATERN_KIND, RATIONAL_QUADRATIC, PERIODIC, CONSTANT)
# Noise is no kernel of the function, but it is written like one.
WHITE = Notation(WhiteKernel, ("noise_level",), ("variance",), {"white": {}})
NOTATIONS: dict[type[Kernel], Notation] = {kind.kernel_class: kind for kind in (*KINDS, WHITE)}
SUPPORTED = ", ".join(kind.kernel_class.__name__ for kind in KINDS)


def notation_of(kernel: Any) -> Notation | None:
    """The row of a kernel, or of the nearest class it was derived from."""
    return next((NOTATIONS[c] for c in type(kernel).__mro__ if c in NOTATIONS), None)


def kind_of(kernel: Any) -> KernelKind:
    """The mathematics of one leaf of a kernel.

    Raises
    ------
    ValueError
        It is a WhiteKernel inside a product, or of a kind that is not supported.

    """
    kind = notation_of(kernel)
    if kind is WHITE:
        raise ValueError(
            "kernel holds a WhiteKernel inside a product: put it into the top-level sum, where it "
            "becomes the noise variance, or give noise_variance."
        )
    if not isinstance(kind, KernelKind):
        raise ValueError(
            f"kernel {type(kernel).__name__} is not supported: use {SUPPORTED}, and their sums and "
            "products."
        )
    return kind


def fold(
    kernel: Any, part: Callable[[Any], T], add: Callable[[T, T], T], multiply: Callable[[T, T], T]
) -> T:
    """``part`` of every leaf, combined by ``add`` at sums and by ``multiply`` at products.

    Parameters
    ----------
    kernel
        a leaf, a sum or a product.
    part
        Function of a leaf.
    add, multiply
        Functions of two results, left and right.

    """
    if not isinstance(kernel, Sum | Product):
        return part(kernel)
    left, right = (fold(k, part, add, multiply) for k in (kernel.k1, kernel.k2))
    return add(left, right) if isinstance(kernel, Sum) else multiply(left, right)


def parts(kernel: Any, operations: Any = Sum | Product) -> list[Any]:
    """The leaves of the tree; the terms of a nested sum; or the factors of a nested product.

    Parameters
    ----------
    kernel
        a leaf, a sum or a product.
    operations
        The classes to take apart: sums and products by default.

    """
    if not isinstance(kernel, operations):
        return [kernel]
    return parts(kernel.k1, operations) + parts(kernel.k2, operations)
