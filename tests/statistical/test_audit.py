"""Attacks on the guarantee with the sampler that protects real releases.

Bounds fail with probability at most 1e-6 a test; draws are stated in each.
"""

from __future__ import annotations

import numpy as np
import pytest

from privgp import PrivateGPRegressor
from privgp.audit import trade_off
from privgp.plan.build import Budget, Question, make_part

pytestmark = pytest.mark.statistical(failure=1e-6)
X = np.random.default_rng(0).uniform(size=(30, 1))


def private(**settings) -> PrivateGPRegressor:
    known = {"y_bounds": (0, 1), "epsilon": 8.0, "delta": 1e-2, "mechanism": "gaussian"}
    return PrivateGPRegressor(**{**known, **settings})


def small_plan(epsilon: float):
    """One target, so one measured number: attacks are cheap."""
    return private(epsilon=epsilon, reconstruct="unbiased", targets=[[0.3]]).plan(X)


@pytest.mark.parametrize(("epsilon", "draws"), [(1.0, 50_000), (4.0, 20_000), (8.0, 10_000)])
def test_no_attack_beats_the_promise_and_no_noise_is_wasted(epsilon, draws):
    result = trade_off(small_plan(epsilon), draws=draws)
    assert result.holds, result.describe()
    assert result.is_tight, result.describe()


@pytest.mark.parametrize(("epsilon", "draws"), [(4.0, 20_000), (8.0, 10_000)])
def test_the_audit_finds_noise_that_is_a_fifth_too_small(epsilon, draws):
    assert not trade_off(small_plan(epsilon), draws=draws, noise_scale=0.8).holds


def test_the_audit_finds_noise_that_is_a_third_too_large():
    assert not trade_off(small_plan(8.0), draws=10_000, noise_scale=1.3).is_tight


def test_a_person_with_five_rows_is_protected_as_a_whole():
    people = np.repeat(np.arange(6), 5)
    plan = private().plan(X, groups=people)
    result = trade_off(plan, draws=3_500)
    assert result.holds, result.describe()
    assert result.is_tight, result.describe()
    # The same person attacked in a plan that takes every row for its own person.
    from dataclasses import replace

    naive = private().plan(X)
    (part,) = naive.parts
    alone = replace(part, strategy=replace(part.strategy, people=people))
    exposed = replace(naive, parts=(alone,))
    assert not trade_off(exposed, draws=1_000).holds


def test_one_target_and_a_thousand_rows_get_the_noise_they_need():
    many = np.random.default_rng(1).uniform(size=(1000, 1))
    plan = private(reconstruct="unbiased", targets=[[0.5]]).plan(many)
    largest = np.abs(plan.unbiased.reconstruction @ plan.strategy.matrix).max()
    assert plan.noise_std[0] >= 0.999 * largest * plan.noise.multiplier
    result = trade_off(plan, draws=10_000)
    assert result.holds, result.describe()
    assert result.is_tight, result.describe()


def test_a_design_stopped_after_one_step_is_still_private(monkeypatch):
    from privgp.plan import build, choice
    from privgp.plan.designs import noise_aware as aware

    monkeypatch.setattr(
        choice, "aware_design", lambda h, n, r: aware.aware_design(h, n, r, max_iterations=1)
    )
    few = X[::3]
    plan = make_part(
        few, Question((0.0, 1.0), learned=False, mechanism="gaussian"), Budget(8.0, 1e-2)
    )
    result = trade_off(plan, draws=3_500)
    assert result.holds, result.describe()
    design = build.design
    monkeypatch.setattr(build, "design", lambda *a: design(*a, max_iterations=1))
    question = Question((0.0, 1.0), objective="trace", reconstruct="unbiased")
    result = trade_off(make_part(few, question, Budget(8.0, 1e-2)), draws=3_500)
    assert result.holds, result.describe()


def test_bad_arguments_are_refused():
    with pytest.raises(TypeError, match="Plan"):
        trade_off("plan")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="positive"):
        trade_off(small_plan(1.0), draws=0)
