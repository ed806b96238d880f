"""Sums over groups with Laplace noise: what one person can move, and when a plan takes them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from privgp import PrivateGPRegressor, compose
from privgp.plan.cells import partition
from privgp.plan.choice import indicators
from privgp.plan.designs.noise_aware import Hypothesis, gain, log_variance_left
from privgp.plan.strategy import OutputSums, strategy_of_groups
from privgp.privacy.noise import LAPLACE
from privgp.privacy.sensitivity import total_sensitivity
from privgp.vault.measure import exact as without_noise

X = np.random.default_rng(0).uniform(0, 10, size=(40, 1))
ENDS = (-1.0, -0.5, 0.0, 0.236, 0.5, 0.8, 1.0)


def planned(**settings):
    return PrivateGPRegressor(**{"y_bounds": (0, 1), "epsilon": 1.0, **settings}).plan(X)


def largest_move(strategy: OutputSums) -> float:
    """Every pair of outputs on a coarse grid, for every person, in the sum of absolute values."""
    rows = len(strategy.index)
    people = np.arange(rows) if strategy.people is None else strategy.people
    found = 0.0
    for who in np.unique(people):
        mine = np.flatnonzero(people == who)
        for pair in product(product(ENDS, repeat=2), repeat=len(mine)):
            u, v = np.full(rows, 0.3), np.full(rows, 0.3)
            u[mine], v[mine] = np.array(pair).T
            change = without_noise(strategy, u, (-1.0, 1.0)) - without_noise(
                strategy, v, (-1.0, 1.0)
            )
            found = max(found, float(np.abs(change).sum()))
    return found


@given(st.floats(0.01, 3), st.floats(0, 3))
def test_one_output_never_moves_the_sum_of_absolute_values_further(n, w):
    u, v = np.meshgrid(np.linspace(-1, 1, 201), np.linspace(-1, 1, 201))
    moved = n * np.abs(u - v) + w * np.abs(u * u - v * v)
    claimed = float(total_sensitivity(np.array([n]), np.array([w]))[0])
    assert moved.max() <= claimed
    assert moved.max() >= 0.999 * claimed


def test_the_energy_is_free_up_to_half_the_weight():
    assert_allclose(total_sensitivity(np.ones(2), np.array([0.0, 0.5])), 2.0, rtol=1e-12)
    assert total_sensitivity(np.ones(1), np.array([0.51]))[0] > 2.0001


@pytest.mark.parametrize("energy", [False, True])
@pytest.mark.parametrize("people", [None, [0, 0, 1, 2, 1]])
def test_no_person_moves_a_strategy_further_than_it_says(energy, people):
    rng = np.random.default_rng(3)
    index = np.array([0, 1, 2, 2, 1])
    people = None if people is None else np.array(people)
    groups = np.array([[1.0, 0, 1], [0, 1.0, 0]])
    for B in (groups, rng.standard_normal((3, 3))):
        strategy = strategy_of_groups(B, index, people, energy=energy)
        moved = largest_move(strategy)
        assert moved <= strategy.sensitivity()
        if B is groups:
            assert_allclose(strategy.sensitivity(), 2.0, rtol=1e-12)
            assert_allclose(moved, 2.0, rtol=1e-12)


def test_groups_are_the_best_of_all_numbers_tried():
    rng = np.random.default_rng(5)
    factor = np.linalg.cholesky(
        np.exp(-np.abs(np.subtract.outer(X[:, 0], X[:, 0])) / 2) + 1e-9 * np.eye(len(X))
    )
    mass = rng.integers(1, 4, size=len(X)).astype(float)
    gram = factor.T @ factor
    hypothesis = Hypothesis(factor * mass[:, None], 0.1 * mass, gram, float(np.trace(gram)))
    noises = (400.0, 0.01)

    def left(noise: float) -> Callable[[np.ndarray], float]:
        return lambda groups: log_variance_left(indicators(groups), [hypothesis], noise)

    few, many = (partition([hypothesis], mass, left(noise)) for noise in noises)
    for groups in (few, many):
        assert groups.shape == (len(X),)
        assert set(groups) == set(range(groups.max() + 1))
    assert few.max() < many.max()
    assert left(400.0)(few) < left(400.0)(many)
    assert left(0.01)(many) < left(0.01)(few)


def test_what_is_left_is_the_mean_log_of_what_is_not_explained():
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.arange(12) % 5)
    models = []
    for weight in (0.3, 0.7):
        factor = rng.normal(size=(12, 4))
        total = 1.5 * float(np.trace(factor @ factor.T))
        models.append(Hypothesis(factor, rng.random(12), factor.T @ factor, total, weight))
    B = indicators(groups)
    dense = (groups == np.arange(5)[:, None]).astype(float)
    assert_allclose(B.toarray(), dense)
    told = [gain(dense, [m], 0.4)[0] / m.weight for m in models]
    left = sum(m.weight * np.log(m.total - g) for m, g in zip(models, told, strict=True))
    assert_allclose(log_variance_left(dense, models, 0.4), left, rtol=1e-12)
    assert_allclose(log_variance_left(B, models, 0.4), left, rtol=1e-12)


def test_a_plan_takes_the_noise_that_expects_less_error():
    for epsilon, delta in ((1.0, 1e-6), (1.0, 0.01), (0.1, 0.05)):
        settings = {"epsilon": epsilon, "delta": delta}
        laws = [planned(**settings, mechanism=law) for law in ("gaussian", "laplace")]
        auto = planned(**settings)
        errors = [plan.certificate.error for plan in laws]
        assert_allclose(auto.certificate.error, min(errors), rtol=1e-6)
    assert planned(delta=1e-6).strategy.law == LAPLACE
    assert planned(epsilon=0.05, delta=0.2).strategy.law != LAPLACE


def test_laplace_noise_does_not_depend_on_delta():
    scales = {planned(delta=delta, mechanism="laplace").noise.scale for delta in (0.1, 1e-12)}
    assert len(scales) == 1


def test_the_noise_is_that_of_one_sum():
    plan = planned(mechanism="laplace", epsilon=0.5)
    assert_allclose(plan.noise.scale, 2.0 / 0.5, rtol=1e-9)
    assert plan.noise.scale >= 2.0 / 0.5
    assert plan.gap >= 0
    assert "Laplace" in planned(delta=1e-8).describe()


def test_the_promise_is_pure():
    y = np.sin(X[:, 0]) / 2 + 0.5
    settings = {"y_bounds": (0, 1), "epsilon": 1.0, "delta": 1e-6, "mechanism": "laplace"}
    model = PrivateGPRegressor(**settings).fit(X, y)
    promise = model.guarantee_
    assert (promise.epsilon, promise.delta) == (1.0, 0.0)
    assert promise.delta_at(1.0) == 0
    assert promise.delta_at(0.5) > 0.1
    assert promise.epsilon_at(1e-6) <= 1.0
    assert "Laplace" in promise.mechanism
    assert "Laplace" in promise.sampler
    twice = compose([promise, promise], 1e-6)
    assert 1.9 < twice.epsilon <= 2.0
    gaussian = PrivateGPRegressor(**{**settings, "mechanism": "gaussian"}).fit(X, y).guarantee_
    assert 1.0 < compose([promise, gaussian], 1e-6).epsilon < 2.01


def test_a_release_with_laplace_noise_survives_its_file(tmp_path):
    from privgp import load

    y = np.sin(X[:, 0]) / 2 + 0.5
    model = PrivateGPRegressor(y_bounds=(0, 1), delta=1e-8).fit(X, y)
    assert model.plan_.strategy.law == LAPLACE
    with pytest.warns(UserWarning, match="inputs"):
        model.save(tmp_path / "r.privgp")
    again = load(tmp_path / "r.privgp")
    assert again.guarantee_ == model.guarantee_
    assert_allclose(again.predict(X), model.predict(X))


def test_laplace_noise_is_refused_where_it_cannot_serve():
    with pytest.raises(ValueError, match="mechanism"):
        planned(mechanism="uniform")
    with pytest.raises(ValueError, match="reconstruct"):
        planned(mechanism="laplace", reconstruct="unbiased")
    with pytest.raises(ValueError, match="objective"):
        planned(mechanism="laplace", objective="trace")


def test_people_with_several_rows_may_have_laplace_noise():
    people = np.arange(40) // 4
    model = PrivateGPRegressor(y_bounds=(0, 1), epsilon=1.0, mechanism="laplace")
    plan = model.plan(X, groups=people)
    assert_allclose(plan.strategy.sensitivity(), 2.0, rtol=1e-12)
    assert_allclose(plan.strategy.row_weights, 0.25)
