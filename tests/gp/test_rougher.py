"""Rougher priors beside the default one, and what is learned with them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from privgp.gp.inference.learning import MANY, learn, start_from
from privgp.gp.inference.posterior import posterior
from privgp.gp.measurement import Measurement
from privgp.gp.priors import SHORT, SHORT_VARIANCE, Hyperparameters, prior_about, rougher
from tests.gp.sums import sums_of_parts

ROWS, NOISE, SCATTER = 100.0, 3.0, 0.04


def prior(lengthscale, *, noise_free: bool = True):
    kernel = ConstantKernel(0.25) * Matern(lengthscale, nu=2.5) + ConstantKernel(0.25, "fixed")
    return prior_about(Hyperparameters(kernel, 0.05), noise_free=noise_free)


def measured(kernel, cells: int, seed: int):
    """A drawn function at twice as many places as cells, and noisy sums at every second of them."""
    rng = np.random.default_rng(seed)
    places = (np.arange(2 * cells) + 0.5)[:, None] / (2 * cells)
    f = np.linalg.cholesky(kernel(places) + 1e-9 * np.eye(2 * cells)) @ rng.standard_normal(
        2 * cells
    )
    sums = ROWS * f[::2] + rng.normal(0.0, np.sqrt(ROWS * SCATTER), cells)
    values = sums + rng.laplace(0.0, NOISE / np.sqrt(2.0), cells)
    energy = ROWS * float(f[::2] @ f[::2]) + ROWS * cells * SCATTER
    told = sums_of_parts(np.eye(cells), places[::2], np.full(cells, ROWS))
    return f, places, told, Measurement(values, NOISE, energy, NOISE, None, True)


@pytest.mark.parametrize("noise_free", [True, False])
@pytest.mark.parametrize("lengthscale", [0.3, np.array([0.3, 2.0])])
def test_rougher_priors_fit_their_kernels(lengthscale, noise_free):
    first = prior(lengthscale, noise_free=noise_free)
    for each in rougher(first):
        each.check_for(np.size(lengthscale))
        assert_allclose(each.centre[: len(each.start.kernel.theta)], each.start.kernel.theta)
        z = start_from(np.arange(1.0, first.size + 1), first, each)
        assert len(z) == each.size
        assert each.at(z).noise_variance == pytest.approx(
            first.at(np.arange(1.0, first.size + 1)).noise_variance
        )


def test_the_short_range_is_shorter_and_smaller_and_moves_with_the_long_one():
    first = prior(0.3)
    short = rougher(first)[1]
    z = np.array([0.0, 1.0, 0.0, 0.0, 0.0])
    for at in (np.zeros(5), z):
        kernel = short.at(at).kernel
        assert kernel.k2.k2.length_scale == pytest.approx(SHORT * kernel.k1.k1.k2.length_scale)
    start = short.at(np.zeros(5)).kernel
    assert start.k2.k1.constant_value == pytest.approx(SHORT_VARIANCE * 0.25)


def test_other_kernels_have_no_rougher_ones():
    for kernel in (
        RBF(0.3),
        Matern(0.3, nu=1.5),
        Matern(0.3, nu=2.5) + Matern(0.1, nu=2.5),
        Matern(0.3, "fixed", nu=2.5),
    ):
        assert rougher(prior_about(Hyperparameters(kernel, 0.05), noise_free=True)) == ()


@pytest.mark.parametrize("cells", [60, MANY + 20])
def test_intervals_between_cells_hold_rough_functions(cells):
    kernel = ConstantKernel(0.1) * Matern(0.05, nu=0.5)
    held = []
    for seed in range(2):
        f, places, told, numbers = measured(kernel, cells, seed)
        first = prior(0.3)
        models = learn(told, numbers, [first], rougher(first))
        assert sum(model.weight for model in models) == pytest.approx(1.0)
        mixture = posterior(told, numbers, models, 0.0).mixture(places[1::2])
        low, high = mixture.quantiles([0.05, 0.95])
        held.append(float(np.mean((low < f[1::2]) & (f[1::2] < high))))
    assert np.mean(held) > 0.8


def test_a_smooth_function_is_taken_for_smooth():
    kernel = ConstantKernel(0.25) * Matern(0.3, nu=2.5)
    _, _, told, numbers = measured(kernel, 60, 0)
    first = prior(0.3)
    models = learn(told, numbers, [first], rougher(first))
    plain = sum(m.weight for m in models if len(m.kernel.theta) == 2 and m.kernel.k1.k2.nu == 2.5)
    assert plain > 0.5
