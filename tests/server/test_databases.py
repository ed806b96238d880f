"""The server's own tables: made by migrations, and on PostgreSQL as on SQLite."""

from __future__ import annotations

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from fastapi.testclient import TestClient
from sqlalchemy import text

from privgp.errors import LedgerUnreachable
from privgp.ledger.database import upgrade
from privgp.ledger.ledger import Ledger
from privgp.server.app import application
from privgp.server.store import schema
from privgp.server.store.keys import Who
from privgp.server.store.store import Store
from tests.ledger.conftest import new_schema
from tests.server.world import ANALYST, CUSTODIAN, OTHER, World, running, settings


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
