"""Four and more private inputs, from the plan to the file."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import privgp
from privgp import PrivateGPRegressor
from privgp.release.certificate import certificate

BOUNDS = [(0.0, 1.0), (-2.0, 2.0), (0.0, 10.0), (5.0, 6.0)]
LOW, HIGH = np.array(BOUNDS).T


def truth(X):
    return np.sin(3 * X[:, 0]) + 0.4 * X[:, 1]


def records(rows=2000, seed=0):
    rng = np.random.default_rng(seed)
    X = LOW + (HIGH - LOW) * rng.beta(2, 3, size=(rows, 4))
    return X, truth(X) + 0.2 * rng.standard_normal(rows)


@pytest.fixture(scope="module")
def model():
    X, y = records()
    asked = PrivateGPRegressor(
        protect="records",
        x_bounds=BOUNDS,
        y_bounds=(-2, 2),
        epsilon=2.0,
        delta=1e-5,
        random_state=0,
    )
    return asked.fit(X, y)


def test_it_learns_the_function_and_says_how_well(model):
    """One simulated release with a fixed seed: a constant has an error of 0.43."""
    X, y = records(1000, seed=1)
    error = np.sqrt(np.mean((model.predict(X) - truth(X)) ** 2))
    assert error < 0.2
    low, high = model.interval(X, observation=True)
    assert 0.85 <= np.mean((low <= y) & (y <= high)) <= 0.97
    low, high = model.interval(X)
    assert np.mean((low <= truth(X)) & (truth(X) <= high)) >= 0.85


def test_the_file_predicts_to_the_same_bits_and_holds_what_was_measured(model, tmp_path):
    path = tmp_path / "four.privgp"
    model.save(path)
    again, X = privgp.load(path), records(50, seed=2)[0]
    assert_array_equal(again.predict(X), model.predict(X))
    for ours, theirs in zip(model.interval(X), again.interval(X), strict=True):
        assert_array_equal(ours, theirs)
    assert_array_equal(again.measurements_[0].gram, model.measurements_[0].gram)
    again.save(tmp_path / "again.privgp")
    assert (tmp_path / "again.privgp").read_bytes() == path.read_bytes()


def test_the_points_that_stand_for_records_are_none_of_them(model):
    nodes, X = model.functionals_.nodes, records()[0]
    assert np.all((nodes >= LOW) & (nodes <= HIGH))
    assert not {tuple(row) for row in nodes} & {tuple(row) for row in X}


def test_what_is_promised(model):
    said = model.guarantee_.describe()
    assert "one whole record" in said
    assert "features of the inputs" in said
    stated = certificate(model)
    assert stated["data"]["rows"] == 2000
    assert stated["bounds"]["inputs"] == [list(pair) for pair in BOUNDS]
    assert "the number of rows" in stated["public"]


def test_it_is_drawn_over_the_declared_domain_without_inputs(model):
    figure = model.plot()
    assert [ax.get_xlim() for ax in figure.axes] == [*BOUNDS]
    assert "public inputs" not in [text.get_text() for text in figure.legends[0].get_texts()]


def test_a_plan_is_measured_as_it_is_and_for_nothing_else(model, tmp_path):
    X, y = records()
    plan = model.plan_
    plan.save(tmp_path / "four.plan")
    stored = privgp.load_plan(tmp_path / "four.plan")
    again = clone(model).fit(X, y, plan=stored)
    assert_array_equal(again.measurements_[0].gram, model.measurements_[0].gram)
    with pytest.raises(ValueError, match="plan was made for other"):
        clone(model).fit(X[:-1], y[:-1], plan=stored)
    assert plan.at(4.0).expected_error() < plan.expected_error()


def test_no_input_is_read_before_the_vault(model):
    """Where records lie changes nothing of the plan."""
    X, _ = records()
    assert model.plan(X).hash == model.plan_.hash


def test_a_given_kernel_and_given_targets():
    X, y = records(500)
    kernel = ConstantKernel(0.5) * RBF([1.0, 4.0, 10.0, 1.0])
    asked = PrivateGPRegressor(
        kernel, 0.04, protect="records", x_bounds=BOUNDS, y_bounds=(-2, 2), targets=X[:3] * 0 + 0.5,
        hyperparameters="fixed", epsilon=5.0, delta=1e-5, random_state=1,
    )  # fmt: skip
    asked.fit(X, y)
    assert asked.kernel_ == kernel
    assert len(asked.plan_.targets) == 3


@pytest.mark.parametrize("rows", [1, 9])
def test_hardly_any_records(rows):
    X, y = records(rows)
    asked = PrivateGPRegressor(protect="records", x_bounds=BOUNDS, y_bounds=(-2, 2), random_state=0)
    assert np.all(np.isfinite(asked.fit(X, y).predict(X)))


def test_labels_of_four_private_inputs():
    X, y = records()
    labels = np.where(y > np.median(y), "high", "low")
    asked = {"classes": ["high", "low"], "protect": "records", "x_bounds": BOUNDS}
    fitted = privgp.PrivateGPClassifier(
        **asked, epsilon=4.0, delta=1e-5, hyperparameters="fixed", random_state=0
    )
    fitted.fit(X, labels)
    assert fitted.guarantee_.unit == "one whole record (inputs and label)"
    assert "multiplied in pairs and by the labels" in fitted.guarantee_.mechanism
    assert np.mean(fitted.predict(X) == labels) > 0.6
