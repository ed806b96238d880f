"""A release is one frozen value: what is held after a fit is what a file holds."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from privgp import Label, Number, PrivateGP
from privgp.models.load import model_of
from privgp.release.certificate import certificate
from privgp.release.release import CODEC, Release, decode

X = np.arange(12.0)
TABLE = {"x": X, "a": np.sin(X), "b": np.where(np.arange(12) % 3, "no", "yes")}


@pytest.fixture(scope="module")
def model() -> PrivateGP:
    outcomes = {"a": Number(-1, 1), "b": Label("no", "yes")}
    return PrivateGP(outcomes, inputs=["x"], hyperparameters="fixed", random_state=0).fit(TABLE)


@pytest.fixture
def release(model) -> Release:
    return model._released


def test_it_is_frozen(release):
    for value, name in ((release, "parts"), (release.parts[0], "models"), (release.facts, "date")):
        with pytest.raises(FrozenInstanceError):
            setattr(value, name, None)


def test_what_is_stored_is_read_back(release):
    stored = release.for_file()
    assert stored.for_file() is stored
    again = decode(CODEC.encode(stored))
    assert again.facts == stored.facts
    assert certificate(again) == certificate(release)
    assert CODEC.encode(again) == CODEC.encode(stored)


def test_a_model_is_made_of_a_release_alone(model, release):
    other = model_of(release.for_file())
    assert other.predict(TABLE).equals(model.predict(TABLE))
    assert not hasattr(other, "plan_")
    assert other.plan_summary_ == model.plan_summary_


def test_every_outcome_is_a_release_of_its_own(release):
    number, label = release.each
    assert (number.guarantee, label.guarantee) == (release.guarantee, release.guarantee)
    assert number.parameters.labels() is None
    assert label.parameters.labels() == ["no", "yes"]
    assert [one.answers for one in release.each] == [(answer,) for answer in release.answers]
    (alone,) = number.each
    assert alone.parts == number.parts


def test_other_facts_leave_the_numbers(release):
    facts = replace(release.facts, chosen_by="tossing a coin")
    other = release.with_facts(facts)
    assert other.answers is release.answers
    assert certificate(other)["hyperparameters"]["source"] == "tossing a coin"
    assert certificate(release)["hyperparameters"]["source"] != "tossing a coin"
