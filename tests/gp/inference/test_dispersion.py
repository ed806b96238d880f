"""How much counts scatter, learned from a noisy sum of squares."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF

from privgp import PrivateGPRegressor
from privgp.gp.inference.linked import GRID, Squares, average_over, cautious
from privgp.gp.priors import Hyperparameters


def squares(ratio: float, rows: int = 4000, noise_std: float = 1.0) -> tuple[Squares, np.ndarray]:
    """Counts with this variance over their mean at 20 places, and the true rates there."""
    rng = np.random.default_rng(0)
    index, mean = rng.integers(0, 20, rows), np.linspace(2.0, 12.0, 20)
    m = mean[index]
    y = rng.poisson(m) if ratio == 1.0 else rng.negative_binomial(m / (ratio - 1.0), 1.0 / ratio)
    B, ones = np.eye(20), np.ones(rows)
    found = Squares(
        inputs=np.arange(20.0)[:, None], index=index, expected=ones, shares=ones, middle=30.0,
        energy=float(np.square(y - 30.0).sum()), noise_std=noise_std, matrix=B, row_weights=ones,
        values=np.bincount(index, y, minlength=20).astype(float), sum_std=1.0,
        repeats=ones,
    )  # fmt: skip
    return found, mean


@pytest.mark.parametrize("ratio", [1.0, 2.0, 6.0])
def test_the_ratio_of_variance_and_mean_is_found(ratio):
    known, mean = squares(ratio)
    logs = known.log_density(mean, np.zeros(20))
    assert_allclose(GRID[np.argmax(logs)], ratio, rtol=0.15)
    assert cautious(logs) > GRID[np.argmax(logs)]


def test_without_knowledge_the_prior_is_left():
    known, mean = squares(6.0, noise_std=1e9)
    logs = known.log_density(mean, np.zeros(20))
    assert_allclose(np.log(GRID[np.argmax(logs)]), 0.4, atol=0.1)


def test_models_have_the_distribution_of_the_ratio_together():
    logs = -0.5 * np.square((np.log(GRID) - 1.0) / 0.5)
    models = [Hyperparameters(RBF(1.0), 1.0, weight=0.02) for _ in range(50)]
    found = np.log([model.noise_variance for model in average_over(models, logs)])
    assert_allclose([found.mean(), found.std()], [1.0, 0.5], atol=0.03)


def test_squares_are_measured_unless_the_ratio_is_declared():
    X = np.linspace(0.0, 1.0, 50)[:, None]
    asked = {"y_bounds": (0, 20), "likelihood": "poisson", "max_change": 1, "epsilon": 1.0}
    assert PrivateGPRegressor(**asked).plan(X).strategy.energy_weight > 0.0
    assert PrivateGPRegressor(**asked, noise_variance=2.0).plan(X).strategy.energy_weight == 0.0
