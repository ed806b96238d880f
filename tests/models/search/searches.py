"""A grid, data and a search that the tests of searches start from."""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from privgp import PrivateGPRegressor, PrivateGridSearchCV

METHODS = ("measurement", "permute-and-flip", "exponential")


PAID = METHODS[1:]


GRID = {"kernel__length_scale": [0.3, 1.0, 3.0], "noise_variance": [0.01, 0.3]}


def some_data(rows: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, size=(rows, 1))
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(rows)


def search(method: str = "measurement", grid=None, **settings) -> PrivateGridSearchCV:
    mechanism = settings.pop("mechanism", "auto")
    model = PrivateGPRegressor(RBF(1.0, "fixed"), y_bounds=(-2, 2), mechanism=mechanism)
    settings = {"epsilon": 2.0, "delta": 1e-4, "random_state": 0, **settings}
    return PrivateGridSearchCV(model, GRID if grid is None else grid, method=method, **settings)
