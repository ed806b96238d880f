"""When two stages are planned, what is spent on each, and what they are expected to leave."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from privgp import PrivateGPRegressor
from privgp.plan.build import LEAST
from privgp.plan.designs.stages import Residuals, share_out
from privgp.privacy.guarantee import compose
from privgp.privacy.noise import GAUSSIAN, LAPLACE, LAWS

MANY = np.arange(1200)[:, None] % 40.0


def planned(X=MANY, groups=None, **settings):
    settings = {"y_bounds": (0, 1), "epsilon": 1.0, "delta": 1e-5, "mechanism": LAPLACE, **settings}
    return PrivateGPRegressor(**settings).plan(X, groups=groups)


def test_two_stages_are_planned_from_a_thousand_people_times_epsilon_on():
    found = planned().residuals
    assert found == Residuals(0.25, 2.5, found.groups)
    assert planned(epsilon=0.8).residuals is None
    assert planned(MANY[:999]).residuals is None
    assert planned(MANY[:500], epsilon=LEAST / 500).residuals is not None


def test_people_count_where_they_are_protected():
    assert planned(groups=np.arange(1200) // 2).residuals is None
    assert planned(groups=np.arange(1200) // 2, epsilon=2.0).residuals is not None


def test_one_stage_where_outputs_are_known_to_scatter_over_all_of_their_range():
    assert planned(noise_variance=0.25).residuals is None
    assert planned(noise_variance=0.01).residuals is not None


@pytest.mark.parametrize(
    "settings",
    [
        {"residuals": "never"},
        {"hyperparameters": "fixed"},
        {"max_change": 0.1},
        {"likelihood": "poisson", "y_bounds": (0, 20)},
        {"protect": "records", "x_bounds": (0, 40)},
        {"reconstruct": "unbiased", "targets": [[3.0]], "mechanism": GAUSSIAN},
        {"y_bounds": ((0, 1), (0, 2))},
    ],
)
def test_one_stage_where_the_second_has_no_meaning(settings):
    assert planned(**settings).residuals is None


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("share", [0.05, 0.4, 0.95])
def test_the_stages_compose_to_no_more_than_the_budget(law, share):
    model = PrivateGPRegressor(y_bounds=(0, 1), epsilon=0.9, delta=1e-4, mechanism=law)
    X = np.arange(12)[:, None]
    guarantees = []
    for epsilon, delta in share_out(law, 0.9, 1e-4, (share, 1.0 - share)):
        model.set_params(epsilon=epsilon, delta=delta, random_state=0, hyperparameters="fixed")
        guarantees.append(model.fit(X, np.full(12, 0.5)).guarantee_)
    total = compose(guarantees, 0.0 if law == LAPLACE else 1e-4)
    assert 0.98 * 0.9 < total.epsilon <= 0.9


def test_the_plan_states_both_stages():
    plan = planned()
    assert [noise.event.pure_epsilons[0] for noise in plan.noises] == pytest.approx(
        [0.25, 0.75], rel=1e-5
    )
    assert "Two stages: epsilon = 0.25" in plan.summary()
    assert "added up to 8. Then epsilon = 0.75 measures how far" in plan.summary()
    assert "Two stages" not in planned(residuals="never").summary()


def test_the_expected_error_is_that_of_the_noise_both_stages_leave():
    two, one = planned(), planned(residuals="never")
    assert two.noise == one.noise
    assert 0.7 < two.expected_error() / one.expected_error() < 1.0
    left = two.as_one.noise.std / one.noise.std
    assert left == pytest.approx(0.60, abs=0.02)


def test_what_is_left_by_both_stages_is_the_formula_of_the_proof():
    plan, split = planned(), Residuals()
    for width in (1.0, 0.2):
        wanted = 1.0 / math.hypot(0.25, 0.75 / width)
        found = split.noise_of_both(plan.noise, plan.noises, [width / 2.5])
        assert found == pytest.approx(wanted, rel=1e-4)


def test_a_plan_at_another_epsilon_decides_anew():
    plan = planned()
    assert plan.at(0.5).residuals is None
    assert replace(plan.at(2.0).residuals, groups=()) == replace(plan.residuals, groups=())


def test_the_first_stage_adds_up_neighbouring_sums():
    X = np.random.default_rng(0).uniform(size=(8000, 2))
    plan = planned(X)
    first, second = plan.residuals.strategies(plan.strategy)
    assert second is plan.strategy
    assert len(first.matrix) == len(second.matrix) // 4
    assert first.matrix.sum(axis=0) == pytest.approx(second.matrix.sum(axis=0))
    assert first.sensitivity() == pytest.approx(second.sensitivity(), rel=1e-12)
    rows = first.matrix[:, first.index].argmax(axis=0)
    apart = [X[rows == group].std(axis=0).max() for group in range(len(first.matrix))]
    assert max(apart) < 0.2  # of .29


def test_few_sums_are_not_added_up_to_fewer_than_eight():
    assert len(set(planned(MANY % 8).residuals.groups)) == 8
    assert planned(mechanism=GAUSSIAN).residuals.groups == ()  # whose sums overlap


@pytest.mark.parametrize(
    ("groups", "fits"),
    [((), True), ((0, 1, 0), True), ((0, 1), False), ((0, 2, 0), False), ((-1, 0, 1), False)],
)
def test_groups_are_those_of_the_sums(groups, fits):
    assert Residuals(groups=groups).fits(3) == fits


def test_many_rows_are_read_again_only_where_noise_and_not_their_scatter_is_the_error(monkeypatch):
    monkeypatch.setattr("privgp.models.rows.fit.STREAMED", 100)
    assert planned().strategy.tally is not None
    assert planned().residuals is not None
    crowd = np.repeat(MANY[:40], 50_000, axis=0)
    assert planned(crowd).residuals is None
