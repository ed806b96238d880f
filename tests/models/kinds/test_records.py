"""Whole records: the plan sees their number only, and nothing of them is left in a model."""

from __future__ import annotations

import pickle
import struct
import warnings
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.text import Text
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import privgp
from privgp import PrivateGPClassifier, PrivateGPRegressor
from privgp.plan.bins.bins import Bins
from privgp.plan.bins.build import WEIGHTS
from privgp.release.certificate import certificate, page, validate
from privgp.vault.measure import exact as without_noise
from privgp.vault.measure import measure

LAWS = ("gaussian", "laplace")
SENTINELS = np.array([0.12345678901234567, 0.7182818284590453, 0.5772156649015329])


def private(**settings) -> PrivateGPRegressor:
    given = {"protect": "records", "x_bounds": (0, 1), "y_bounds": (-2, 2), **settings}
    return PrivateGPRegressor(**given)


def some(inputs: int = 1, rows: int = 40, seed: int = 0):
    rng = np.random.default_rng(seed)
    return rng.uniform(size=(rows, inputs)), rng.uniform(-2, 2, size=rows)


def bits(thing) -> bytes:
    return pickle.dumps(thing)


def test_the_plan_depends_on_the_number_of_records_only():
    X, _ = some()
    plan = private().plan(X)
    for other in (100.0 * X + 7, np.full_like(X, np.nan), [[0.0]] * 40, 40):
        assert bits(private().plan(other)) == bits(plan)
    assert bits(private().plan(41)) != bits(plan)
    assert plan.inputs is None


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("inputs", [1, 2, 3])
def test_one_to_three_inputs(inputs, law):
    X, y = some(inputs, 60)
    settings = {"x_bounds": [(0, 1)] * inputs, "random_state": 0, "epsilon": 5.0}
    settings["hyperparameters"] = "fixed" if inputs == 3 else "learned"
    model = private(mechanism=law, **settings).fit(X, y)
    mean, std = model.predict(X, return_std=True)
    assert mean.shape == std.shape == (60,)
    assert np.all(np.isfinite(mean))
    assert np.all(std > 0)
    most = 2.0 if law == "gaussian" else 2.0 + WEIGHTS[-1]
    assert model.plan_.strategy.sensitivity() <= most + 1e-9
    assert "whole record" in model.guarantee_.unit
    assert "records" in model.plan_.describe()


def test_inputs_outside_are_projected():
    X, y = some()
    X[:3] = [[-5.0], [1e300], [1.0 + 1e-9]]
    inside = np.clip(X, 0, 1)
    fixed = {"hyperparameters": "fixed", "random_state": 1}
    first, second = (private(**fixed).fit(Z, y) for Z in (X, inside))
    np.testing.assert_array_equal(first.measurements_[0].values, second.measurements_[0].values)
    np.testing.assert_array_equal(first.measurements_[0].counts, second.measurements_[0].counts)


def test_measurement_is_what_it_says():
    X, y = some(2)
    bins = Bins(np.zeros(2), np.ones(2), (3, 4), 40, np.eye(12))
    exact = without_noise(bins, (X, y / 2), (-1.0, 1.0))
    cell = (np.floor(X[:, 0] * 3) * 4 + np.floor(X[:, 1] * 4)).astype(int)
    for j in range(12):
        assert exact[j] == np.sum(cell == j)
        assert exact[12 + j] == pytest.approx(y[cell == j].sum() / 2)
    assert exact[-1] == pytest.approx(np.sum(y**2) / 4)
    assert bins.of(np.array([[0.0, 0.0], [1.0, 1.0]])).tolist() == [0, 11]


@pytest.mark.parametrize("bad", [np.nan, np.inf, "x19471", None])
def test_bad_inputs_are_refused_without_naming_them(bad):
    X, y = some()
    table = X.astype(object)
    table[17, 0] = bad
    model = private()
    with pytest.raises(ValueError, match=r"^(Input )?X ") as caught:
        model.fit(table, y)
    assert "19471" not in str(caught.value)
    assert "17" not in str(caught.value)
    assert not hasattr(model, "guarantee_")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"x_bounds": None}, "x_bounds must be given"),
        ({"x_bounds": (1, 0)}, "low < high"),
        ({"x_bounds": "ab"}, "x_bounds must be"),
        ({"x_bounds": [(0, 1)] * 21}, "at most 20 inputs"),
        ({"x_bounds": [(0, 1)] * 2}, "one column per declared pair"),
        ({"y_bounds": None}, "y_bounds"),
        ({"reconstruct": "unbiased"}, "posterior"),
        ({"objective": "trace"}, "posterior"),
        ({"epsilon": -1}, "epsilon"),
    ],
)
def test_bad_arguments_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        private(**settings).fit(*some())


def test_given_kernels_and_fixed_hyperparameters():
    X, y = some()
    kernel = ConstantKernel(1.0, "fixed") * RBF(0.2, "fixed")
    settings = {"kernel": kernel, "noise_variance": 0.3, "random_state": 0}
    fixed = private(hyperparameters="fixed", **settings).fit(X, y)
    assert fixed.kernel_ == kernel
    assert fixed.noise_variance_ == pytest.approx(0.3)
    assert private(**settings).fit(X, y).kernel_ == kernel


