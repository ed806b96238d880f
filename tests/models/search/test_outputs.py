"""PrivateGridSearchCV as a data holder sees it: what is guaranteed, spent and told."""

from __future__ import annotations

import pickle
import struct
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import Ridge

from privgp import PrivateGPRegressor, PrivateGridSearchCV, load
from privgp.models.search import outputs as search_outputs
from privgp.vault import select
from tests.models.search.searches import METHODS, PAID, search, some_data


@pytest.mark.parametrize("method", METHODS)
def test_the_promise_is_the_total_and_the_chosen_model_keeps_it(method, tmp_path):
    X, y = some_data()
    found = search(method, random_state=None).fit(X, y)
    promise = found.guarantee_
    assert promise.epsilon == 2.0
    assert promise.delta == (0.0 if promise.is_pure else 1e-4)
    assert promise.delta_at(2.0) <= 1e-4 * (1 + 1e-9)
    assert promise == found.best_estimator_.guarantee_
    assert not promise.is_simulation
    spent = (0.3 * 2.0,) if method != "measurement" else ()
    assert promise.pure_epsilons[: len(spent)] == spent
    assert sum(promise.pure_epsilons) <= 2.0 * (1 + 1e-12)
    assert found.best_params_ == found.cv_results_["params"][found.best_index_]
    model = found.best_estimator_
    assert model.hyperparameters == "fixed"
    assert model.kernel.length_scale == found.best_params_["kernel__length_scale"]
    assert model.kernel_ == model.kernel
    assert model.noise_variance_ == pytest.approx(found.best_params_["noise_variance"])
    mean, std = found.predict(X, return_std=True)
    assert_array_equal(mean, model.predict(X))
    assert std.shape == (40,)
    assert found.score(X, y) == model.score(X, y)
    with pytest.warns(UserWarning, match="contains the inputs"):
        model.save(tmp_path / "chosen.privgp")
    loaded = load(tmp_path / "chosen.privgp")
    assert loaded.guarantee_ == promise
    assert_array_equal(loaded.predict(X), mean)


@pytest.mark.parametrize("method", METHODS)
def test_a_seed_makes_a_reproducible_simulation_that_says_so(method):
    X, y = some_data()
    one, two = search(method).fit(X, y), search(method).fit(X, y)
    assert_array_equal(one.predict(X), two.predict(X))
    assert one.guarantee_.is_simulation
    assert "SIMULATION" in one.describe()


@pytest.mark.parametrize("mechanism", ["auto", "gaussian", "laplace"])
def test_the_promise_does_not_depend_on_who_is_chosen(mechanism, monkeypatch):
    X, y = some_data(20)
    promises, laws = [], []
    grid = {"kernel__length_scale": [0.3, 3.0], "noise_variance": [0.01, 0.3]}
    for place in range(4):
        monkeypatch.setattr(select, "choose", lambda *_args, place=place: place)
        found = search("exponential", grid, mechanism=mechanism, random_state=None).fit(X, y)
        assert found.best_index_ == place
        promises.append(replace(found.guarantee_, mechanism=""))
        own = found.best_estimator_.plan_.noise
        laws.append(type(own))
        if found.guarantee_.noise_multipliers:
            assert own.multiplier >= found.guarantee_.noise_multipliers[0]
            assert own.delta_slack <= found.guarantee_.delta_slack
        assert found.guarantee_ == found.best_estimator_.guarantee_
    assert len(set(promises)) == 1
    assert len(set(laws)) == 1


def test_a_free_choice_spends_all_of_the_budget_on_the_measurement():
    X, y = some_data()
    found = search(mechanism="gaussian").fit(X, y)
    whole = PrivateGPRegressor(
        y_bounds=(-2, 2), epsilon=2.0, delta=1e-4, mechanism="gaussian"
    ).plan(X)
    assert found.guarantee_.noise_multipliers == (whole.noise.multiplier,)
    paid = search("permute-and-flip", mechanism="gaussian").fit(X, y)
    assert paid.guarantee_.noise_multipliers > found.guarantee_.noise_multipliers
    assert paid.best_estimator_.epsilon > 1.4, "exact accounting leaves more than 2 - 0.6"


@pytest.mark.parametrize("method", METHODS)
def test_people_with_several_rows_are_protected_together(method):
    X, y = some_data(30)
    groups = np.arange(30) // 3
    found = search(method).fit(X, y, groups=groups)
    assert found.guarantee_.unit == "all output values of one person"
    if method != "measurement":
        alone = search(method).fit(X, y)
        assert found.cv_results_["sensitivity"][0] > alone.cv_results_["sensitivity"][0]


SENTINELS = (1.2345678901234567, -0.98765432109876543, 1.7182818284590453)


