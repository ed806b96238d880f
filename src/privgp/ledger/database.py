"""The database of a ledger: its tables in SQLite or PostgreSQL, opened, migrated, and one transaction at a time.

Amounts are texts: whole numbers too large for a database's integers.
"""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    create_engine,
    event,
    inspect,
    text,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import NullPool, QueuePool
from sqlalchemy.schema import PrimaryKeyConstraint, UniqueConstraint

from privgp.errors import LedgerUnreachable

VERSIONS = "alembic_version"
REVISION = "2"  # of the newest migration; a database that has it is not migrated

metadata = MetaData()


def _texts(*names: str, nullable: bool = False) -> list[Column[str]]:
    return [Column(name, Text, nullable=nullable) for name in names]


accounts = Table(
    "accounts",
    metadata,
    Column("dataset", Text, primary_key=True),
    *_texts("epsilon", "delta", "reserve"),
    *_texts("fingerprint", nullable=True),
    *_texts("opened_at", "hash"),
)

entries = Table(
    "entries",
    metadata,
    Column("dataset", Text, ForeignKey("accounts.dataset"), nullable=False),
    Column("number", Integer, nullable=False),
    *_texts("kind", "at"),
    *_texts("key", "request", "guarantee", "fingerprint", "answer", nullable=True),
    *_texts("epsilon", "mu2", "delta", "spent_epsilon", "spent_mu2", "spent_delta"),
    *_texts("most_epsilon", "most_delta", nullable=True),
    *_texts("previous", "hash"),
    *_texts("signature", nullable=True),
    PrimaryKeyConstraint("dataset", "number"),
    UniqueConstraint("dataset", "kind", "key"),
    Index("entries_hash", "hash"),
    Index("entries_fingerprint", "fingerprint"),
)

answers = Table(
    "answers",
    metadata,
    Column("dataset", Text, ForeignKey("accounts.dataset"), nullable=False),
    Column("key", Text, nullable=False),
    Column("answer", LargeBinary, nullable=False),
    PrimaryKeyConstraint("dataset", "key"),
)

SQLITE, POSTGRESQL = "sqlite", "postgresql"
MIGRATIONS = "privgp.ledger:migrations"
# Words of the url's query: files of the anchor and of the signing key.
ANCHOR, KEY = "anchor", "key"
SECRET_WORDS = {"password", "sslpassword"}
MOST_CONNECTIONS = 45  # as many threads as a server has
WAIT = 60  # seconds for another process's transaction
WRONG_URL = (
    "url must be sqlite:///FILE or postgresql://USER@HOST/DATABASE: a budget outlives a program."
)
UNREACHABLE = "the ledger cannot be reached or written; nothing was drawn."


class Database:
    """The database of a ledger, migrated when it is opened.

    ``write()`` and ``read()`` are transactions; a write keeps other writers of SQLite waiting.

    Parameters
    ----------
    url : ``sqlite:///FILE`` or ``postgresql://USER@HOST/DATABASE``
    pooled : whether connections to a file of SQLite stay open between transactions. A copy of the
        file alone then lacks what is in the file beside it (``-wal``)

    """

    def __init__(self, url: str, *, pooled: bool = False) -> None:
        self.url = check_url(url).difference_update_query([ANCHOR, KEY])
        self.pooled = pooled
        self._engine: Engine | None = None
        self._process = 0
        self.migrate(MIGRATIONS, VERSIONS, REVISION)

    def migrate(self, scripts: str, versions: str, newest: str) -> None:
        """Bring tables up to date. One of several programs that start at once does it.

        Parameters
        ----------
        scripts
            Alembic's, as "package:folder".
        versions
            The table that knows where they stand.
        newest
            The revision of the newest script.

        """
        with self.read() as connection:  # which waits for nobody
            if _revision(connection, versions) == newest:
                return
        with self.write() as connection:
            exclude_others(connection)
            if _revision(connection, versions) != newest:
                upgrade(connection, scripts, versions)

    @property
    def file(self) -> Path | None:
        """The file of SQLite; None for PostgreSQL."""
        return sqlite_file(self.url)

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that writes; LedgerUnreachable if the database does not answer."""
        with self._transaction(immediate=True) as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that reads: all that is read is of one moment."""
        with self._transaction(immediate=False) as connection:
            yield connection

    def close(self) -> None:
        """Give back connections; the next transaction opens new ones."""
        if self._engine is not None:
            self._engine.dispose(close=self._process == os.getpid())
            self._engine = None

    @contextmanager
    def _transaction(self, *, immediate: bool) -> Iterator[Connection]:
        try:
            with self._connect().connect() as connection:
                connection.execution_options(immediate=immediate)
                if not immediate and self.file is None:  # all that is read is of one moment
                    connection.execution_options(isolation_level="REPEATABLE READ")
                with connection.begin():
                    yield connection
        except (DBAPIError, PoolTimeout) as problem:
            raise LedgerUnreachable(UNREACHABLE) from problem

    def _connect(self) -> Engine:
        """The engine of this process: a connection is not shared with a fork."""
        if self._engine is None or self._process != os.getpid():
            self.close()
            self._engine, self._process = self._open_engine(), os.getpid()
        return self._engine

    def _open_engine(self) -> Engine:
        if self.file is None:
            return create_engine(self.url, pool_pre_ping=True, max_overflow=MOST_CONNECTIONS)
        pool = QueuePool if self.pooled else NullPool
        engine = create_engine(self.url, connect_args={"timeout": WAIT}, poolclass=pool)
        event.listen(engine, "connect", _set_up)
        event.listen(engine, "begin", _begin)
        return engine

    def __getstate__(self) -> dict[str, object]:
        """Without the password: another process takes it from PGPASSWORD or its password file."""
        url = self.url
        bare = URL.create(
            url.drivername, url.username, None, url.host, url.port, url.database, url.query
        )
        return {"url": bare, "pooled": self.pooled, "_engine": None, "_process": 0}


