"""Noise variances by row, public; and values at targets that are measured again."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from privgp import PrivateGPRegressor, load

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 10, (80, 1)), axis=0)
X[1] = X[0]  # one input, two noise variances
V = np.where(np.arange(80) % 3 == 0, 0.01, 0.8)
Y = np.clip(np.sin(X[:, 0]) + np.sqrt(V) * rng.standard_normal(80), -3, 3)
KERNEL = ConstantKernel(0.5) * RBF(1.2)
T = np.array([[1.0], [4.0], [8.0]])
BUDGET = {"y_bounds": (-3, 3), "epsilon": 2.0, "delta": 1e-3, "random_state": 0}
POSTERIOR = PrivateGPRegressor(KERNEL, V, **BUDGET, hyperparameters="fixed", mechanism="gaussian")
UNBIASED = PrivateGPRegressor(KERNEL, V, **BUDGET, reconstruct="unbiased", targets=T)
REFINED = clone(UNBIASED).set_params(noise_variance=0.2)


def test_cloaking_without_noise_is_the_prediction_with_these_variances():
    part = UNBIASED.plan(X).parts[0]
    sums = part.strategy.per_input(part.strategy.row_weights * Y)
    found = part.unbiased.reconstruction @ (part.strategy.matrix @ sums)
    exact = GaussianProcessRegressor(KERNEL, alpha=V, optimizer=None).fit(X, Y)
    mean, std = exact.predict(T, return_std=True)
    assert_allclose(found, mean, atol=1e-6)
    assert_allclose(np.sqrt(part.unbiased.variance), std, rtol=1e-5)


def test_a_posterior_with_hardly_any_noise_is_that_with_these_variances():
    model = clone(POSTERIOR).set_params(epsilon=9000.0).fit(X, Y)
    exact = GaussianProcessRegressor(KERNEL, alpha=V, optimizer=None).fit(X, Y)
    mean, std = exact.predict(T, return_std=True)
    found = model.predict(T, return_std=True)
    assert_allclose(found[0], mean, atol=0.15)
    assert_allclose(found[1], std, rtol=0.35)
    one = clone(model).set_params(noise_variance=float(V.mean())).fit(X, Y)
    assert np.all(found[1] < one.predict(T, return_std=True)[1])


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_noise_that_is_the_same_by_row_is_one_noise(mechanism):
    model = clone(POSTERIOR).set_params(mechanism=mechanism, noise_variance=0.3)
    by_row = clone(model).set_params(noise_variance=np.full(80, 0.3))
    assert_allclose(by_row.fit(X, Y).predict(T), model.fit(X, Y).predict(T), rtol=1e-6)


@pytest.mark.parametrize("column", [V, V.tolist(), pl.Series(V)], ids=["array", "list", "column"])
def test_arrays_lists_and_columns_are_read(column, tmp_path):
    model = clone(POSTERIOR).set_params(noise_variance=column).fit(X, Y)
    assert model.noise_variance_ == pytest.approx(V.mean())
    model.save(tmp_path / "a.privgp")
    again = load(tmp_path / "a.privgp")
    assert np.array_equal(again.predict(T), model.predict(T))
    assert_allclose(again.noise_variance, V)
    assert np.array_equal(model.fit(X, Y, plan=model.plan(X)).predict(T), again.predict(T))


def test_hyperparameters_are_learned_and_the_noise_is_not():
    model = clone(POSTERIOR).set_params(hyperparameters="learned").fit(X, Y)
    assert model.noise_variance_ == pytest.approx(V.mean())
    assert model.plan_.residuals is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"noise_variance": V[:5]}, "one for each row"),
        ({"noise_variance": -V}, "positive"),
        ({"noise_variance": np.full(80, np.nan)}, "positive"),
        ({"noise_variance": V[:, None]}, "one per row"),
        ({"noise_variance": "V"}, "number"),
        ({"noise_variance": {"a": 1}}, "number"),
        ({"protect": "records", "x_bounds": (0, 10)}, "noise_variance does not go"),
        ({"likelihood": "poisson", "y_bounds": (0, 3)}, "noise_variance does not go"),
        ({"residuals": "always"}, "residuals"),
    ],
)
def test_what_is_no_noise_by_row_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        clone(POSTERIOR).set_params(**given).fit(X, Y)


def test_noise_by_row_is_measured_once():
    model = clone(POSTERIOR).fit(X, Y)
    with pytest.raises(ValueError, match="measured once"):
        model.refine(X, Y, 1.0, 1e-3)
    assert model.guarantee_.epsilon == 2.0


def test_values_at_targets_are_refined():
    model = clone(REFINED).fit(X, Y)
    before = np.sqrt(model.release_.privacy_variance(T))
    model.refine(X, Y, 2.0, 1e-3)
    assert_allclose(np.sqrt(model.release_.privacy_variance(T)), before / np.sqrt(2.0), rtol=1e-6)
    guarantee = model.guarantee_
    assert 2.0 < guarantee.epsilon < 4.0
    assert guarantee.delta == pytest.approx(2e-3)
    assert len(guarantee.noise_multipliers) == 2
    assert np.all(np.isfinite(model.predict([[2.5]], return_std=True)))


@pytest.mark.statistical(failure=1e-6)
def test_refined_values_are_unbiased():
    plan = REFINED.plan(X).parts[0]
    sums = plan.strategy.matrix @ plan.strategy.per_input(plan.strategy.row_weights * Y)
    exact = plan.unbiased.reconstruction @ sums
    drawn = []
    for seed in range(60):
        model = clone(REFINED).set_params(random_state=seed).fit(X, Y)
        drawn.append(model.refine(X, Y, 6.0, 1e-3).predict(T))
    std = np.sqrt(model.release_.privacy_variance(T))
    assert np.all(np.abs(np.mean(drawn, axis=0) - exact) < 5.5 * std / np.sqrt(60))


def test_a_loaded_release_at_targets_is_refined(tmp_path):
    clone(REFINED).fit(X, Y).refine(X, Y, 1.0, 1e-3).save(tmp_path / "a.privgp")
    again = load(tmp_path / "a.privgp")
    before = again.release_.privacy_variance(T)
    again.set_params(random_state=1).refine(X, Y, 2.0, 1e-3)
    assert np.all(again.release_.privacy_variance(T) < before)
    assert len(again.guarantee_.noise_multipliers) == 3


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m: m.update(X + 0.1, Y), "can be refined"),
        (lambda m: m.refine(X[:40], Y[:40], 1.0, 1e-3), "rows of one earlier"),
        (lambda m: m.set_params(kernel=RBF(3.0)).refine(X, Y, 1.0, 1e-3), "same sums"),
        (lambda m: m.set_params(targets=T[:2]).refine(X, Y, 1.0, 1e-3), "same sums"),
        (lambda m: m.refine(X, Y, 1.0), "delta"),
    ],
)
def test_other_measurements_of_targets_are_refused(call, words):
    model = clone(REFINED).fit(X, Y)
    with pytest.raises(ValueError, match=words):
        call(model)
    assert model.guarantee_.epsilon == 2.0


def test_noise_variances_are_no_private_column_and_in_the_order_of_the_rows():
    """They are public, and a file holds them."""
    with pytest.raises(ValueError, match="y shares memory with a column of noise_variance"):
        clone(POSTERIOR).set_params(noise_variance=Y).fit(X, Y)
    table = pd.DataFrame({"x": X[:, 0], "y": Y, "v": V})
    with pytest.raises(ValueError, match="like a column of noise_variance"):
        clone(POSTERIOR).set_params(noise_variance=table.y).fit(table[["x"]], table.y)
    with pytest.raises(ValueError, match="different pandas indexes"):
        clone(POSTERIOR).set_params(noise_variance=table.v[::-1]).fit(table[["x"]], table.y)
