"""The server's side of the processes that carry jobs out and predict: kept warm, killed when something
takes too long."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from enum import Enum

from privgp.server.errors import Refused
from privgp.server.settings import Settings

READY, OVER, LOST = b"ready\n", b"over\n", b"lost\n"  # what it says
LOOK = 0.2  # seconds between looks whether the server ends
START = 120.0  # seconds for a process to start
NO_ANSWER = "The server could not answer this: try again in a moment."


class End(Enum):
    """How a run ended: the process wrote down the job's end, was lost, or had to be killed."""

    OVER, LOST, TOO_LONG, STOPPED = range(4)


class Process:
    """One process for one job at a time; a new one whenever the last one is gone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._is_ready = False

    def warm(self) -> None:
        """Start it, so that the first job need not wait."""
        with self._lock:
            self._start_child()

    def run(self, settings: Settings, job: dict[str, object], stop: Callable[[], bool]) -> End:
        """Carry a job out within the settings' time; ``stop`` tells when the server cannot wait."""
        answer = self._exchange(settings, {"job": job}, stop)
        if isinstance(answer, bytes):
            return End.OVER if answer == OVER else self._kill(End.LOST)
        return answer

    def ask(self, settings: Settings, asked: dict[str, object]) -> str:
        """The text that answers a question to a release, or Refused."""
        answer = self._exchange(settings, {"asked": asked}, lambda: False)
        if not isinstance(answer, bytes) or not answer.startswith(b"{"):
            raise Refused(503, NO_ANSWER)
        told = json.loads(answer)
        if "status" in told:
            raise Refused(told["status"], told["sentence"])
        return str(told["text"])

    def _exchange(
        self, settings: Settings, told: dict[str, object], stop: Callable[[], bool]
    ) -> bytes | End:
        """A line to the process, and the line that it answers, or why there is none."""
        line = json.dumps({"settings": settings.model_dump(mode="json"), **told})
        with self._lock:
            child = self._start_child()
            if not self._is_ready:
                self._is_ready = _line(child, START, stop) == READY
            if not self._is_ready:
                return self._kill(End.STOPPED if stop() else End.LOST)
            try:
                assert child.stdin is not None
                write_whole(child.stdin.write, line.encode("ascii") + b"\n")
            except OSError:
                return self._kill(End.LOST)
            answer = _line(child, settings.max_job_seconds, stop)
            if answer is not None:
                return answer or self._kill(End.LOST)
            return self._kill(End.STOPPED if stop() else End.TOO_LONG)

    def _start_child(self) -> subprocess.Popen[bytes]:
        if self._child is None or self._child.poll() is not None:
            paths = os.pathsep.join(os.path.abspath(path) for path in sys.path if path)
            self._is_ready = False
            self._child = subprocess.Popen(
                [sys.executable, "-P", "-m", "privgp.server.jobs.child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                env={**os.environ, "PYTHONPATH": paths},
                start_new_session=True,  # Ctrl-C is the server's to hear
            )
        return self._child

    def _kill(self, end: End) -> End:
        if self._child is not None:
            self._child.kill()
            self._child.communicate()
            self._child = None
        return end


def write_whole(write: Callable[[bytes], int], data: bytes) -> None:
    """Write all of it, however much goes out at once."""
    while data:
        data = data[write(data) :]


def _line(child: subprocess.Popen[bytes], seconds: float, stop: Callable[[], bool]) -> bytes | None:
    """What the process says next, nothing if it is gone; None if it takes too long."""
    assert child.stdout is not None
    last = time.monotonic() + seconds
    said = bytearray()
    while not said.endswith(b"\n"):
        left = last - time.monotonic()
        if left <= 0 or stop():
            return None
        if select.select([child.stdout], [], [], min(left, LOOK))[0]:
            more = os.read(child.stdout.fileno(), 2**20)
            if not more:
                return b""
            said += more
    return bytes(said)


SHARED = Process()
PREDICTORS: list[Process] = []  # as many as a server of this process ever had
