"""Private values are sealed between the vault's own functions: nothing else opens, shows or copies them."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from privgp import PrivateGPClassifier, PrivateGPRegressor
from privgp.models import published
from privgp.plan.inputs.inputs import Inputs
from privgp.vault.measure import seal_columns, seal_outcome, seal_outcomes
from privgp.vault.table import seal_rows
from privgp.vault.validate import check_outputs, check_private_inputs, seal_inputs, seal_outputs
from privgp.vault.values import Sealed, unseal

SECRET = 31.25
Y = np.array([SECRET, 1.0, 2.0])
SEALED = {
    "outputs": lambda: seal_outputs(Y, 3),
    "inputs": lambda: seal_inputs(Y[:, None], 1),
    "labels": lambda: seal_outcome(["a", "b", "a"], ("a", "b"), 3),
    "columns": lambda: seal_columns(np.column_stack([Y, Y]), 2, 3),
    "records": lambda: seal_outcomes([Y, ["a", "b", "a"]], [None, ("a", "b")], 3, Y[:, None]),
}


@pytest.mark.parametrize("kind", SEALED)
def test_they_are_opened_in_the_vault_alone(kind):
    sealed = SEALED[kind]()
    for attempt in (lambda: unseal(sealed), lambda: sealed._open()):
        with pytest.raises(TypeError, match="opened in the vault alone"):
            attempt()
    namespace: dict[str, Any] = {"__name__": "privgp.models.curious", "unseal": unseal}
    exec("def peek(sealed):\n    return unseal(sealed)", namespace)
    with pytest.raises(TypeError, match="opened in the vault alone"):
        namespace["peek"](sealed)
    namespace["__name__"] = "privgp.vault.measure"
    assert namespace["peek"](sealed) is not sealed


@pytest.mark.parametrize("kind", SEALED)
def test_nothing_of_them_is_shown_or_copied(kind):
    sealed = SEALED[kind]()
    assert len(sealed) == 3
    assert repr(sealed) == str(sealed) == f"{sealed}" == "Sealed(...)"
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="neither copied nor stored"):
            copied(sealed)
    with pytest.raises(AttributeError, match="sealed once"):
        sealed.rows = 4
    assert not hasattr(sealed, "__dict__")


def computations() -> list[Any]:
    return [np.mean, sum, sorted, list, float, lambda s: s + 1, lambda s: s[0], lambda s: s > 0]


@pytest.mark.parametrize("compute", computations())
def test_nothing_is_computed_on_them(compute):
    with pytest.raises(TypeError):
        compute(seal_outputs(Y, 3))


def test_the_vault_reads_them():
    assert np.array_equal(check_outputs(seal_outputs(Y, 3), 3), Y)
    assert np.array_equal(check_private_inputs(seal_inputs(Y[:, None], 1), 1), Y[:, None])
    assert unseal(Y) is Y  # what is not sealed


@pytest.mark.parametrize("protect", ["outputs", "records"])
@pytest.mark.parametrize("label", [False, True])
def test_a_fit_measures_sealed_values(protect, label, monkeypatch):
    seen: list[Any] = []

    def watched(data: Any, *others: Any) -> Any:
        seen.append(data)
        return measure(data, *others)

    measure = published.measure
    monkeypatch.setattr(published, "measure", watched)
    made = {"protect": protect, "hyperparameters": "fixed", "random_state": 0}
    made |= {"x_bounds": (0, 10)} if protect == "records" else {}
    X, y = np.linspace(0, 10, 12)[:, None], np.arange(12) % 2
    if label:
        PrivateGPClassifier(classes=(0, 1), **made).fit(X, y)
    else:
        PrivateGPRegressor(y_bounds=(0, 1), **made).fit(X, y)
    assert [type(data) for data in seen] == [Sealed]


def test_rows_of_a_table_are_sealed():
    inputs = Inputs.private({}, {"age": (0, 90)})
    sealed = seal_rows({"age": [SECRET, 2.0]}, inputs)
    assert len(sealed) == 2
    with pytest.raises(TypeError, match="opened in the vault alone"):
        unseal(sealed)


def test_a_sealed_column_is_fitted_like_the_column_itself():
    X, y = np.linspace(0, 10, 12)[:, None], np.sin(np.linspace(0, 10, 12))
    made = {"y_bounds": (-1, 1), "hyperparameters": "fixed", "random_state": 0}
    plain, sealed = (
        PrivateGPRegressor(**made).fit(X, each).predict(X) for each in (y, seal_outputs(y, 12))
    )
    assert np.array_equal(plain, sealed)
