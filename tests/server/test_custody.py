"""What a custodian is asked, what is written down, and what a revoked key leaves behind."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
import uvicorn
from sqlalchemy import update

from privgp.ledger.ledger import Ledger
from privgp.plan.plan import unpack_plan
from privgp.server.declared import Declared
from privgp.server.errors import Refused
from privgp.server.guard import Guard
from privgp.server.settings import hold_folder
from privgp.server.start import TimedProtocol, bind_socket
from privgp.server.store import schema
from privgp.server.store.keys import Who
from privgp.server.store.store import Store
from privgp.server.views.exports import plain_text
from privgp.server.work import ABOUT_PLAN, NOT_APPROVED, decision
from tests.server.world import ANALYST, CUSTODIAN, NONE, declared, running, settings, table_of

PRIVATE = {"protect": "records", "x_bounds": [[0, 100]]}


def upload(world, content=None):
    sent = table_of() if content is None else content
    return world.ask(CUSTODIAN, "POST", "/api/tables", content=sent).json()["table"]


def register(world, body):
    return world.ask(CUSTODIAN, "POST", "/api/datasets", json=body)


# inputs are private by default


def test_inputs_are_private_unless_a_custodian_states_otherwise(world):
    body = declared("by default", upload(world, table_of(first=500)))
    del body["public_inputs"]
    answer = register(world, body)
    assert answer.status_code == 422
    assert "age is private" in answer.json()["error"]
    assert register(world, {**body, **PRIVATE}).status_code == 201
    shown = world.get(CUSTODIAN, "/api/datasets/by default")
    assert (shown["protect"], shown["public_inputs"]) == ("records", [])


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"public_inputs": ["age"], **PRIVATE}, "public inputs need no x_bounds"),
        ({"public_inputs": ["weight"]}, "must be names of inputs"),
        ({"public_inputs": ["age"], "inputs": ["age", "weight"]}, "weight is private"),
    ],
)
def test_what_is_public_fits_together(world, changed, problem):
    answer = register(world, {**declared("none", "none.csv"), **changed})
    assert answer.status_code == 422
    assert problem in answer.json()["error"]


def test_the_page_of_a_dataset_states_what_is_public(world):
    text = world.ask(ANALYST, "GET", "/datasets/visits").text
    assert "Public" in text
    assert "age of every person" in text


def test_datasets_of_earlier_versions_keep_their_meaning():
    kept = declared("old", "old.csv")
    del kept["public_inputs"]
    assert Declared.from_store(kept).public_inputs == ("age",)
    assert Declared.from_store({**kept, **PRIVATE}).public_inputs == ()


# one table, one account


@pytest.mark.parametrize("how", ["as it was", "other order", "other line ends", "with a mark"])
def test_the_same_rows_get_no_second_budget(world, how):
    """Whatever the upload is called, whatever is asked of it, and however its lines are written."""
    header, *rows = table_of().splitlines()
    written = {
        "as it was": table_of(),
        "other order": b"\n".join([header, *rows[::-1]]),
        "other line ends": table_of().replace(b"\n", b"\r\n"),
        "with a mark": b"\xef\xbb\xbf" + table_of(),
    }
    body = declared("a second budget", upload(world, written[how]), **PRIVATE)
    answer = register(world, body)
    assert answer.status_code == 409
    assert "account = visits" in answer.json()["error"]


def test_the_bytes_that_earlier_versions_kept_are_known(tmp_path):
    store = Store(Ledger(f"sqlite:///{tmp_path}/ledger.db").database)
    store.add_dataset({"name": "first", "table": "a.csv"}, ("of its bytes",))
    with pytest.raises(Refused, match="account = first"):
        store.check_new({"name": "second", "table": "b.csv"}, ("of its lines", "of its bytes"))
    store.check_new({"name": "second", "table": "b.csv"}, ("of its lines", "of other bytes"))


def test_datasets_of_one_table_share_an_account(tmp_path):
    with running(tmp_path) as world:
        body = declared("bands", upload(world), account="visits", bounds=[0, 4000])
        assert register(world, {**body, "epsilon": 7.0}).status_code == 422
        other = {**body, "table": upload(world, table_of(first=33))}
        assert register(world, other).status_code == 422
        assert register(world, body).status_code == 201
        plan = world.plan(CUSTODIAN, "bands")
        number = world.released(CUSTODIAN, "bands", plan, "of-a-shared-one")
        assert world.get(CUSTODIAN, f"/api/releases/{number}")["dataset"] == "bands"
        left = [
            world.get(CUSTODIAN, f"/api/datasets/{n}")["remaining"] for n in ("visits", "bands")
        ]
        assert left[0] == left[1] < 2.0
        charged = world.get(CUSTODIAN, f"/api/releases/{number}/certificate")["ledger"]
        assert (charged["dataset"], charged["left"]) == (
            "visits",
            left[0],
        )  # as the custodian is told
        key = {"name": "b", "role": "analyst", "datasets": ["bands"]}
        world.keys["b"] = world.ask(CUSTODIAN, "POST", "/api/keys", json=key).json()["key"]
        assert world.get(CUSTODIAN, "/api/datasets/bands")["account"] == "visits"
        for path in ("/api/datasets", "/", "/datasets/bands", "/ledger", "/datasets/bands/ledger"):
            text = world.ask("b", "GET", path).text
            assert "bands" in text
            assert "visits" not in text  # whose name is for those who may see it


def test_people_who_are_others_can_have_the_same_public_inputs(tmp_path):
    with running(tmp_path) as world:
        others = table_of([str(float(n)) for n in np.arange(24)])
        body = declared("other people", upload(world, others))
        assert register(world, body).status_code == 409
        assert register(world, {**body, "unrelated": True}).status_code == 201


# keys and approvals


def test_jobs_of_a_revoked_key_that_wait_are_not_carried_out(tmp_path, monkeypatch):
    with running(tmp_path) as world:
        worker = world.client.app.state.service.worker
        monkeypatch.setattr(worker.store, "next_job", lambda: None)  # busy with something else
        body = {"name": "gone", "role": "analyst", "datasets": ["visits"]}
        made = world.ask(CUSTODIAN, "POST", "/api/keys", json=body).json()
        world.keys["gone"] = made["key"]
        fast = {"epsilon": 0.5, "delta": 1e-6}
        job = world.ask("gone", "POST", "/api/datasets/visits/plans", json=fast).json()
        world.ask(CUSTODIAN, "DELETE", f"/api/keys/{made['id']}")
        monkeypatch.undo()
        job = world.finished(CUSTODIAN, job)
        assert job["state"] == "failed"
        assert "revoked" in job["error"]


def stopped_job(world, monkeypatch, name):
    """A release that a key asked for with one Idempotency-Key for all, and that ran when the server was
    killed, after the key was revoked."""
    store = world.client.app.state.service.store
    plan = world.plan(CUSTODIAN, "visits", epsilon=0.01)
    monkeypatch.setattr(store, "next_job", lambda: None)
    body = {"name": name, "role": "analyst", "datasets": ["visits"]}
    made = world.ask(CUSTODIAN, "POST", "/api/keys", json=body).json()
    world.keys[name] = made["key"]
    job = world.release(name, "visits", plan, "the-same-for-all").json()["id"]
    store.note(job, state="running")
    world.ask(CUSTODIAN, "DELETE", f"/api/keys/{made['id']}")
    monkeypatch.undo()
    store.requeue()  # as the next server does
    world.client.app.state.service.worker.wake()
    return world.finished(CUSTODIAN, world.get(CUSTODIAN, f"/api/jobs/{job}"))


def test_a_job_of_a_revoked_key_does_not_wait_for_ever(world, monkeypatch):
    """It ran when the server was killed; custodians take it over, whatever its Idempotency-Key."""
    jobs = [stopped_job(world, monkeypatch, name) for name in ("one", "two")]
    assert {job["state"] for job in jobs} == {"failed"}
    for job in jobs:
        again = world.ask(CUSTODIAN, "POST", f"/api/jobs/{job['id']}/retry")
        assert again.status_code == 202, again.text
        assert world.finished(CUSTODIAN, again.json())["state"] == "done"


def test_a_key_expires(world):
    body = {"name": "for a day", "role": "custodian", "days": 1}
    made = world.ask(CUSTODIAN, "POST", "/api/keys", json=body).json()
    headers = {"Authorization": f"Bearer {made['key']}"}
    assert world.client.get("/api/me", headers=headers).status_code == 200
    store = world.client.app.state.service.store
    over = update(schema.keys).where(schema.keys.c.id == made["id"])
    with store.database.write() as connection:
        connection.execute(over.values(ends=int(time.time()) - 1))
    assert world.client.get("/api/me", headers=headers).status_code == 401


def test_an_approval_can_be_withdrawn(world):
    plan = world.plan(ANALYST, "visits", epsilon=0.01)
    answer = world.ask(CUSTODIAN, "POST", f"/api/plans/{plan}/reject")
    assert answer.json()["state"] == "rejected"
    assert world.release(ANALYST, "visits", plan, "after-rejection").status_code == 409
    assert world.ask(CUSTODIAN, "POST", f"/api/plans/{plan}/approve").json()["state"] == "approved"


def test_a_plan_is_either_withdrawn_or_started(world):
    """Whatever was looked at before: both are decided in their transactions."""
    service = world.client.app.state.service
    store = service.store
    asked = {"retry": "a-retry-key", "digest": "", "max_jobs_per_key": 99}
    first, second = (world.plan(ANALYST, "visits", epsilon=0.01) for _ in range(2))
    me = next(key["id"] for key in world.get(CUSTODIAN, "/api/keys") if key["role"] == "custodian")
    own = Who(me, "clara", "custodian")
    service.decide(own, first, approved=False)
    with pytest.raises(Refused, match="not approved"):
        store.add_job(own, "release", "visits", {"plan": first}, **asked)
    store.add_job(own, "release", "visits", {"plan": second}, **asked)
    with pytest.raises(Refused, match="being carried out"):
        service.decide(own, second, approved=False)


def test_what_was_decided_last_is_what_the_chain_says_last(world):
    """However approvals and rejections race: each is one transaction with its entry."""
    plan = world.plan(ANALYST, "visits", approve=False, epsilon=0.01)
    before = len(world.get(CUSTODIAN, "/api/datasets/visits/ledger")["entries"])

    def decide(number):
        word = ("approve", "reject")[number % 2]
        return world.ask(CUSTODIAN, "POST", f"/api/plans/{plan}/{word}").status_code

    with ThreadPoolExecutor(8) as pool:
        assert {*pool.map(decide, range(40))} == {200}
    kinds = [e["kind"] for e in world.get(CUSTODIAN, "/api/datasets/visits/ledger")["entries"]]
    state = world.get(CUSTODIAN, f"/api/plans/{plan}")["state"]
    assert (kinds[-1], state) in (("approval", "approved"), ("rejection", "rejected"))
    assert ("approval", "approval") not in pairwise(kinds[before:])  # approved once until rejected


def failed_release(world, monkeypatch, once):
    """A plan and the job that failed to carry it out."""
    store = world.client.app.state.service.store
    plan = world.plan(ANALYST, "visits", epsilon=0.01)
    monkeypatch.setattr(store, "next_job", lambda: None)
    job = world.release(ANALYST, "visits", plan, once).json()["id"]
    store.note(job, state="failed", error="The release stopped half-way.")
    monkeypatch.undo()
    return plan, job


def test_the_approval_of_a_release_that_failed_can_be_withdrawn(world, monkeypatch):
    """Until it is given again, neither way to try again starts the release."""
    plan, job = failed_release(world, monkeypatch, "fails-and-is-withdrawn")
    withdrawn = world.ask(CUSTODIAN, "POST", f"/api/plans/{plan}/reject")
    assert (withdrawn.status_code, withdrawn.json()["state"]) == (200, "rejected")
    for again in (
        world.ask(CUSTODIAN, "POST", f"/api/jobs/{job}/retry"),
        world.release(ANALYST, "visits", plan, "fails-and-is-withdrawn"),
    ):
        assert (again.status_code, "not approved" in again.text) == (409, True)
    assert world.ask(CUSTODIAN, "POST", f"/api/plans/{plan}/approve").json()["state"] == "failed"
    done = world.finished(
        ANALYST, world.release(ANALYST, "visits", plan, "fails-and-is-withdrawn").json()
    )
    assert (done["id"], done["state"]) == (job, "done")


def test_jobs_tried_again_count_for_the_key_that_tries(tmp_path, monkeypatch):
    with running(tmp_path, max_jobs_per_key=1) as world:
        jobs = [failed_release(world, monkeypatch, f"the-release-{each}")[1] for each in "ab"]
        monkeypatch.setattr(world.client.app.state.service.store, "next_job", lambda: None)
        paths = [f"/api/jobs/{job}/retry" for job in jobs]
        assert [world.ask(CUSTODIAN, "POST", path).status_code for path in paths] == [202, 429]
        plan = world.get(CUSTODIAN, "/api/datasets/visits/plans")[-1]["id"]
        assert world.release(ANALYST, "visits", plan, "the-release-b").status_code == 202


def change_plans(world, plan, **values):
    """Change the row of a plan behind the server's back."""
    with world.client.app.state.service.store.database.write() as connection:
        rows = update(schema.plans).where(schema.plans.c.id == plan)
        connection.execute(rows.values(**values))


