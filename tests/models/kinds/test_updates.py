"""More than one measurement: what is guaranteed, what is learned, and what is refused."""

from __future__ import annotations

import warnings
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from privgp import PrivateGPRegressor, compose, load
from privgp.models import published
from privgp.plan import build
from privgp.release.certificate import certificate, page, validate
from privgp.release.learn import learn_models
from privgp.release.parts import ONE_BATCH_EACH, SAME_OUTPUTS, check_total
from privgp.release.release import CODEC, decode
from privgp.storage.archive import DamagedFile
from tests.adversary.spying import watched

KERNEL = ConstantKernel(900.0) * Matern(15.0, nu=2.5) + ConstantKernel(400.0)
PLACES = np.linspace(0.0, 90.0, 19)[:, None]
FIXED = {"kernel": KERNEL, "noise_variance": 36.0, "hyperparameters": "fixed"}


def truth(X: np.ndarray) -> np.ndarray:
    return 165.0 - 90.0 * np.exp(-X[:, 0] / 8.0)


def batch(seed: int, rows: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 90.0, (rows, 1))
    return X, truth(X) + rng.normal(0.0, 6.0, rows)


def fitted(seed: int | None = 0, **settings: object) -> PrivateGPRegressor:
    settings = {"y_bounds": (60, 200), "delta": 1e-5, **FIXED, **settings}
    return PrivateGPRegressor(random_state=seed, **settings).fit(*batch(0))


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_new_people_keep_the_promise_and_the_same_people_add_to_it(law):
    model = fitted(None, mechanism=law)
    alone = model.guarantee_
    for k in (1, 2):
        model.update(*batch(k))
        assert (model.guarantee_.epsilon, model.guarantee_.delta) == (1.0, alone.delta)
        assert ONE_BATCH_EACH in model.guarantee_.assumptions
    assert len(model.measurements_) == 3
    model.refine(*batch(1), epsilon=0.5, delta=1e-5)
    parts = [each.guarantee for each in model._released.spent if each.batch == 1]
    total = compose(parts, sum(part.delta for part in parts))
    assert (model.guarantee_.epsilon, model.guarantee_.delta) == (total.epsilon, total.delta)
    assert 1.0 < model.guarantee_.epsilon <= 1.5
    assert {ONE_BATCH_EACH, SAME_OUTPUTS} <= {*model.guarantee_.assumptions}
    assert model.guarantee_.delta_at(1.2) == max(total.delta_at(1.2), alone.delta_at(1.2))
    model.update(*batch(3))  # others still have the budget of one measurement
    assert model.plan_.epsilon == 1.0
    assert model.guarantee_.epsilon == total.epsilon


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_measurements_are_those_of_their_own_rows(law):
    """Huge epsilons: the posterior is that of all rows, and of the rows of a refinement once."""
    many = {"epsilon": 1e4, "mechanism": law}
    model = fitted(0, **many).update(*batch(1)).refine(*batch(0), epsilon=1e4, delta=1e-5)
    X, y = (np.concatenate(parts) for parts in zip(batch(0), batch(1), strict=True))
    once = PrivateGPRegressor(y_bounds=(60, 200), delta=1e-5, random_state=0, **FIXED, **many)
    mean, std = model.predict(PLACES, return_std=True)
    exact_mean, exact_std = once.fit(X, y).predict(PLACES, return_std=True)
    assert np.all(std >= 0.98 * exact_std)  # not more certain for having been told twice
    if law == "gaussian":  # whose sums then are of single inputs or of what is to be predicted
        off = np.abs(mean - exact_mean) / exact_std
        assert np.sqrt(np.mean(off**2)) < 0.15  # a third of it at the end of the inputs
        assert np.all(off < 0.5)
        assert_allclose(std, exact_std, rtol=0.15)


