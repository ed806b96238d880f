"""The kernels that privgp supports: one row each, and their sums and products."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from sklearn.gaussian_process.kernels import (
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    Kernel,
    Product,
    Sum,
    WhiteKernel,
)

from privgp.gp.kernels.kind import GeneralKind, KernelKind, Notation
from privgp.gp.kernels.matern import MATERN_KIND, RBF_KIND
from privgp.gp.kernels.periodic import PERIODIC
from privgp.gp.kernels.rational_quadratic import RATIONAL_QUADRATIC
from privgp.gp.kernels.varying import VARYING

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
DOT_PRODUCT = GeneralKind(DotProduct, ("sigma_0",), ("offset",), {"dot": {}})
ANY = GeneralKind(Kernel, ())  # a class that privgp does not know: evaluated, never in files
GENERAL: tuple[GeneralKind, ...] = (DOT_PRODUCT, VARYING)
NOTATIONS: dict[type[Kernel], Notation] = {
    kind.kernel_class: kind for kind in (*KINDS, *GENERAL, WHITE)
}
SUPPORTED = ", ".join(kind.kernel_class.__name__ for kind in KINDS)


def notation_of(kernel: Any) -> Notation | None:
    """The row of a kernel, or of the nearest class it was derived from and has its values from."""
    given = type(kernel)
    known = next((c for c in given.__mro__ if c in NOTATIONS), None)
    if known is None or (given.__call__, given.diag) != (known.__call__, known.diag):
        return None
    return NOTATIONS[known]


def row_of(kernel: Any) -> KernelKind | GeneralKind:
    """How one leaf of a kernel is evaluated.

    Raises
    ------
    ValueError
        It is no kernel of one function, or a WhiteKernel inside a product.

    """
    kind = notation_of(kernel)
    if kind is WHITE:
        raise ValueError(
            "kernel holds a WhiteKernel inside a product: put it into the top-level sum, where it "
            "becomes the noise variance, or give noise_variance."
        )
    if isinstance(kind, KernelKind | GeneralKind):
        return kind
    if not isinstance(kernel, Kernel) or isinstance(kernel, CompoundKernel):
        raise ValueError(
            f"kernel {type(kernel).__name__} is not supported: give a kernel of scikit-learn for one "
            "function."
        )
    return ANY


def kind_of(kernel: Any) -> KernelKind:
    """The mathematics of one leaf, a function of the distance whose rounding error is proved.

    Raises
    ------
    ValueError
        It is another kernel, or a WhiteKernel inside a product.

    """
    kind = row_of(kernel)
    if not isinstance(kind, KernelKind):
        raise ValueError(
            f"kernel {type(kernel).__name__} is not available here, as the error of its values is "
            f"not proved: use {SUPPORTED}, and their sums and products."
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
