"""Updates and refinements of every outcome at public inputs, and of private records."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from privgp import (
    BudgetExceeded,
    Count,
    Label,
    Ledger,
    Number,
    PrivateGP,
    PrivateGPClassifier,
    PrivateGPRegressor,
    compose,
    load,
)
from privgp.gp.inference.linked import Outcomes
from privgp.gp.links import LOGIT
from privgp.models import published
from privgp.plan import build
from privgp.plan.plan import plan_of_parts
from privgp.release.certificate import certificate, page, validate
from privgp.release.parts import (
    ONE_BATCH_EACH,
    ONE_BATCH_OF_RECORDS,
    SAME_OUTPUTS,
    SAME_RECORDS,
)
from privgp.release.release import CODEC, decode
from privgp.storage.archive import DamagedFile
from tests.adversary.spying import watched

PLACES = np.linspace(0.05, 0.95, 19)[:, None]
QUICK: dict[str, Any] = {"delta": 1e-5, "random_state": 0, "hyperparameters": "fixed"}
CLASSES = ("no", "perhaps", "yes")


def chance(X: np.ndarray) -> np.ndarray:
    """A probability that falls along the first input."""
    return 0.9 - 0.8 * X[:, 0]


def rows(seed: int, count: int = 80, inputs: int = 1) -> tuple[np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(seed)
    return rng.uniform(0.0, 1.0, (count, inputs)), rng


def numbers(X: np.ndarray, rng: Any) -> Any:
    return chance(X) + rng.normal(0.0, 0.1, len(X))


def two_labels(X: np.ndarray, rng: Any) -> Any:
    return np.where(rng.random(len(X)) < chance(X), "yes", "no")


def three_labels(X: np.ndarray, rng: Any) -> Any:
    u = rng.random(len(X)) / chance(X)
    return np.array(CLASSES)[(u < 1.0).astype(int) + (u < 0.5)]


def counts(X: np.ndarray, rng: Any) -> Any:
    return rng.poisson(8.0 * chance(X)).astype(float)


def pairs(X: np.ndarray, rng: Any) -> Any:
    return np.column_stack([numbers(X, rng), 1.0 - numbers(X, rng)])


def regressor(**settings: Any) -> PrivateGPRegressor:
    return PrivateGPRegressor(**{"y_bounds": (0, 1), **QUICK, **settings})


def classifier(classes: Any = ("no", "yes"), **settings: Any) -> PrivateGPClassifier:
    return PrivateGPClassifier(classes=classes, **{**QUICK, **settings})


RECORDS: dict[str, Any] = {"protect": "records", "x_bounds": (0, 1)}
POISSON: dict[str, Any] = {"y_bounds": (0, 20), "likelihood": "poisson", "max_change": 1}
Kind = tuple[Callable[..., Any], dict[str, Any], Callable[..., Any], int]
# model, settings, outputs, inputs
KINDS: dict[str, Kind] = {
    "two classes": (classifier, {}, two_labels, 1),
    "three classes": (classifier, {"classes": CLASSES, "mechanism": "laplace"}, three_labels, 1),
    "counts": (regressor, POISSON, counts, 1),
    "several": (regressor, {"y_bounds": ((0, 1), (0, 1)), "shares": (1, 2)}, pairs, 1),
    "labels with nodes": (classifier, {"inducing": 12}, two_labels, 1),
    "bins": (regressor, {**RECORDS, "mechanism": "gaussian"}, numbers, 1),
    "halved bins": (regressor, {**RECORDS, "mechanism": "laplace"}, numbers, 1),
    "features": (regressor, {**RECORDS, "x_bounds": [(0, 1)] * 4}, numbers, 4),
    "labels of records": (classifier, RECORDS, two_labels, 1),
    "several of records": (
        regressor,
        {**RECORDS, "y_bounds": ((0, 1), (0, 1)), "mechanism": "gaussian"},
        pairs,
        1,
    ),
}  # fmt: skip
PUBLIC = [name for name, kind in KINDS.items() if "protect" not in kind[1]]
PRIVATE = [name for name in KINDS if name not in PUBLIC]


def made(kind: str, **more: Any) -> tuple[Any, Callable[..., tuple[Any, Any]]]:
    """An unfitted model, and what gives a batch of rows by its seed and size."""
    model, settings, outputs, inputs = KINDS[kind]

    def batch(seed: int, count: int = 80) -> tuple[Any, Any]:
        X, rng = rows(seed, count, inputs)
        return X, outputs(X, rng)

    return model(**{**settings, **more}), batch


def answers(model: Any, X: np.ndarray) -> np.ndarray:
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


def saved(model: Any, path: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the file contains inputs
        model.save(path, overwrite=True)
    return load(path).set_params(random_state=0)


@pytest.mark.parametrize(
    ("kind", "people"),
    [(kind, False) for kind in KINDS]
    + [(kind, True) for kind in KINDS if kind not in ("labels of records", "features")],
)
def test_guarantees_files_and_certificates_of_every_kind(kind, people, tmp_path):
    """New people keep the guarantee, the same people add to it, a file is all that is needed, and the
    certificate tells of all measurements."""
    model, batch = made(kind)
    who = {count: np.arange(count) // 2 if people else None for count in (80, 60)}
    model.fit(*batch(0), groups=who[80])
    model.update(*batch(1, 60), groups=who[60])
    delta = model.guarantee_.delta
    assert model.guarantee_.epsilon == 1.0
    other = saved(model, tmp_path / "one.privgp")
    for each in (model, other):
        each.refine(*batch(0), 0.5, 1e-5, groups=who[80])
    X = batch(5)[0]
    assert_array_equal(answers(other, X), answers(model, X))
    assert other.guarantee_ == model.guarantee_
    parts = [each.guarantee for each in model._released.spent if each.batch == 0]
    total = compose(parts, sum(part.delta for part in parts))
    assert (model.guarantee_.epsilon, model.guarantee_.delta) == (total.epsilon, total.delta)
    assert 1.0 < total.epsilon <= 1.5
    assert total.delta >= delta
    again = saved(other, tmp_path / "two.privgp")
    assert_array_equal(answers(again, X), answers(model, X))
    assert len(again.measurements_) == len(model.measurements_) == 3 * _functions(model)
    assert [each.batch for each in again._released.spent] == [0, 1, 0]
    facts = certificate(model)
    validate(facts)
    assert facts["data"]["rows"] == (70 if people and kind in PRIVATE else 140)
    private = kind in PRIVATE
    said = {ONE_BATCH_OF_RECORDS, SAME_RECORDS} if private else {ONE_BATCH_EACH, SAME_OUTPUTS}
    assert said <= {*facts["assumptions"]}
    assert "2 batches of different people" in facts["mechanism"]["description"]
    assert "2 measurements of the same rows" in facts["mechanism"]["description"]
    assert "nobody is in two of the batches" in page(facts)
    assert "xpected error" in model.plan_summary_


def _functions(model: Any) -> int:
    return sum(len(part.functions) for part in model._released.parts)


@pytest.mark.parametrize("kind", ["two classes", "counts", "several"])
def test_two_batches_are_as_one_release_of_all_rows(kind):
    """With next to no noise, and refined rows counted once."""
    model, batch = made(kind, epsilon=3000.0, mechanism="gaussian", targets=PLACES)
    once = deepcopy(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about the budget
        model.fit(*batch(0)).update(*batch(1)).refine(*batch(0), 3000.0, 1e-5)
        X, y = (np.concatenate(each) for each in zip(batch(0), batch(1), strict=True))
        once.fit(X, y)
    low, high = once.interval(PLACES)
    found = model.interval(PLACES)
    off = np.abs(answers(model, PLACES) - answers(once, PLACES))
    assert np.all(off < 0.2 * (high - low).mean())
    assert_allclose((found[1] - found[0]).mean(), (high - low).mean(), rtol=0.1)


@pytest.mark.parametrize("kind", PRIVATE)
def test_sums_of_records_are_added_and_averaged(kind):
    """Of different records they add up, of the same ones they are averaged by their precision."""
    model, batch = made(kind)
    model.fit(*batch(0)).update(*batch(1, 60)).refine(*batch(0), 2.0, 1e-5)
    for one, plan in zip(model._released.parts, model.plan_.parts, strict=True):
        first, second, again = one.spent
        w = first.noise_std**-2 / (first.noise_std**-2 + again.noise_std**-2)
        whole = one.measurement
        for name in ("values", "counts", "gram"):
            a, b, c = (getattr(each, name) for each in (first, second, again))
            if a is None:
                assert getattr(whole, name) is None
                continue
            assert_allclose(getattr(whole, name), w * a + (1 - w) * c + b, rtol=1e-12, atol=1e-9)
        variance = 1.0 / (first.noise_std**-2 + again.noise_std**-2) + second.noise_std**2
        assert whole.noise_std == pytest.approx(variance**0.5)
        assert plan.as_one.strategy.rows == 140
        assert plan.as_one.measured_noise_std == pytest.approx(whole.noise_std)
        assert_array_equal(plan.strategy.matrix, first.strategy.matrix)


def test_one_measurement_of_all_records_tells_as_much():
    """The same released numbers, as if all records had been measured at once."""
    model, batch = made("bins")
    model.fit(*batch(0)).update(*batch(1, 60))
    whole = model._released.parts[0].measurement
    alone, _ = made("bins")
    alone.fit(*batch(0))
    alone._learn(plan_of_parts([model.plan_.as_one]), whole)
    mean, std = model.predict(PLACES, return_std=True)
    same_mean, same_std = alone.predict(PLACES, return_std=True)
    assert_allclose(mean, same_mean, rtol=1e-9)
    assert_allclose(std, same_std, rtol=1e-9)


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_labels_of_different_batches_scatter_independently(law):
    """What labels scatter about their probabilities, row by row: in common only if measured twice."""
    rng = np.random.default_rng(0)
    X, Z = rng.integers(0, 12, (50, 1)) / 12.0, rng.integers(0, 12, (30, 1)) / 12.0
    model = classifier(mechanism=law)
    strategies = []
    labels = [two_labels(each, rng) for each in (X, Z)]
    strategies.append(model.fit(X, labels[0]).plan_.strategy)
    strategies.append(model.update(Z, labels[1]).plan_.strategy)
    strategies.append(model.refine(X, labels[0], 0.7, 1e-5).plan_.strategy)
    weights = [s.matrix[:, s.index] for s in strategies]
    W = np.zeros((sum(map(len, weights)), 80))
    one, two = len(weights[0]), len(weights[0]) + len(weights[1])
    W[:one, :50], W[one:two, 50:], W[two:, :50] = weights
    stds = [each.noise_std for each in model._released.spent]
    W *= np.repeat([stds[0] / std for std in stds], list(map(len, weights)))[:, None]
    f, t = model.functionals_, model._released.parts[0].measurement
    outcomes = Outcomes(f, t, LOGIT, 0.5)
    even = outcomes._scatter(np.full(len(f.nodes), 0.25))
    exact = 0.25 * W @ W.T
    assert not np.any(even[one:two, :one])
    assert_allclose(np.diag(even), np.diag(exact), rtol=1e-9)
    largest = np.diag(exact).max()
    assert np.abs(even - exact).max() < 0.15 * largest  # masses of both batches are mixed at nodes
    assert np.abs(even[two:, :one]).max() > 0.1 * largest  # and the same labels are in both


SEEDS = range(3)


ACCURATE = ["two classes", "counts", "bins", "halved bins", "several"]


@pytest.mark.parametrize("kind", ACCURATE)
def test_new_people_reduce_the_error(kind):
    """Of the function, on average over a few simulations."""
    errors = []
    for seed in SEEDS:
        model, batch = made(kind, random_state=seed, epsilon=0.2)
        before = _distance(model.fit(*batch(10 * seed, 250)), _truth(kind))
        model.set_params(epsilon=2.0).update(*batch(10 * seed + 1, 400))
        errors.append((before, _distance(model, _truth(kind))))
    before, after = np.mean(errors, axis=0)
    assert after < 0.9 * before


@pytest.mark.parametrize("kind", ACCURATE)
def test_a_second_look_brings_a_release_nearer_to_one_without_noise(kind):
    """Of the same rows: what they scatter about the function, no budget takes away."""
    errors = []
    for seed in SEEDS:
        model, batch = made(kind, random_state=seed, epsilon=0.2)
        first = batch(10 * seed, 250)
        noiseless = answers(made(kind, epsilon=1000.0)[0].fit(*first), PLACES)
        before = _distance(model.fit(*first), noiseless)
        errors.append((before, _distance(model.refine(*first, 4.0, 1e-5), noiseless)))
    before, after = np.mean(errors, axis=0)
    assert after < 0.5 * before


def _truth(kind: str) -> np.ndarray:
    p = chance(PLACES)
    if kind == "counts":
        return 8.0 * p
    return {
        "two classes": np.column_stack([1.0 - p, p]),
        "several": np.column_stack([p, 1.0 - p]),
    }.get(kind, p)


def _distance(model: Any, goal: np.ndarray) -> float:
    return float(np.square(answers(model, PLACES) - goal).mean())


@pytest.mark.parametrize("kind", ["two classes", "three classes", "counts"])
def test_a_plan_behind_a_link_knows_what_was_measured(kind, monkeypatch):
    """It leaves less unknown than that of somebody who does not know the first release."""
    model, batch = made(kind, epsilon=5.0, mechanism="laplace")
    model.fit(*batch(0))
    Z, y = batch(1, 61)
    unknowing = deepcopy(model).set_params(epsilon=2.0)._plan_table(Z, None).strategy
    other = deepcopy(model.set_params(epsilon=2.0))
    model.update(Z, y)
    monkeypatch.setattr(build, "best_sums", lambda task, law: unknowing)
    other.update(Z, y)
    assert model.plan_.expected_error() <= other.plan_.expected_error()


@pytest.mark.parametrize("kind", PUBLIC)
def test_rows_at_public_inputs_are_compared(kind, monkeypatch):
    model, batch = made(kind)
    model.fit(*batch(0))
    monkeypatch.setattr(published, "measure", None)
    with pytest.raises(ValueError, match="measured already"):
        model.update(*batch(0))
    with pytest.raises(ValueError, match="must be the rows of one earlier measurement"):
        model.refine(*batch(1), 1.0, 1e-5)
    with pytest.raises(ValueError, match="groups must be given if"):
        model.update(*batch(1), groups=np.arange(80))


@pytest.mark.parametrize("kind", PRIVATE)
def test_private_records_are_not_compared(kind, monkeypatch):
    """Whatever the records are, what is refused depends on their number alone."""
    model, batch = made(kind)
    model.fit(*batch(0)).update(*batch(1, 60))
    deepcopy(model).update(*batch(0, 30))
    deepcopy(model).refine(*batch(7), 0.5, 1e-5)  # others than those of the first batch
    deepcopy(model).update(*batch(0))  # the very records of the first batch
    twice = deepcopy(model).update(*batch(2))
    monkeypatch.setattr(published, "measure", None)
    with pytest.raises(ValueError, match=r"several batches have this many records.*Nothing was"):
        twice.refine(*batch(2), 0.5, 1e-5)
    with pytest.raises(ValueError, match=r"as many records.*Nothing was spent"):
        model.refine(*batch(0, 79), 0.5, 1e-5)
    with pytest.raises(ValueError, match="groups must be given if"):
        model.update(*batch(3), groups=np.arange(80))
    with watched() as events, pytest.raises(ValueError, match="requires y"):
        model.update(batch(3)[0], None)
    assert not events


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        ("two classes", {"classes": ("no", "yes", "perhaps")}),
        ("two classes", {"link": "probit"}),
        ("two classes", {"prevalence": 0.1}),
        ("counts", {"likelihood": "gaussian"}),
        ("counts", {"max_change": 2.0}),
        ("several", {"y_bounds": ((0, 1), (0, 2))}),
        ("bins", {"x_bounds": (0, 2)}),
    ],
)
def test_parameters_that_released_numbers_rest_on_stay(kind, changed, tmp_path):
    model, batch = made(kind)
    model.fit(*batch(0))
    for each in (saved(model, tmp_path / "one.privgp"), model):
        each.set_params(**changed)
        with watched() as events, pytest.raises(ValueError, match="as it was"):
            each.update(*batch(1, 60))
        assert not events


def test_exposures_belong_to_the_rows():
    """They are public, and rates stay multiples of the first unit, also for larger exposures."""
    X, rng = rows(0)
    exposure = rng.uniform(1.0, 3.0, len(X))
    model = regressor(**POISSON, epsilon=50.0)
    model.fit(X, rng.poisson(exposure * chance(X)), exposure=exposure)
    unit = model.release_.unit
    Z, rng = rows(1, 400)
    more = rng.uniform(5.0, 15.0, len(Z))
    model.update(Z, rng.poisson(more * chance(Z)), exposure=more)
    assert model.release_.unit == unit
    assert_allclose(model.predict(PLACES), chance(PLACES), atol=0.15)
    with pytest.raises(ValueError, match="must be the rows of one earlier measurement"):
        model.refine(Z, rng.poisson(more), 1.0, 1e-5, exposure=more + 1.0)
    model.refine(Z, rng.poisson(more * chance(Z)), 1.0, 1e-5, exposure=more)
    with pytest.raises(ValueError, match="exposure does not go with likelihood='gaussian'"):
        made("several")[0].fit(X, pairs(X, rng)).update(Z, pairs(Z, rng), exposure=more)


def test_outputs_under_other_names_are_refused():
    X, rng = rows(0)
    model = made("several")[0].fit(X, pl.DataFrame(pairs(X, rng), schema=["a", "b"]))
    Z, rng = rows(1)
    with pytest.raises(ValueError, match=r"columns a, b, in this order\. Nothing was spent"):
        model.update(Z, pl.DataFrame(pairs(Z, rng), schema=["b", "a"]))
    model.update(Z, pl.DataFrame(pairs(Z, rng), schema=["a", "b"]))
    assert model.output_names_ == ("a", "b")


def test_mixed_outcomes(tmp_path):
    def table(seed: int, count: int) -> pl.DataFrame:
        X, rng = rows(seed, count)
        private = {"a": numbers(X, rng), "b": three_labels(X, rng), "c": counts(X, rng)}
        return pl.DataFrame({"x": X[:, 0], **private, "e": 1.0 + np.arange(count) % 2})

    outcomes = {"a": Number(0, 1), "b": Label(*CLASSES), "c": Count(high=20, exposure="e")}
    model = PrivateGP(outcomes, inputs=["x"], epsilon=3.0, **QUICK)
    model.fit(table(0, 80)).update(table(1, 60))
    assert model.guarantee_.epsilon == 3.0
    other = saved(model, tmp_path / "mixed.privgp")
    for each in (model, other):
        each.refine(table(0, 80), 1.0, 1e-5)
    assert 3.0 < model.guarantee_.epsilon <= 4.0
    assert other.predict(table(2, 5)).equals(model.predict(table(2, 5)))
    with pytest.raises(ValueError, match="measured already"):
        model.update(table(1, 60))
    with pytest.raises(ValueError, match="no column 'b'"):
        model.update(table(3, 60).drop("b"))


@pytest.mark.parametrize("kind", ["three classes", "several", "bins"])
def test_a_file_whose_measurements_differ_is_refused(kind):
    model, batch = made(kind)
    contents: Any = model.fit(*batch(0)).update(*batch(1, 60))._released.for_file()
    decode(CODEC.encode(contents))
    forged = []
    for change in (
        lambda each: replace(each, values=each.values + 1.0),
        lambda each: replace(each, batch=0),
    ):
        forged.append(_with_last(contents, change))
    if kind == "bins":
        heavier = lambda each: replace(  # noqa: E731
            each, strategy=replace(each.strategy, matrix=0.5 * each.strategy.matrix)
        )
        forged.append(_with_last(contents, heavier))
        fewer = lambda each: replace(each, rows=each.rows - 1)  # noqa: E731
        forged.append(_with_last(contents, fewer))
    for each in forged:
        with pytest.raises(DamagedFile):
            decode(CODEC.encode(each))


def _with_last(contents: Any, change: Callable[[Any], Any]) -> Any:
    """The contents with the last measurement, of several outputs that of the last, changed."""
    *others, part = contents.parts
    *before, last = part.spent
    return replace(contents, parts=(*others, replace(part, spent=(*before, change(last)))))


@pytest.mark.parametrize("kind", ["three classes", "several", "halved bins"])
def test_every_measurement_is_charged_before_noise_is_drawn(kind, tmp_path):
    account = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}").open("people", epsilon=1.2, delta=1e-5)
    model, batch = made(kind, ledger=account, mechanism="laplace")
    model.fit(*batch(0))
    for step in (lambda: model.update(*batch(1, 60)), lambda: model.refine(*batch(0), 0.5, 1e-6)):
        with watched() as events, pytest.raises(BudgetExceeded):
            step()
        assert not events
    assert len(account.entries()) == len(model._released.spent) == 1
    model.refine(*batch(0), 0.05, 1e-9)
    assert len(account.entries()) == len(model._released.spent) == 2


@pytest.mark.parametrize("kind", ["two classes", "counts", "several", "bins"])
def test_stages_divide_the_budget_of_every_kind(kind):
    model, batch = made(kind)
    X, y = batch(0)
    stages = model.stages(X, shares=(0.3, 0.7))
    (epsilon, delta), further = stages.budgets
    model.set_params(mechanism=stages.mechanism, epsilon=epsilon, delta=delta)
    model.fit(X, y).refine(X, y, *further)
    assert model.guarantee_.epsilon <= 1.0


def test_learned_models_are_learned_from_all_measurements():
    model, batch = made("two classes", hyperparameters="learned", epsilon=3.0)
    first = model.fit(*batch(0))._released.parts[0]
    assert model.update(*batch(1))._released.parts[0].models != first.models


def test_nothing_is_added_to_a_release_after_a_draw_that_was_lost(monkeypatch):
    """What it spent stays in the guarantee, and no later total forgets it."""
    X, _ = rows(0)
    Z, _ = rows(1)
    model = regressor(hyperparameters="fixed").fit(X, chance(X)).update(Z, chance(Z))
    before = model.guarantee_

    def fail(*_arguments, **_named):
        raise np.linalg.LinAlgError

    monkeypatch.setattr("privgp.models.published.Published._rehearse", lambda *_: None)
    with monkeypatch.context() as patch:
        patch.setattr("privgp.release.learn.learn_models", fail)
        with pytest.raises(np.linalg.LinAlgError):
            model.refine(X, chance(X), 1.0, 1e-5)
    assert model.guarantee_.epsilon > before.epsilon
    with pytest.raises(ValueError, match="failed after its noise was drawn"):
        model.refine(X, chance(X), 1.0, 1e-5)