@pytest.mark.parametrize(
    ("law", "learned"), [("gaussian", False), ("laplace", False), ("laplace", True)]
)
def test_a_file_is_all_that_an_update_needs(law, learned, tmp_path):
    """What follows depends on earlier outputs through the released numbers alone: a loaded model, which
    has nothing else, goes on to the same bits."""
    how = {"hyperparameters": "learned", "kernel": None, "noise_variance": None} if learned else {}
    model = fitted(mechanism=law, **how)
    if not learned:
        model.update(*batch(1))
    with pytest.warns(UserWarning, match="contains the inputs"):
        model.save(tmp_path / "one.privgp")
    again = load(tmp_path / "one.privgp").set_params(random_state=0)
    steps = [lambda m: m.update(*batch(2)), lambda m: m.refine(*batch(0), 0.5, 1e-5)]
    for step in steps[:1] if learned else steps:
        step(model)
        step(again)
        assert_array_equal(again.plan_.strategy.matrix, model.plan_.strategy.matrix)
        assert_array_equal(again.predict(PLACES), model.predict(PLACES))
    with pytest.warns(UserWarning, match="contains the inputs"):
        again.save(tmp_path / "two.privgp")
    last = load(tmp_path / "two.privgp")
    assert_array_equal(last.predict(PLACES), model.predict(PLACES))
    assert last.guarantee_ == model.guarantee_
    assert last.epsilon == 1.0
    assert len(last.measurements_) == len(model.measurements_)
    for one, two in zip(last.measurements_, model.measurements_, strict=True):
        assert_array_equal(one.values, two.values)
        assert one.is_laplace == two.is_laplace == (law == "laplace")


def test_a_batch_is_read_once(monkeypatch):
    """Other outputs of the first batch, hidden by equal released numbers: the second measurement is
    the same to the last bit, and so is its noise."""
    seen, released = [], fitted(None, mechanism="gaussian").measurements_[0]
    X, y = batch(0)
    for shift in (0.0, 40.0):
        with monkeypatch.context() as patched:
            patched.setattr(published, "measure", lambda *arguments: released)
            model = fitted(None, mechanism="gaussian").fit(X, np.clip(y - shift, 60, 200))
        with watched() as events:
            model.update(*batch(1))
        seen.append(events)
    (one,), (two,) = seen
    assert_array_equal(one.exact, two.exact)
    assert one.scale == two.scale


def test_measured_with_both_noise_distributions(tmp_path):
    model = fitted(mechanism="laplace").set_params(mechanism="gaussian").update(*batch(1))
    flags = model._released.parts[0].measurement.laplace
    counts = [len(each.values) for each in model.measurements_]
    assert_array_equal(flags, np.repeat([True, False], counts))
    assert (model.guarantee_.epsilon, model.guarantee_.delta) == (1.0, 1e-5)
    with pytest.warns(UserWarning, match="contains the inputs"):
        model.save(tmp_path / "both.privgp")
    assert_array_equal(load(tmp_path / "both.privgp").predict(PLACES), model.predict(PLACES))


def test_a_file_whose_parts_do_not_make_up_the_whole_is_refused():
    contents = fitted().update(*batch(1))._released.for_file()
    assert decode(CODEC.encode(contents)).guarantee == contents.guarantee
    one, two = contents.spent
    cheaper = replace(one.guarantee, epsilon=2.0)
    for changed, word in (
        (replace(two, values=two.values + 1.0), "measurements"),
        (replace(two, is_laplace=not two.is_laplace), "measurements"),
        (replace(two, guarantee=cheaper), "guarantee"),
        (replace(two, batch=0), "guarantee"),
    ):
        part = replace(contents.parts[0], spent=(one, changed))
        with pytest.raises(DamagedFile, match=word):
            decode(CODEC.encode(replace(contents, parts=(part,))))


def test_a_promise_may_have_been_composed_on_another_machine():
    contents = fitted(mechanism="gaussian").refine(*batch(0), 0.5, 1e-5)._released.for_file()
    for factor in (1.0, 1.0 - 1e-13, 1.0 + 1e-13):
        epsilon = factor * contents.guarantee.epsilon
        check_total(contents.spent, replace(contents.guarantee, epsilon=epsilon))
    less = replace(contents.guarantee, epsilon=contents.guarantee.epsilon * (1.0 - 1e-6))
    with pytest.raises(DamagedFile, match="that of its parts"):
        check_total(contents.spent, less)


