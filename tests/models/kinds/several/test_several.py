"""Several outputs of one person in one release."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import jsonschema
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import r2_score

from privgp import PrivateGPRegressor, PrivateGridSearchCV, audit, compose, load, load_plan
from privgp.models.load import DamagedFile
from privgp.plan.plan import plan_of_parts
from privgp.plan.strategy import noise_of
from privgp.release.certificate import SCHEMA, certificate, page, validate
from privgp.storage.archive import PLAN, pack, unpack
from privgp.vault.measure import exact

RNG = np.random.default_rng(0)
X = np.sort(RNG.uniform(0, 90, size=(60, 1)), axis=0)
WEIGHT = 70 - 60 * np.exp(-X[:, 0] / 10) + RNG.normal(0, 5, 60)
HEIGHT = 165 - 90 * np.exp(-X[:, 0] / 8) + RNG.normal(0, 5, 60)
Y = np.column_stack([WEIGHT, HEIGHT])
BOUNDS = [(0, 120), (60, 200)]
NEW = np.array([[3.0], [40.0], [88.0]])
PEOPLE = np.arange(60) // 3


def model(**settings):
    given = {"y_bounds": BOUNDS, "epsilon": 1.0, "delta": 1e-5, "hyperparameters": "fixed"}
    return PrivateGPRegressor(**{**given, "random_state": 0, **settings})


def saved(made, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it holds inputs
        made.save(path, overwrite=True)
    return path


@pytest.fixture(scope="module")
def fitted():
    return model(hyperparameters="learned", mechanism="gaussian").fit(X, Y)


# what it costs


@pytest.mark.parametrize("groups", [None, PEOPLE], ids=["rows", "people"])
def test_two_outputs_cost_the_root_of_two_under_gaussian_noise(groups):
    both = model(mechanism="gaussian").plan(X, groups=groups)
    for place, pair in enumerate(BOUNDS):
        alone = model(mechanism="gaussian", y_bounds=pair).plan(X, groups=groups)
        ratio = both.measured_noise_std[place] / alone.measured_noise_std
        assert ratio <= np.sqrt(2) * (1 + 1e-9)
        assert ratio >= np.sqrt(2) * (1 - 1e-3)
        assert np.all(both.noise_std[:, place] <= np.sqrt(2) * alone.noise_std * (1 + 1e-6))


def test_two_outputs_cost_two_under_laplace_noise():
    both = model(mechanism="laplace").plan(X)
    alone = noise_of(model(mechanism="laplace", y_bounds=(0, 120)).plan(X).strategy, 1.0, 0.0).std
    assert both.measured_noise_std[0] / 60 == pytest.approx(2 * alone)


def test_the_noise_of_the_plan_is_that_of_the_whole_and_hides_everybody():
    plan = model(mechanism="gaussian", shares=(3, 1)).plan(X)
    noise = noise_of(plan.strategy, 1.0, 1e-5)
    assert plan.noise == noise
    for part, a in zip(plan.parts, plan.factors, strict=True):
        assert part.noise.std == pytest.approx(noise.std / a)


def test_a_larger_share_has_less_noise_and_the_others_pay():
    equal, favoured = (model(mechanism="gaussian", shares=s).plan(X) for s in (None, (2, 1)))
    ratios = favoured.measured_noise_std / equal.measured_noise_std
    assert ratios == pytest.approx([np.sqrt(5) / 2 / np.sqrt(2), np.sqrt(5) / np.sqrt(2)])
    assert favoured.expected_error()[0] < equal.expected_error()[0]
    assert favoured.expected_error()[1] > equal.expected_error()[1]
    # relative to their bounds both are the same problem, so equal shares are the best on average
    gains = np.log(favoured.expected_error() / equal.expected_error())
    assert gains.mean() > 0.0


def test_the_plan_takes_the_better_noise_and_says_why():
    few, many = ([(0, 1)] * count for count in (2, 12))
    for bounds, law, why in ((few, "laplace", "starts smaller"), (many, "gaussian", "root of the")):
        plan = model(y_bounds=bounds).plan(X[::2])
        assert plan.noise.law == law
        assert plan.compared.law != law
        assert plan.compared.error > 1.0
        assert why in plan.describe()
        assert f"{plan.compared.law.capitalize()} noise" in plan.choice()
    assert model(delta=0.0).plan(X).noise.law == "laplace"
    assert model(mechanism="gaussian").plan(X).compared is None


def test_planning_again_at_another_epsilon_is_planning_there():
    plan, there = model().plan(X), model(epsilon=2.0).plan(X)
    assert plan.at(2.0).noise == there.noise
    assert_allclose(plan.expected_error(2.0), there.expected_error())
    assert np.all(plan.expected_error(2.0) < plan.expected_error())
    assert np.all(plan.error_without_privacy() < plan.expected_error())


# what is measured and what is made of it


@pytest.mark.parametrize("groups", [None, PEOPLE], ids=["rows", "people"])
def test_every_output_is_what_its_own_model_makes_of_its_part(groups, monkeypatch):
    """One draw of noise; with none, each output is that of a release of it alone without noise."""
    drawn = []
    monkeypatch.setattr(
        "privgp.vault.measure.add_noise", lambda t, noise, random: drawn.append(noise) or t
    )
    both = model(mechanism="gaussian").fit(X, Y, groups=groups)
    assert len(drawn) == 1
    assert drawn[0].size == both.plan_.strategy.size
    assert both.predict(NEW).shape == (3, 2)
    for place, part in enumerate(both.plan_.parts):
        alone = model(mechanism="gaussian", y_bounds=BOUNDS[place])
        y = Y[:, place]
        numbers = exact(part.strategy, y, part.y_bounds)
        alone._learn(
            plan_of_parts([part]), part.strategy.read(numbers, part.noise, part.half_width)
        )
        alone.n_features_in_ = 1
        assert_allclose(both.predict(NEW)[:, place], alone.predict(NEW), rtol=1e-9)
        assert_allclose(
            both.predict(NEW, return_cov=True)[1][:, :, place],
            alone.predict(NEW, return_cov=True)[1],
            rtol=1e-7,
            atol=1e-9,
        )


def test_without_much_noise_each_output_is_learned():
    close = model(hyperparameters="learned", epsilon=1000.0).fit(X, Y)
    assert close.score(X, Y) > 0.85
    assert close.score(X, Y) == pytest.approx(r2_score(Y, close.predict(X)))


def test_shapes_are_those_of_scikit_learn(fitted):
    mean, std = fitted.predict(NEW, return_std=True)
    again, covariance = fitted.predict(NEW, return_cov=True)
    low, high = fitted.interval(NEW, 0.5)
    for each in (mean, std, low, high):
        assert each.shape == (3, 2)
    assert covariance.shape == (3, 3, 2)
    assert_array_equal(mean, again)
    assert_allclose(np.sqrt(np.einsum("iik->ik", covariance)), std)
    assert np.all((low < mean) & (mean < high))
    wide = fitted.predict(NEW, return_std=True, observation=True)[1]
    assert np.all(wide > std)
    assert np.all(np.ptp(fitted.interval(NEW, 0.5, observation=True), axis=0) > high - low)
    assert len(fitted.kernel_) == len(fitted.noise_variance_) == len(fitted.measurements_) == 2
    stds = [m.noise_std for m in fitted.measurements_]
    assert_allclose(stds, fitted.plan_.measured_noise_std)
    with pytest.raises(ValueError, match="not both"):
        fitted.predict(NEW, return_std=True, return_cov=True)


def test_values_outside_their_own_bounds_are_clipped():
    beyond = Y.copy()
    beyond[0] = 1e6, -1e6
    clipped = np.clip(beyond, *np.transpose(BOUNDS))
    assert_array_equal(model().fit(X, beyond).predict(NEW), model().fit(X, clipped).predict(NEW))


def test_a_table_of_outputs_names_them():
    frame = pd.DataFrame({"weight": WEIGHT, "height": HEIGHT})
    named = model().fit(pd.DataFrame(X, columns=["age"]), frame)
    assert named.output_names_ == ("weight", "height")
    assert "weight, in [0, 120]" in named.plan_summary_
    assert_array_equal(
        named.predict(pd.DataFrame(NEW, columns=["age"])), model().fit(X, Y).predict(NEW)
    )
    assert model().fit(X, Y.tolist()).output_names_ == ("output 1", "output 2")


def test_kernels_and_noise_variances_one_per_output():
    kernels, noises = [400 * RBF(20.0), None], (25.0, None)
    both = model(kernel=kernels, noise_variance=noises, mechanism="gaussian").fit(X, Y)
    assert both.noise_variance_[0] == 25.0
    assert "RBF" in str(both.kernel_[0])
    assert "Matern" in str(both.kernel_[1])
    assert clone(both).get_params()["noise_variance"] == noises
    assert both.plan_.at(2.0).parts[0].start.noise_variance == 25.0


def test_one_model_may_be_fitted_to_one_and_to_several_outputs():
    either = model().fit(X, Y)
    either.set_params(y_bounds=(0, 120)).fit(X, WEIGHT)
    assert either.predict(NEW).shape == (3,)
    assert not hasattr(either, "output_names_")
    either.set_params(y_bounds=BOUNDS).fit(X, Y)
    assert either.predict(NEW).shape == (3, 2)
    assert not hasattr(either, "release_")


# what is guaranteed


def test_the_promise_is_about_all_outputs_of_a_row_or_person(fitted):
    assert fitted.guarantee_.unit == "all output values of one row"
    assert fitted.guarantee_.epsilon == 1.0
    assert fitted.guarantee_.delta == 1e-5
    assert "2 outputs, 2 of them of squares" in fitted.guarantee_.mechanism
    people = model(mechanism="gaussian").fit(X, Y, groups=PEOPLE).guarantee_
    assert people.unit == "all output values of one person"
    total = compose([fitted.guarantee_, fitted.guarantee_], delta=1e-5)
    assert 1.0 < total.epsilon < 2.0
    assert model(mechanism="laplace").fit(X, Y).guarantee_.delta == 0.0


@pytest.mark.statistical(failure=1e-6)
def test_an_audit_attacks_the_plan():
    """3,500 draws of four numbers; it would fail with probability below 1e-6."""
    few, both = X[::30], np.tile(np.mean(BOUNDS, axis=1), (2, 2, 1))
    plan = model(mechanism="gaussian", epsilon=8.0, delta=0.01).plan(few)
    both[:, 0] = np.transpose(BOUNDS)
    for data in ((), both):
        assert audit.trade_off(plan, *data, draws=3500).holds
        assert not audit.trade_off(plan, *data, draws=3500, noise_scale=0.8).holds


def test_neighbours_of_an_audit_differ_in_one_row():
    with pytest.raises(ValueError, match="differ in one row"):
        audit.trade_off(model().plan(X), Y, Y + 1.0)


# files


def test_a_file_predicts_to_the_last_bit(fitted, tmp_path):
    path = saved(fitted, tmp_path / "a.privgp")
    loaded = load(path)
    for kind in ({}, {"return_std": True}, {"return_cov": True, "observation": True}):
        for ours, theirs in zip(
            fitted.predict(NEW, **kind), loaded.predict(NEW, **kind), strict=True
        ):
            assert_array_equal(ours, theirs)
    assert_array_equal(fitted.interval(NEW), loaded.interval(NEW))
    assert loaded.output_names_ == fitted.output_names_
    assert loaded.noise_variance_ == fitted.noise_variance_
    assert loaded.guarantee_ == fitted.guarantee_
    assert loaded.plan_summary_ == fitted.plan_summary_
    assert certificate(loaded) == certificate(fitted)
    assert saved(loaded, tmp_path / "b.privgp").read_bytes() == path.read_bytes()
    numbers = "".join(repr(m.values.tolist()) for m in loaded.measurements_)
    assert not any(repr(float(v)) in numbers for v in Y.ravel())


@pytest.mark.parametrize("change", ["name", "output", "bounds", "shares", "certificate"])
def test_a_file_whose_parts_do_not_belong_together_is_refused(fitted, tmp_path, change):
    path = saved(fitted, tmp_path / "a.privgp")
    members = unpack(path.read_bytes())
    tree = json.loads(members["release.json"])
    if change == "name":
        tree["output_names"].pop()
    elif change == "output":
        tree["parts"].pop()
    elif change == "bounds":
        tree["parameters"]["y_bounds"][1] = [60.0, 201.0]
    elif change == "shares":
        tree["parameters"]["shares"] = [1.0, 2.0, 3.0]
    else:
        tree["facts"]["certificate"]["outputs"] = ["a", "b"]
    path.write_bytes(pack({**members, "release.json": json.dumps(tree).encode()}))
    with pytest.raises(DamagedFile):
        load(path)


def test_a_saved_plan_is_carried_out_as_it_was_made(tmp_path):
    plan = model(shares=(2, 1)).plan(X, groups=PEOPLE)
    again = load_plan(saved(plan, tmp_path / "a.plan"))
    assert again.hash == plan.hash
    assert again.describe() == plan.describe()
    ours, theirs = (model(shares=(2, 1)).fit(X, Y, groups=PEOPLE, plan=p) for p in (plan, again))
    assert_array_equal(ours.predict(NEW), theirs.predict(NEW))
    assert certificate(theirs)["plan"] == plan.hash
    for other in (model(), model(shares=(1, 2)), model(shares=(2, 1), y_bounds=BOUNDS[::-1])):
        with pytest.raises(ValueError, match="made for other"):
            other.fit(X, Y, groups=PEOPLE, plan=plan)
    with pytest.raises(ValueError, match="made for other"):
        model(y_bounds=BOUNDS[0]).fit(X, WEIGHT, groups=PEOPLE, plan=plan)


def test_a_forged_plan_with_too_little_noise_is_refused(tmp_path):
    path = saved(model(mechanism="gaussian").plan(X), tmp_path / "a.plan")
    members = unpack(path.read_bytes(), PLAN)
    for place in ("noise", "factors"):
        tree = json.loads(members["plan.json"])
        if place == "noise":
            tree["noise"]["std"] *= 0.8
        else:
            tree["factors"] = [1.0, 1.0]
        path.write_bytes(pack({**members, "plan.json": json.dumps(tree).encode()}, PLAN))
        with pytest.raises(DamagedFile):
            load_plan(path)


def test_the_certificate_speaks_of_all_outputs():
    frame = pd.DataFrame({"weight": WEIGHT, "height": HEIGHT})
    stated = certificate(model().fit(X, frame))
    validate(stated)
    jsonschema.validate(stated, SCHEMA)
    assert stated["outputs"] == ["weight", "height"]
    assert stated["bounds"]["outputs"] == [[0.0, 120.0], [60.0, 200.0]]
    assert len(stated["hyperparameters"]["kernel"]) == 2
    assert stated["private"] == ["the outputs (weight, height) of every row"]
    assert any(
        "All outputs of one row are protected together" in s for s in stated["not_protected"]
    )
    domain = stated["registry"]["deployment"]["dp_variant"]["data_domain"]
    assert "weight between 0 and 120, height between 60 and 200" in domain
    assert "weight 0 to 120, height 60 to 200" in page(stated)


def test_pictures_have_a_panel_for_every_output(fitted):
    figure = fitted.plot(observation=True)
    labels = [ax.get_ylabel() for part in figure.subfigs for ax in part.axes]
    assert labels == ["output 1", "output 2"]
    assert len(figure.legends) == 1
    assert not any(ax.get_legend() for part in figure.subfigs for ax in part.axes)
    assert len(model(mechanism="gaussian").plan(X[::6]).plot().axes) == 2
    with pytest.raises(ValueError, match="several panels"):
        fitted.plot(ax=figure.subfigs[0].axes[0])


# refusals, before anything is read


class Unread:
    """An output whose values nobody may look at."""

    def __array__(self, *_):
        raise AssertionError("the outputs were read")

    __len__ = __iter__ = __getitem__ = __array__


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"most_rows": 2}, "most_rows does not go with several outputs"),
        ({"objective": "trace"}, "objective does not go with several outputs"),
        ({"reconstruct": "unbiased"}, "reconstruct does not go with several outputs"),
        ({"y_bounds": [(0, 1)]}, "2 to 100 pairs"),
        ({"y_bounds": [(0, 1), (1, 0)]}, "low < high"),
        ({"y_bounds": [(0, 1), None]}, "y_bounds must be given"),
        ({"shares": (1, 2, 3)}, "shares must be 2 positive numbers"),
        ({"kernel": [None]}, "kernel must be one for all outputs, or 2"),
        ({"y_bounds": (0, 1), "shares": (1, 1)}, "shares does not go with one output"),
    ],
)
def test_what_does_not_go_with_several_outputs_is_refused_before_they_are_read(settings, match):
    with pytest.raises(ValueError, match=match):
        model(**settings).plan(X)
    if np.ndim(settings.get("y_bounds", BOUNDS)[0]) > 0:
        with pytest.raises(ValueError, match=match):
            model(**settings).fit(X, Unread())


@pytest.mark.parametrize(
    "y", [WEIGHT, Y[:, :1], Y[:-1], np.column_stack([Y, Y]), [[1.0, 2.0]], "ab", [[1.0]] * 60]
)
def test_outputs_of_another_shape_are_refused(y, monkeypatch):
    monkeypatch.setattr("privgp.vault.measure.add_noise", None)
    with pytest.raises(ValueError, match="y must"):
        model().fit(X, y)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_outputs_that_are_not_finite_are_refused(wrong, monkeypatch):
    monkeypatch.setattr("privgp.vault.measure.add_noise", None)
    bad = Y.copy()
    bad[4, 1] = wrong
    with pytest.raises(ValueError, match="y contains NaN or infinity"):
        model().fit(X, bad)


def test_names_that_a_plan_does_not_know_are_refused():
    plan = replace(model().plan(X), output_names=("weight", "height"))
    frame = pd.DataFrame({"height": HEIGHT, "weight": WEIGHT})
    with pytest.raises(ValueError, match="made for the outputs weight, height"):
        model().fit(X, frame, plan=plan)


def test_epsilon_for_reaches_the_error_for_every_output():
    least = model(hyperparameters="fixed").epsilon_for(X, 12.0)
    reached = model(hyperparameters="fixed", epsilon=least).plan(X).expected_error()
    assert np.all(reached <= 12.0)
    assert reached.max() > 0.9 * 12.0


def test_searches_are_for_one_output():
    search = PrivateGridSearchCV(
        model(kernel=RBF(10.0)), {"kernel__length_scale": [5.0, 20.0]}, epsilon=1.0, delta=1e-5
    )
    with pytest.raises(ValueError, match="y_bounds"):
        search.fit(X, Y)
