"""The production sampler of sample paths: its law, and that one 20% off would be found.

10,000 independent paths at three points; failure probability below 1e-6 for each statement.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest
from sklearn.gaussian_process.kernels import Matern

from privgp import PosteriorPaths

pytestmark = pytest.mark.statistical(failure=1e-6)

X = np.array([[0.1], [0.4], [0.45], [0.9]])
Y = np.array([1.0, -1.0, 0.3, 0.5])
POINTS = np.array([[0.4], [0.6], [1.0]])
DRAWS = 10_000


def whitened(extra: float) -> np.ndarray:
    kernel = Matern(0.5, nu=0.5)
    model = PosteriorPaths(
        kernel, 0.5, domain=(0, 1), y_bounds=(-1, 1), n_paths=DRAWS, extra_noise=extra, delta=1e-3
    ).fit(X, Y)
    drawn = np.hstack([model.release(POINTS[:1]), model.release(POINTS[1:])])
    half = np.linalg.solve(kernel(X) + 0.5 * np.eye(4), kernel(X, POINTS))
    cov = (1 + extra**2) * kernel(POINTS) - kernel(POINTS, X) @ half
    return np.linalg.solve(np.linalg.cholesky(cov), (drawn - half.T @ Y).T)


@pytest.mark.parametrize("extra", [0.0, 0.8])
def test_paths_have_the_law_that_the_promise_is_about(extra):
    for numbers in whitened(extra):
        assert kstest(numbers, "norm").pvalue > 1e-7
        assert kstest(0.8 * numbers, "norm").pvalue < 1e-7
        assert kstest(1.2 * numbers, "norm").pvalue < 1e-7


def test_coordinates_are_independent():
    correlations = np.corrcoef(whitened(0.0))
    assert np.abs(correlations - np.eye(3)).max() < 5.5 / DRAWS**0.5
