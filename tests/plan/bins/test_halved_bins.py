"""Bins of records with Laplace noise: what one record can move, what is measured, and when."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import pdist

from privgp import PrivateGPRegressor, compose, load
from privgp.plan.bins.bins import Bins, HalvedBins
from privgp.privacy.noise import GAUSSIAN, LAPLACE
from privgp.vault.measure import exact as without_noise
from privgp.vault.measure import measure


def private(**settings) -> PrivateGPRegressor:
    given = {"protect": "records", "x_bounds": (0, 1), "y_bounds": (-2, 2), "mechanism": LAPLACE}
    return PrivateGPRegressor(**{**given, **settings})


def some(rows: int = 40, seed: int = 0):
    rng = np.random.default_rng(seed)
    return rng.uniform(size=(rows, 1)), rng.uniform(-2, 2, size=rows)


def plain(parts: int, rows: int, weight: float = 0.1) -> Bins:
    return HalvedBins(np.zeros(1), np.ones(1), (parts,), rows, np.eye(parts), weight)


@pytest.mark.parametrize("inputs", [1, 2, 3])
def test_no_pair_of_records_moves_the_measurement_further_than_promised(inputs):
    """Outputs on a grid of [-1, 1] in every bin (in 40 of them), all pairs, through the code that
    measures; the guarantee is reached."""
    bins = private(x_bounds=[(0, 1)] * inputs, epsilon=4.0).plan(300).strategy
    chosen = np.random.default_rng(inputs).permutation(bins.count)[:40]
    one = replace(bins, rows=1)
    measured = np.array(
        [
            without_noise(one, (place[None, :], np.array([u])), (-1.0, 1.0))
            for place in bins.centres()[chosen]
            for u in np.linspace(-1, 1, 11)
        ]
    )
    furthest = pdist(measured, "cityblock").max()
    assert 0.99 * bins.sensitivity() < furthest <= bins.sensitivity()


def test_other_records_do_not_change_how_far_one_moves_the_measurement():
    bins, rng = plain(7, 30), np.random.default_rng(0)
    X, u = rng.uniform(size=(30, 1)), rng.uniform(-1, 1, size=30)
    whole = without_noise(bins, (X, u), (-1.0, 1.0))
    for _ in range(300):
        Z, v = X.copy(), u.copy()
        Z[7], v[7] = rng.uniform(), rng.choice([-1.0, 0.0, 1.0])
        moved = np.abs(without_noise(bins, (Z, v), (-1.0, 1.0)) - whole).sum()
        assert moved <= bins.sensitivity() + 2 * bins.float_error()


def test_sensitivity_follows_the_stored_matrix_whatever_its_signs():
    rng = np.random.default_rng(1)
    B = rng.normal(size=(4, 6))
    bins = replace(plain(6, 1, 0.3), matrix=B)
    measured = [
        without_noise(bins, (np.array([[(j + 0.5) / 6]]), np.array([u])), (-1.0, 1.0))
        for j in range(6)
        for u in np.linspace(-1, 1, 21)
    ]
    assert pdist(np.array(measured), "cityblock").max() <= bins.sensitivity()
    assert bins.sensitivity() == pytest.approx(2 * np.abs(B).sum(axis=0).max() + 0.3)


def test_the_float_error_is_bounded_as_promised():
    """Against rational arithmetic, outputs of all sizes."""
    rng = np.random.default_rng(2)
    rows = 2000
    u = np.clip(rng.normal(size=rows) * 10.0 ** rng.integers(-12, 1, size=rows), -1, 1)
    X = rng.uniform(size=(rows, 1))
    bins = plain(3, rows)
    index, half, w = (
        bins.of(X),
        Fraction(1, 2),
        Fraction(bins.energy_weight),
    )
    exact = [
        sum((half + sign * half * Fraction(v) for v in u[index == j]), Fraction(0))
        for sign in (1, -1)
        for j in range(3)
    ]
    exact.append(w * sum((Fraction(v) ** 2 for v in u), Fraction(0)))
    pairs = zip(without_noise(bins, (X, u), (-1.0, 1.0)).tolist(), exact, strict=True)
    error = sum((abs(Fraction(number) - true) for number, true in pairs), Fraction(0))
    assert 0 < float(error) <= bins.float_error() < 1e-6


def test_counts_sums_and_energy_come_back():
    X, y = some()
    bins = plain(5, 40, 0.2)
    exact = without_noise(bins, (X, y / 2), (-1.0, 1.0))
    assert np.all(exact >= 0)
    assert exact[:10].sum() == pytest.approx(40), "every record adds 1"
    plan = private(epsilon=1e4).plan(40)
    noise = replace(plan.noise, size=bins.size, scale=1e-9)
    found = measure((X, y), (-2, 2), bins, noise, np.random.default_rng(0))
    index = bins.of(X)
    assert_allclose(found.counts, np.bincount(index, minlength=5), atol=1e-6)
    assert_allclose(found.values, np.bincount(index, y, minlength=5), atol=1e-6)
    assert found.energy == pytest.approx(np.sum(y**2), abs=1e-5)
    without = replace(bins, energy_weight=0.0)
    bare = measure((X, y), (-2, 2), without, replace(noise, size=10), np.random.default_rng(0))
    assert bare.energy is None
    assert len(without_noise(without, (X, y / 2), (-1.0, 1.0))) == without.size == 10


def test_the_noise_is_that_of_the_sensitivity_and_needs_no_delta():
    plans = [private(delta=delta, epsilon=0.5).plan(500) for delta in (0.1, 1e-300)]
    assert plans[0].noise == plans[1].noise
    weight = plans[0].strategy.energy_weight
    assert_allclose(plans[0].noise.scale, (2.0 + weight) / 0.5, rtol=1e-9)
    assert plans[0].noise.scale > (2.0 + weight) / 0.5
    assert_allclose(plans[0].measured_noise_std, 2 * 2 * (2.0 + weight) / 0.5, rtol=1e-9)


def test_fixed_hyperparameters_pay_for_no_energy(tmp_path):
    X, y = some()
    model = private(hyperparameters="fixed", random_state=0).fit(X, y)
    assert model.plan_.strategy.sensitivity() == pytest.approx(2.0, rel=1e-12)
    assert model.measurements_[0].energy is None
    assert "energy" not in model.guarantee_.mechanism
    model.save(tmp_path / "fixed.privgp")
    again = load(tmp_path / "fixed.privgp")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_the_law_with_the_smaller_expected_error_is_taken():
    for delta, law in ((1e-8, LAPLACE), (0.1, GAUSSIAN)):
        plan = private(mechanism="auto", delta=delta).plan(300)
        assert plan.strategy.law == law
        assert plan.rival is not None
        assert plan.rival.law != law
        forced = [private(mechanism=one, delta=delta).plan(300) for one in (law, plan.rival.law)]
        assert forced[0].expected_error() == plan.expected_error()
        assert plan.expected_error() < forced[1].expected_error()
        assert forced[0].rival is None
        assert f"{law.capitalize()} noise" in plan.describe()
        assert f"{forced[1].expected_error():.4g}" in plan.describe()
        assert plan.gap >= 0


def test_the_promise_is_pure():
    X, y = some()
    promise = private(epsilon=1.0, delta=1e-6).fit(X, y).guarantee_
    assert (promise.epsilon, promise.delta) == (1.0, 0.0)
    assert promise.delta_at(1.0) == 0
    assert promise.delta_at(0.5) > 0.1
    assert promise.pure_epsilons == (1.0,)
    assert "Laplace" in promise.mechanism
    assert "Laplace" in promise.sampler
    gaussian = private(epsilon=1.0, delta=1e-6, mechanism="gaussian").fit(X, y).guarantee_
    assert 1.9 < compose([promise, promise], 1e-6).epsilon <= 2.0
    assert 1.0 < compose([promise, gaussian], 1e-6).epsilon < 2.01


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mechanism": "uniform"}, "mechanism"),
        ({"objective": "trace"}, "objective"),
        ({"reconstruct": "unbiased"}, "reconstruct"),
        ({"inducing": [[1.0]]}, "inducing"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": 0.0, "mechanism": "gaussian"}, "delta"),
        ({"delta": -0.1}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"x_bounds": None}, "x_bounds"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_spent(settings, message):
    model = private(**settings)
    with pytest.raises(ValueError, match=message):
        model.fit(*some())
    assert not hasattr(model, "guarantee_")


@pytest.mark.parametrize("bad", [np.nan, np.inf, "x19471", None])
@pytest.mark.parametrize("column", ["X", "y"])
def test_bad_values_are_refused_without_naming_them(bad, column):
    X, y = some()
    table = {"X": X.astype(object), "y": y.astype(object)}
    table[column][17] = bad
    model = private()
    with pytest.raises(ValueError, match=column) as caught:
        model.fit(table["X"], table["y"])
    assert "19471" not in str(caught.value)
    assert not hasattr(model, "guarantee_")


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[0.5]], [1.0]),
        ([[0.5]] * 30, [1.0] * 30),
        ([[1e300], [-1e300], [5e-324]], [1e300, -1e300, 5e-324]),
    ],
)
def test_one_record_equal_records_and_extreme_ones(X, y):
    mean, std = private(random_state=0).fit(X, y).predict([[0.25], [0.75]], return_std=True)
    assert np.all(np.isfinite(mean))
    assert np.all(std > 0)
