"""What released posterior paths promise, as a curve that an attack can be held against."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from privgp.audit.promises import EPSILONS, Promise
from privgp.gp.kernels.evaluate import variance
from privgp.plan.inputs.arguments import domain_pairs
from privgp.privacy.posterior_mean import mean_sensitivity, posterior_shape
from privgp.privacy.rdp import PathCurve, delta_for, path_curve


def renyi_curve(
    kernel: Kernel,
    noise_variance: float,
    n: int,
    n_paths: int = 1,
    *,
    x_bounds: Any = (0.0, 1.0),
    reach: float = 1.0,
    centred: bool = False,
    paper: bool = False,
) -> PathCurve:
    """The Renyi curve of ``n_paths`` posterior paths of n records, outputs within ``reach`` of 0.

    ``centred``: paths about zero, which tell of the covariance alone; ``paper``: the bounds as
    printed instead of the sharper ones.
    """
    low, high = np.array(domain_pairs("x_bounds", x_bounds)).T
    shape = posterior_shape(kernel, noise_variance, high - low, n)
    moved = reach * mean_sensitivity(shape, "paper" if paper else "auto").value
    curve = path_curve(
        sensitivity=moved,
        influence=shape.influence,
        kernel_variance=variance(kernel),
        paths=n_paths,
        covariance="paper" if paper else "sharp",
    )
    return replace(curve, shift=0.0) if centred else curve


def path_promise(
    kernel: Kernel, noise_variance: float, n: int, n_paths: float = 1, **options: Any
) -> Promise | None:
    """The promise at every epsilon; None for the exact posterior, which promises nothing."""
    if n_paths == math.inf:
        return None
    curve = renyi_curve(kernel, noise_variance, n, int(n_paths), **options)
    pairs = ((float(e), delta_for([curve], float(e))) for e in EPSILONS)
    return Promise(pairs=tuple((e, d) for e, d in pairs if d < 1.0))