@pytest.mark.parametrize("method", METHODS)
def test_nothing_private_is_left(method):
    X, y = some_data(30)
    y[:3] = SENTINELS
    found = search(method, random_state=None).fit(X, y)
    whole = pickle.dumps(found) + repr(vars(found)).encode() + found.describe().encode()
    for value in SENTINELS:
        for number in (value, value / 2.0):
            for form in (struct.pack("<d", number), repr(number).encode()):
                assert form not in whole


def test_what_is_told_of_candidates_does_not_depend_on_outputs():
    X, y = some_data()
    one, two = (search("permute-and-flip").fit(X, v).cv_results_ for v in (y, np.ones(40)))
    assert set(one) == {"params", "param_kernel__length_scale", "param_noise_variance",
                        "noise_std", "sensitivity"}  # fmt: skip
    for name in ("noise_std", "sensitivity"):
        assert_array_equal(one[name], two[name])
    by_record = PrivateGridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, epsilon=1.0, delta=1e-6,
        method="exponential", scoring="squared_error", loss_bounds=(0, 1))  # fmt: skip
    by_record.fit(X, y, X_val=X, y_val=y)
    assert set(by_record.cv_results_) == {"params", "param_alpha", "sensitivity"}
    assert by_record.cv_results_["sensitivity"] == pytest.approx(1 / 40)


def test_a_failure_after_the_choice_leaves_what_was_spent_on_record(monkeypatch):
    X, y = some_data()

    def fail(*_args, **_kwargs):
        raise RuntimeError("no room left")

    monkeypatch.setattr("privgp.models.search.outputs.measure", fail)
    found = search("permute-and-flip")
    with pytest.raises(RuntimeError):
        found.fit(X, y)
    assert found.guarantee_.epsilon == 2.0


def test_the_unbiased_output_can_be_chosen_at_a_cost():
    X, y = some_data()
    found = search("permute-and-flip")
    found.estimator.set_params(reconstruct="unbiased", targets=[[1.0], [5.0]])
    found.fit(X, y)
    assert found.predict([[1.0], [5.0]]).shape == (2,)


def test_the_budget_is_told_before_it_is_spent():
    told = search("permute-and-flip").describe()
    assert "epsilon = 2, delta = 0.0001 in total" in told
    assert "epsilon = 0.6 (selection_share = 0.3)" in told
    assert "spends nothing" in search().describe()


def test_the_certificate_names_the_choice_and_what_it_cost():
    from privgp.release.certificate import certificate, page, validate

    X, y = some_data()
    paid = certificate(search("permute-and-flip").fit(X, y).best_estimator_)
    validate(paid)
    assert paid["mechanism"]["pure_epsilons"] == pytest.approx([0.6, 1.4])
    assert "chosen among 6 candidates by permute-and-flip" in paid["hyperparameters"]["source"]
    assert "pure epsilon 0.6" in page(paid)
    details = paid["registry"]["deployment"]["privacy_loss"]["privacy_parameters_details"]
    assert "epsilon = 0.6 and 1.4" in details
    free = certificate(search().fit(X, y).best_estimator_)
    assert "at no cost" in free["hyperparameters"]["source"]
    assert "pure epsilon 0.6" not in page(free)


@pytest.mark.parametrize("method", PAID)
def test_the_choice_is_made_with_its_share_and_a_sensitivity_that_neighbours_reach(
    method, monkeypatch
):
    """Two people predict 1,000 others at the same place: noise 20% smaller would not hide one."""
    seen = []

    def choose(name, utilities, sensitivity, epsilon, rng):
        assert name == method
        seen.append((utilities[0], sensitivity, epsilon))
        return 0

    monkeypatch.setattr(select, "choose", choose)
    X, y = np.zeros((1002, 1)), np.full(1002, 2.0)
    y[1] = -2.0
    halves = np.arange(2), np.arange(2, 1002)
    settings = {"cv": [halves, halves[::-1]], "epsilon": 1e4, "selection_share": 0.25}
    for y[0] in (-2.0, 2.0):
        search(method, {"noise_variance": [0.01]}, **settings).fit(X, y)
    (one, claimed, spent), (two, again, _) = seen
    assert spent == 2500.0
    assert claimed == again
    assert 0.95 * claimed < abs(one - two) <= claimed


def test_too_much_left_for_the_release_is_noticed_before_anything_is_drawn(monkeypatch):
    monkeypatch.setattr(search_outputs, "epsilon_left", lambda epsilon, delta, spent: epsilon)
    X, y = some_data()
    found = search("permute-and-flip").fit(X, y)
    assert found.best_estimator_.epsilon == 2.0 - 0.6
    assert found.guarantee_.delta_at(2.0) <= 1e-4
