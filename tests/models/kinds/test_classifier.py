"""PrivateGPClassifier as scikit-learn, a data holder and a careless user see it."""

from __future__ import annotations

import pickle
import zipfile
from contextlib import nullcontext

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.metrics import log_loss

from privgp import PrivateGPClassifier, load, load_plan
from privgp.release.certificate import page, validate


def two(rows: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, labels and the probability of "yes"."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.uniform(0, 10, size=(rows, 1)), 1)
    p = expit(2.0 * np.sin(X[:, 0]))
    return X, np.where(rng.random(rows) < p, "yes", "no"), p


def three(rows: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.round(rng.uniform(0, 10, size=(rows, 1)), 1)
    x = X[:, 0]
    p = softmax(np.column_stack([3.0 - x, np.zeros(rows), x - 7.0]), axis=1)
    return X, (rng.random(rows)[:, None] > np.cumsum(p, axis=1)).sum(axis=1), p


def classifier(**settings) -> PrivateGPClassifier:
    given = {"classes": ["yes", "no"], "epsilon": 1.0, "delta": 1e-5, "random_state": 0}
    return PrivateGPClassifier(**{**given, **settings})


@pytest.fixture(scope="module")
def fitted() -> PrivateGPClassifier:
    X, y, _ = two()
    return classifier().fit(X, y)


def test_probabilities_are_near_the_truth_and_sum_to_one(fitted):
    X, _, p = two()
    found = fitted.predict_proba(X)
    assert_array_equal(fitted.classes_, ["no", "yes"])
    assert_allclose(found.sum(axis=1), 1.0)
    assert np.sqrt(np.mean((found[:, 1] - p) ** 2)) < 0.12
    assert_array_equal(fitted.predict(X), fitted.classes_[np.argmax(found, axis=1)])
    low, high = fitted.interval(X)
    assert low.shape == high.shape == found.shape
    assert np.all((low >= 0) & (low <= found) & (found <= high) & (high <= 1))
    assert np.mean((low[:, 1] <= p) & (p <= high[:, 1])) > 0.7
    assert_allclose(low[:, 0], 1.0 - high[:, 1])
    wide = fitted.interval(X, coverage=0.99)
    assert np.all(wide[0] <= low)
    assert np.all(wide[1] >= high)


def test_three_classes_beat_the_majority():
    X, y, _ = three(600)
    model = classifier(classes=[0, 1, 2], hyperparameters="fixed").fit(X, y)
    found = model.predict_proba(X)
    assert_allclose(found.sum(axis=1), 1.0)
    shares = np.bincount(y) / len(y)
    assert model.score(X, y) > shares.max() + 0.2
    assert log_loss(y, found) < log_loss(y, np.tile(shares, (len(y), 1))) - 0.2
    low, high = model.interval(X)
    assert np.all((low <= found) & (found <= high))
    assert model.plan_.strategy.size == sum(len(each.values) for each in model.measurements_)


@pytest.mark.parametrize("link", ["logit", "probit"])
@pytest.mark.parametrize("classes", [["yes", "no"], ["yes", "no", "perhaps"]])
def test_a_file_answers_to_the_last_bit(tmp_path, link, classes):
    X, y, _ = two(120)
    model = classifier(classes=classes, link=link, hyperparameters="fixed").fit(X, y)
    with pytest.warns(UserWarning, match="inputs"):
        model.save(tmp_path / "m.privgp")
    read = load(tmp_path / "m.privgp")
    assert isinstance(read, PrivateGPClassifier)
    assert_array_equal(read.predict_proba(X), model.predict_proba(X))
    assert_array_equal(read.interval(X), model.interval(X))
    assert_array_equal(read.classes_, model.classes_)
    assert read.guarantee_ == model.guarantee_
    assert read.plan_summary_ == model.plan_summary_
    assert read.certificate() == model.certificate()
    read.save(tmp_path / "again.privgp")
    assert (tmp_path / "again.privgp").read_bytes() == (tmp_path / "m.privgp").read_bytes()


@pytest.mark.parametrize("protect", ["outputs", "records"])
def test_a_file_knows_the_prevalence(tmp_path, protect):
    X, y, _ = two(120)
    private = {"protect": protect, "x_bounds": (0, 10)} if protect == "records" else {}
    model = classifier(prevalence=0.1, hyperparameters="fixed", **private).fit(X, y)
    with nullcontext() if private else pytest.warns(UserWarning, match="inputs"):
        model.save(tmp_path / "m.privgp")
    read = load(tmp_path / "m.privgp")
    assert read.prevalence == 0.1
    assert_array_equal(read.predict_proba(X), model.predict_proba(X))
    assert_array_equal(pickle.loads(pickle.dumps(model)).interval(X), model.interval(X))


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_a_prevalence_is_what_is_expected_where_nothing_is_measured(link):
    """Far from all rows a curve goes back to its prior: to the guess, not to even."""
    X, y = np.linspace(0, 1, 40)[:, None], np.repeat(["no", "yes"], [38, 2])
    kernel = ConstantKernel(1e-6) * RBF(0.1)
    asked = {"kernel": kernel, "link": link, "hyperparameters": "fixed"}
    rare, even = (classifier(prevalence=p, **asked).fit(X, y) for p in (0.05, None))
    assert_allclose(rare.predict_proba([[50.0]])[0, 1], 0.05, rtol=1e-3)
    assert_allclose(even.predict_proba([[50.0]])[0, 1], 0.5, rtol=1e-3)


def test_plans_expect_less_error_of_rare_classes():
    X = np.linspace(0, 10, 300)[:, None]
    errors = [classifier(prevalence=p).plan(X).expected_error() for p in (0.02, 0.1, None)]
    assert errors[0] < 0.5 * errors[1] < 0.5 * errors[2]


def test_a_learned_release_has_a_file_too(tmp_path, fitted):
    fitted.save(tmp_path / "m.privgp")
    X = np.linspace(-1, 11, 30)[:, None]
    assert_array_equal(load(tmp_path / "m.privgp").predict_proba(X), fitted.predict_proba(X))


@pytest.mark.parametrize("classes", [["yes", "no"], ["yes", "no", "perhaps"]])
def test_a_plan_is_saved_and_carried_out(tmp_path, classes):
    X, y, _ = two(120)
    model = classifier(classes=classes, hyperparameters="fixed")
    plan = model.plan(X)
    assert "declared classes" in plan.describe()
    assert 0.0 < plan.expected_error() < 0.5
    assert plan.expected_error(0.2) > plan.expected_error()
    with pytest.warns(UserWarning, match="inputs"):
        plan.save(tmp_path / "m.plan")
    planned = classifier(classes=classes, hyperparameters="fixed")
    planned.fit(X, y, plan=load_plan(tmp_path / "m.plan"))
    assert_array_equal(planned.predict_proba(X), model.fit(X, y).predict_proba(X))
    with pytest.raises(ValueError, match="other inputs, groups, bounds or parameters"):
        classifier(classes=["yes", "maybe"]).fit(X, y, plan=plan)


def test_the_certificate_speaks_of_labels(fitted):
    stated = fitted.certificate()
    validate(stated)
    assert stated["unit"] == "one label"
    assert stated["bounds"]["classes"] == ["no", "yes"]
    assert stated["private"] == ["the label of every row"]
    assert not any("output" in each for each in stated["not_protected"])
    assert "Classes" in page(stated)
    assert "labels" in fitted.guarantee_.mechanism


def test_all_labels_of_a_person_are_protected_together():
    X, y, _ = two(120)
    people = np.repeat(np.arange(40), 3)
    for classes in (["yes", "no"], ["yes", "no", "perhaps"]):
        model = classifier(classes=classes, hyperparameters="fixed", mechanism="gaussian")
        model.fit(X, y, groups=people)
        assert model.guarantee_.unit == "all labels of one person"


def test_private_inputs_of_two_classes():
    X, y, p = two(600)
    model = classifier(protect="records", x_bounds=(0, 10)).fit(X, y)
    assert model.guarantee_.unit == "one whole record (inputs and label)"
    assert np.sqrt(np.mean((model.predict_proba(X)[:, 1] - p) ** 2)) < 0.15


def test_an_undeclared_label_is_counted_in_no_class_without_a_word(recwarn):
    X, y, _ = two(60)
    other = y.astype(object)
    other[0] = "secret"
    model = classifier(hyperparameters="fixed").fit(X, other)
    assert not recwarn.list
    sums = [model.fit(X, labels).measurements_[0].values.sum() for labels in (y, other)]
    assert abs(sums[0] - sums[1]) == pytest.approx(0.5)


def test_nothing_of_a_label_remains(tmp_path):
    X, y, _ = two(60)
    other = [*y[:-1], "zq-secret-zq"]
    model = classifier(hyperparameters="fixed").fit(X, other)
    model.save(tmp_path / "m.privgp")
    members = zipfile.ZipFile(tmp_path / "m.privgp")
    held = [members.read(name) for name in members.namelist()]
    for kept in (*held, pickle.dumps(model), repr(vars(model)).encode()):
        assert b"zq-secret" not in kept
    assert not any(getattr(part, "shape", None) == y.shape for part in vars(model).values())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"classes": None}, "classes must be declared"),
        ({"classes": ["yes"]}, "got 1 class"),
        ({"link": "log"}, "link"),
        ({"prevalence": 0.0}, "prevalence must be at least 0.0001"),
        ({"prevalence": 1}, "prevalence must be at least 0.0001"),
        ({"prevalence": "rare"}, "prevalence must be a number"),
        ({"prevalence": 0.1, "classes": ["yes", "no", "perhaps"]}, "it needs two"),
        ({"mechanism": "none"}, "mechanism"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": 0.0, "mechanism": "gaussian"}, "delta"),
        ({"protect": "records"}, "x_bounds"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_spent(settings, words):
    X, y, _ = two(40)
    with pytest.raises(ValueError, match=words):
        classifier(**settings).fit(X, y)


def test_a_given_kernel_is_that_of_the_function():
    X, y, _ = two(60)
    kernel = ConstantKernel(2.0) * RBF(1.5)
    model = classifier(kernel=kernel, hyperparameters="fixed").fit(X, y)
    assert model.kernel_ == kernel


def test_names_of_columns_are_kept_and_pictures_drawn(tmp_path):
    X, y, _ = two(60)
    frame = pl.DataFrame({"age": X[:, 0]})
    model = classifier(hyperparameters="fixed").fit(frame, y)
    assert_array_equal(model.feature_names_in_, ["age"])
    axes = model.plot(output="ill").axes[0]
    assert axes.get_ylabel() == "probability of ill = yes"
    assert model.plot(label="no").axes[0].get_ylabel() == "probability of no"
    with pytest.raises(ValueError, match="one of the classes"):
        model.plot(label="maybe")


def test_the_least_epsilon_for_an_error():
    X, _, _ = two(60)
    epsilon = classifier(hyperparameters="fixed").epsilon_for(X, 0.15)
    assert classifier(hyperparameters="fixed", epsilon=epsilon).plan(X).expected_error() <= 0.15
