"""The measurement: what it computes, what it refuses, and that nothing is drawn before that."""

from __future__ import annotations

import gc
import pickle
import traceback
import weakref
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from privgp import PrivateGPRegressor
from privgp.plan.strategy import strategy_for_rows
from privgp.privacy.noise import gaussian_noise, noise_from_multiplier
from privgp.vault import measure as module
from privgp.vault import measure as sample
from privgp.vault.measure import exact as without_noise
from privgp.vault.measure import measure

BOUNDS = (10.0, 30.0)


def example(energy=True, people=None, rows=9, seed=0):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((3, 4))
    B /= np.linalg.norm(B, axis=0)
    index = np.arange(rows) % 4
    strategy = strategy_for_rows(B, index, people, energy=energy, equal_weights=False)
    return strategy, rng.uniform(*BOUNDS, size=rows)


def noise_for(strategy, epsilon=1.0, delta=1e-5):
    return gaussian_noise(
        epsilon, delta, strategy.size, strategy.sensitivity(), strategy.float_error()
    )


def faint(strategy):
    """Noise so weak that the measurement can be read from: never for release."""
    return noise_from_multiplier(
        1e-6, strategy.size, strategy.sensitivity(), strategy.float_error()
    )


def test_measured_are_weighted_sums_per_input_and_the_energy_in_units_of_y():
    strategy, y = example()
    result = measure(y, BOUNDS, strategy, faint(strategy))
    centred = y - 20.0
    rows = strategy.matrix[:, strategy.index]
    assert_allclose(result.values, rows @ centred, atol=1e-3)
    assert result.energy == pytest.approx((centred**2).sum(), abs=1e-2)


def test_people_with_several_rows_are_weighted_down():
    people = np.array([0, 0, 0, 1, 1, 2, 3, 4, 5])
    strategy, y = example(people=people)
    result = measure(y, BOUNDS, strategy, faint(strategy))
    weighted = strategy.row_weights * (y - 20.0)
    assert_allclose(result.values, strategy.matrix[:, strategy.index] @ weighted, atol=1e-3)
    assert result.energy == pytest.approx(
        ((y - 20.0) ** 2 / np.bincount(people)[people]).sum(), abs=1e-2
    )


def test_noise_is_reported_in_units_of_y():
    strategy, y = example()
    noise = noise_for(strategy)
    result = measure(y, BOUNDS, strategy, noise)
    assert result.noise_std == pytest.approx(10.0 * noise.std)
    assert result.energy_noise_std == pytest.approx(100.0 * noise.std / strategy.energy_weight)


def test_without_energy_there_is_none():
    strategy, y = example(energy=False)
    result = measure(y, BOUNDS, strategy, noise_for(strategy))
    assert result.energy is None
    assert result.energy_noise_std == 0.0
    assert len(result.values) == strategy.size == 3


def test_values_beyond_the_bounds_count_as_the_bounds():
    strategy, y = example()
    y[:4] = [-1e300, 9.0, 31.0, 1e300]
    clipped = np.clip(y, *BOUNDS)
    results = [
        measure(v, BOUNDS, strategy, noise_for(strategy), np.random.default_rng(0))
        for v in (y, clipped)
    ]
    assert_array_equal(results[0].values, results[1].values)
    assert results[0].energy == results[1].energy


@pytest.mark.parametrize(
    "y",
    [
        np.full(9, np.nan), np.full(9, np.inf), np.full(8, 739271.0), np.full((3, 3), 739271.0),
        np.full(9, "739271x"), np.full(9, 739271j), None, 739271.0,
    ],
    ids=["nan", "inf", "short", "square", "text", "complex", "none", "scalar"],
)  # fmt: skip
def test_bad_outputs_are_refused_before_any_noise_is_drawn(monkeypatch, y):
    def drawn(*_):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(module, "add_noise", drawn)
    strategy, _ = example()
    for rng in (None, np.random.default_rng(0)):
        with pytest.raises(ValueError, match="y ") as caught:
            measure(y, BOUNDS, strategy, noise_for(strategy), rng)
        assert "739271" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.statistical(failure=1e-6)
