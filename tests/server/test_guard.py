"""What is refused is refused in the same steps, and before it costs much."""

from __future__ import annotations

import asyncio
import threading

import pytest
from sqlalchemy import event

from privgp.errors import LedgerUnreachable
from privgp.server.errors import Refused
from privgp.server.guard import Guard
from tests.server.world import ANALYST, CUSTODIAN, NONE, OTHER, running, settings

UNKNOWN = f"privgp-{'0' * 16}-{'0' * 64}"


def steps(world, key, path):
    """The statements that a request runs, its status and its answer."""
    found = []
    engine = world.client.app.state.service.store.database._connect()

    def note(_, __, statement, *___):
        if threading.current_thread().name != "privgp jobs":  # which looks for jobs all the time
            found.append(statement)

    event.listen(engine, "after_cursor_execute", note)
    try:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        answer = world.client.get(path, headers=headers)
    finally:
        event.remove(engine, "after_cursor_execute", note)
    return found, answer.status_code, answer.text


def test_whatever_is_wrong_with_a_key_the_steps_are_the_same(world, release):
    right = world.keys[ANALYST]
    revoked = world.ask(CUSTODIAN, "POST", "/api/keys", json={"name": "k", "role": "analyst"})
    world.ask(CUSTODIAN, "DELETE", f"/api/keys/{revoked.json()['id']}")
    keys = [None, "", "nonsense", UNKNOWN, right[:-64] + "0" * 64, revoked.json()["key"]]
    paths = ["/api/datasets/visits", "/api/datasets/nothing", "/api/keys", "/nothing"]
    paths.append(f"/api/releases/{release}/file")
    seen = [steps(world, key, path) for key in keys for path in paths]
    assert {status for _, status, _ in seen} == {401}
    assert len({text for *_, text in seen}) == 1
    assert len({tuple(found) for found, *_ in seen}) == 1
    assert len(seen[0][0]) > 0


def test_what_belongs_to_others_is_looked_for_like_what_does_not_exist(
    world, plan, release, function
):
    nothing = "0" * 32
    for there, absent in (
        ("/api/datasets/visits", "/api/datasets/nothing"),
        ("/api/datasets/visits/ledger", "/api/datasets/nothing/ledger"),
        (f"/api/releases/{release}/file", f"/api/releases/{nothing}/file"),
        (f"/api/plans/{plan}", f"/api/plans/{nothing}"),
        (f"/api/jobs/{release}", f"/api/jobs/{nothing}"),
        (f"/api/functions/{function}", f"/api/functions/{nothing}"),
    ):
        first, second = (steps(world, world.keys[OTHER], path) for path in (there, absent))
        assert first == second
        assert first[1] == 404
        own, status, _ = steps(world, world.keys[ANALYST], there)
        assert status == 200
        assert own[: len(first[0])] == first[0]


def answered(guard, count):
    """The statuses of this many requests at once."""

    async def one(statuses):
        async def receive():
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message):
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        scope = {"type": "http", "path": "/signin", "method": "GET", "headers": []}
        await guard({**scope, "client": ("host", 1)}, receive, send)

    async def all_of_them():
        statuses = []
        await asyncio.gather(*(one(statuses) for _ in range(count)))
        return statuses

    return asyncio.run(all_of_them())


def test_more_requests_at_once_than_allowed_are_refused(world, tmp_path):
    async def slow(_, __, send):
        await asyncio.sleep(0.2)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    store = world.client.app.state.service.store
    guard = Guard(slow, settings(tmp_path, max_requests=6), store)
    assert sorted(answered(guard, 5)) == [200, 200, 200, 503, 503]  # half are for those with a key
    assert answered(guard, 3) == [200] * 3  # those before are over


@pytest.mark.parametrize("site", ["cross-site", "same-site"])  # another port is the same site
def test_a_form_of_another_host_cannot_sign_anybody_in(world, site):
    sent = {"content": f"key={world.keys[CUSTODIAN]}", "headers": {"Sec-Fetch-Site": site}}
    assert world.ask(NONE, "POST", "/signin", **sent).status_code == 403


@pytest.mark.parametrize("length", ["9" * 30, "9" * 5000, "-1", "1e3", "²"])
def test_nonsense_lengths_are_refused(world, length):
    headers = {"Content-Length": length.encode("utf-8")}
    answer = world.ask(CUSTODIAN, "POST", "/api/keys", content=b"{}", headers=headers)
    assert answer.status_code in (400, 413)


def test_without_its_database_the_server_says_so(world, monkeypatch):
    store = world.client.app.state.service.store

    def away(*_):
        raise LedgerUnreachable("it is away at postgresql://me:secret@host")

    with monkeypatch.context() as patch:
        patch.setattr(store.database, "_connect", away)
        answer = world.ask(ANALYST, "GET", "/api/datasets")
    assert (answer.status_code, "secret" in answer.text) == (503, False)


def test_two_names_for_one_table_at_once_get_one_budget(world):
    """The second look is in the transaction that registers."""
    store = world.client.app.state.service.store
    with pytest.raises(Refused, match="one budget"):
        store.add_dataset({**store.read_declaration("visits"), "name": "another"}, ("",))


@pytest.mark.parametrize(
    ("host", "status"),
    [("testserver", 200), ("TESTSERVER:80", 200), ("evil.example", 400), ("testserver.evil", 400)],
)
def test_requests_to_other_host_names_are_refused(world, host, status):
    assert world.ask(ANALYST, "GET", "/api/me", headers={"Host": host}).status_code == status


TOKEN = "a-token-for-the-metrics"


def test_metrics_are_for_whoever_has_the_token(world, tmp_path):
    assert world.ask(CUSTODIAN, "GET", "/metrics").status_code == 404  # there are none
    assert world.ask(NONE, "GET", "/metrics").status_code == 401
    with running(tmp_path, metrics_token=TOKEN) as own:
        own.plan(ANALYST, "visits")
        own.ask(OTHER, "GET", "/api/datasets/visits")
        own.ask(NONE, "GET", "/api/some/secret/path")
        answers = [
            own.client.get("/metrics", headers={"Authorization": f"Bearer {token}"})
            for token in (TOKEN, f"{TOKEN}x", "", own.keys[ANALYST])
        ]
    assert [each.status_code for each in answers] == [200, 401, 401, 404]
    text = answers[0].text
    assert answers[0].headers["content-type"].startswith("text/plain")
    route = 'method="GET",route="/api/datasets/{name}",status="404"'
    assert f"privgp_requests_total{{{route}}} 1.0" in text
    assert 'privgp_jobs{kind="plan",state="done"} 1.0' in text
    assert 'privgp_queue{queue="predictions",state="waiting"} 0.0' in text
    assert not any(word in text for word in ("visits", "secret", *own.keys.values()))
