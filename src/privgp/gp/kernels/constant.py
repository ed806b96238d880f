"""The constant kernel."""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel

from privgp.gp.kernels.kind import KernelKind

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
