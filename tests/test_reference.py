"""The reference is written from the code, and the code explains what it offers."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

import privgp
from website import reference

NAMES = [name for group in reference.GROUPS.values() for name in group.split()]
PAGES = reference.pages()
VALUES = ("Plan", "Guarantee", "audit.TradeOff", "audit.Membership", "audit.Promise")


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_page_is_what_the_code_says(page):
    written = (reference.FOLDER / page).read_text(encoding="utf-8")
    assert written == PAGES[page], "run `make reference`"


def test_there_are_no_other_pages():
    assert {page.name for page in reference.FOLDER.iterdir()} == set(PAGES)


def test_every_public_name_has_a_page():
    audits = {f"audit.{name}" for name in privgp.audit.__all__}
    assert {*privgp.__all__, *audits} - {"audit"} <= set(NAMES)


def routines() -> dict[str, Any]:
    """Every public function, class, method and property by its dotted name."""
    found = {}
    for name in NAMES:
        thing = reference.thing(name)
        found[name] = thing
        for member in reference.members(thing)[0] if inspect.isclass(thing) else ():
            value = inspect.getattr_static(thing, member)
            value = getattr(value, "fn", value)  # a method that some estimators lack
            found[f"{name}.{member}"] = getattr(value, "__func__", value)
    return found


ROUTINES = routines()


@pytest.mark.parametrize("name", sorted(ROUTINES))
def test_everything_public_has_a_docstring_that_names_its_parameters(name):
    thing = ROUTINES[name]
    text = inspect.getdoc(thing) or ""
    assert text
    error = inspect.isclass(thing) and issubclass(thing, Exception)
    if callable(thing) and not error:
        parameters = set(inspect.signature(thing).parameters) - {"self", "cls", "args", "kwargs"}
        assert not {each for each in parameters if not re.search(rf"\b{each}\b", text)}


@pytest.mark.parametrize("name", VALUES)
def test_the_fields_of_a_value_are_explained(name):
    thing = reference.thing(name)
    text = inspect.getdoc(thing) or ""
    fields = [field.name for field in dataclasses.fields(thing) if not field.name.startswith("_")]
    assert not [field for field in fields if not re.search(rf"\b{field}\b", text)]


def fitted_models() -> Iterator[Any]:
    rows = np.linspace(0.0, 1.0, 5)[:, None]
    outputs = rows[:, 0].copy()
    for kind in (privgp.PrivateGPRegressor, privgp.BinnedMeans, privgp.BinnedGP):
        yield kind(y_bounds=(0, 1), random_state=0).fit(rows, outputs)
    labels = privgp.PrivateGPClassifier(classes=["no", "yes"], random_state=0)
    yield labels.fit(rows, np.where(outputs > 0.5, "yes", "no"))
    search = privgp.PrivateBayesSearchCV(
        DummyClassifier(), {"random_state": [0, 1]}, epsilon=1, delta=0.1, n_iter=1, random_state=0
    )
    yield search.fit([[0], [1]], [0, 1], X_val=[[0], [1]], y_val=[0, 1])


def test_the_attributes_of_fitted_models_are_explained():
    for model in fitted_models():
        fitted = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
        text = "".join(inspect.getdoc(kind) or "" for kind in type(model).__mro__)
        assert not {name for name in fitted if not re.search(rf"\b{name}\b", text)}, model
