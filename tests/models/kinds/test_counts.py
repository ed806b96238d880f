"""Counts: what one person changes decides the noise, and rates per unit of exposure are released."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from privgp import PrivateGPRegressor, audit, compose, load, load_plan
from privgp.gp.inference.posterior import Mixture
from privgp.release.certificate import certificate, page
from privgp.release.rates import MOST, CountMixture, RateMixture
from tests.plans import with_part

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 10, size=(80, 1))
EXPOSURE = RNG.uniform(500, 4000, size=80)
RATE = 0.01 * np.exp(0.5 * np.sin(X[:, 0]))
Y = RNG.poisson(EXPOSURE * RATE).astype(float)
AREAS = np.arange(80) // 4
GIVEN: dict[str, Any] = {"y_bounds": (0, 200), "delta": 1e-5, "random_state": 1}
KERNEL = ConstantKernel(0.25) * RBF(2.0) + ConstantKernel(2.0, "fixed")


def counts(**settings: Any) -> PrivateGPRegressor:
    return PrivateGPRegressor(**{**GIVEN, "likelihood": "poisson", "max_change": 1.0, **settings})


def quick(**settings: Any) -> PrivateGPRegressor:
    return counts(kernel=KERNEL, hyperparameters="fixed", **settings)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize("groups", [None, AREAS], ids=["rows", "groups"])
def test_noise_shrinks_with_what_a_person_changes(mechanism: str, groups: Any) -> None:
    given = {"kernel": RBF(2.0), "hyperparameters": "fixed", "mechanism": mechanism}
    whole = PrivateGPRegressor(**GIVEN, **given).plan(X, groups=groups)
    for most in (1.0, 20.0):
        small = PrivateGPRegressor(**GIVEN, **given, max_change=most).plan(X, groups=groups)
        assert_allclose(small.noise.std / whole.noise.std, most / 200, rtol=0.01)
        assert small.expected_error() < whole.expected_error()


def test_learning_costs_two_per_cent_of_the_noise() -> None:
    for mechanism in ("gaussian", "laplace"):
        given = {**GIVEN, "mechanism": mechanism, "max_change": 1.0, "kernel": RBF(2.0)}
        learned = PrivateGPRegressor(**given).plan(X)
        fixed = PrivateGPRegressor(**given, hyperparameters="fixed").plan(X)
        assert learned.strategy.energy_weight > 0
        assert 1.0 < learned.noise.std / fixed.noise.std < 1.03


@pytest.mark.parametrize("most", [200.0, 1e9])
def test_a_change_of_the_whole_width_is_what_it_was(most: float) -> None:
    settings = {**GIVEN, "kernel": RBF(2.0), "hyperparameters": "fixed"}
    ours = PrivateGPRegressor(**settings, max_change=most).fit(X, Y)
    before = PrivateGPRegressor(**settings).fit(X, Y)
    assert ours.guarantee_ == before.guarantee_
    assert_array_equal(ours.measurements_[0].values, before.measurements_[0].values)


def test_the_promise_names_who_is_protected() -> None:
    alone = quick(max_change=2.0).fit(X, Y).guarantee_
    assert alone.unit == "one person's contribution to one output value"
    assert "one row, by at most 2" in alone.neighbours
    assert "at most 1.23456789" in quick(max_change=1.23456789).fit(X, Y).guarantee_.neighbours
    together = quick().fit(X, Y, groups=AREAS).guarantee_
    assert "one group's rows, in each by at most 1" in together.neighbours
    assert any("exposures are public" in each for each in together.assumptions)
    with pytest.raises(ValueError, match="protect different things"):
        compose([alone, together], 1e-4)


def test_the_certificate_says_what_is_not_protected() -> None:
    told = certificate(quick().fit(X, Y, exposure=EXPOSURE))
    assert "the exposure of every row" in told["public"]
    assert any(
        "at most 1 to one output value is protected. The value itself is not" in each
        for each in told["not_protected"]
    )
    assert told["data"]["released"].startswith("a rate per unit of exposure")
    of_areas = quick().fit(X, Y, groups=AREAS)
    told = certificate(of_areas)
    assert "which rows belong to one group" in told["public"]
    assert "<th>Groups</th>" in page(told)
    assert "groups at" in of_areas.plan_.describe()


@pytest.mark.parametrize("settings", [{"inducing": 10}, {"reconstruct": "unbiased"}, {}])
def test_numbers_that_are_not_counts_take_a_change_too(settings: dict[str, Any]) -> None:
    given = {**GIVEN, "kernel": 100.0 * RBF(2.0), "hyperparameters": "fixed", "targets": X[:5]}
    model = PrivateGPRegressor(**given, **settings, max_change=1.0).fit(X, Y)
    whole = PrivateGPRegressor(**given, **settings).fit(X, Y)
    assert model.measurements_[0].noise_std < 0.02 * whole.measurements_[0].noise_std
    assert np.all(np.isfinite(model.predict(X[:5])))


@pytest.fixture(scope="module")
def learned() -> PrivateGPRegressor:
    """At this budget noise is small beside the scatter of counts."""
    return counts(epsilon=5.0).fit(X, Y, groups=AREAS, exposure=EXPOSURE)


def test_rates_are_learned_from_noisy_sums_of_counts(learned: PrivateGPRegressor) -> None:
    """Errors are of 25 standard errors."""
    model = learned
    mean, std = model.predict(X, return_std=True)
    assert np.sqrt(np.mean(np.square(mean / RATE - 1.0))) < 0.15
    low, high = model.interval(X)
    assert np.all((low > 0) & (low < mean) & (mean < high))
    assert np.mean((low < RATE) & (high > RATE)) > 0.7
    again, covariance = model.predict(X[:4], return_cov=True)
    assert_allclose(again, mean[:4])
    assert_allclose(np.sqrt(np.diag(covariance)), std[:4], rtol=1e-6)


def test_the_unit_of_exposure_is_only_a_unit() -> None:
    per_one = quick().fit(X, Y, exposure=EXPOSURE).predict(X)
    per_thousand = quick().fit(X, Y, exposure=EXPOSURE / 1000).predict(X)
    assert_allclose(per_thousand, 1000 * per_one, rtol=1e-6)


def test_a_row_of_twice_the_exposure_tells_as_much_as_two_rows() -> None:
    """Sums of counts at one input: only their sum and the sum of exposures matter."""
    twice = np.repeat(X[:20], 2, axis=0)
    halves = np.repeat(EXPOSURE[:20], 2)
    settings = {"epsilon": 1e4, "mechanism": "gaussian", "y_bounds": (0, 400)}
    y = np.repeat(Y[:20], 2)
    apart = quick(**settings).fit(twice, y, exposure=halves).predict(X)
    once = quick(**settings).fit(X[:20], 2 * Y[:20], exposure=2 * EXPOSURE[:20]).predict(X)
    assert_allclose(apart, once, rtol=0.03)


def test_an_observation_is_a_count_at_one_unit_of_exposure() -> None:
    days = np.ones(80)
    model = quick(epsilon=10.0).fit(X, RNG.poisson(30 * RATE / 0.01), exposure=days)
    mean, std = model.predict(X, return_std=True)
    _, wide = model.predict(X, return_std=True, observation=True)
    assert_allclose(wide**2, std**2 + mean, rtol=1e-9)
    low, high = model.interval(X, observation=True)
    assert np.all(low >= 0)
    new = np.random.default_rng(5).poisson(30 * RATE / 0.01, size=(50, 80))
    assert 0.85 < np.mean((low <= new) & (new <= high)) < 0.97


def test_quantiles_of_counts_are_those_of_the_mixture() -> None:
    """One component has twice the variance of counts with its mean, one as much, one hardly any counts."""
    means, variances = np.array([4.0, 9.0, 0.05]), np.array([8.0, 9.0, 0.05])
    weights = np.array([0.3, 0.5, 0.2])
    mixture = CountMixture(means[:, None], variances[:, None], weights)
    rng = np.random.default_rng(0)
    which = rng.choice(3, size=400_000, p=weights)
    scattered = rng.gamma(4.0, 1.0, size=len(which))  # counts of this rate: mean 4, variance 8
    drawn = rng.poisson(np.where(which == 0, scattered, means[which]))
    levels = [0.1, 0.35, 0.5, 0.9, 0.99]
    found = mixture.quantiles(levels)[:, 0]
    assert_array_equal(found, np.quantile(drawn, levels, method="inverted_cdf"))
    assert_allclose(mixture.below(found)[0], np.mean(drawn <= found[0]), atol=0.004)


def test_an_interval_of_rare_counts_holds_zero() -> None:
    rare = CountMixture(np.array([[0.2, 1e-6, 300.0]]), np.array([[0.25, 1e-6, 400.0]]), np.ones(1))
    low, high = rare.quantiles([0.05, 0.95])
    assert_array_equal(low[:2], 0.0)
    assert_array_equal(high[:2], [1.0, 0.0])
    assert 260 < low[2] < 270 < 330 < high[2] < 335


@pytest.mark.parametrize("epsilon", [0.01, 10.0])
def test_extreme_counts_leave_finite_rates(epsilon: float) -> None:
    """A full and an empty row side by side: lines are followed no further than they hold."""
    few, exposure = X[:2], np.array([0.12, 1.7])
    extremes = ([1000.0, 0.0], [0.0, 0.0], [1000.0, 1000.0])
    for y in extremes if epsilon > 1 else extremes[:1]:
        settings = {"y_bounds": (0, 1000), "epsilon": epsilon, "mechanism": "gaussian"}
        model = counts(**settings).fit(few, y, exposure=exposure)
        mean, std = model.predict(few, return_std=True)
        assert np.all(np.isfinite(mean) & np.isfinite(std) & (mean > 0))
        if epsilon > 1:
            assert_allclose(mean * exposure, y, rtol=0.2, atol=10.0)


def test_means_are_those_of_rates_that_are_cut_off_where_no_rate_is() -> None:
    """A million draws; the logarithm of the cut is 6.9."""
    m, v = np.array([[0.3, 6.0, -5.0]]), np.array([[0.04, 1.0, 90.0]])
    mixture = RateMixture(Mixture(m, v, np.ones(1), np.ones(1)), 2.0)
    z = np.random.default_rng(0).standard_normal((1_000_000, 1))
    drawn = 2.0 * np.minimum(np.exp(np.minimum(m + np.sqrt(v) * z, 50.0)), MOST)
    mean, variance = mixture.moments()
    assert_allclose(mean[0], drawn.mean(axis=0), rtol=0.02)
    assert_allclose(variance[0], drawn.var(axis=0), rtol=0.02)


def test_a_file_predicts_to_the_last_bit(tmp_path: Any, learned: PrivateGPRegressor) -> None:
    model = learned
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.save(tmp_path / "rates.privgp")
    again = load(tmp_path / "rates.privgp")
    for ours, theirs in zip(
        model.predict(X, return_std=True), again.predict(X, return_std=True), strict=True
    ):
        assert_array_equal(ours, theirs)
    for ours, theirs in zip(
        model.interval(X, observation=True), again.interval(X, observation=True), strict=True
    ):
        assert_array_equal(ours, theirs)
    assert again.likelihood == "poisson"
    assert again.max_change == 1.0
    assert certificate(again)["unit"] == model.guarantee_.unit


def test_a_plan_is_for_its_change_and_its_exposure(tmp_path: Any) -> None:
    model = quick()
    plan = model.plan(X, exposure=EXPOSURE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan.save(tmp_path / "rates.plan")
    loaded = load_plan(tmp_path / "rates.plan")
    assert loaded.noise == plan.noise
    assert loaded.unit == plan.unit
    ours = model.fit(X, Y, plan=loaded, exposure=EXPOSURE).predict(X)
    assert_array_equal(ours, quick().fit(X, Y, exposure=EXPOSURE).predict(X))
    for others in (quick(max_change=2.0), quick(max_change=None)):
        with pytest.raises(ValueError, match="made for other"):
            others.fit(X, Y, plan=loaded, exposure=EXPOSURE)
    with pytest.raises(ValueError, match="made for other"):
        quick().fit(X, Y, plan=loaded, exposure=2 * EXPOSURE)
    with pytest.raises(ValueError, match="made for other"):
        quick().fit(X, Y, plan=loaded)


@pytest.mark.parametrize("learned", [True, False])
def test_a_plan_that_says_its_people_change_less_is_refused(learned: bool) -> None:
    """Anyone who forges a plan may make its strategy say that a change is smaller than declared."""
    model = counts(kernel=KERNEL, hyperparameters="learned" if learned else "fixed")
    plan = model.plan(X, exposure=EXPOSURE)
    small = replace(plan.strategy, change=0.5 * plan.strategy.change)
    forged = with_part(plan, strategy=small, noise=plan.measuring(small).noise)
    with pytest.raises(ValueError, match="made for other"):
        model.fit(X, Y, plan=forged, exposure=EXPOSURE)
    with pytest.raises(ValueError, match="do not belong together"):
        forged.check_parts()


def test_a_plan_is_made_again_for_its_exposure() -> None:
    plan = quick().plan(X, exposure=EXPOSURE)
    more = plan.at(4.0)
    asked = quick(epsilon=4.0).plan(X, exposure=EXPOSURE)
    assert more.noise == asked.noise
    assert more.expected_error() == pytest.approx(asked.expected_error(), rel=1e-9)
    assert plan.error_without_privacy() < more.expected_error() < plan.expected_error()
    assert "(relative to the rate)" in plan.describe()
    assert "one person changes one output by at most 1" in plan.describe()


def test_longer_exposure_is_expected_to_tell_more() -> None:
    short = quick().plan(X, exposure=np.where(X[:, 0] < 5, 1.0, 0.1))
    error = short.expected_std(np.array([[2.0], [8.0]]))
    assert error[0] < 0.7 * error[1]


def test_the_audit_finds_noise_a_fifth_too_small() -> None:
    plan = quick(epsilon=8.0, delta=0.01, mechanism="gaussian", max_change=3.0).plan(X[:3])
    assert audit.trade_off(plan, draws=3500, random_state=0).holds
    assert not audit.trade_off(plan, draws=3500, noise_scale=0.8, random_state=0).holds


BAD: tuple[tuple[dict[str, Any], Any, str], ...] = (
    ({"max_change": 0}, None, "max_change must be"),
    ({"max_change": -1.0}, None, "max_change must be"),
    ({"max_change": float("nan")}, None, "max_change must be"),
    ({"max_change": float("inf")}, None, "max_change must be"),
    ({"max_change": "1"}, None, "max_change must be"),
    ({"max_change": True}, None, "max_change must be"),
    ({"protect": "records", "x_bounds": (0, 10)}, None, "does not go with protect='records'"),
    (
        {"protect": "records", "x_bounds": (0, 10), "likelihood": "gaussian"},
        None,
        "max_change does not go with protect='records'",
    ),
    (
        {"objective": "trace"},
        None,
        "objective does not go with likelihood='poisson'",
    ),
    ({"likelihood": "binomial"}, None, "likelihood must be one of"),
    ({"y_bounds": (-1, 5)}, None, "y_bounds must not be negative"),
    ({"likelihood": "gaussian"}, EXPOSURE, "exposure does not go with likelihood='gaussian'"),
    ({}, EXPOSURE[:-1], "one number for each of the 80 rows"),
    ({}, np.append(EXPOSURE[:-1], 0.0), "exposure must be positive and finite"),
    ({}, np.append(EXPOSURE[:-1], np.nan), "exposure must be positive and finite"),
    ({}, np.append(EXPOSURE[:-1], np.inf), "exposure must be positive and finite"),
    ({}, ["many"] * 80, "exposure must be numbers"),
)


@pytest.mark.parametrize(("settings", "exposure", "sentence"), BAD)
def test_what_counts_cannot_have_is_refused(
    settings: dict[str, Any], exposure: Any, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("privgp.vault.measure.add_noise", None)
    for call in ("plan", "fit"):
        given = (X,) if call == "plan" else (X, Y)
        with pytest.raises(ValueError, match=sentence):
            getattr(counts(**settings), call)(*given, exposure=exposure)


def test_rows_of_counts_are_not_left_out_and_their_exposures_not_ignored():
    for call in (
        counts(most_rows=2).plan,
        lambda x, **given: counts(most_rows=2).fit(x, Y, **given),
    ):
        with pytest.raises(ValueError, match="most_rows does not go with likelihood='poisson'"):
            call(X, groups=AREAS, exposure=EXPOSURE)
