"""What another budget buys is what planning for it says, and the least budget for an error is found."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from privgp import PrivateGPRegressor, load_plan
from privgp.plan.accuracy import LEAST_EPSILON, least_epsilon

rng = np.random.default_rng(3)
X = np.round(rng.uniform(0, 30, (60, 2)))
PEOPLE = np.arange(60) // 2
CASES = {
    "default": ({}, None),
    "people": ({"mechanism": "gaussian"}, PEOPLE),
    "fixed": ({"hyperparameters": "fixed", "targets": X[:5]}, None),
    "unbiased": ({"reconstruct": "unbiased"}, None),
    "records": ({"protect": "records", "x_bounds": ((0, 30), (0, 30))}, None),
}


def model(epsilon: float = 1.0, **settings) -> PrivateGPRegressor:
    return PrivateGPRegressor(y_bounds=(0, 10), epsilon=epsilon, delta=1e-3, **settings)


@pytest.mark.parametrize("case", CASES)
def test_another_budget_is_planned_for_as_if_asked_for(case):
    settings, groups = CASES[case]
    plan = model(**settings).plan(X, groups=groups)
    assert plan.can_plan_again
    for epsilon in (0.2, 4.0):
        asked = model(epsilon, **settings).plan(X, groups=groups)
        again = plan.at(epsilon)
        assert again.noise == asked.noise
        assert_array_equal(again.strategy.matrix, asked.strategy.matrix)
        assert again.made_for.parameters.epsilon == epsilon
        assert plan.expected_error(epsilon) == again.expected_error() == asked.expected_error()


def test_the_noise_distribution_may_change_with_the_budget():
    plan = PrivateGPRegressor(y_bounds=(0, 10), epsilon=1.0, delta=0.05).plan(X)
    assert plan.noise.law == "gaussian"
    assert plan.at(20.0).noise.law == "laplace"


def test_planning_again_is_better_than_more_noise_on_the_same_numbers():
    plan = model(5.0).plan(X)
    rescaled = plan.measuring(plan.strategy, 0.1).expected_error()
    assert plan.expected_error(0.1) < 0.99 * rescaled


def test_inducing_inputs_are_planned_again():
    plan = model(inducing=15).plan(X)
    assert plan.can_plan_again
    again = model(0.3, inducing=15).plan(X)
    assert plan.expected_error(0.3) == again.expected_error() > plan.expected_error()


def test_a_saved_plan_plans_again(tmp_path):
    plan = model(hyperparameters="fixed").plan(X)
    with pytest.warns(UserWarning, match="inputs"):
        plan.save(tmp_path / "a.plan")
    assert load_plan(tmp_path / "a.plan").expected_error(0.3) == plan.expected_error(0.3)


def test_what_was_planned_again_is_neither_saved_nor_carried_out(tmp_path):
    again = model(hyperparameters="fixed").plan(X).at(0.5)
    with pytest.raises(ValueError, match="only a plan that a model made"):
        again.save(tmp_path / "a.plan")
    with pytest.raises(ValueError, match="Nothing was spent"):
        model(0.5, hyperparameters="fixed").fit(X, X[:, 0].copy(), plan=again)


@pytest.mark.parametrize("epsilon", [0, -1, np.nan, np.inf, 1e5])
def test_no_budget_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        model(hyperparameters="fixed").plan(X).expected_error(epsilon)


class Falling:
    """Plans whose expected error is known: ``0.5 + 1 / epsilon``, with small steps upwards."""

    def __init__(self, steps: float = 0.0) -> None:
        self.steps, self.tried = steps, []

    def __call__(self, epsilon: float):
        self.tried.append(epsilon)
        self.epsilon = epsilon
        return self

    def expected_error(self) -> float:
        return 0.5 + 1.0 / self.epsilon + self.steps * np.sin(50.0 * np.log(self.epsilon))

    def error_without_privacy(self) -> float:
        return 0.25


@pytest.mark.parametrize("least", [2e-6, 0.013, 0.25, 0.9, 1.0, 3.7, 900.0])
def test_the_least_epsilon_is_found_within_a_hundredth(least):
    plans = Falling()
    found = least_epsilon(plans, 0.5 + 1.0 / least)
    assert least * (1 - 1e-9) <= found <= 1.01 * least
    assert len(plans.tried) < 22


def test_an_error_that_wavers_is_still_met():
    plans = Falling(steps=0.02)
    found = least_epsilon(plans, 1.5)
    assert plans(found).expected_error() <= 1.5
    assert 0.9 < found < 1.1
    short = max(tried for tried in plans.tried if tried < found)
    assert plans(short).expected_error() > 1.5
    assert found <= 1.01 * short


def test_a_budget_below_all_others_is_not_looked_for():
    assert least_epsilon(Falling(), 1e9) == LEAST_EPSILON


def test_an_error_that_no_budget_reaches_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match=r"no epsilon reaches .* 0\.3: .* 0\.5001.* be 0\.25\.$"):
        least_epsilon(Falling(), 0.3)