@pytest.mark.parametrize("how", ["never approved", "withdrawn", "another plan"])
def test_a_release_needs_its_approval_in_the_chain(world, how):
    """A row of the database that says so is not enough."""
    plan = world.plan(ANALYST, "visits", approve=how != "never approved", epsilon=0.01)
    if how == "withdrawn":
        world.ask(CUSTODIAN, "POST", f"/api/plans/{plan}/reject")
    if how == "another plan":
        other = world.plan(ANALYST, "visits", approve=False, epsilon=0.02)
        file = world.client.app.state.service.store.plan_file(other)
        change_plans(world, plan, file=file)
    else:
        change_plans(world, plan, approved_at="2026-01-01", rejected_at="")
    before = world.get(ANALYST, "/api/datasets/visits")["remaining"]
    once = f"forged-{how.replace(' ', '-')}"
    job = world.finished(ANALYST, world.release(ANALYST, "visits", plan, once).json())
    assert (job["state"], job["error"]) == ("failed", NOT_APPROVED)
    assert world.get(ANALYST, "/api/datasets/visits")["remaining"] == before


def test_a_release_needs_an_approval_that_the_ledger_signed(tmp_path):
    """Whoever can write to the database and has no key can add an entry, but not sign it."""
    with running(tmp_path) as world:
        work = world.client.app.state.service.work
        plan = world.plan(ANALYST, "visits", epsilon=0.01)
        forged = world.plan(ANALYST, "visits", approve=False, epsilon=0.02)
        decided = unpack_plan(work.store.plan_file(forged)).hash
        Ledger(work.settings.url).account("visits").decide(
            "approval", f"{ABOUT_PLAN.format(forged)}k: 1", decision(decided, "k")
        )
        change_plans(world, forged, approved_at="2026-01-01")
        started = world.release(ANALYST, "visits", forged, "with-a-forged-entry").json()
        job = world.finished(ANALYST, started)
        assert (job["state"], "is not signed by this key" in job["error"]) == ("failed", True)
        assert world.get(ANALYST, f"/api/plans/{plan}")["state"] == "approved"