def test_people_with_several_rows():
    X, y = batch(0)
    people = np.arange(len(X)) // 3
    model = PrivateGPRegressor(y_bounds=(60, 200), delta=1e-5, random_state=0, **FIXED)
    model.fit(X, y, groups=people).update(*batch(1), groups=np.arange(60) // 2).refine(
        X, y, 0.5, 1e-5, groups=people
    )
    assert "one person" in model.guarantee_.unit
    facts = certificate(model)
    assert facts["data"]["rows"] == 120
    assert facts["data"]["people"] == 20 + 30
    with pytest.raises(ValueError, match="groups must be given if"):
        model.update(*batch(2))


def test_the_certificate_counts_all_measurements():
    model = fitted().update(*batch(1)).refine(*batch(1), 0.5, 1e-5)
    facts = certificate(model)
    assert facts["data"]["rows"] == 120
    sizes = [len(each.values) for each in model.measurements_]
    assert facts["data"]["measured_numbers"] == sum(sizes)
    assert facts["epsilon"] == model.guarantee_.epsilon
    assert ONE_BATCH_EACH in facts["assumptions"]
    assert "2 batches of different people" in facts["mechanism"]["description"]
    assert "nobody is in two of the batches" in page(facts)


def test_the_certificate_tells_of_every_batch():
    """The larger delta is in one batch and by far the larger epsilon in the other."""
    model = fitted(mechanism="gaussian", epsilon=0.1)
    model.set_params(mechanism="laplace", epsilon=5.0, delta=0.0).update(*batch(1))
    facts = certificate(model)
    validate(facts)
    assert facts["mechanism"]["others"][0]["pure_epsilons"] == [5.0]
    for text in (page(facts), str(facts["registry"])):
        assert "Gaussian differential privacy with mu = " in text
        assert "or pure differential privacy with epsilon = 5" in text
    model = fitted(mechanism="gaussian", epsilon=0.1, delta=1e-4)
    alone = model.guarantee_.mu
    model.set_params(epsilon=5.0, delta=1e-6).update(*batch(1))
    assert certificate(model)["mu"] == model.guarantee_.mu > 10 * alone


@pytest.mark.parametrize(
    "told",
    [
        {"mu": 0.01},
        {"best_guess": 0.51},
        {"curve": [[0.0, 1e-9], [1.0, 1e-9]]},
        {"mechanism": {"noise_multipliers": [100.0]}},
    ],
)
def test_a_certificate_that_says_more_than_was_promised_is_refused(told):
    contents = fitted(mechanism="gaussian")._released.for_file()
    decode(CODEC.encode(contents))
    ((name, value),) = told.items()
    held = contents.facts.certificate
    value = {**held[name], **value} if isinstance(value, dict) else value
    facts = replace(contents.facts, certificate={**held, name: value})
    forged = replace(contents, facts=facts)
    with pytest.raises(DamagedFile, match="not about its contents"):
        decode(CODEC.encode(forged))


@pytest.mark.parametrize(
    "changed", [{"y_bounds": (0, 200)}, {"max_change": 1.0}, {"reconstruct": "unbiased"}]
)
def test_parameters_that_released_numbers_rest_on_stay(changed, tmp_path):
    """Refused before anything is drawn, also of a loaded model."""
    model = fitted(None)
    with pytest.warns(UserWarning, match="contains the inputs"):
        model.save(tmp_path / "one.privgp")
    for each in (model, load(tmp_path / "one.privgp")):
        each.set_params(**changed)
        for step in (lambda m: m.update(*batch(1)), lambda m: m.refine(*batch(0), 0.5, 1e-5)):
            with watched() as events, pytest.raises(ValueError, match="as it was"):
                step(each)
            assert not events


