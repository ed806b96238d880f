"""Two stages from plan to file: one charge, one guarantee, what follows, and files from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF

from privgp import (
    Ledger,
    PrivateGPClassifier,
    PrivateGPRegressor,
    PrivateGridSearchCV,
    audit,
    compose,
    load,
    load_plan,
)
from privgp.models.load import DamagedFile
from privgp.release.residuals import FirstStage
from tests.plan.test_file import forged

RNG = np.random.default_rng(0)
X = np.repeat(np.arange(15.0), 8)[:, None]
Y = 5.0 + np.sin(X[:, 0]) + RNG.normal(0, 0.3, len(X))
POINTS = np.arange(15.0)[:, None]
FIXED: Any = {"y_bounds": (0, 10), "epsilon": 4.0, "delta": 1e-5, "hyperparameters": "fixed"}
MODEL = PrivateGPRegressor(**FIXED, noise_variance=0.1, residuals="always")


@pytest.fixture(scope="module")
def fitted() -> PrivateGPRegressor:
    return clone(MODEL).set_params(random_state=0).fit(X, Y)


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_the_guarantee_is_that_of_both_stages_together(law):
    promised = clone(MODEL).set_params(mechanism=law, random_state=0).fit(X, Y).guarantee_
    assert (promised.epsilon, promised.is_pure) == (4.0, law == "laplace")
    if law == "laplace":
        assert promised.pure_epsilons == pytest.approx((1.0, 3.0), rel=1e-5)
        assert sum(promised.pure_epsilons) <= 4.0
        return
    whole = clone(MODEL).set_params(mechanism=law, random_state=0, residuals="never").fit(X, Y)
    assert len(promised.noise_multipliers) == 2
    assert 0.999 * whole.guarantee_.mu < promised.mu <= whole.guarantee_.mu
    assert promised.delta_at(4.0) <= 1e-5


def test_the_promise_of_two_stages_composes_with_others(fitted):
    one = clone(MODEL).set_params(random_state=0, residuals="never", epsilon=1.0).fit(X, Y)
    assert compose([fitted.guarantee_, one.guarantee_], 0.0).epsilon == pytest.approx(5.0, rel=1e-5)


def test_both_stages_are_charged_once_and_before_the_first_draw(tmp_path, monkeypatch):
    account = Ledger(f"sqlite:///{tmp_path / 'l.db'}").open("people", 5.0, 0.01)
    model = clone(MODEL).set_params(ledger=account)

    def fail(self):
        if not self.measured.values.any():  # to rehearse with
            return np.full(len(X), 5.0), 1.0
        assert len([*account.entries()]) == before + 1
        raise RuntimeError("no curve")

    before = len([*account.entries()])
    monkeypatch.setattr(FirstStage, "centre", property(fail))
    with pytest.raises(RuntimeError, match="no curve"):
        model.fit(X, Y)
    assert len([*account.entries()]) == before + 1
    assert model.guarantee_.epsilon == 4.0  # the first stage was drawn: all of it counts as spent


def test_the_second_stage_is_more_exact_than_one_release(fitted):
    one = clone(MODEL).set_params(random_state=0, residuals="never").fit(X, Y)
    assert fitted.measurements_[0].noise_std < 0.5 * one.measurements_[0].noise_std


def test_residuals_tell_the_scatter():
    X = np.repeat(np.arange(20.0), 150)[:, None]
    y = 5.0 + 3.0 * np.sin(X[:, 0] / 3.0) + RNG.normal(0, 0.5, len(X))
    settings = {"y_bounds": (0, 10), "epsilon": 1.0, "delta": 0.0, "random_state": 2}
    model = PrivateGPRegressor(**settings).fit(X, y)
    assert model.plan_.residuals is not None
    assert 0.4 < model.noise_variance_**0.5 < 0.6
    truth = 5.0 + 3.0 * np.sin(np.arange(20.0) / 3.0)
    assert np.sqrt(np.mean((model.predict(np.arange(20.0)[:, None]) - truth) ** 2)) < 0.2


def test_the_certificate_tells_of_both_stages(fitted):
    facts = fitted.certificate()
    assert "above or below a curve" in facts["mechanism"]["description"]
    assert len(facts["mechanism"]["pure_epsilons"]) == 2
    sizes = [noise.size for noise in fitted.plan_.noises]
    assert facts["data"]["measured_numbers"] == sum(sizes)
    assert sizes[0] < sizes[1] == fitted.plan_.strategy.size
    assert facts["plan"] == fitted.plan_.hash


def test_a_release_survives_its_file(fitted, tmp_path):
    fitted.save(tmp_path / "a.privgp")
    again = load(tmp_path / "a.privgp")
    assert again.guarantee_ == fitted.guarantee_
    assert np.array_equal(again.predict(POINTS), fitted.predict(POINTS))
    assert again.residuals == "always"


def test_a_release_can_be_refined_and_updated(tmp_path):
    model = PrivateGPRegressor(
        y_bounds=(0, 10), epsilon=4.0, delta=0.0, residuals="always", random_state=1
    ).fit(X, Y)
    model.save(tmp_path / "a.privgp")
    again = load(tmp_path / "a.privgp").set_params(random_state=1)
    assert again.functionals_.energy_centre is not None
    assert model.refine(X, Y, 1.0).guarantee_.epsilon == pytest.approx(5.0, rel=1e-5)
    again.update(X + 0.5, Y)
    assert again.guarantee_.epsilon == pytest.approx(4.0, rel=1e-5)
    for each in (model, again):
        assert each.functionals_.energy_centre is None
        assert np.sqrt(np.mean((each.predict(POINTS) - 5 - np.sin(POINTS[:, 0])) ** 2)) < 1.0


def test_an_audit_attacks_both_stages():
    plan = clone(MODEL).set_params(mechanism="gaussian").plan(X)
    attacked = audit.trade_off(plan, draws=3000)
    assert attacked.holds
    assert attacked.promise.mu == pytest.approx(plan.noise.event.mu, rel=1e-3)


@pytest.mark.parametrize(
    ("change", "accepted"),
    [
        (lambda held: held.update(share=0.9), True),  # another division of the same budget
        (lambda held: held.update(share=1.0), False),
        (lambda held: held.update(share=0.0), False),
        (lambda held: held.update(share=-0.4), False),
        (lambda held: held.update(reach=1e9), False),
        (lambda held: held.update(reach=0.0), False),
        (lambda held: held.update(reach="wide"), False),
        (lambda held: held.pop("share"), False),
        (lambda held: held.update(groups=[0, 1]), False),
        (lambda held: held.update(groups=[9] * len(held["groups"])), False),
        (lambda held: held.update(groups=[2**40] * len(held["groups"])), False),
        (lambda held: held.update(groups=[-1] * len(held["groups"])), False),
        (lambda held: held.update(groups=[0] * len(held["groups"])), True),
        (lambda held: held.update(groups=[]), True),
    ],
)
def test_a_forged_plan_spends_no_more_than_its_budget(change, accepted, tmp_path):
    model, path = clone(MODEL).set_params(random_state=0), tmp_path / "a.plan"
    model.plan(X).save(path)

    def forge(tree: Any) -> None:
        change(tree["parts"][0]["residuals"])

    other: Path = forged(path, forge)
    if not accepted:
        with pytest.raises(DamagedFile):
            load_plan(other)
        return
    plan = load_plan(other)
    assert sum(noise.event.pure_epsilons[0] for noise in plan.noises) <= 4.0
    with pytest.raises(ValueError, match="Nothing was spent"):
        model.fit(X, Y, plan=plan)  # the fingerprint is another


@pytest.mark.parametrize(
    "settings",
    [
        {"protect": "records", "x_bounds": (0, 15)},
        {"likelihood": "poisson"},
        {"y_bounds": ((0, 10), (0, 10))},
        {"max_change": 0.5},
        {"reconstruct": "unbiased"},
        {"objective": "trace"},
    ],
)
def test_what_has_no_second_stage_is_refused_with_the_reason(settings):
    with pytest.raises(ValueError, match=r"does not go with .*docs/proofs/residuals\.md"):
        clone(MODEL).set_params(noise_variance=None, **settings).plan(X)


def test_many_rows_are_read_twice(monkeypatch):
    """Grouped sums of residuals: the same two stages as of rows in memory, but for the rounding of cells."""
    asked = clone(MODEL).set_params(random_state=0)
    few = clone(asked).fit(X, Y)
    monkeypatch.setattr("privgp.models.rows.fit.STREAMED", 100)
    many = asked.fit(X, Y)
    assert many.plan_.strategy.tally is not None
    assert few.plan_.strategy.tally is None
    assert many.guarantee_.epsilon == few.guarantee_.epsilon
    assert many.predict(POINTS) == pytest.approx(few.predict(POINTS), abs=0.05)


def test_labels_have_no_residuals():
    assert "residuals" not in PrivateGPClassifier(classes=[0, 1]).get_params()


def test_a_search_measures_once():
    grid = {"kernel__length_scale": [1.0, 3.0]}
    model = PrivateGPRegressor(RBF(1.0), 0.1, y_bounds=(0, 10), residuals="always")
    found = PrivateGridSearchCV(model, grid, epsilon=4.0, delta=1e-5, random_state=0).fit(X, Y)
    assert len(found.guarantee_.pure_epsilons) + len(found.guarantee_.noise_multipliers) == 1
