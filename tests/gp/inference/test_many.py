"""Learning from many measured numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from privgp.gp.inference.evidence import condition
from privgp.gp.inference.learning import MANY, learn, noise_variance, sample
from privgp.gp.measurement import Measurement
from privgp.gp.priors import Hyperparameters, prior_about
from tests.gp.sums import sums_of_parts

LENGTHSCALE, SCATTER, ROWS, NOISE = 0.03, 0.04, 200.0, 2.0


def made(cells: int = 300, seed: int = 0):
    """Noisy sums of a drawn function over ``cells`` places, and the sum of squares of all outputs."""
    rng = np.random.default_rng(seed)
    places = (np.arange(cells) + 0.5)[:, None] / cells
    kernel = ConstantKernel(0.25) * Matern(LENGTHSCALE, nu=2.5)
    root = np.linalg.cholesky(kernel(places) + 1e-9 * np.eye(cells))
    f = root @ rng.standard_normal(cells)
    sums = ROWS * f + rng.normal(0.0, np.sqrt(ROWS * SCATTER), cells)
    values = sums + rng.laplace(0.0, NOISE / np.sqrt(2.0), cells)
    energy = ROWS * float(f @ f) + ROWS * cells * SCATTER
    told = sums_of_parts(np.eye(cells), places, np.full(cells, ROWS))
    return f, told, Measurement(values, NOISE, energy, NOISE, None, True)


def priors():
    start = Hyperparameters(ConstantKernel(0.25) * Matern(0.2, nu=2.5), 0.1)
    return (prior_about(start, noise_free=True, widths=()),)


def test_the_function_its_lengthscale_and_its_scatter_are_learned():
    f, told, measurement = made()
    assert len(measurement.values) > MANY
    models = learn(told, measurement, priors())
    assert sum(model.weight for model in models) == pytest.approx(1.0)
    assert list(models) == sorted(models, key=lambda model: -model.weight)
    assert models[0].kernel.k2.length_scale == pytest.approx(LENGTHSCALE, rel=0.35)
    assert models[0].noise_variance == pytest.approx(SCATTER, rel=0.1)
    given = condition(told, measurement, models[0])
    K = models[0].smooth(told.nodes)
    mean = K @ told.weights.T @ given.solved
    assert np.sqrt(np.mean((mean - f) ** 2)) < 1.2 * np.sqrt(SCATTER / ROWS + (NOISE / ROWS) ** 2)


def test_a_sample_is_some_of_the_numbers_with_their_places():
    _, told, measurement = made()
    some, numbers = sample(told, measurement, 50)
    assert some.weights.shape == (50, 50)
    chosen = [int(np.flatnonzero((told.nodes == node).all(axis=1))[0]) for node in some.nodes]
    assert_array_equal(numbers.values, measurement.values[chosen])
    assert_array_equal(some.weights, told.weights[np.ix_(chosen, chosen)])
    assert_array_equal(some.noise_gram, told.noise_gram[np.ix_(chosen, chosen)])
    whole, same = sample(told, measurement, 300)
    assert whole is told
    assert same is measurement


def test_the_scatter_explains_the_squares_that_the_function_does_not():
    _, told, measurement = made()
    kernel = ConstantKernel(0.25) * Matern(LENGTHSCALE, nu=2.5)
    for guess in (0.3 * SCATTER, 3.0 * SCATTER):
        found = noise_variance(told, measurement, Hyperparameters(kernel, guess))
        assert_allclose(found, SCATTER, rtol=0.1)
    without = replace(measurement, energy=None)
    assert noise_variance(told, without, Hyperparameters(kernel, 0.3)) == 0.3


def test_a_negative_sum_of_squares_leaves_a_positive_scatter():
    """Noise can make it so."""
    _, told, measurement = made()
    models = learn(told, replace(measurement, energy=-1e6), priors())
    assert all(model.noise_variance > 0.0 for model in models)