def test_the_error_expected_is_that_of_all_measurements():
    """Under the given hyperparameters it is exact, the correlation of outputs measured twice included."""
    model = fitted(mechanism="gaussian").update(*batch(1))
    for again in (False, True):
        if again:
            model.refine(*batch(1), 2.0, 1e-5)
        X = batch(1)[0]
        _, std = model.predict(X, return_std=True)
        assert model.plan_.expected_error() == pytest.approx(np.sqrt(np.mean(std**2)), rel=1e-6)
        assert model.plan_.gap == np.inf
        assert model.plan_.error_range()[0] <= model.plan_.expected_error() * 1.001
        assert "expected error" in model.plan_summary_.lower()


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_a_plan_knows_what_is_known(law, monkeypatch):
    """It leaves less unknown than the plan of somebody who does not know the first release."""
    kernel = ConstantKernel(900.0) * Matern(15.0, nu=2.5) + ConstantKernel(1e4)
    settings = {"y_bounds": (60, 200), "delta": 1e-5, "mechanism": law, **FIXED, "kernel": kernel}
    X, _ = batch(0)
    Z = np.linspace(0.0, 90.0, 61)[:, None]
    model = PrivateGPRegressor(epsilon=5.0, random_state=0, **settings).fit(X, truth(X))
    unknowing = PrivateGPRegressor(epsilon=2.0, **settings).plan(Z).strategy
    other = deepcopy(model.set_params(epsilon=2.0))
    model.update(Z, truth(Z))
    monkeypatch.setattr(build, "best_sums", lambda task, law: unknowing)
    other.update(Z, truth(Z))
    assert model.plan_.expected_error() < 0.996 * other.plan_.expected_error()


REFUSED = {
    "unbiased": {"reconstruct": "unbiased", "targets": [[30.0]], "mechanism": "gaussian"},
}


@pytest.mark.parametrize("kind", REFUSED)
def test_other_kinds_of_release_are_refused_before_anything_is_read(kind, monkeypatch):
    model = fitted(**REFUSED[kind])
    calls = [lambda: model.update(*batch(1)), lambda: model.refine(*batch(0), 1.0, 1e-5)]
    for call in calls[:1]:  # values at targets can be refined
        with pytest.raises(ValueError, match=r"can be updated or refined.*Nothing was spent"):
            call()


@pytest.mark.parametrize("changed", REFUSED.values())
def test_there_are_no_stages_for_what_cannot_be_refined(changed):
    asked = {"y_bounds": (60, 200), "epsilon": 1.0, "delta": 1e-5, **changed}
    with pytest.raises(ValueError, match="can be updated or refined"):
        PrivateGPRegressor(**asked).stages(batch(0)[0])


def test_a_refinement_that_was_drawn_and_not_released_counts(monkeypatch):
    model, steps = fitted(), []

    def learn_once(asked: Any, task: Any) -> Any:
        steps.append(task)
        if len(steps) == 2:  # the first is the rehearsal
            raise RuntimeError("no room left")
        return learn_models(asked, task)

    with monkeypatch.context() as patched:
        patched.setattr("privgp.release.learn.learn_models", learn_once)
        with pytest.raises(RuntimeError, match="no room left"):
            model.refine(*batch(0), 0.5, 1e-5)
    lost = model.guarantee_.epsilon
    assert lost > 1.0
    assert len(model.measurements_) == 1
    assert model.refine(*batch(0), 0.5, 1e-5).guarantee_.epsilon > lost


def test_rows_are_known_again_where_they_were_measured_in_cells():
    X = np.random.default_rng(0).uniform(0, 10, (3000, 1))
    y = np.sin(X[:, 0])
    settings = {"y_bounds": (-1, 1), "epsilon": 20.0, "random_state": 0, **FIXED}
    model = PrivateGPRegressor(**settings, mechanism="laplace").fit(X, y)
    assert len(model.plan_.inputs) < len(X)
    with pytest.raises(ValueError, match="measured already"):
        model.update(X, y)
    model.refine(X, y, 0.5, 1e-6)
    assert [each.batch for each in model._released.spent] == [0, 0]


