"""How fast a server predicts, against the bare ``predict`` in the same run, and how much memory it takes.

    python -m benchmarks.load

Throughput is that of one client at a time, in turns with the bare model on the same machine. Then many
clients ask at once for 20 points with intervals, one asks for 10,000 points with intervals and for a
view twice, and then small requests come until memory would have grown.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import secrets
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.kills import Server
from privgp.models.load import unpack_model
from privgp.server.app import application
from privgp.server.settings import Settings
from privgp.server.start import bind_socket, listen

POINTS, TURNS, EACH = 1000, 5, 30
CLIENTS, SECONDS, MANY, FEW = 50, 10.0, 10_000, 20
MOST = 10_000  # points of one request
OTHERS = 5  # requests of a client before one is repeated
ROWS = 200
PLAN = {"epsilon": 1.0, "delta": 1e-6}
INPUTS = ["age", "bmi"]
DATASET = {
    "name": "visits", "inputs": INPUTS, "public_inputs": INPUTS, "output": "cost", "bounds": [0, 5000],
    "epsilon": 2.0, "delta": 1e-5,
}  # fmt: skip


class Unlimited(Server):
    """A server that limits nobody's rate."""

    def command(self) -> list[str]:
        return [sys.executable, "-m", "benchmarks.load", str(self.settings.data), str(self.port)]


class Client:
    """One connection that asks for points, other ones every time."""

    def __init__(
        self, server: Server, release: str, points: int, *, interval: bool = False
    ) -> None:
        shifts = np.random.default_rng(secrets.randbits(32)).uniform(size=(OTHERS, 1, 2))
        asked = [{"points": (points_of(points) + each).tolist()} for each in shifts]
        self.bodies = [json.dumps(each | {"interval": interval}).encode("ascii") for each in asked]
        self.headers = {"Authorization": f"Bearer {server.key}", "Content-Type": "application/json"}
        self.path = f"/api/releases/{release}/predict"
        self.port = server.port
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

    def ask(self) -> int:
        """One request; its status."""
        self.bodies.append(self.bodies.pop(0))
        self.connection.request("POST", self.path, self.bodies[0], self.headers)
        answer = self.connection.getresponse()
        answer.read()
        return answer.status


def points_of(count: int) -> np.ndarray:
    """Ages and body mass indices that fill their ranges evenly."""
    place = np.arange(count)
    return np.column_stack(
        [20.0 + 40.0 * (place + 0.5) / count, 18.0 + 17.0 * (0.618034 * place % 1.0)]
    )


def released(server: Server) -> str:
    """The number of a release of a table of its own."""
    rows = zip(points_of(ROWS), range(ROWS), strict=True)
    lines = [f"{age},{bmi},{1000 + 37 * i % 900}" for (age, bmi), i in rows]
    table = "\n".join([",".join([*INPUTS, "cost"]), *lines])
    with server.client() as client:

        def finished(job: dict[str, Any]) -> str:
            while job["state"] in ("waiting", "running"):
                time.sleep(0.05)
                job = client.get(f"/api/jobs/{job['id']}").json()
            assert job["state"] == "done", job
            return str(job["result"])

        kept = client.post("/api/tables", content=table.encode()).json()["table"]
        client.post("/api/datasets", json={**DATASET, "table": kept})
        plan = finished(client.post("/api/datasets/visits/plans", json=PLAN).json())
        client.post(f"/api/plans/{plan}/approve")
        once = {"Idempotency-Key": "for-the-load"}
        path = "/api/datasets/visits/releases"
        return finished(client.post(path, json={"plan": plan}, headers=once).json())


