"""The server's own tables: made by migrations, and on PostgreSQL as on SQLite."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from fastapi.testclient import TestClient
from sqlalchemy import text

from benchmarks.postgresql import new_schema
from privgp.errors import LedgerUnreachable
from privgp.ledger.database import upgrade
from privgp.ledger.ledger import Ledger
from privgp.server.app import application
from privgp.server.store import schema
from privgp.server.store.keys import Who
from privgp.server.store.store import Store
from tests.server.world import ANALYST, CUSTODIAN, OTHER, World, running, settings

CLIENTS = 8
RACES = max(2, int(os.environ.get("PRIVGP_FUZZ", "0")) // 100)


def differences(store):
    """Between the tables there are and those that the code uses."""
    names = {*schema.metadata.tables}
    with store.database.read() as connection:
        options = {"include_name": lambda name, kind, _: kind != "table" or name in names}
        context = MigrationContext.configure(connection, opts=options)
        return compare_metadata(context, schema.metadata)


def test_migrations_make_the_tables_that_the_code_uses(world):
    assert not differences(world.client.app.state.service.store)
    config = Config()
    config.set_main_option("script_location", schema.SCRIPTS)
    assert ScriptDirectory.from_config(config).get_current_head() == schema.REVISION


@pytest.mark.parametrize("knows_versions", [False, True])
def test_tables_of_earlier_versions_are_kept(tmp_path, knows_versions):
    """Also those made before there were migrations."""
    database = Ledger(f"sqlite:///{tmp_path}/ledger.db").database
    with database.write() as connection:
        upgrade(connection, schema.SCRIPTS, schema.VERSIONS, "1")
        connection.execute(text("INSERT INTO server_datasets VALUES ('a', '{\"inputs\": []}', '')"))
        if not knows_versions:
            connection.execute(text(f"DROP TABLE {schema.VERSIONS}"))
    store = Store(database)
    assert store.read_declaration("a") == {"inputs": []}
    assert not differences(store)


def test_events_are_only_added(world):
    store = world.client.app.state.service.store
    store.log(Who("0" * 16, "clara", "custodian"), "sign-in", "")
    for change in (schema.events.delete(), schema.events.update().values(kind="")):
        with pytest.raises(LedgerUnreachable), store.database.write() as connection:
            connection.execute(change)
    assert store.events(2**31 - 1, 1)[0]["kind"] == "sign-in"


def test_everything_on_postgresql(postgresql, tmp_path):
    """Register, plan, approve, release, ask, start again: keys, jobs and releases are in the
    database, and the same bytes come back."""
    address = new_schema(postgresql, tmp_path / "anchor")
    with running(tmp_path, ledger=address) as world:
        assert not differences(world.client.app.state.service.store)
        plan = world.plan(ANALYST, "visits")
        release = world.released(ANALYST, "visits", plan, "on-postgresql")
        first = world.ask(ANALYST, "GET", f"/api/releases/{release}/file").content
        function = world.made("visits", "also-there-1")
        values = world.values(ANALYST, function, [[30.0]]).json()
        assert world.ask(OTHER, "GET", f"/api/releases/{release}").status_code == 404
    assert not (tmp_path / "ledger.db").exists()
    with TestClient(application(settings(tmp_path, ledger=address))) as client:
        again = World(client, world.keys)
        assert again.released(ANALYST, "visits", plan, "on-postgresql") == release
        assert again.ask(ANALYST, "GET", f"/api/releases/{release}/file").content == first
        assert again.values(ANALYST, function, [[30.0]]).json() == values
        entries = again.get(CUSTODIAN, "/api/datasets/visits/ledger")["entries"]
        assert [each["kind"] for each in entries] == ["approval", "charge", "answer", "charge"]
        assert again.get(CUSTODIAN, "/api/ledger/verify")["whole"]


def keys_for(world, count):
    """Names of so many keys of analysts, and their numbers."""
    made = {}
    for place in range(count):
        body = {"name": f"k{place}", "role": "analyst", "datasets": ["visits"]}
        found = world.ask(CUSTODIAN, "POST", "/api/keys", json=body).json()
        world.keys[body["name"]], made[body["name"]] = found["key"], found["id"]
    return made


def race(world, clients):
    """So many keys ask for one plan at once, and some of them are revoked meanwhile. One at most gets
    it; a custodian takes over what a revoked key left."""
    plan, keys = world.plan(CUSTODIAN, "visits", epsilon=0.02), keys_for(world, clients)

    def ask(name):
        answer = world.release(name, "visits", plan, f"of-key-{name}")
        return answer.json()["id"] if answer.status_code == 202 else answer.status_code

    def revoke(name):
        return world.ask(CUSTODIAN, "DELETE", f"/api/keys/{keys[name]}").status_code

    with ThreadPoolExecutor(2 * clients) as pool:
        asked = [pool.submit(ask, name) for name in keys]
        revoked = [pool.submit(revoke, name) for name in [*keys][::2]]
        found = [each.result() for each in asked]
        assert {each.result() for each in revoked} == {200}
    jobs = [each for each in found if isinstance(each, str)]
    assert {each for each in found if isinstance(each, int)} <= {401, 409}
    for job in jobs:
        done = world.finished(CUSTODIAN, world.get(CUSTODIAN, f"/api/jobs/{job}"))
        if done["state"] == "failed":
            again = world.ask(CUSTODIAN, "POST", f"/api/jobs/{job}/retry").json()
            assert world.finished(CUSTODIAN, again)["state"] == "done"
    return jobs


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_keys_that_race_for_a_plan_and_are_revoked_get_it_once(request, tmp_path, database):
    if database == "sqlite":
        ledger = None
    else:
        ledger = new_schema(request.getfixturevalue("postgresql"), tmp_path / "anchor")
    with running(tmp_path, ledger=ledger) as world:
        jobs = [race(world, CLIENTS) for _ in range(RACES)]
        assert max(map(len, jobs)) == 1
        account = world.client.app.state.service.work.ledger.account("visits")
        charged = [each.key for each in account.entries() if each.kind == "charge"]
        assert sorted(charged) == sorted(f"job {job}" for each in jobs for job in each)
        assert world.get(CUSTODIAN, "/api/ledger/verify")["whole"]
