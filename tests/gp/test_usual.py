"""What is learned with: priors about what is usual within declared bounds."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF

from privgp import PrivateGPRegressor
from privgp.gp.inference.learning import learn
from privgp.gp.inference.posterior import posterior
from privgp.gp.measurement import Measurement
from privgp.gp.priors import (
    USUAL_NOISE,
    USUAL_NOISE_STD,
    USUAL_SIGNAL,
    USUAL_SIGNAL_STD,
    rougher,
    usual,
)
from tests.gp.sums import sums_of_parts
from tests.gp.test_rougher import prior

X = np.linspace(0.0, 90.0, 60)[:, None]


def stds(of) -> np.ndarray:
    """Of the logarithms of all parameters."""
    return np.sqrt(np.square(of.root).sum(axis=1))


@pytest.mark.parametrize("lengthscale", [0.3, np.array([0.3, 2.0])])
def test_the_usual_function_and_its_scatter_are_smaller_and_lengthscales_as_they_were(lengthscale):
    first = prior(lengthscale)
    found = usual(first)
    found.check_for(np.size(lengthscale))
    assert found.start == first.start
    moved = np.exp(0.5 * (found.centre - first.centre))
    assert_allclose(moved, [USUAL_SIGNAL, *np.ones(np.size(lengthscale)), USUAL_NOISE])
    assert_allclose(stds(found)[[0, -1]], [2.0 * USUAL_SIGNAL_STD, 2.0 * USUAL_NOISE_STD])
    assert_allclose(stds(found)[1:-1], stds(first)[1:-1])


def test_a_declared_noise_variance_stays_in_the_middle():
    first = prior(0.3)
    found = usual(first, noise=False)
    assert found.centre[-1] == first.centre[-1]
    assert stds(found)[-1] == stds(first)[-1]
    held = usual(prior(0.3, noise_free=False))
    assert len(held.centre) == 2


def test_rougher_priors_are_about_what_is_usual_too():
    for each in rougher(usual(prior(0.3))):
        assert each.at(np.zeros(each.size)).noise_variance == pytest.approx(0.05 * USUAL_NOISE**2)


@pytest.mark.parametrize(
    ("given", "same"),
    [({}, False), ({"noise_variance": 9.0}, False), ({"kernel": RBF(20.0)}, True)],
)
def test_what_was_declared_is_learned_about(given, same):
    plan = PrivateGPRegressor(y_bounds=(60, 200), epsilon=1.0, delta=1e-5, **given).plan(X)
    (part,) = plan.parts
    found = part.asked.usual_priors(part.priors)
    assert (found[-1] is part.priors[-1]) is same
    assert np.array_equal(found[0].root, part.priors[0].root) is same
    if "noise_variance" in given:
        assert all(each.centre[-1] == pytest.approx(np.log(9.0)) for each in found)


def test_a_constant_function_is_known_better():
    cells, rows, noise = 10, 30.0, 3.0
    places = (np.arange(cells) + 0.5)[:, None] / cells
    first, told = prior(0.3), sums_of_parts(np.eye(cells), places, np.full(cells, rows))
    variances = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        values = rng.normal(0.0, noise, cells)
        energy = rows * cells * 0.01 + rng.normal(0.0, 6.0)
        measured = Measurement(values, noise, energy, 6.0, None, False)
        lines = (learn(told, measured, [one]) for one in (first, usual(first)))
        found = [posterior(told, measured, models, 0.0) for models in lines]
        variances.append([each.mean_and_variance(places)[1].mean() for each in found])
    planned, learned = np.mean(variances, axis=0)
    assert learned < planned
