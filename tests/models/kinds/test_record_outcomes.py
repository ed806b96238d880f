"""Private records of every outcome: labels of two and more classes and counts, of records and people."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from typing import Any

import matplotlib
import numpy as np
import pytest

import privgp
from privgp import PrivateGPClassifier, PrivateGPRegressor
from privgp.plan.plan import pack_plan
from privgp.release.certificate.schema import validate
from privgp.storage.archive import PLAN, DamagedFile, pack, unpack

matplotlib.use("Agg")
ROWS = 90
RNG = np.random.default_rng(0)
X = RNG.uniform(0, 10, (ROWS, 4)).round(3)
WHO = np.repeat(np.arange(ROWS // 3), 3)
LABELS = RNG.choice(list("pqr"), ROWS)
OUTCOMES: dict[str, Any] = {
    "two classes": (PrivateGPClassifier, {"classes": ["p", "q"]}, LABELS),
    "three classes": (PrivateGPClassifier, {"classes": list("pqr")}, LABELS),
    "counts": (
        PrivateGPRegressor,
        {"y_bounds": (0, 20), "likelihood": "poisson"},
        RNG.poisson(6.0, ROWS).astype(float),
    ),
}
TABLE = {
    "a": X[:, 0].tolist(),
    "when": np.arange("2024-01-01", "2024-03-31", dtype="datetime64[D]").astype(str).tolist(),
    "region": np.array(list("xyz"))[np.arange(ROWS) % 3].tolist(),
}
KINDS = {
    "columns": {"a": "number", "when": "date", "region": ("category", list("xyz"))},
    "x_bounds": {"a": (0, 10), "when": ("2024-01-01", "2024-12-31")},
}


def model(outcome: str, **settings: Any) -> Any:
    kind, declared, _ = OUTCOMES[outcome]
    asked = {"epsilon": 2.0, "delta": 1e-5, "random_state": 0, "hyperparameters": "fixed"}
    return kind(protect="records", **{**declared, **asked, **settings})


def source(inputs: Any) -> tuple[Any, dict[str, Any]]:
    """A table of this many numbers, or one of several kinds of columns."""
    if inputs == "kinds":
        return TABLE, KINDS
    return X[:, :inputs], {"x_bounds": [(0, 10)] * inputs}


def some(table: Any, rows: int = 4) -> Any:
    if isinstance(table, dict):
        return {name: cells[:rows] for name, cells in table.items()}
    return table[:rows]


# Bins or features; tests/test_combinations.py has two inputs and kinds of columns for all of them.
WAYS = [*product(OUTCOMES, [False, True], [1, 4]), ("three classes", True, "kinds")]


@pytest.mark.parametrize(("outcome", "people", "inputs"), WAYS)
def test_all_that_a_release_does(outcome, people, inputs, tmp_path):
    (table, declared), y = source(inputs), OUTCOMES[outcome][2]
    groups = WHO if people else None
    made = model(outcome, **declared)
    plan = made.plan(table, groups=groups)
    assert plan.rows == (ROWS // 3 if people else ROWS)
    plan.save(tmp_path / "a.plan")
    read = privgp.load_plan(tmp_path / "a.plan")
    assert read.fingerprint == plan.fingerprint
    assert read.expected_error() == plan.expected_error() > 0.0
    assert plan.at(4.0).expected_error() < plan.expected_error()
    made.fit(table, y, groups=groups, plan=read)
    low, high = made.interval(some(table))
    answer = made.predict_proba if hasattr(made, "predict_proba") else made.predict
    found = answer(some(table))
    assert np.all((low <= found + 1e-9) & (found <= high + 1e-9) & (low < high))
    made.save(tmp_path / "a.privgp")
    again = privgp.load(tmp_path / "a.privgp")
    asked = again.predict_proba if hasattr(again, "predict_proba") else again.predict
    np.testing.assert_array_equal(asked(some(table)), found)
    stated = made.certificate()
    validate(stated)
    whose = "all records of one person" if people else "one whole record"
    assert stated["unit"].startswith(whose)
    assert ("label" in stated["unit"]) == ("classes" in outcome)
    assert "2024" in plan.describe() or inputs != "kinds"


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_picture_and_an_epsilon_for_an_error(outcome):
    (table, declared), y = source(1), OUTCOMES[outcome][2]
    made = model(outcome, **declared)
    planned = made.plan(ROWS).expected_error()
    assert made.epsilon_for(ROWS, 0.9 * planned) > 2.0
    assert made.fit(table, y).plot() is not None


def probabilities(x: np.ndarray) -> np.ndarray:
    logits = np.column_stack([2.0 * np.sin(x), np.zeros_like(x), (x - 5.0) / 2.0])
    each = np.exp(logits)
    return each / each.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_three_classes_at_private_inputs_are_learned(mechanism):
    """3,000 records at epsilon 2; errors of about 0.03 beside 0.23 of the constant."""
    rng = np.random.default_rng(1)
    x, at = rng.uniform(0, 10, 3000), np.linspace(0.1, 9.9, 100)
    y = np.array([rng.choice(list("pqr"), p=p) for p in probabilities(x)])
    settings = {"x_bounds": (0, 10), "mechanism": mechanism, "hyperparameters": "learned"}
    fitted = model("three classes", **settings).fit(x[:, None], y)
    true, found = probabilities(at), fitted.predict_proba(at[:, None])
    constant = true.mean(axis=0)
    assert np.sqrt(np.mean((found - true) ** 2)) < 0.06
    assert np.sqrt(np.mean((constant - true) ** 2)) > 0.2
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    low, high = fitted.interval(at[:, None])
    assert 0.7 <= np.mean((low <= true) & (true <= high)) <= 1.0
    expected = fitted.plan_.expected_error()
    assert np.sqrt(np.mean((found - true) ** 2)) < 2.0 * expected


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_a_rate_at_private_inputs_is_learned(mechanism):
    """3,000 records at epsilon 2; the rate is within a tenth, and varies by a half of itself."""
    rng = np.random.default_rng(1)
    x, at = rng.uniform(0, 10, 3000), np.linspace(0.1, 9.9, 100)
    settings = {"x_bounds": (0, 10), "mechanism": mechanism, "y_bounds": (0, 30)}
    fitted = model("counts", hyperparameters="learned", **settings)
    fitted.fit(x[:, None], rng.poisson(6.0 * np.exp(0.8 * np.sin(x))).astype(float))
    true, found = 6.0 * np.exp(0.8 * np.sin(at)), fitted.predict(at[:, None])
    assert np.sqrt(np.mean(np.log(found / true) ** 2)) < 0.1
    low, high = fitted.interval(at[:, None])
    assert 0.7 <= np.mean((low <= true) & (true <= high)) <= 1.0
    assert np.all(low > 0.0)
    below, above = fitted.interval(at[:, None], observation=True)
    assert np.all((below <= low) & (high <= above))


def test_units_of_a_rate_do_not_matter():
    """The prior of a rate is relative to the bounds, and noise is proportional to them."""
    x = RNG.uniform(0, 10, (400, 1))
    counts = RNG.poisson(4.0 + 3.0 * np.sin(x[:, 0])).astype(float)
    both = [
        model("counts", x_bounds=(0, 10), y_bounds=(0, 20 * unit), noise_variance=unit).fit(
            x, unit * counts
        )
        for unit in (1.0, 8.0)
    ]
    found = [fitted.predict(x[:9]) for fitted in both]
    np.testing.assert_allclose(found[1] / 8.0, found[0], rtol=1e-3)


def test_people_with_many_records_of_a_label_are_hidden_as_one_record_is():
    x = np.full((ROWS, 1), 5.0)
    plans = [model(name, x_bounds=(0, 10)).plan(x, groups=WHO) for name in OUTCOMES]
    alone = [model(name, x_bounds=(0, 10)).plan(ROWS // 3) for name in OUTCOMES]
    for people, records in zip(plans, alone, strict=True):
        assert people.strategy.sensitivity() == records.strategy.sensitivity()
        assert people.noise.std == pytest.approx(records.noise.std, rel=1e-6)


def test_a_label_of_no_class_tells_nothing_and_nobody(recwarn):
    """All labels undeclared: every class is as probable as beforehand, and as each other."""
    x = np.linspace(0, 10, 4000)[:, None]
    fitted = model("three classes", x_bounds=(0, 10), epsilon=50.0).fit(x, ["other"] * 4000)
    np.testing.assert_allclose(fitted.predict_proba(x[::400]), 1 / 3, atol=0.03)
    assert not [each for each in recwarn if "other" in str(each.message)]


def test_the_grid_is_chosen_for_the_noise_of_many_classes():
    """The noise of one class, in labels, hardly depends on their number; that of the counts does."""
    few, many = (
        PrivateGPClassifier(
            classes=range(k), protect="records", x_bounds=(0, 10), epsilon=1.0, mechanism="laplace"
        ).plan(2000)
        for k in (3, 40)
    )
    assert few.measured_noise_std < many.measured_noise_std < 1.3 * few.measured_noise_std
    assert many.strategy.count_std(1.0) > 3.0 * few.strategy.count_std(1.0)
    assert many.expected_error() > few.expected_error()


BAD: tuple[tuple[str, dict[str, Any], dict[str, Any], str], ...] = (
    ("counts", {"max_change": 1}, {}, "max_change does not go with protect='records'"),
    ("counts", {}, {"exposure": np.ones(ROWS)}, "that of a private record is as private"),
    ("counts", {"y_bounds": (-1, 5)}, {}, "y_bounds must not be negative"),
    ("counts", {"inducing": X[:5]}, {}, "inducing"),
    ("counts", {"inducing": 0}, {}, "inducing"),
    ("counts", {"objective": "trace"}, {}, "objective"),
    ("counts", {"x_bounds": None}, {}, "x_bounds"),
    ("three classes", {"x_bounds": [(0, 10)] * 4, "delta": 0.0}, {}, "need Gaussian noise"),
    ("three classes", {}, {"groups": WHO[:-1]}, "groups"),
    ("three classes", {"classes": ["p"]}, {}, "2 to 100 labels"),
)


@pytest.mark.parametrize(("outcome", "settings", "given", "sentence"), BAD)
def test_what_private_records_cannot_have_is_refused(
    outcome, settings, given, sentence, monkeypatch
):
    monkeypatch.setattr("privgp.vault.measure.add_noise", None)
    made = model(outcome, **{"x_bounds": (0, 10), **settings})
    columns = 4 if np.ndim(settings.get("x_bounds")) == 2 else 1
    with pytest.raises(ValueError, match=sentence):
        made.fit(X[:, :columns], OUTCOMES[outcome][2], **given)
    with pytest.raises(ValueError, match=sentence):
        made.plan(X[:, :columns], **given)


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_missing_outcome_is_refused_before_anything_is_drawn(outcome, monkeypatch):
    monkeypatch.setattr("privgp.vault.measure.add_noise", None)
    y = OUTCOMES[outcome][2].astype(object)
    y[3] = None
    with pytest.raises(ValueError, match="y ") as refused:
        model(outcome, x_bounds=(0, 10)).fit(X[:, :1], y)
    assert "3" not in str(refused.value)


def test_a_plan_for_other_people_or_classes_is_refused():
    plan = model("three classes", x_bounds=(0, 10)).plan(ROWS)
    for other, groups in (("two classes", None), ("three classes", WHO)):
        with pytest.raises(ValueError, match="plan was made for other"):
            model(other, x_bounds=(0, 10)).fit(X[:, :1], LABELS, groups=groups, plan=plan)


@pytest.mark.parametrize(("classes", "energy"), [(1, 0.0), (4, 0.0), (3, 0.5), (0, 0.0)])
def test_a_forged_plan_with_other_classes_or_an_energy_is_damaged(classes, energy):
    plan = model("three classes", x_bounds=(0, 10), mechanism="gaussian").plan(ROWS)
    members = unpack(pack_plan(plan), PLAN)
    tree = json.loads(members["plan.json"])
    assert tree["parts"][0]["strategy"]["classes"] == 3
    tree["parts"][0]["strategy"] |= {"classes": classes, "energy_weight": energy}
    forged = pack({**members, "plan.json": json.dumps(tree).encode()}, PLAN)
    with pytest.raises(DamagedFile):
        privgp.plan.plan.unpack_plan(forged)


@pytest.mark.parametrize("declared", [None, 4.0])
def test_a_forged_plan_with_weights_that_were_not_declared_is_damaged(declared):
    asked = model("two classes", x_bounds=(0, 10), mechanism="gaussian", max_weight=declared)
    members = unpack(pack_plan(asked.plan(ROWS)), PLAN)
    tree = json.loads(members["plan.json"])
    tree["parts"][0]["strategy"]["weighted"] = declared is None
    forged = pack({**members, "plan.json": json.dumps(tree).encode()}, PLAN)
    with pytest.raises(DamagedFile):
        privgp.plan.plan.unpack_plan(forged)


def test_plans_and_strategies_of_numbers_have_the_fingerprints_they_had():
    from privgp.plan.bins.bins import Bins
    from privgp.storage.codec import fingerprint

    bins = Bins(np.zeros(1), np.ones(1), (3,), 5, np.eye(3))
    fields = {
        name: value for name, value in vars(bins).items() if name not in ("classes", "weighted")
    }
    assert fingerprint(bins) == fingerprint(fields)
    assert fingerprint(replace(bins, classes=3)) != fingerprint(bins)


@pytest.mark.parametrize("people", [False, True], ids=["records", "people"])
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_further_records_and_a_second_look_are_read_about_the_same_centre(
    outcome, people, tmp_path
):
    """Of a constant: with the centre lost, all batches together would be off by it."""
    x, kind = np.linspace(0, 10, 1200)[:, None], OUTCOMES[outcome][0]
    y = np.full(1200, 12.0) if outcome == "counts" else np.array(["p", "p", "p", "q"] * 300)
    groups, later = (
        (np.repeat(np.arange(400), 3), np.repeat(np.arange(399), 3)) if people else (None, None)
    )
    made = model(outcome, x_bounds=(0, 10), epsilon=20.0).fit(x, y, groups=groups)
    made.update(x[:1197], y[:1197], groups=later)
    made.refine(x, y, 20.0, 1e-6, groups=groups)
    answer = made.predict if kind is PrivateGPRegressor else made.predict_proba
    found, true = answer(x[60::120]), 12.0 if outcome == "counts" else 0.75
    first = found if outcome == "counts" else found[:, 0]
    np.testing.assert_allclose(first, true, rtol=0.15)
    made.save(tmp_path / "a.privgp")
    again = privgp.load(tmp_path / "a.privgp")
    asked = again.predict if kind is PrivateGPRegressor else again.predict_proba
    np.testing.assert_array_equal(asked(x[60::120]), found)
