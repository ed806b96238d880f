"""Warnings before a budget is spent: one plain sentence each, of public numbers alone."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from privgp import PrivateGPClassifier, PrivateGPRegressor
from privgp.privacy.budget import advice
from privgp.tables.kinds import are_round

ROUND = [
    (0, 3000), (60, 200), (-1.5, 1.5), (32, 212), (0, 1), (0, 30.48), (1.524, 1.8288),
    (36.5, 42), (0, 0.05), (1874, 2019), (0, 1250), (273.15, 373.15), (-np.pi, np.pi), (0, 255),
    (0, 1023), (0, 65535), (0, 2048), (0, 1439), (0, np.log(1000)), (1e6, 2e6), (-1e-7, 1e-7),
    (45.359237, 90.718474), (0, 1e50), (1000, 1001), (0.1, 0.3), (-40, 51.5), (0, 99.9),
]  # fmt: skip
READ = [
    (61.37, 198.42), (0, 2987.61), (17.35, 90.12), (-3.4471, 11.2), (0.0131, 0.98271), (3, 117.3),
    (182.5, 17_316), (1_000_021, 1_900_000), (0, 12_347),
]  # fmt: skip


@pytest.mark.parametrize("bounds", ROUND)
def test_declared_bounds_are_round_in_some_units(bounds):
    assert are_round(*bounds)


@pytest.mark.parametrize("bounds", READ)
@pytest.mark.parametrize("scale", [1.0, 1000.0, 0.01])
def test_bounds_of_data_are_not(bounds, scale):
    assert not are_round(*(scale * end for end in bounds))


def test_least_and_largest_values_are_hardly_ever_round():
    rng = np.random.default_rng(0)
    data = np.round(rng.normal(170, 10, size=(2000, 50)), 2)
    assert np.mean([are_round(row.min(), row.max()) for row in data]) < 0.05


def warned(model, X, **given):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model.plan(X, **given)
    return [str(each.message) for each in found]


X = np.linspace(0, 1, 20)[:, None]
QUICK = {"epsilon": 1.0, "delta": 1e-5, "hyperparameters": "fixed"}


@pytest.mark.parametrize(
    ("budget", "words"),
    [((10.0, 1e-5), ["Epsilon 10 guarantees"]), ((9.9, 0.049), []), ((1.0, 0.05), ["Delta 0.05"])],
)
def test_models_warn_of_budgets_that_promise_little(budget, words):
    asked = QUICK | dict(zip(("epsilon", "delta"), budget, strict=True)) | {"mechanism": "gaussian"}
    found = warned(PrivateGPRegressor(y_bounds=(0, 3000), **asked), X)
    assert len(found) == len(words)
    assert all(each.startswith(word) for each, word in zip(found, words, strict=True))


def test_models_warn_of_every_pair():
    assert warned(PrivateGPRegressor(y_bounds=(0, 3000), **QUICK), X) == []
    (told,) = warned(PrivateGPRegressor(y_bounds=(61.37, 198.42), **QUICK), X)
    assert "y_bounds 61.37 and 198.42" in told
    assert told.count(".") == 3  # one sentence
    several = PrivateGPRegressor(y_bounds=[(0, 1), (61.37, 198.42)], **QUICK)
    assert len(warned(several, X)) == 1
    assert warned(PrivateGPClassifier(classes=["a", "b"], **QUICK), X) == []


def test_models_warn_of_bounds_of_private_inputs():
    records = {"protect": "records", "y_bounds": (0, 1), **QUICK}
    assert warned(PrivateGPRegressor(x_bounds=(0, 90), **records), 20) == []
    (told,) = warned(PrivateGPRegressor(x_bounds=(17.35, 90.12), **records), 20)
    assert "x_bounds" in told
    for end, count in (("2024-12-31", 0), ("2024-12-31T23:59:59", 0), ("2024-12-30T13:37:21", 1)):
        columns = {"when": "date", "age": "number"}
        bounds = {"when": ("2024-01-01", end), "age": (0, 90)}
        model = PrivateGPRegressor(columns=columns, x_bounds=bounds, **records)
        assert len(warned(model, 20)) == count


@pytest.mark.parametrize(
    ("budget", "words"),
    [((1.0, 1e-6, 100), ()), ((10.0, 1e-6, 100), ("Epsilon 10 guarantees little",)),
     ((1.0, 0.01, 100), ("Delta 0.01 is not below 1/100",)), ((12.0, 0.5, 3), ("Epsilon", "Delta"))],
)  # fmt: skip
def test_a_budget_that_protects_little_is_told(budget, words):
    told = advice(*budget)
    assert len(told) == len(words)
    assert all(text.startswith(word) for text, word in zip(told, words, strict=True))
