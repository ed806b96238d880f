"""The evidence where records lie somewhere in bins: its covariance and its gradient."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from privgp.gp.inference.evidence import fit
from privgp.gp.kernels.integral import integral_gram
from privgp.gp.measurement import Measurement
from privgp.gp.priors import Hyperparameters
from privgp.plan.bins.bins import Bins
from privgp.plan.bins.counts import bin_functionals

COUNTS = np.array([3.0, 0.5, 7.0, 2.0])
KERNELS = {
    1: 0.5 * Matern(0.6, nu=2.5) + ConstantKernel(0.3, "fixed"),
    2: 0.5 * Matern([0.6, 0.9], nu=2.5),
}


def made(inputs: int):
    shape = (4,) if inputs == 1 else (2, 2)
    rng = np.random.default_rng(inputs)
    B = rng.uniform(size=(3, 4))
    bins = Bins(np.zeros(inputs), np.ones(inputs), shape, 12, B / np.linalg.norm(B, axis=0))
    uncertain = np.diag([1.0, 0.2, 2.0, 0.5])
    model = Hyperparameters(KERNELS[inputs], 0.2)
    measurement = Measurement(rng.standard_normal(3), 0.7, 9.0, 1.5)
    return bins, uncertain, model, measurement


@pytest.mark.parametrize("inputs", [1, 2])
def test_the_covariance_is_that_of_averages_and_of_what_varies_within(inputs):
    bins, uncertain, model, t = made(inputs)
    found = bin_functionals(bins, COUNTS, uncertain, model)
    width = np.ones(inputs) / np.array(bins.shape)
    low = bins.centres() - 0.5 * width
    K = integral_gram(model.kernel, low, low + width)
    total = model.kernel(np.zeros((1, inputs)))[0, 0]
    sums = K * np.outer(COUNTS, COUNTS) + uncertain * K
    sums += np.diag(COUNTS * (total - np.diag(K) + model.noise_variance))
    S = bins.matrix @ sums @ bins.matrix.T + 0.7**2 * np.eye(3)
    silent = Measurement(t.values, 0.7, None, 0.0)
    ours = fit(found, silent, model.kernel, model.noise_variance, found.nodes).log_evidence
    density = multivariate_normal(np.zeros(3), S).logpdf(t.values)
    assert_allclose(ours - 1.5 * np.log(2 * np.pi), density, atol=1e-3)


@pytest.mark.parametrize("inputs", [1, 2])
def test_the_gradient_is_that_of_finite_differences(inputs):
    bins, uncertain, model, t = made(inputs)
    found = bin_functionals(bins, COUNTS, uncertain, model)
    theta = np.append(model.kernel.theta, np.log(model.noise_variance))
    spread = fit(found, t, model.kernel, model.noise_variance, found.nodes).energy_variance

    def at(logs):
        kernel = model.kernel.clone_with_theta(logs[:-1])
        return fit(
            found, t, kernel, np.exp(logs[-1]), found.nodes, gradient=True, energy_variance=spread
        )

    numbers = [
        (at(theta + step).log_evidence - at(theta - step).log_evidence) / 2e-5
        for step in 1e-5 * np.eye(len(theta))
    ]
    assert_allclose(at(theta).gradient, numbers, rtol=1e-5, atol=1e-7)
