"""All records of one person protected together, where inputs are private."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import privgp
from privgp import PrivateGPRegressor
from privgp.plan.bins.bins import Bins
from privgp.release.certificate import certificate, page
from privgp.vault.measure import exact
from privgp.vault.validate import shares

MODEL = PrivateGPRegressor(
    protect="records", x_bounds=(0, 1), y_bounds=(-1, 1), epsilon=1.0, delta=1e-5, random_state=0
)


def visits(people=300, seed=0):
    """One to nine visits of every person."""
    rng = np.random.default_rng(seed)
    whose = np.repeat(np.arange(people), rng.integers(1, 10, size=people))
    x = rng.uniform(size=len(whose))
    return x[:, None], np.sin(4 * x) * 0.6 + 0.2 * rng.standard_normal(len(whose)), whose


@pytest.fixture(scope="module")
def model():
    X, y, whose = visits()
    return clone(MODEL).fit(X, y, groups=whose)


def test_the_promise_is_about_people_and_their_number_is_public(model, tmp_path):
    assert model.guarantee_.unit == "all records of one person (inputs and outputs)"
    assert "same number of people" in model.guarantee_.neighbours
    assert "300 people" in model.plan_.describe()
    stated = certificate(model)
    assert stated["data"]["rows"] == stated["data"]["people"] == 300
    assert "<th>Rows</th>" not in page(stated)
    assert "<th>People</th>" in page(stated)
    assert "the number of people" in stated["public"]
    assert "the number of rows" not in stated["public"]
    assert stated["not_protected"][1] == "The number of people is not protected."
    model.save(tmp_path / "v.privgp")
    X = np.linspace(0, 1, 9)[:, None]
    assert_array_equal(privgp.load(tmp_path / "v.privgp").predict(X), model.predict(X))


def test_it_learns_the_function(model):
    X = np.linspace(0.05, 0.95, 40)[:, None]
    error = model.predict(X) - 0.6 * np.sin(4 * X[:, 0])
    assert np.sqrt(np.mean(error**2)) < 0.15


def test_nothing_but_the_number_of_people_is_planned_for():
    X, _, whose = visits()
    once = clone(MODEL).plan(300, groups=np.arange(300))
    assert clone(MODEL).plan(X, groups=whose).hash == once.hash
    assert once.strategy.sensitivity() == clone(MODEL).plan(300).strategy.sensitivity()
    assert once.at(2.0).strategy.whole_people


def test_names_of_people_do_not_matter(model):
    X, y, whose = visits()
    named = np.array([f"person {i}" for i in whose])
    assert_array_equal(
        clone(MODEL).fit(X, y, groups=named).measurements_[0].values, model.measurements_[0].values
    )


def test_plans_for_people_and_for_records_are_not_mistaken(tmp_path):
    X, y, whose = visits(40)
    first = np.unique(whose, return_index=True)[1]
    X, y, whose = X[first], y[first], whose[first]  # one record each: the numbers are equal
    of_people, of_records = clone(MODEL).plan(X, groups=whose), clone(MODEL).plan(X)
    of_people.save(tmp_path / "p.plan")
    stored = privgp.load_plan(tmp_path / "p.plan")
    for plan, groups in ((stored, None), (of_records, whose)):
        with pytest.raises(ValueError, match="Nothing was spent"):
            clone(MODEL).fit(X, y, groups=groups, plan=plan)
    clone(MODEL).fit(X, y, groups=whose, plan=stored)


def test_everybody_counts_once():
    """A person with four equal records measures as with one; averages are averages."""
    bins = Bins(np.zeros(1), np.ones(1), (2,), 2, np.eye(2)).of_people()
    once = exact(bins, ([[0.1], [0.9]], [1.0, -0.5], [0, 1]), (-1, 1))
    four = exact(bins, ([[0.1]] * 4 + [[0.9]], [1.0] * 4 + [-0.5], [0] * 4 + [1]), (-1, 1))
    assert_allclose(four, once)
    mixed = exact(bins, ([[0.1], [0.9], [0.9]], [1.0, 0.0, -1.0], [0, 0, 1]), (-1, 1))
    assert_allclose(mixed, [0.5, 1.5, 0.5, -1.0, 0.5 + 1.0])


def test_the_first_records_of_a_person_are_used():
    people = np.array([1, 0, 1, 1, 0, 1, 2])
    kept, weights = shares(people, 2)
    assert kept.tolist() == [0, 1, 2, 4, 6]
    assert weights.tolist() == [0.5, 0.5, 0.5, 0.5, 1.0]
    assert_allclose(np.bincount(people[kept], weights), 1.0)


def test_bad_groups_are_refused_before_anything_is_drawn(monkeypatch):
    monkeypatch.setattr("privgp.vault.measure.add_noise", None)
    X, y, whose = visits(20)
    with pytest.raises(ValueError, match="one identifier for each"):
        clone(MODEL).fit(X, y, groups=whose[:-1])
    plan = clone(MODEL).plan(X, groups=whose)
    with pytest.raises(ValueError, match="Nothing was spent"):
        clone(MODEL).fit(X, y, groups=np.where(whose == 3, 4, whose), plan=plan)
    with pytest.raises(ValueError, match="as many people"):
        exact(plan.strategy, (X, y, np.zeros(len(y), int)), (-1, 1))
    with pytest.raises(ValueError, match="groups and weights go with"):
        exact(plan.strategy, (X, y), (-1, 1))