def test_a_release_that_failed_is_shown_as_failed_and_tried_again(world, monkeypatch):
    plan, job = failed_release(world, monkeypatch, "fails-at-first")
    shown = world.get(ANALYST, f"/api/plans/{plan}")
    assert (shown["state"], shown["carried_out_by"]) == ("failed", "")
    again = world.ask(CUSTODIAN, "POST", f"/api/jobs/{job}/retry")  # another key takes it over
    assert again.status_code == 202
    assert world.finished(CUSTODIAN, again.json())["state"] == "done"
    assert world.get(ANALYST, f"/api/plans/{plan}")["carried_out_by"] == job


def test_who_did_what_is_written_down(world, plan, release, function):
    for name in ("file", "table.csv", "script.py", "page.html"):
        world.ask(ANALYST, "GET", f"/api/releases/{release}/{name}")
    events = world.get(CUSTODIAN, "/api/events")
    assert [each["kind"] for each in events[:4]] == ["release downloaded"] * 4
    older = world.get(CUSTODIAN, f"/api/events?before={events[3]['number']}")
    assert older[0] == events[4]
    kinds = {each["kind"] for each in events}
    assert {"key made", "dataset registered", "plan approved", "release downloaded"} <= kinds
    assert {"release asked for", "function asked for"} <= kinds  # what spends
    assert not any(key.rsplit("-", 1)[1] in str(events) for key in world.keys.values())


