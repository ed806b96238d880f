"""The kernels that privgp supports, one row each; sums and products of them come for free."""

from __future__ import annotations

from typing import Any

from sklearn.gaussian_process.kernels import Kernel, WhiteKernel

from privgp.gp.kernels.constant import CONSTANT
from privgp.gp.kernels.kind import KernelKind, Notation
from privgp.gp.kernels.matern import MATERN_KIND, RBF_KIND
from privgp.gp.kernels.periodic import PERIODIC
from privgp.gp.kernels.rational_quadratic import RATIONAL_QUADRATIC

KINDS: tuple[KernelKind, ...] = (RBF_KIND, MATERN_KIND, RATIONAL_QUADRATIC, PERIODIC, CONSTANT)
# Noise is no kernel of the function, but it is written like one.
WHITE = Notation(WhiteKernel, ("noise_level",), ("variance",), {"white": {}})
NOTATIONS: dict[type[Kernel], Notation] = {kind.kernel_class: kind for kind in (*KINDS, WHITE)}
SUPPORTED = ", ".join(kind.kernel_class.__name__ for kind in KINDS)


def notation_of(kernel: Any) -> Notation | None:
    """The row of a kernel, or of the nearest class it was derived from."""
    return next((NOTATIONS[c] for c in type(kernel).__mro__ if c in NOTATIONS), None)


def kind_of(kernel: Any) -> KernelKind:
    kind = notation_of(kernel)
    if not isinstance(kind, KernelKind):
        raise ValueError(
            f"kernel {type(kernel).__name__} is not supported: use {SUPPORTED}, and their sums and "
            "products."
        )
    return kind
