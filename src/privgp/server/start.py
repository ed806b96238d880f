"""Start a server: make its first keys, register the demonstration's dataset, and listen."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from privgp.server.app import application
from privgp.server.declared import Declared
from privgp.server.settings import Settings
from privgp.server.store.keys import ANALYST, CUSTODIAN

DEMO = "diabetes"
MOST_HEADERS = 32 * 1024  # bytes
BACKLOG = 128  # connections accepted in one go, before the longest idle ones are closed
GRACE = 10  # seconds for requests that run when the server ends
Say = Callable[[str], None]


def prepare_server(settings: Settings, *, demo: bool, say: Say, new_key: bool = False) -> FastAPI:
    """The application; keys that it made are said once and kept nowhere."""
    os.umask(0o077)  # files of the database are nobody else's either
    made = application(settings)
    store = made.state.service.store
    if demo:
        _register_demo(made, settings)
    if not store.has_custodian():
        say(f"The custodian's key: {store.add_key('first custodian', CUSTODIAN)[1]}")
        if demo:
            say(f"An analyst's key:    {store.add_key('analyst', ANALYST, (DEMO,))[1]}")
        say("Keys are shown this once. Keep them.")
    elif new_key:
        say(f"A new custodian's key: {store.add_key('new custodian', CUSTODIAN)[1]}")
        say("It is shown this once. Keep it, and revoke the one that was lost.")
    else:
        say("Keys were shown when the folder was new. If all are lost, --new-key makes another.")
    return made


def bind_socket(host: str, port: int) -> socket.socket:
    """A socket that listens there, or OSError."""
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    # with its protocol named, small answers are sent at once and not collected first
    made = socket.socket(kind, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
    except OSError:
        made.close()
        raise
    return made


class TimedProtocol(H11Protocol):
    """HTTP/1.1 on a connection that is closed if the headers of a request do not come in time, if nobody
    reads its answer, or if it is the one that has been idle longest when there are too many."""

    seconds: float = Settings.model_fields["header_seconds"].default
    most: int = Settings.model_fields["max_connections"].default

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_headers()
        if len(self.connections) > self.most:
            self._close_longest_idle()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait_for_headers()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stuck = self.loop.call_later(self.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stuck.cancel()

    def _wait_for_headers(self) -> None:
        self._since = self.loop.time()
        self.loop.call_later(self.seconds, self._close_if_idle, self.cycle)

    def _close_longest_idle(self) -> None:
        ours = [each for each in self.connections if isinstance(each, TimedProtocol)]
        there = [each for each in ours if not each.transport.is_closing()]
        idle = [each for each in there if each._is_idle(each.cycle)]
        if len(there) > self.most and idle:
            min(idle, key=lambda each: each._since).transport.abort()

    def _close_if_idle(self, before: RequestResponseCycle | None) -> None:
        """Close a connection on which no request began since the last one, read or not."""
        if self._is_idle(before):
            self.transport.abort()

    def _is_idle(self, before: RequestResponseCycle | None) -> bool:
        return self.cycle is before and (before is None or before.response_complete)


def listen(made: FastAPI, place: socket.socket) -> None:
    """Serve until somebody ends it."""
    server_of(made).run(sockets=[place])


def server_of(made: FastAPI) -> uvicorn.Server:
    """The program that serves an application, with limits on headers."""
    settings = made.state.service.settings
    TimedProtocol.seconds, TimedProtocol.most = settings.header_seconds, settings.max_connections
    config = uvicorn.Config(
        made,
        log_level="warning",
        server_header=False,
        http=TimedProtocol,  # whose headers are limited in size and time
        h11_max_incomplete_event_size=MOST_HEADERS,
        ws="none",
        backlog=BACKLOG,
        timeout_graceful_shutdown=GRACE,
    )
    return uvicorn.Server(config)


def _register_demo(made: FastAPI, settings: Settings) -> None:
    """442 people with diabetes: how their disease progressed is private."""
    import polars as pl
    from sklearn.datasets import load_diabetes

    service = made.state.service
    declared = Declared(
        name=DEMO, table="diabetes.csv", inputs=("bmi", "bp"), public_inputs=("bmi", "bp"),
        output="progression", bounds=(25.0, 350.0), epsilon=3.0, delta=1e-5,
    )  # fmt: skip
    path = declared.path(settings)
    if path.exists():
        return
    people = load_diabetes(scaled=False)
    table = pl.DataFrame(people.data, schema=list(people.feature_names), orient="row")
    outputs = pl.Series(declared.title, people.target)
    table.select(declared.inputs).with_columns(outputs).write_csv(path)
    service.work.ledger.open(declared.name, declared.epsilon, declared.delta)
    service.store.add_dataset(declared.model_dump(mode="json"), declared.digests(settings))
