"""A server that listens at a port of this machine, as clients and attackers find it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from privgp.server.app import application
from privgp.server.start import bind_socket, server_of
from tests.server.world import World, settings

LOCAL = "127.0.0.1"


@contextmanager
def listening(folder: Path, **changed: Any) -> Iterator[World]:
    """A world whose client talks to a real server, with a custodian's key."""
    made = application(settings(folder, **{"hosts": [LOCAL], **changed}))
    key = made.state.service.store.add_key("clara", "custodian")[1]
    with bind_socket(LOCAL, 0) as place:
        server = server_of(made)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [place]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            with httpx.Client(base_url=f"http://{LOCAL}:{place.getsockname()[1]}", timeout=60) as c:
                yield World(c, {"custodian": key}, application=made)
        finally:
            server.should_exit = True
            thread.join()
