"""The server's tables, beside those of the ledger, and their rows. They hold no private value."""

import secrets
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Column, Executable, ForeignKey, Index, MetaData, Select, Table
from sqlalchemy.schema import PrimaryKeyConstraint, UniqueConstraint
from sqlalchemy.types import Float, Integer, LargeBinary, Text

from privgp.ledger.database import Database
from privgp.server.errors import absent

SCRIPTS, VERSIONS = "privgp.server.store:migrations", "server_version"
REVISION = "4"  # of the newest migration

Row = dict[str, Any]
WAITING, RUNNING, DONE, FAILED = "waiting", "running", "done", "failed"  # states of a job
REVOKED = "The key that asked for this was revoked or has expired. A custodian can try again."
metadata = MetaData()


def _text(*names: str) -> list[Column[str]]:
    return [Column(name, Text, nullable=False, default="") for name in names]


def _key() -> Column[str]:
    return Column("key", Text, ForeignKey("server_keys.id"), nullable=False, index=True)


def _dataset() -> Column[str]:
    return Column("dataset", Text, ForeignKey("server_datasets.name"), nullable=False, index=True)


keys = Table(
    "server_keys",
    metadata,
    Column("id", Text, primary_key=True),
    *_text("name", "role", "hash", "made_at", "revoked_at"),
    Column("ends", Integer, nullable=False, default=0),  # when it expires; 0: never
    *_text("identity"),  # who signs in with it at a provider
)
granted = PrimaryKeyConstraint("key", "dataset")
grants = Table("server_grants", metadata, _key(), _dataset(), granted)
sessions = Table(
    "server_sessions",
    metadata,
    Column("id", Text, primary_key=True),
    _key(),
    *_text("hash"),
    Column("ends", Integer, nullable=False),
)
datasets = Table(
    "server_datasets",
    metadata,
    Column("name", Text, primary_key=True),
    *_text("declared", "made_at", "digest"),  # digest: SHA-256 of the table's bytes
)
plans = Table(
    "server_plans",
    metadata,
    Column("id", Text, primary_key=True),
    _dataset(),
    _key(),
    *_text("told", "guarantee", "made_at", "approved_at", "approved_by"),
    *_text("rejected_at", "rejected_by"),
    Column("file", LargeBinary, nullable=False),
)
jobs = Table(
    "server_jobs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("place", Integer, nullable=False),
    _dataset(),
    _key(),
    *_text("kind", "asked", "retry", "digest"),
    *_text("state", "doing", "result", "error", "made_at"),
    Column("progress", Float, nullable=False, default=0.0),
    Column("started", Integer, nullable=False, default=0),  # the order of starts; 0: not yet
    UniqueConstraint("key", "kind", "retry"),
    Index("ix_server_jobs_state", "state"),
)
releases = Table(
    "server_releases",
    metadata,
    Column("id", Text, primary_key=True),
    _dataset(),
    *_text("ledger_key", "previous", "made_at"),
)
functions = Table(
    "server_functions",
    metadata,
    Column("id", Text, primary_key=True),
    _dataset(),
    *_text("kind", "told", "made_at"),
    Column("points", Integer, nullable=False),  # that were answered: the file is never behind
)
events = Table(
    "server_events",
    metadata,
    Column("number", Integer, primary_key=True),
    *_text("at", "key", "kind", "about"),
)
titles = Table(
    "server_titles",
    metadata,
    Column("release", Text, ForeignKey("server_releases.id"), primary_key=True),
    *_text("headline", "unit"),
)


class Rows:
    """Rows of the server's tables."""

    def __init__(self, database: Database) -> None:
        self.database = database
        database.migrate(SCRIPTS, VERSIONS, REVISION)

    def _all(self, asked: Select[object]) -> list[Row]:
        with self.database.read() as connection:
            return [dict(row) for row in connection.execute(asked).mappings()]

    def _find(self, asked: Select[object]) -> Row | None:
        return next(iter(self._all(asked)), None)

    def _first(self, asked: Select[object]) -> Row:
        row = self._find(asked)
        if row is None:
            raise absent()
        return row

    def _write(self, *done: Executable) -> int:
        """Carry these out together; the number of rows that the first of them changed."""
        with self.database.write() as connection:
            changed = [int(getattr(connection.execute(each), "rowcount", 0)) for each in done]
        return changed[0]


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def new_id() -> str:
    return secrets.token_hex(16)