def check_url(url: str) -> URL:
    """The address of a database that a ledger can be kept in.

    Raises
    ------
    ValueError
        It is in memory, of another database, has its password in the query, its folder does not
        exist, or psycopg is not installed.

    """
    try:
        made = make_url(url)
        kind = made.get_backend_name()
    except (ArgumentError, AttributeError):
        raise ValueError(WRONG_URL) from None
    in_memory = kind == SQLITE and made.database in (None, "", ":memory:")
    if kind not in (SQLITE, POSTGRESQL) or in_memory:
        raise ValueError(WRONG_URL)
    if kind == SQLITE and not set(made.query) <= {ANCHOR, KEY}:  # it would be another file's name
        raise ValueError("url of SQLite takes no options but anchor and key.")
    if SECRET_WORDS & {*made.query}:  # which would be shown with the address
        raise ValueError("url must have a password before the host, or none.")
    if kind == POSTGRESQL:
        try:
            import psycopg  # noqa: F401
        except ImportError:
            raise ValueError("url needs psycopg: install privgp[server].") from None
        return made.set(drivername="postgresql+psycopg")
    file = Path(str(made.database)).absolute()  # the same one, wherever the program goes
    if not file.parent.is_dir():
        raise ValueError(f"url names the folder '{file.parent}', which does not exist.")
    return made.set(database=str(file))


def sqlite_file(url: URL) -> Path | None:
    """The file of SQLite, which need not exist; None for PostgreSQL."""
    return Path(str(url.database)) if url.get_backend_name() == SQLITE else None


def _set_up(connection: sqlite3.Connection, _: object) -> None:
    """SQLite: transactions begin as ``_begin`` says; a commit is on the disk when it returns."""
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {1000 * WAIT}")
    _write_ahead(cursor)
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _write_ahead(cursor: sqlite3.Cursor) -> None:
    """A new database's first programs wait for one another here, which SQLite does not do itself."""
    last = time.monotonic() + WAIT
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as problem:
            if "locked" not in str(problem) or time.monotonic() > last:
                raise
            time.sleep(0.01)


def _begin(connection: Connection) -> None:
    immediate = connection.get_execution_options().get("immediate", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def exclude_others(connection: Connection) -> None:
    """Let no other program past this line until the transaction ends; SQLite never does."""
    if connection.dialect.name == POSTGRESQL:
        connection.execute(text("SELECT pg_advisory_xact_lock(7042016)"))


def upgrade(connection: Connection, scripts: str, versions: str, revision: str = "head") -> None:
    """Bring tables to a revision, in the transaction of the connection."""
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", scripts)
    folder = ScriptDirectory.from_config(config)

    with EnvironmentContext(
        config, folder, fn=lambda found, _: folder._upgrade_revs(revision, found)
    ) as context:
        context.configure(connection=connection, version_table=versions)
        context.run_migrations()


def _revision(connection: Connection, versions: str) -> str | None:
    if not inspect(connection).has_table(versions):
        return None
    found = connection.execute(text(f"SELECT version_num FROM {versions}")).scalar()
    return None if found is None else str(found)


def has_triggers(connection: Connection) -> bool:
    """Whether the triggers that refuse changes are still there, switched on, and as they were made."""
    from privgp.ledger.migrations.versions.first import trigger_texts

    if connection.dialect.name == SQLITE:
        asked = "SELECT sql FROM sqlite_master WHERE type = 'trigger'"
    else:  # what every trigger calls is compared too
        asked = (
            "SELECT tgname || ' ' || tgtype || ' ON ' || relname || ' ' || trim(prosrc) "
            "FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid JOIN pg_proc ON "
            "pg_proc.oid = tgfoid WHERE NOT tgisinternal AND tgenabled = 'O' AND relnamespace = "
            "(SELECT oid FROM pg_namespace WHERE nspname = current_schema())"
        )
    found = [str(each) for each in connection.execute(text(asked)).scalars()]
    return {*trigger_texts(connection.dialect.name)} <= {*found}
