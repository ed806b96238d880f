"""A real server is killed at random moments under load and started again, many times.

    python -m benchmarks.kills --kills 50 [--postgresql]

Analysts go on asking through all of it, each question with its own Idempotency-Key. Others ask with keys
that are revoked a moment later. In the end every answer that anybody saw must have been charged, once; every
question asked again must get the same bytes; every job must have ended, those of revoked keys too; and the
ledger must be whole.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import func, select

from benchmarks.postgresql import new_schema, postgresql
from privgp.ledger.chain import CHARGE
from privgp.server.settings import Settings
from privgp.server.store import schema
from privgp.server.store.schema import DONE, RUNNING, WAITING
from privgp.server.work import Work

ROWS, POINTS = 24, 3
PATIENCE = 600.0  # seconds for what takes a few, on a machine with other work
PLAN = {"epsilon": 1e-3, "delta": 1e-7, "hyperparameters": "fixed", "mechanism": "laplace"}
FUNCTION = {
    "kind": "function", "variance": 1e6, "lengthscales": [20.0], "noise_variance": 1e5,
    "epsilon": 1e-3, "delta": 1e-9,
}  # fmt: skip
DATASET = {
    "name": "visits", "inputs": ["age"], "public_inputs": ["age"], "output": "cost", "bounds": [0, 5000],
    "epsilon": 4.0, "delta": 1e-5, "reserve": 3.0,
}  # fmt: skip


RELEASES = "/api/datasets/visits/releases"


class Server:
    """``privgp serve`` as a process, at one address."""

    def __init__(self, folder: Path, ledger: str | None) -> None:
        self.settings = Settings(data=folder, ledger=ledger)
        self.work = Work.of(self.settings)
        self.key = self.work.store.add_key("clara", "custodian")[1]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        told = ["--port", str(self.port), "--data", str(self.settings.data)]
        told += ["--ledger", self.settings.ledger] if self.settings.ledger else []
        return [sys.executable, "-m", "privgp", "serve", *told]

    def start(self) -> None:
        self.process = subprocess.Popen(self.command(), stdout=subprocess.DEVNULL)
        last = time.monotonic() + PATIENCE
        while time.monotonic() < last and self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                time.sleep(0.02)
        raise RuntimeError("the server does not start")

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def stop(self) -> None:
        """End it as an operator would, or else as nobody should."""
        if self.process is not None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(30)
            self.kill()

    def client(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.key}"}
        here = f"http://127.0.0.1:{self.port}"
        return httpx.Client(base_url=here, headers=headers, timeout=30, verify=False)

    def jobs(self, *states: str, begun: bool = False) -> int:
        """How many jobs are in one of these states, and their process has ``begun`` with them."""
        c = schema.jobs.c
        asked = select(func.count()).where(c.state.in_(states))
        with self.work.store.database.read() as connection:
            found = connection.execute(asked.where(c.doing != "") if begun else asked).scalar()
            return int(found or 0)


@dataclass
class Seen:
    """What was asked under which key, and what came back: the job, and a digest of its bytes."""

    asked: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    answers: dict[str, tuple[str, str]] = field(default_factory=dict)
    revoked: list[str] = field(default_factory=list)  # jobs of keys that were revoked
    lost: int = 0  # requests that got no answer


class Asking(threading.Thread):
    """Asks one question after the other, each again until it is answered."""

    def __init__(self, server: Server, name: str, ask: Callable[[Any, str], None]) -> None:
        super().__init__(name=name)
        self.server, self.ask, self.seen = server, ask, Seen()
        self.client = server.client()
        self.over, self.rng = threading.Event(), random.Random(name)
        self.problem: BaseException | None = None

    def run(self) -> None:
        number = 0
        try:
            while not self.over.is_set():
                self.ask(self, f"{self.name}-{number:05d}")
                number += 1
        except Over:
            pass
        except BaseException as problem:
            self.problem = problem

    def sent(self, method: str, path: str, **others: Any) -> httpx.Response:
        """An answer, after however many restarts, and when the server is not too busy for it."""
        while True:
            try:
                answer = self.client.request(method, path, **others)
                assert answer.status_code < 500, answer.text
                if answer.status_code != httpx.codes.TOO_MANY_REQUESTS:
                    return answer
            except httpx.TransportError:
                self.seen.lost += 1
            if self.over.wait(0.05):
                raise Over

    def finished(self, job: dict[str, Any]) -> dict[str, Any]:
        while job["state"] in ("waiting", "running"):
            if self.over.is_set():
                raise Over
            time.sleep(0.03)
            job = self.sent("GET", f"/api/jobs/{job['id']}").json()
        return job

    def post(self, key: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.seen.asked[key] = (path, body)
        while True:  # a job that was stopped half-way is reported, and asked for again
            answer = self.sent("POST", path, json=body, headers={"Idempotency-Key": key})
            assert answer.status_code == 202, answer.text
            job = self.finished(answer.json())
            if job["state"] == "done":
                return job


class Over(Exception):
    """No more questions."""


def ask_release(asking: Asking, key: str) -> None:
    plan = approved_plan(asking)
    if plan:
        job = asking.post(key, RELEASES, {"plan": plan})
        asking.seen.answers[key] = (job["result"], read(asking, job["result"]))


def ask_and_revoke(asking: Asking, key: str) -> None:
    """Ask for a release with a key that is revoked before it is there, or just after."""
    body = {"name": "for a moment", "role": "analyst", "datasets": ["visits"]}
    made = asking.sent("POST", "/api/keys", json=body).json()
    own = {"Authorization": f"Bearer {made['key']}"}
    plan = approved_plan(asking)
    if plan:
        headers = {"Idempotency-Key": key, **own}
        job = asking.sent("POST", RELEASES, json={"plan": plan}, headers=headers).json()
        asking.seen.revoked.append(job["id"])
        time.sleep(asking.rng.uniform(0.0, 1.5))
        asking.sent("DELETE", f"/api/keys/{made['id']}")
        answer = asking.sent("GET", f"/api/jobs/{job['id']}", headers=own)
        assert answer.status_code == 401, answer.text
        asking.finished(asking.sent("GET", f"/api/jobs/{job['id']}").json())


def approved_plan(asking: Asking) -> str:
    """The number of a plan that may be carried out; empty if its job was stopped."""
    job = asking.sent("POST", "/api/datasets/visits/plans", json=PLAN).json()
    plan = asking.finished(job)
    if plan["state"] == "done":
        asking.sent("POST", f"/api/plans/{plan['result']}/approve")
    return str(plan["result"])


def ask_function(asking: Asking, key: str) -> None:
    job = asking.post(key, "/api/datasets/visits/functions", FUNCTION)
    asking.seen.answers[key] = (job["result"], read(asking, job["result"]))


def read(asking: Asking, number: str) -> str:
    """A digest of a release's file, or of a function's values at a few points."""
    answer = asking.sent("GET", f"/api/releases/{number}/file")
    if answer.status_code == 404:
        points = {"points": [[30.0 + x] for x in range(POINTS)]}
        answer = asking.sent("POST", f"/api/functions/{number}/ask", json=points)
    assert answer.status_code == 200, answer.text
    return hashlib.sha256(answer.content).hexdigest()


def register(server: Server) -> None:
    table = "age,cost\n" + "\n".join(f"{20 + i},{1000 + 37 * i}" for i in range(ROWS))
    with server.client() as client:
        kept = client.post("/api/tables", content=table.encode()).json()["table"]
        answer = client.post("/api/datasets", json={**DATASET, "table": kept})
        assert answer.status_code == 201, answer.text


def killed(folder: Path, kills: int, ledger: str | None = None, seed: int = 0) -> dict[str, int]:
    """Kill a server so many times; how much was asked, seen and charged. Raises where it fails."""
    rng, server = random.Random(seed), Server(folder, ledger)
    try:
        return {"kills": kills, **_killed(server, kills, rng)}
    finally:
        server.stop()


def _killed(server: Server, kills: int, rng: random.Random) -> dict[str, int]:
    server.start()
    register(server)
    asks = {"release": ask_release, "function": ask_function, "revoked": ask_and_revoke}
    askers = [Asking(server, name, ask) for name, ask in asks.items()]
    for each in askers:
        each.start()
    try:
        for _ in range(kills):
            enough = server.jobs(DONE) + rng.randint(0, 3)
            _wait_until(lambda enough=enough: server.jobs(DONE) >= enough)  # type: ignore[misc]
            _wait_until(lambda: server.jobs(RUNNING, begun=True) > 0)
            time.sleep(rng.uniform(0.0, 0.5))
            server.kill()
            server.start()
        _wait_until(lambda: server.jobs(RUNNING, begun=True) > 0)
        time.sleep(1.0)
    finally:
        for each in askers:
            each.over.set()
        for each in askers:
            each.join()
    for each in askers:
        if each.problem is not None:
            raise each.problem
    return _checked(server, askers)


def _wait_until(holds: Callable[[], bool]) -> None:
    last = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < last, "jobs neither run nor end"
        time.sleep(0.01)


def _checked(server: Server, askers: list[Asking]) -> dict[str, int]:
    account, number = server.work.ledger.account("visits"), 0
    for each in askers:
        each.over.clear()
        for key, (path, body) in each.seen.asked.items():  # those that were never answered too
            job = each.post(key, path, body)
            digest = read(each, job["result"])
            assert each.seen.answers.setdefault(key, (job["result"], digest)) == (
                job["result"], digest,
            ), "an answer changed"  # fmt: skip
            number += 1
    revoked = [_take_over(each, job) for each in askers for job in each.seen.revoked]
    charged = [entry.key for entry in account.entries() if entry.kind == CHARGE]
    assert len(charged) == len({*charged}), "something was charged twice"
    paid = {f"job {job}" for each in askers for job, _ in each.seen.answers.values()}
    paid |= {f"job {job}" for each in askers for job in each.seen.revoked}
    assert paid == {*charged}, "an answer was not charged, or a charge has no answer"
    assert server.work.ledger.verify()
    with server.client() as client:
        told = client.get("/api/ledger/verify").json()
        assert told["whole"], told
    _wait_until(lambda: server.jobs(WAITING, RUNNING) == 0)
    lost = sum(each.seen.lost for each in askers)
    keys = {"of revoked keys": len(revoked), "stopped": sum(revoked)}
    return {"asked": number, **keys, "charged": len(charged), "requests without an answer": lost}


def _take_over(asking: Asking, number: str) -> bool:
    """Whether the job of a revoked key was stopped; a custodian carries it out then."""
    job = asking.finished(asking.sent("GET", f"/api/jobs/{number}").json())
    stopped = bool(job["state"] == "failed")
    while job["state"] == "failed":
        job = asking.finished(asking.sent("POST", f"/api/jobs/{number}/retry").json())
    read(asking, job["result"])
    return stopped


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--postgresql", action="store_true", help="instead of SQLite")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        start, folder, ledger = time.monotonic(), Path(name), None
        if given.postgresql:
            ledger = new_schema(stack.enter_context(postgresql()), folder / "anchor")
        told = killed(folder, given.kills, ledger, given.seed)
        for name, value in {**told, "seconds": round(time.monotonic() - start)}.items():
            print(f"{name}: {value}")


if __name__ == "__main__":
    main()
