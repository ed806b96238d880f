"""Tables of a new database of SQLite are migrated once per worker, and written at once from then on.

The migrations of an empty database always end with the same tables, indexes and triggers. The first
one is carried out and its end is remembered as the statements that SQLite keeps of it. Tests of ledgers
and of databases migrate anew every time, and so does every process that a test starts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection

from privgp.ledger import database

ANEW = ("tests/ledger/", "tests/server/test_databases", "tests/release/test_old_files")

Schema = dict[str, str]  # the statement that made everything that has a name
_made: dict[tuple[Any, ...], tuple[Schema, str]] = {}
_remembers = False


def start(test: pytest.Item) -> None:
    """Begin a test: remember migrations, or carry all of them out."""
    global _remembers
    _remembers = not test.nodeid.startswith(ANEW)


def install() -> None:
    """Remember the migrations that are made from now on."""
    database.upgrade = _remember(database.upgrade)


def schema_of(connection: Connection) -> Schema:
    """What a database of SQLite consists of, tables first, in the order in which it was made."""
    asked = (
        "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%' "
        "ORDER BY type = 'table' DESC, rowid"
    )
    return {name: sql for name, sql in connection.exec_driver_sql(asked)}


def rows_of(connection: Connection, schema: Schema) -> dict[str, Any]:
    """All rows of the tables that have some."""
    tables = [name for name, sql in schema.items() if sql.startswith("CREATE TABLE")]
    rows = {each: connection.exec_driver_sql(f'SELECT * FROM "{each}"').all() for each in tables}
    return {name: held for name, held in rows.items() if held}


def _remember(upgrade: Callable[..., None]) -> Callable[..., None]:
    def upgraded(
        connection: Connection, scripts: str, versions: str, revision: str = "head"
    ) -> None:
        new = _remembers and connection.dialect.name == "sqlite"
        before = schema_of(connection) if new else {}
        if not new or versions in before:
            upgrade(connection, scripts, versions, revision)
            return
        key = scripts, versions, revision, *before.items()
        if key not in _made:
            former = rows_of(connection, before)
            upgrade(connection, scripts, versions, revision)
            after = schema_of(connection)
            added = {name: sql for name, sql in after.items() if name not in before}
            ((table, ((newest,),)),) = rows_of(connection, added).items()
            assert table == versions
            assert {name: after.get(name) for name in before} == before
            assert rows_of(connection, before) == former
            _made[key] = added, newest
            return
        added, newest = _made[key]
        for sql in added.values():
            connection.exec_driver_sql(sql)
        connection.exec_driver_sql(f'INSERT INTO "{versions}" VALUES (?)', (newest,))

    return upgraded
