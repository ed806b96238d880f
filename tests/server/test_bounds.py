"""Bounds that nobody could declare are found at registration, for a part of the budget, once."""

from __future__ import annotations

import numpy as np
import pytest

from privgp.ledger.chain import CHARGE
from tests.server.world import ANALYST, CUSTODIAN, SECRETS, declared, table_of

FIND = {"epsilon": 0.5, "low": 0.0}


def asked(world, name, first, **changed):
    """A table of 100 costs, most of them between 100 and 2,000, and how it is to be registered."""
    costs = np.random.default_rng(first).lognormal(6.0, 0.6, 100)
    content = table_of([f"{cost:.2f}" for cost in costs], first)
    table = world.ask(CUSTODIAN, "POST", "/api/tables", content=content).json()["table"]
    body = {**declared(name, table), "find_bounds": FIND, **changed}
    return {**body, "bounds": changed.get("bounds")}


def register(world, body):
    return world.ask(CUSTODIAN, "POST", "/api/datasets", json=body)


def charges(world, name):
    account = world.client.app.state.service.work.ledger.account(name)
    return [each for each in account.entries() if each.kind == CHARGE]


def test_bounds_are_found_charged_and_used(world):
    answer = register(world, asked(world, "unbounded", 10_000))
    assert answer.status_code == 201, answer.text
    found = answer.json()
    assert found["bounds"][0] == 0.0
    assert found["bounds"][1] > 0.0
    assert found["find_bounds"] == {**FIND, "share": 0.95}
    assert found["remaining"] == pytest.approx(1.5)
    (charge,) = charges(world, "unbounded")
    assert (charge.promised.epsilon, charge.promised.delta) == (0.5, 0.0)
    plan = world.plan(CUSTODIAN, "unbounded")
    world.released(CUSTODIAN, "unbounded", plan, "within-bounds")
    assert world.get(CUSTODIAN, "/api/datasets/unbounded")["remaining"] == pytest.approx(1.0)
    assert world.get(CUSTODIAN, "/api/ledger/verify")["whole"]
    text = world.ask(CUSTODIAN, "GET", "/datasets/unbounded").text
    assert "found for epsilon 0.5" in text
    again = register(world, asked(world, "unbounded", 10_000))
    assert again.status_code == 409
    assert len(charges(world, "unbounded")) == 2


def test_a_registration_that_stopped_half_way_draws_no_second_time(world, monkeypatch):
    store = world.client.app.state.service.store
    body = asked(world, "stopped", 20_000)
    with monkeypatch.context() as patch:
        patch.setattr(store, "add_dataset", lambda *_: 1 / 0)
        assert register(world, body).status_code == 500
    work = world.client.app.state.service.work
    kept = work.ledger.account("stopped").stored("bounds of stopped")
    answer = register(world, body)
    assert answer.status_code == 201, answer.text
    assert f"[0.0, {answer.json()['bounds'][1]}]" == kept.decode()
    assert len(charges(world, "stopped")) == 1
    other = {**body, "find_bounds": {"epsilon": 0.6, "low": 0.0}}
    assert register(world, other).status_code == 409


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"bounds": [0, 5000]}, "Give either bounds or find_bounds."),
        ({"find_bounds": {"epsilon": 2.0}}, "must leave a part of epsilon"),
        ({"find_bounds": {"epsilon": 0.0}}, "greater than 0"),
        ({"find_bounds": {"epsilon": 0.1, "low": 1e9}}, "less than"),
        ({"find_bounds": {"epsilon": 0.1, "share": 1.0}}, "less than 1"),
        ({"likelihood": "poisson"}, "one row per person"),
        ({"output": ["cost", "pay"]}, "needs one number"),
        ({"find_bounds": None}, "either bounds or classes"),
    ],
)
def test_what_cannot_be_found_is_refused_before_it_costs(world, changed, sentence):
    body = {**declared("never", "none.csv"), "bounds": None, "find_bounds": FIND, **changed}
    answer = register(world, body)
    assert answer.status_code == 422
    assert sentence in answer.json()["error"]


def test_people_with_several_rows_are_refused(world):
    body = asked(world, "people", 30_000, inputs=["age"], groups="person")
    answer = register(world, body)
    assert (answer.status_code, "one row per person" in answer.json()["error"]) == (422, True)


def test_a_wrong_cell_is_not_told(world):
    content = table_of(["secret cell", *SECRETS[1:]], 40_000)
    table = world.ask(CUSTODIAN, "POST", "/api/tables", content=content).json()["table"]
    body = {**declared("wrong cells", table), "bounds": None, "find_bounds": FIND}
    answer = register(world, body)
    assert answer.status_code == 422
    assert "secret" not in answer.text
    assert world.ask(ANALYST, "GET", "/api/datasets/wrong cells").status_code == 404
