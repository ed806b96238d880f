"""A database whose migrations were remembered is one that was migrated."""

from __future__ import annotations

from privgp.ledger.database import Database, has_triggers
from privgp.server.store.schema import REVISION, SCRIPTS, VERSIONS
from tests import migrated


def built(folder, name: str) -> tuple:
    """All that a database consists of, once with the tables of a ledger, and then of a server too."""
    found = []
    database = Database(f"sqlite:///{folder}/{name}.db")
    for more in (False, True):
        if more:
            database.migrate(SCRIPTS, VERSIONS, REVISION)
        with database.read() as connection:
            assert has_triggers(connection)
            schema = migrated.schema_of(connection)
            found.append((schema, migrated.rows_of(connection, schema)))
    database.close()
    return tuple(found)


def test_remembered_migrations_end_where_the_migrations_end(tmp_path, monkeypatch):
    built(tmp_path, "first")
    assert migrated._made
    remembered = built(tmp_path, "remembered")
    monkeypatch.setattr(migrated, "_remembers", False)
    carried_out = built(tmp_path, "carried out")
    assert remembered == carried_out
    assert len(carried_out[1][0]) > len(carried_out[0][0]) > 5