def test_only_a_generator_replaces_the_protecting_noise():
    """Noise on a lattice of some 2**40 values: two draws are equal with probability below 1e-9."""
    strategy, y = example()
    noise = noise_for(strategy)
    fresh = [measure(y, BOUNDS, strategy, noise).values for _ in range(2)]
    assert not np.any(fresh[0] == fresh[1])
    np.random.seed(0)
    first = measure(y, BOUNDS, strategy, noise).values
    np.random.seed(0)
    assert not np.any(measure(y, BOUNDS, strategy, noise).values == first)
    seeded = [
        measure(y, BOUNDS, strategy, noise, np.random.default_rng(3)).values for _ in range(2)
    ]
    assert_array_equal(*seeded)


def test_a_failure_after_the_draw_says_that_the_budget_is_spent(monkeypatch):
    strategy, y = example()

    def broken(*_, **__):
        return lambda values: [float("inf")] * len(values)

    sample._sampler.cache_clear()
    law = noise_for(strategy).law
    monkeypatch.setitem(sample.PROTECTING, law, (broken, sample.PROTECTING[law][1]))
    monkeypatch.setattr(sample, "_sampler", sample._sampler.__wrapped__)
    with pytest.raises(RuntimeError, match="count the budget as spent"):
        measure(y, BOUNDS, strategy, noise_for(strategy))


def test_a_strategy_that_overflows_releases_nothing():
    strategy, y = example()
    noise = noise_for(strategy)
    strategy.matrix[:] = np.inf
    with (
        np.errstate(invalid="ignore"),
        pytest.raises(ValueError, match="nothing was released"),
    ):
        measure(y, BOUNDS, strategy, noise)


@settings(max_examples=40)
@given(seed=st.integers(0, 2**31), grouped=st.booleans(), energy=st.booleans())
def test_float_arithmetic_errs_by_no_more_than_the_sensitivity_allows(seed, grouped, energy):
    rng = np.random.default_rng(seed)
    rows, inputs = 12, 5
    B = rng.standard_normal((3, inputs))
    people = rng.integers(0, 6, size=rows) if grouped else None
    if people is not None:
        people = np.unique(people, return_inverse=True)[1]
    strategy = strategy_for_rows(
        B, rng.integers(0, inputs, size=rows), people, energy=energy, equal_weights=False
    )
    u = rng.uniform(-1, 1, size=rows) * rng.choice([1.0, 1e-9], size=rows)
    found = without_noise(strategy, u, (-1.0, 1.0))

    def exact(values):
        return [Fraction(float(v)) for v in values]

    weighted = [w * v for w, v in zip(exact(strategy.row_weights), exact(u), strict=True)]
    true = [
        sum(Fraction(float(row[j])) * v for j, v in zip(strategy.index, weighted, strict=True))
        for row in strategy.matrix
    ]
    if energy:
        shares = exact(strategy.energy_shares)
        squares = sum(e * v * v for e, v in zip(shares, exact(u), strict=True))
        true.append(Fraction(strategy.energy_weight) * squares)
    square = sum((Fraction(float(f)) - t) ** 2 for f, t in zip(found, true, strict=True))
    assert square <= Fraction(strategy.float_error()) ** 2


def test_neither_result_nor_model_keeps_the_outputs():
    class Watched(np.ndarray):
        pass

    strategy, y = example()
    watched = y.view(Watched)
    reference = weakref.ref(watched)
    result = measure(watched, BOUNDS, strategy, noise_for(strategy))
    del watched
    gc.collect()
    assert reference() is None

    secret = np.nextafter(20.0, 30.0)
    model = PrivateGPRegressor(y_bounds=BOUNDS, hyperparameters="fixed")
    model.fit(np.linspace(0, 1, 9)[:, None], np.where(np.arange(9) == 4, secret, y))
    for thing in (result, model):
        kept = pickle.dumps(thing)
        assert all(value.tobytes() not in kept for value in [*y, np.float64(secret)])


@pytest.mark.parametrize("y", [np.nan, 739271.0])
def test_a_refused_fit_spends_nothing_and_shows_nothing(y):
    model = PrivateGPRegressor(y_bounds=(0, 1), hyperparameters="fixed")
    with pytest.raises(ValueError, match="y ") as caught:
        model.fit(np.zeros((3, 1)), [y, y] if y == y else [y] * 3)
    assert "739271" not in "".join(traceback.format_exception(caught.value))
    assert not hasattr(model, "guarantee_")
    assert not hasattr(model, "measurements_")
