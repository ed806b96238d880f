"""The error that a plan expects is the one that releases of functions from its prior have."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from privgp import PrivateGPRegressor
from privgp.plan.accuracy import models_of

pytestmark = pytest.mark.statistical
DRAWS = 20


def test_functions_from_the_prior_have_the_expected_error():
    """20 functions, as many of every lengthscale as its weight says, released with learned
    hyperparameters. The mean square of one release varies by 0.26 to 0.59 of itself about that
    of its lengthscale, so the root of the mean by 4.5%: five standard deviations are 22%, which a
    release that is a third worse or better than expected does not keep to. The ratio was 1.03."""
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 20, (100, 1))
    kernel = ConstantKernel(0.3**2) * Matern(2.9, nu=2.5)
    settings = {"kernel": kernel, "noise_variance": 0.15**2, "y_bounds": (-1, 1), "delta": 1e-5}
    settings |= {"epsilon": 2.0, "mechanism": "gaussian"}
    plan = PrivateGPRegressor(**settings).plan(X)
    weights, models = zip(*models_of(plan), strict=True)
    places = np.searchsorted(np.cumsum(weights), (np.arange(DRAWS) + 0.5) / DRAWS)
    squares = []
    for seed, place in enumerate(places):
        model = models[place]
        root = np.linalg.cholesky(model.covariance(X) + 1e-9 * np.eye(len(X)))
        f = root @ rng.standard_normal(len(X))
        y = f + np.sqrt(model.noise_variance) * rng.standard_normal(len(X))
        release = PrivateGPRegressor(**settings, random_state=seed).fit(X, y, plan=plan)
        squares.append(np.mean((release.predict(X) - f) ** 2))
    assert np.sqrt(np.mean(squares)) / plan.expected_error() == pytest.approx(1.0, abs=0.22)
