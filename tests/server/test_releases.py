"""Releases are charged before they are drawn, once, and refused before that if they do not fit."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from privgp.ledger.account import Account
from privgp.ledger.chain import CHARGE
from privgp.ledger.ledger import Ledger
from privgp.server import work
from privgp.server.app import application
from privgp.server.start import prepare_server
from privgp.server.work import MEASURED_AGAIN
from tests.server.world import (
    ANALYST,
    CUSTODIAN,
    FAST,
    SECRETS,
    World,
    declared,
    running,
    settings,
    table_of,
)


def charges(world, name):
    entries = world.get(CUSTODIAN, f"/api/datasets/{name}/ledger")["entries"]
    return [each for each in entries if each["kind"] == CHARGE]


def test_a_retry_gets_the_same_bytes_and_is_charged_once(world, plan, release):
    path = f"/api/releases/{release}/file"
    first = world.ask(ANALYST, "GET", path).content
    before = len(charges(world, "visits"))
    for _ in range(3):
        assert world.released(ANALYST, "visits", plan, "the-first-release") == release
        assert world.ask(ANALYST, "GET", path).content == first
    assert len(charges(world, "visits")) == before
    certificate = world.get(ANALYST, f"/api/releases/{release}/certificate")
    heads = [each["hash"] for each in charges(world, "visits")]
    assert certificate["ledger"]["head"] in heads
    assert world.get(CUSTODIAN, "/api/ledger/verify")["whole"]


def test_the_same_key_with_another_request_is_refused(world, plan, release):
    other = world.plan(ANALYST, "visits", epsilon=0.01)
    before = len(charges(world, "visits"))
    assert world.release(ANALYST, "visits", other, "the-first-release").status_code == 409
    assert len(charges(world, "visits")) == before


def test_over_the_budget_nothing_is_drawn(world, plan, release, monkeypatch):
    large = world.plan(ANALYST, "visits", epsilon=1.9)
    monkeypatch.setattr(work, "estimator_for", lambda _: pytest.fail("it was drawn"))
    before = world.get(ANALYST, "/api/datasets/visits")["remaining"]
    answer = world.release(ANALYST, "visits", large, "too-large-a-release")
    assert answer.status_code == 409
    assert "budget" in answer.json()["error"]
    assert world.get(ANALYST, "/api/datasets/visits")["remaining"] == before


def test_the_ledger_refuses_what_the_endpoint_let_through(world, plan, release, monkeypatch):
    """Two releases that fit alone and not together may both be accepted; one is then refused."""
    large = world.plan(ANALYST, "visits", epsilon=1.9)
    monkeypatch.setattr(Account, "forecast", lambda _: lambda _: 1.0)
    before = len(charges(world, "visits"))
    started = world.release(ANALYST, "visits", large, "let-through-once")
    job = world.finished(ANALYST, started.json())
    assert job["state"] == "failed"
    assert "nothing was drawn" in job["error"]
    assert len(charges(world, "visits")) == before


def test_a_plan_is_released_only_when_it_is_approved(world):
    plan = world.plan(ANALYST, "visits", approve=False)
    assert world.release(ANALYST, "visits", plan, "not-approved-yet").status_code == 409


def test_an_approval_is_for_one_release(world, plan, release):
    before = len(charges(world, "visits"))
    for role in (ANALYST, CUSTODIAN):
        assert world.release(role, "visits", plan, "a-second-one").status_code == 409
    assert len(charges(world, "visits")) == before
    assert world.get(ANALYST, f"/api/plans/{plan}")["carried_out_by"] == release


def test_a_release_needs_an_idempotency_key(world, plan):
    answer = world.ask(ANALYST, "POST", "/api/datasets/visits/releases", json={"plan": plan})
    assert answer.status_code == 422


def test_a_plan_of_another_dataset_is_absent(world, plan):
    assert world.release(CUSTODIAN, "others", plan, "of-another-one").status_code == 404


def test_people_of_one_table_have_one_budget(world):
    """The same table, or another one with the same public inputs, gets no second budget."""
    assert world.register("again").status_code == 409
    name = world.client.app.state.service.store.read_declaration("visits")["table"]
    again = world.ask(CUSTODIAN, "POST", "/api/datasets", json=declared("third", name))
    assert again.status_code == 409


def test_an_update_measures_new_people(world, plan, release):
    path, once = f"/api/releases/{release}/updates", {"Idempotency-Key": "new-people-1"}
    sent = {"content": table_of(SECRETS[:12], first=70), "headers": once}
    job = world.finished(CUSTODIAN, world.ask(CUSTODIAN, "POST", path, **sent).json())
    assert job["state"] == "done", job
    assert world.get(ANALYST, f"/api/releases/{job['result']}")["previous"] == release
    asked = [
        e["about"] for e in world.get(CUSTODIAN, "/api/events") if e["kind"] == "update asked for"
    ]
    assert asked[0] == release  # the newest first
    again = world.ask(CUSTODIAN, "POST", path, **sent).json()
    assert again["result"] == job["result"]
    other = {"content": table_of(SECRETS[:13], first=70), "headers": once}
    assert world.ask(CUSTODIAN, "POST", path, **other).status_code == 409


def test_rows_that_were_measured_are_refused_in_words_and_their_table_can_be_deleted(
    world, release
):
    path, once = f"/api/releases/{release}/updates", {"Idempotency-Key": "same-people-1"}
    before = {row["table"] for row in world.get(CUSTODIAN, "/api/tables")}
    sent = {"content": table_of(), "headers": once}
    job = world.finished(CUSTODIAN, world.ask(CUSTODIAN, "POST", path, **sent).json())
    assert (job["state"], job["error"]) == ("failed", MEASURED_AGAIN)
    (table,) = {row["table"] for row in world.get(CUSTODIAN, "/api/tables")} - before
    assert world.ask(CUSTODIAN, "DELETE", f"/api/tables/{table}").status_code == 200
    again = world.ask(CUSTODIAN, "POST", f"/api/jobs/{job['id']}/retry").json()
    assert "deleted" in world.finished(CUSTODIAN, again)["error"]


@pytest.mark.parametrize(
    "changed",
    [
        {"bounds": None, "classes": ["low", "high"], "output": "label"},
        {"protect": "records", "x_bounds": [[0, 100]]},
        {"groups": "who"},
    ],
    ids=["classes", "records", "people"],
)
def test_other_kinds_of_data(tmp_path, changed):
    with running(tmp_path) as world:
        lines = [
            f"{20.5 + 2 * i},{cost},{'low' if i % 3 else 'high'},p{i // 2}"
            for i, cost in enumerate(SECRETS)
        ]
        content = "\n".join(["age,cost,label,who", *lines]).encode()
        table = world.ask(CUSTODIAN, "POST", "/api/tables", content=content).json()["table"]
        body = {k: v for k, v in declared("kinds", table, **changed).items() if v is not None}
        assert world.ask(CUSTODIAN, "POST", "/api/datasets", json=body).status_code == 201
        plan = world.plan(CUSTODIAN, "kinds", mechanism="auto")
        release = world.released(CUSTODIAN, "kinds", plan, "of-another-kind")
        view = world.get(CUSTODIAN, f"/api/releases/{release}/view")
        assert view["kind"] == "curve"
        body = {"points": [[30.0], [50.0]]}
        answer = world.ask(CUSTODIAN, "POST", f"/api/releases/{release}/predict", json=body)
        assert answer.status_code == 200, answer.text
        assert {"low", "high", "coverage"} < {*answer.json()}
        body["interval"] = False
        short = world.ask(CUSTODIAN, "POST", f"/api/releases/{release}/predict", json=body).json()
        assert short == {name: answer.json()[name] for name in short}
        assert not {"low", "high", "coverage"} & {*short}
        assert not [secret for secret in SECRETS if any(secret in text for text in world.heard)]


# a server that ends half-way


def stopped_world(folder):
    """A server whose jobs do not run, as if it had been killed."""
    made = application(settings(folder))
    keys = {CUSTODIAN: made.state.service.store.add_key("clara", "custodian")[1]}
    return World(TestClient(made), keys)


def test_a_job_survives_a_restart(tmp_path):
    before = stopped_world(tmp_path)
    assert before.register("visits").status_code == 201
    waiting = before.ask(CUSTODIAN, "POST", "/api/datasets/visits/plans", json=FAST).json()
    running_ = before.ask(CUSTODIAN, "POST", "/api/datasets/visits/plans", json=FAST).json()
    assert before.client.app.state.service.store.next_job()["id"] == waiting["id"]
    with TestClient(application(settings(tmp_path))) as client:
        after = World(client, before.keys)
        for job in (waiting, running_):
            assert after.finished(CUSTODIAN, job)["state"] == "done"


@pytest.mark.parametrize("moment", ["after the charge", "after the draw"])
def test_a_release_that_was_stopped_is_charged_once(tmp_path, monkeypatch, moment):
    with running(tmp_path) as world:
        plan = world.plan(CUSTODIAN, "visits")
    before = stopped_world(tmp_path)
    before.keys |= world.keys
    started = before.release(CUSTODIAN, "visits", plan, "killed-half-way").json()
    service = before.client.app.state.service
    job = service.store.next_job()
    assert job["id"] == started["id"]

    charge = work.Keyed.charge

    def charge_and_die(*given, **named):
        charge(*given, **named)
        raise KeyboardInterrupt

    def die(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if moment == "after the charge":
            patch.setattr(work.Keyed, "charge", charge_and_die)
        else:
            patch.setattr(Account, "store", die)
        with pytest.raises(KeyboardInterrupt):
            service.work.run(job, lambda *_: None)
    with TestClient(application(settings(tmp_path))) as client:
        after = World(client, before.keys)
        done = after.finished(CUSTODIAN, started)
        assert done["state"] == "done", done
        assert len(charges(after, "visits")) == 1
        assert after.release(CUSTODIAN, "visits", plan, "killed-half-way").json()["state"] == "done"
        assert len(charges(after, "visits")) == 1
    assert Ledger(settings(tmp_path).url).verify()


def test_the_demonstration_says_its_keys_once(tmp_path):
    told = []
    made = prepare_server(settings(tmp_path), demo=True, say=told.append)
    assert sum("privgp-" in line for line in told) == 2
    key = next(line.split()[-1] for line in told if "custodian" in line)
    world = World(TestClient(made), {CUSTODIAN: key})
    assert world.get(CUSTODIAN, "/api/datasets/diabetes")["remaining"] == 3.0
    again = []
    prepare_server(settings(tmp_path), demo=True, say=again.append)
    assert not any("privgp-" in line for line in again)
    prepare_server(settings(tmp_path), demo=True, say=again.append, new_key=True)
    (line,) = (line for line in again if "privgp-" in line)
    other = World(TestClient(made), {CUSTODIAN: line.split()[-1]})
    assert other.get(CUSTODIAN, "/api/me")["role"] == "custodian"