# files


def test_private_files_are_private_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        with running(tmp_path / "new") as world:
            made = tmp_path / "new" / "tables" / upload(world)
            world.made("visits", "a-state-file")
        paths = [tmp_path / "new", *(tmp_path / "new").rglob("*")]
        modes = {path.name: (path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in paths}
    finally:
        os.umask(before)
    assert made in paths
    assert {"ledger.db", "signing-key.pem"} <= modes.keys()
    assert {*modes.values()} == {(True, 0o700), (False, 0o600)}, modes


def test_tables_that_nothing_is_made_of_are_listed_and_deleted(world):
    name = upload(world, table_of(first=900))
    listed = world.get(CUSTODIAN, "/api/tables")
    assert name in [row["table"] for row in listed]
    used = world.client.app.state.service.store.read_declaration("visits")["table"]
    assert used not in [row["table"] for row in listed]
    assert world.ask(CUSTODIAN, "DELETE", f"/api/tables/{used}").status_code == 404
    assert world.ask(CUSTODIAN, "DELETE", f"/api/tables/{name}").status_code == 200
    assert name not in [row["table"] for row in world.get(CUSTODIAN, "/api/tables")]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\tx"])
def test_no_text_is_taken_for_a_formula(text):
    assert plain_text(text) == f"'{text}"
    assert plain_text(f"a{text}") == f"a{text}"


def test_one_server_has_a_folder(tmp_path):
    with hold_folder(tmp_path), pytest.raises(BlockingIOError), hold_folder(tmp_path):
        pass
    with hold_folder(tmp_path):
        pass


def test_static_files_are_sent_once_and_compressed(world):
    first = world.ask(CUSTODIAN, "GET", "/static/page.js")
    assert first.headers["content-encoding"] == "gzip"
    again = {"If-None-Match": first.headers["etag"]}
    assert world.ask(CUSTODIAN, "GET", "/static/page.js", headers=again).status_code == 304


def test_cookies_belong_to_one_host_where_there_is_tls(tmp_path):
    with running(tmp_path, secure=True) as world:
        sent = {"content": f"key={world.keys[CUSTODIAN]}"}
        answer = world.ask(NONE, "POST", "/signin", **sent)
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-privgp=")
    assert "Secure" in cookie
    assert "Path=/" in cookie
    assert "Domain" not in cookie
    assert answer.headers["strict-transport-security"].startswith("max-age=")


# slow and greedy callers


def test_headers_that_come_too_slowly_close_the_connection(monkeypatch):
    monkeypatch.setattr(TimedProtocol, "seconds", 0.2)

    async def application(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})

    async def visit(sent):
        reader, writer = await asyncio.open_connection(*place.getsockname())
        writer.write(sent)
        answer = await asyncio.wait_for(reader.read(), 5)
        writer.close()
        return answer

    async def visits():
        config = uvicorn.Config(application, http=TimedProtocol, lifespan="off", log_level="error")
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve(sockets=[place]))
        while not server.started:
            await asyncio.sleep(0.01)
        whole = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
        found = [await visit(whole[:-2]), await visit(whole), await visit(whole + whole[:9])]
        server.should_exit = True
        await serving
        return found

    with bind_socket("127.0.0.1", 0) as place:
        half, whole, more = asyncio.run(visits())
    assert half == b""
    assert b"ok" in whole
    assert b"ok" in more  # and closed while the second request was awaited


