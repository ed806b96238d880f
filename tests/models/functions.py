"""A small function that several tests make and ask."""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from privgp import PrivateFunction

RNG = np.random.default_rng(5)
X = RNG.uniform(0, 10, (30, 1))
Y = np.round(50 + 20 * np.sin(X[:, 0]) + RNG.normal(size=30), 6) + 0.0000731
ASKED = np.linspace(0, 10, 12)[:, None]
MOST = {"y_bounds": (0.0, 100.0), "epsilon": 1.0, "delta": 1e-5}


def function(kernel=None, noise_variance=25.0, **options):
    kernel = 400.0 * RBF(2.0) if kernel is None else kernel
    return PrivateFunction(kernel, noise_variance, **{**MOST, **options})