def throughput(server: Server, release: str) -> dict[str, float]:
    """Predictions a second, the server's and the bare model's in turns; the median of the turns."""
    with server.client() as client:
        model = unpack_model(client.get(f"/api/releases/{release}/file").content)
    X = points_of(POINTS)
    named = pl.DataFrame(X, schema=[*map(str, model.feature_names_in_)], orient="row")
    asking = Client(server, release, POINTS)
    asking.ask()
    bare, served = [], []
    for _ in range(TURNS):
        start = time.perf_counter()
        for _ in range(EACH):
            model.predict(named, return_std=True)
        bare.append(EACH * POINTS / (time.perf_counter() - start))
        asking.connection.close()  # the server may have, meanwhile
        start = time.perf_counter()
        for _ in range(EACH):
            assert asking.ask() == 200
        served.append(EACH * POINTS / (time.perf_counter() - start))
    found = {"bare": float(np.median(bare)), "served": float(np.median(served))}
    return {**found, "ratio": float(np.median(np.array(served) / np.array(bare)))}


def crowd(server: Server, release: str) -> dict[str, float]:
    """Latencies, in seconds, while many clients ask at once; and what share was refused as busy."""
    times: list[float] = []
    refused: list[float] = []
    busy = _processor_seconds(server)
    over = time.monotonic() + SECONDS

    def asking() -> None:
        client = Client(server, release, FEW, interval=True)
        while time.monotonic() < over:
            start = time.perf_counter()
            status = client.ask()
            assert status in (200, 503), status
            (times if status == 200 else refused).append(time.perf_counter() - start)

    threads = [threading.Thread(target=asking) for _ in range(CLIENTS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    asked = len(times) + len(refused)
    quantiles = {f"p{q}": float(np.percentile(times, q)) for q in (50, 99)}
    busy = (_processor_seconds(server) - busy) / len(times)
    found = {"a second": len(times) / SECONDS, **quantiles, "refused": len(refused) / asked}
    return {**found, "processor seconds of each": busy}


def large(server: Server, release: str) -> dict[str, float]:
    """Seconds for many points with intervals, and for a view: when it is made, and when it is kept."""
    client = Client(server, release, MOST, interval=True)
    start, busy = time.perf_counter(), _processor_seconds(server)
    assert client.ask() == 200
    found = {f"{MOST} points": time.perf_counter() - start}
    found["processor seconds"] = _processor_seconds(server) - busy
    with server.client() as asking:
        for name in ("view", "view again"):
            start = time.perf_counter()
            assert asking.get(f"/api/releases/{release}/view").status_code == 200
            found[name] = time.perf_counter() - start
    return found


def memory(server: Server, release: str) -> dict[str, float]:
    """The server's megabytes before and after many requests, the first tenth as a start."""
    client = Client(server, release, FEW)
    seen = []
    for number in range(MANY + 1):
        if number % (MANY // 10) == 0:
            seen.append(_megabytes(server))
        assert client.ask() == 200
    return {"after a tenth": seen[1], "after all": seen[-1]}


def _megabytes(server: Server) -> float:
    """The memory of the server and of its processes."""
    texts = [(each / "status").read_text() for each in _processes(server)]
    lines = [line for text in texts for line in text.splitlines() if line.startswith("VmRSS")]
    return sum(int(line.split()[1]) for line in lines) / 1024


def _processor_seconds(server: Server) -> float:
    """What the server and its processes have had of the processors, however busy these are."""
    found = [(each / "stat").read_text().rpartition(")")[2].split() for each in _processes(server)]
    return sum(int(each[11]) + int(each[12]) for each in found) / os.sysconf("SC_CLK_TCK")


def _processes(server: Server) -> list[Path]:
    assert server.process is not None
    first = server.process.pid
    children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
    return [Path(f"/proc/{each}") for each in (first, *children)]


MEASURES = (("Throughput", throughput), ("Crowd", crowd), ("Large", large), ("Memory", memory))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("serve", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        folder, port = given.serve
        unlimited = Settings(data=Path(folder), requests_per_second=1e9, burst=10**9)
        with bind_socket("127.0.0.1", int(port)) as place:
            listen(application(unlimited), place)
        return
    with tempfile.TemporaryDirectory() as folder:
        server = Unlimited(Path(folder), None)
        try:
            server.start()
            release = released(server)
            for name, measure in MEASURES:
                told = measure(server, release)
                print(name + ": " + ", ".join(f"{k} {v:.4g}" for k, v in told.items()), flush=True)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