def test_rows_in_another_order_are_warned_about_before_they_are_charged():
    X, y = batch(0)
    model, order = fitted(), np.random.default_rng(1).permutation(len(X))
    before = model.guarantee_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="in another order"):
            model.update(X[order], y[order])
        assert model.guarantee_ == before
        model.update(*batch(1))
    with pytest.warns(UserWarning, match="in another order"):
        model.update(X[order], y[order])


def test_rows_are_checked_before_anything_is_spent(monkeypatch):
    model = fitted()
    before = model.measurements_
    monkeypatch.setattr(published, "measure", None)
    with pytest.raises(ValueError, match="measured already"):
        model.update(*batch(0))
    with pytest.raises(ValueError, match="must be the rows of one earlier measurement"):
        model.refine(*batch(1), 1.0, 1e-5)
    X, y = batch(0)
    with pytest.raises(ValueError, match="must be the rows of one earlier measurement"):
        model.refine(X[::-1], y, 1.0, 1e-5)
    with pytest.raises(ValueError, match="features"):
        model.update(np.hstack([X, X]), y)
    with pytest.raises(ValueError, match="groups must be given if"):
        model.update(*batch(1), groups=np.arange(60))
    with pytest.raises(ValueError, match="epsilon"):
        model.refine(X, y, -1.0, 1e-5)
    with pytest.raises(ValueError, match="requires y"):
        model.update(X, None)
    with pytest.raises(ValueError, match="one value for each row"):
        model.update(batch(1)[0], y[:-1])
    assert model.measurements_ is before
    with pytest.raises(NotFittedError):
        PrivateGPRegressor(y_bounds=(0, 1)).update(X, y)


def test_old_files_say_why_they_cannot_be_updated():
    path = next(
        (Path(__file__).parents[2] / "release" / "files_of_format_2").glob("*.privgp"), None
    )
    assert path is not None
    model = load(path)
    with pytest.raises(ValueError, match=r"Nothing was spent\.$"):
        model.update(np.zeros((3, model.n_features_in_)), np.zeros(3))


def test_a_plan_that_builds_on_a_release_is_not_saved(tmp_path):
    model = fitted().update(*batch(1))
    with pytest.raises(ValueError, match="builds on an earlier release"):
        model.plan_.save(tmp_path / "next.plan")


def test_noise_differs_between_measurements_of_one_seed():
    """Else a simulation would tell twice the same."""
    X, y = batch(0)
    model = fitted(mechanism="laplace").refine(X, y, 1.0, 0.0)
    plans = fitted(mechanism="laplace").plan_, model.plan_
    sums = [plan.strategy.matrix[:, plan.strategy.index] for plan in plans]
    exact = [B @ (y - 130.0) for B in sums]
    noise = [m.values - e for m, e in zip(model.measurements_, exact, strict=True)]
    assert not np.isclose(noise[0][0], noise[1][0])


def test_the_same_people_are_known_however_they_are_written():
    """They were measured as new people where a list came for an array: two looks for the price of one."""
    X, y = batch(0)
    X[:4] = [[0.0], [-0.0], [0.0], [-0.0]]
    who = np.random.default_rng(0).permutation(60) % 17
    settings = {"y_bounds": (60, 200), "delta": 1e-5, **FIXED}
    written = [
        who,
        who.tolist(),
        who.astype(str),
        [f" 0{each}.0" for each in who],
        who.astype("S2"),
    ]
    for first in written[:3]:
        model = PrivateGPRegressor(random_state=0, **settings).fit(X, y, groups=first)
        for again in written:
            with pytest.raises(ValueError, match="measured already"):
                deepcopy(model).update(np.abs(X), y, groups=again)
        refined = deepcopy(model).refine(X, y, 1.0, 1e-5, groups=written[3])
        assert refined.guarantee_.epsilon > 1.0
    others = np.where(who == 3, 99, who)  # the same people, one of them under another name
    with pytest.raises(ValueError, match="measured already"):
        model.update(X, y, groups=others)
    model.update(X, y, groups=np.where(who == 3, 4, who))
