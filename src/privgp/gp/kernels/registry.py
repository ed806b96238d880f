"""The kernels that privgp supports, one row each; sums and products of them come for free."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import WhiteKernel

from privgp.gp.kernels.constant import CONSTANT
from privgp.gp.kernels.kind import KernelKind, Notation
from privgp.gp.kernels.matern import MATERN_KIND, RBF_KIND
from privgp.gp.kernels.periodic import PERIODIC
from privgp.gp.kernels.rational_quadratic import RATIONAL_QUADRATIC

KINDS: tuple[KernelKind, ...] = (
    RBF_KIND,
    MATERN_KIND,
    RATIONAL_QUADRATIC,
    PERIODIC,
    CONSTANT,
)
# Noise is no kernel of the function, but it is written like one.
NOTATIONS: tuple[Notation, ...] = (
    *KINDS,
    Notation(WhiteKernel, ("noise_level",), ("variance",), {"white": {}}),
)
SUPPORTED = (
    ", ".join(kind.kernel_class.__name__ for kind in KINDS) + ", and their sums and products"
)

_BY_CLASS = {notation.kernel_class: notation for notation in NOTATIONS}


def notation_of(kernel: Any) -> Notation | None:
    """The row of a kernel, or of the nearest class it was derived from."""
    return next((_BY_CLASS[c] for c in type(kernel).__mro__ if c in _BY_CLASS), None)


def kind_of(kernel: Any) -> KernelKind:
    kind = notation_of(kernel)
    if not isinstance(kind, KernelKind):
        raise ValueError(f"kernel {type(kernel).__name__} is not supported: use {SUPPORTED}.")
    return kind


def check_inputs(kernel: Any, inputs: int) -> None:
    """Refuse a kernel, neither sum nor product, that is no covariance of so many inputs."""
    kind = kind_of(kernel)
    scales = getattr(kernel, "length_scale", 1.0)
    if np.ndim(scales) > 1 or np.size(scales) not in (1, inputs):
        raise ValueError(
            f"kernel has {np.size(scales)} lengthscales but the inputs have {inputs} columns: "
            "give one lengthscale, or one per input."
        )
    if kind.one_input and inputs > 1:
        raise ValueError(f"kernel {type(kernel).__name__} is a covariance of one input only.")
