"""Intervals from the mixture of models that was learned."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr, ndtri
from sklearn.exceptions import NotFittedError

from privgp import PrivateGPRegressor, load
from privgp.models.load import save
from privgp.release.queries import quantities

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 10, size=(60, 1))
Y = np.sin(X[:, 0]) + 0.2 * RNG.standard_normal(60)
AT = np.linspace(-1, 11, 25)[:, None]


def fitted(**settings: Any) -> PrivateGPRegressor:
    given = {"y_bounds": (-2, 2), "epsilon": 2.0, "delta": 1e-3, "random_state": 1, **settings}
    return PrivateGPRegressor(**given).fit(X, Y)


@pytest.fixture(scope="module")
def model() -> PrivateGPRegressor:
    return fitted()


@pytest.mark.parametrize(
    "coverage", [0, 1, 0.0, 1.0, -0.5, 1.5, 90, np.nan, np.inf, "0.9", None, [0.9], 0.5 + 0j]
)
def test_coverage_must_lie_between_0_and_1(model, coverage):
    with pytest.raises(ValueError, match="coverage must lie between 0 and 1"):
        model.interval(AT, coverage)


def test_whoever_has_not_fitted_has_no_interval():
    with pytest.raises(NotFittedError):
        PrivateGPRegressor(y_bounds=(0, 1)).interval(AT)


def test_the_points_must_be_inputs(model):
    with pytest.raises(ValueError, match="features"):
        model.interval(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="NaN"):
        model.interval([[np.nan]])


@pytest.mark.parametrize("coverage", [1e-6, 0.5, 0.9, np.float32(0.9), 0.999999])
@pytest.mark.parametrize("observation", [False, True])
def test_the_mixture_has_this_share_within_and_equal_shares_beyond(model, coverage, observation):
    low, high = model.interval(AT, coverage, observation=observation)
    assert low.shape == high.shape == (len(AT),)
    mixture = model.release_.mixture(AT)
    if observation:
        mixture = mixture.of_outputs(-2.0, 2.0)
    std = np.sqrt(mixture.variances)

    def below(ends):
        return mixture.weights @ ndtr((ends - mixture.means) / std)

    tail = 0.5 * (1.0 - float(coverage))
    if observation:  # clipped outputs may lie on the bounds
        assert np.all((low == -2.0) | (np.abs(below(low) - tail) < 1e-9))
        assert np.all((high == 2.0) | (np.abs(below(high) - 1.0 + tail) < 1e-9))
        return
    whole = below(2.0) - below(-2.0)
    assert_allclose((below(low) - below(-2.0)) / whole, tail, atol=1e-9)
    assert_allclose((below(2.0) - below(high)) / whole, tail, atol=1e-9)


def test_intervals_lie_within_the_bounds():
    """At this budget the function alone would reach far beyond them."""
    poor = fitted(epsilon=0.05)
    mean, std = poor.predict(AT, return_std=True)
    assert np.any(mean + 1.6 * std > 2.0)
    for observation in (False, True):
        low, high = poor.interval(AT, observation=observation)
        assert np.all((low >= -2.0) & (low < high) & (high <= 2.0))


def test_wider_coverage_holds_the_narrower_and_outputs_vary_more(model):
    ends = [model.interval(AT, coverage) for coverage in (0.1, 0.5, 0.9, 0.99)]
    for (low, high), (lower, higher) in pairwise(ends):
        assert np.all((lower < low) & (high < higher))
    low, high = model.interval(AT)
    lower, higher = model.interval(AT, observation=True)
    assert np.all(higher - lower > high - low)


def test_the_mixture_has_the_mean_and_std_that_predict_tells(model):
    mixture = model.release_.mixture(AT)
    mean, std = model.predict(AT, return_std=True)
    assert_allclose(mixture.weights.sum(), 1.0)
    assert_allclose(mixture.weights @ mixture.means, mean, atol=1e-9)
    square = mixture.weights @ (mixture.variances + np.square(mixture.means - mean))
    assert_allclose(np.sqrt(square), std, rtol=1e-6)


def test_one_model_has_normal_intervals_far_from_the_bounds():
    at = X[np.argsort(X[:, 0])][10:-10]
    one = fitted(hyperparameters="fixed", mechanism="gaussian", epsilon=100.0)
    mean, std = one.predict(at, return_std=True)
    low, high = one.interval(at, 0.9)
    assert_allclose(low, mean - ndtri(0.95) * std, atol=1e-6)
    assert_allclose(high, mean + ndtri(0.95) * std, atol=1e-6)
    observed = one.predict(at, return_std=True, observation=True)[1]
    low, high = one.interval(at, 0.9, observation=True)
    inside = (low > -2.0) & (high < 2.0)
    assert inside.sum() > 10
    assert_allclose((high - low)[inside], 2.0 * ndtri(0.95) * observed[inside], atol=1e-6)


def test_outputs_vary_no_more_than_their_bounds_allow():
    """With noise of std 50 and bounds 4 apart, an output has a std of 2 at the most."""
    wild = fitted(hyperparameters="fixed", noise_variance=2500.0)
    mean, std = wild.predict(AT, return_std=True)
    low, high = wild.interval(AT, 0.5, observation=True)
    most = np.maximum(std, np.sqrt((mean + 2.0) * (2.0 - mean)))
    assert_allclose(high, np.minimum(2.0, mean + ndtri(0.75) * most), rtol=1e-6)
    assert_allclose(low, np.maximum(-2.0, mean - ndtri(0.75) * most), rtol=1e-6)


def test_unbiased_releases_have_intervals_at_their_targets():
    targets = np.array([[1.0], [5.0], [9.0]])
    one = fitted(reconstruct="unbiased", targets=targets)
    mean, std = one.predict(targets, return_std=True)
    low, high = one.interval(targets, 0.8)
    assert_allclose(low, mean + ndtri(0.1) * std, atol=1e-9)
    assert_allclose(high, mean + ndtri(0.9) * std, atol=1e-9)
    lower, higher = one.interval(targets, 0.8, observation=True)
    assert np.all((lower <= low) & (high <= higher))
    low, high = one.interval(AT)
    assert np.all(low < one.predict(AT))
    assert np.all(one.predict(AT) < high)


def test_blocks_of_rows_do_not_matter(model, monkeypatch):
    many = RNG.uniform(0, 10, size=(301, 1))
    whole = model.interval(many, observation=True)
    monkeypatch.setattr(quantities, "ROWS", 50)
    assert_allclose(model.interval(many, observation=True), whole, rtol=1e-9, atol=1e-9)
    assert all(end.shape == (301,) for end in whole)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_a_loaded_model_has_the_same_intervals_to_the_last_bit(mechanism, tmp_path):
    names = pd.DataFrame(X, columns=["age"])
    given = {"y_bounds": (-2, 2), "epsilon": 2.0, "delta": 1e-3, "mechanism": mechanism}
    one = PrivateGPRegressor(**given, random_state=2).fit(names, Y)
    save(one, tmp_path / "one.privgp")
    again = load(tmp_path / "one.privgp")
    assert again.measurements_[0].is_laplace == (mechanism == "laplace")
    assert any(c.model.changes for c in again.release_.components)
    at = pd.DataFrame(AT, columns=["age"])
    for observation in (False, True):
        found = again.interval(at, observation=observation)
        assert_array_equal(found, one.interval(at, observation=observation))


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_units_do_not_matter(unit, model):
    given = {**model.get_params(deep=False), "y_bounds": (-2 * unit, 2 * unit)}
    scaled = PrivateGPRegressor(**given).fit(X, unit * Y)
    for observation in (False, True):
        ends = np.array(model.interval(AT, observation=observation))
        found = np.array(scaled.interval(AT, observation=observation))
        assert_allclose(found / unit, ends, atol=2e-3)


@pytest.mark.parametrize("settings", [{}, {"hyperparameters": "fixed"}, {"likelihood": "poisson"}])
def test_a_mean_alone_is_the_mean_beside_a_std(settings):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, size=(80, 1))
    y = np.round(5.0 + 3.0 * np.sin(X[:, 0]))
    model = PrivateGPRegressor(y_bounds=(0, 10), epsilon=5.0, random_state=0, **settings).fit(X, y)
    at = np.linspace(-1, 11, 300)[:, None]
    np.testing.assert_array_equal(model.predict(at), model.predict(at, return_std=True)[0])


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_the_same_bits_after_a_file_and_in_any_memory_layout(columns, tmp_path):
    rng = np.random.default_rng(columns)
    X, at = rng.uniform(0, 10, (80, columns)), rng.uniform(-1, 11, (300, columns))
    model = PrivateGPRegressor(y_bounds=(-1, 1), epsilon=5.0, random_state=0)
    model.fit(X, np.sin(X[:, 0]))
    expected = np.array(model.predict(at, return_std=True))
    for layout in (np.asfortranarray(at), np.repeat(at, 2, axis=0)[::2]):
        found = np.array(model.predict(layout, return_std=True))
        np.testing.assert_array_equal(found, expected)
    with pytest.warns(UserWarning, match="contains the inputs"):
        model.save(tmp_path / "a.privgp")
    again = load(tmp_path / "a.privgp")
    np.testing.assert_array_equal(np.array(again.predict(at, return_std=True)), expected)
    np.testing.assert_array_equal(again.predict(at), expected[0])