@pytest.mark.parametrize("law", LAWS)
def test_no_record_is_left_in_model_pickle_or_file(tmp_path, law):
    X, y = some()
    X[:3, 0], y[:3] = SENTINELS, SENTINELS[::-1] + 1.0
    model = private(targets=[0.25, 0.75], mechanism=law).fit(X, y)
    path = tmp_path / "records.privgp"
    model.save(path)
    from privgp.storage.archive import read, unpack

    members = b"".join(unpack(read(path)).values())
    whole = bits(model) + bits(vars(model)) + repr(vars(model)).encode() + members
    for value in (*SENTINELS, *(SENTINELS + 1.0)):
        for number in (value, value / 2.0, 0.5 + 0.25 * value, 0.5 - 0.25 * value):
            for form in (struct.pack("<d", number), struct.pack(">d", number)):
                assert form not in whole
            assert repr(float(number)).encode() not in whole
            assert f"{number:.12g}".encode() not in whole
    assert struct.pack("<d", SENTINELS[0]) in bits(X), "the search finds what is there"
    nodes = model.functionals_.nodes
    assert not np.isin(np.round(X, 9), np.round(nodes, 9)).any()


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("inputs", [1, 2])
def test_a_saved_model_predicts_to_the_last_bit(tmp_path, inputs, law):
    X, y = some(inputs)
    model = private(x_bounds=[(0, 1)] * inputs, mechanism=law).fit(X, y)
    path = tmp_path / "records.privgp"
    model.save(path)
    loaded = privgp.load(path)
    for one, other in zip(
        model.predict(X, return_std=True), loaded.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert loaded.guarantee_ == model.guarantee_
    assert loaded.mechanism == law
    np.testing.assert_array_equal(loaded.measurements_[0].counts, model.measurements_[0].counts)
    loaded.save(tmp_path / "again.privgp")
    assert (tmp_path / "again.privgp").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("law", LAWS)
def test_the_certificate_says_that_inputs_are_protected(law):
    model = private(mechanism=law, hyperparameters="fixed").fit(*some())
    document = certificate(model)
    validate(document)
    assert "inputs and the output" in document["private"][0]
    assert not any("inputs of every row" in line for line in document["public"])
    assert document["bounds"]["inputs"] == [[0.0, 1.0]]
    assert document["data"]["rows"] == 40
    text = page(document)
    assert "Bounds of the inputs" in text
    for wrong in ("inputs are not protected", "know every input", "public inputs"):
        assert wrong not in text


@pytest.mark.parametrize("law", LAWS)
def test_a_release_with_real_noise_differs_every_time(law):
    X, y = some()
    plan = private(mechanism=law).plan(X)
    one, other = (measure((X, y), (-2, 2), plan.strategy, plan.noise) for _ in range(2))
    assert np.all(one.values != other.values)


@pytest.mark.parametrize("law", LAWS)
def test_the_preview_knows_that_more_budget_and_more_records_help(law):
    plan = private(mechanism=law).plan(200)
    assert plan.expected_error(8.0) < plan.expected_error() < plan.expected_error(0.1)
    assert private(mechanism=law).plan(2000).expected_error() < plan.expected_error()
    low, high = plan.expected_std([0.5], prior_range=0.9)
    assert low < plan.expected_std([0.5]) < high


def test_pictures_are_drawn():
    model = private(hyperparameters="fixed", random_state=0).fit(*some())
    for figure in (model.plan_.plot(), model.plot()):
        assert figure.axes
    shown = [text.get_text() for text in figure.findobj(Text)]
    assert "mean" in shown
    assert "public inputs" not in shown


def test_names_of_columns_are_kept_without_a_warning():
    pd = pytest.importorskip("pandas")
    X, y = some()
    table = pd.DataFrame(X, columns=["age"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = private(hyperparameters="fixed", random_state=0).fit(table, y)
        model.predict(table)
    assert list(model.feature_names_in_) == ["age"]


def test_sensitivity_grows_with_what_the_matrix_does():
    bins = private(mechanism="gaussian").plan(50).strategy
    doubled = replace(bins, matrix=2.0 * bins.matrix)
    assert doubled.sensitivity() == pytest.approx(2 * bins.sensitivity(), rel=1e-6)
    signed = replace(bins, matrix=np.eye(1, bins.count) - np.eye(1, bins.count, 1))
    assert signed.sensitivity() == pytest.approx(2 * np.sqrt(2))


@pytest.mark.parametrize("inputs", [1, 2])
def test_records_crowded_into_a_corner_of_the_domain(inputs):
    """Most bins are empty: noise in them must not take records from the full ones."""
    rng = np.random.default_rng(0)
    X = np.clip(0.3 + 0.02 * rng.standard_normal((2000, inputs)), 0, 1)
    y = 1.5 + 0.1 * rng.standard_normal(2000)
    model = private(x_bounds=[(0, 1)] * inputs, random_state=0).fit(X, y)
    mean, std = model.predict(np.full((1, inputs), 0.3), return_std=True)
    assert abs(mean[0] - 1.5) < 0.3
    assert abs(mean[0] - 1.5) < 4 * std[0]


def test_records_in_columns_are_counted_by_rows():
    """A plan took the number of columns for that of records."""
    X = {"a": [0.5] * 30, "b": [True, False] * 15}
    asked = {
        "epsilon": 1.0, "delta": 1e-5, "protect": "records", "hyperparameters": "fixed",
        "columns": {"a": "number", "b": "boolean"}, "x_bounds": {"a": (0, 1)}, "random_state": 0,
    }  # fmt: skip
    model = PrivateGPRegressor(y_bounds=(0, 1), **asked)
    plan = model.plan(X)
    assert plan.rows == 30
    assert model.plan(X, groups=[k % 7 for k in range(30)]).rows == 7
    assert model.fit(X, [0.5] * 30, plan=plan).plan_.rows == 30
    labelled = PrivateGPClassifier(classes=["u", "v"], **asked).fit(X, ["u", "v"] * 15)
    assert labelled.plan_.rows == 30