def test_small_answers_are_sent_at_once():
    with bind_socket("127.0.0.1", 0) as place:
        assert place.proto == socket.IPPROTO_TCP  # asyncio then sets TCP_NODELAY


def run(guard, path, receive, key=None):
    """The status of one request."""
    found = []

    async def send(message):
        if message["type"] == "http.response.start":
            found.append(message["status"])

    headers = [] if key is None else [(b"authorization", f"Bearer {key}".encode())]
    scope = {"type": "http", "path": path, "method": "POST", "headers": headers, "client": ("h", 1)}
    return guard(scope, receive, send), found


def test_a_body_that_comes_too_slowly_is_refused(world, tmp_path):
    async def application(_, receive, send):
        while (await receive()).get("more_body"):
            pass

    async def drip():
        await asyncio.sleep(0.02)
        return {"type": "http.request", "body": b"x", "more_body": True}

    store = world.client.app.state.service.store
    guard = Guard(application, settings(tmp_path, body_seconds=0.1), store)
    request, found = run(guard, "/api/tables", drip, world.keys[CUSTODIAN])
    asyncio.run(request)
    assert found == [408]


def test_a_greedy_key_leaves_room_for_others_and_for_health(world, tmp_path):
    async def application(_, __, send):
        await asyncio.sleep(0.3)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def empty():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def ask():
        requests = [run(guard, "/api/x", empty, world.keys[ANALYST]) for _ in range(9)]
        requests += [run(guard, "/api/x", empty, world.keys[CUSTODIAN])]
        health = run(guard, "/health", empty)
        waiting = asyncio.gather(*(request for request, _ in requests))
        await asyncio.wait_for(health[0], 0.2)  # before any of them is answered
        while not requests[9][1]:
            await asyncio.sleep(0.01)
        assert sum(bool(found) for _, found in requests[:9]) <= 6
        await waiting
        return [found[0] for _, found in requests], health[1]

    store = world.client.app.state.service.store
    guard = Guard(application, settings(tmp_path, max_requests_per_key=6), store)
    statuses, health = asyncio.run(ask())
    assert statuses == [200] * 10  # some of the nine waited for their turn
    assert health == [200]
