"""A server with two datasets, a key for every role, and a release, as tests ask for it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from fastapi.testclient import TestClient

from privgp.server.app import application
from privgp.server.settings import Settings

NONE, ANALYST, OTHER, CUSTODIAN = ROLES = ("none", "analyst", "other analyst", "custodian")
ROWS = 24
FAST = {"epsilon": 0.5, "delta": 1e-6, "hyperparameters": "fixed", "mechanism": "laplace"}
FUNCTION = {
    "kind": "function", "variance": 1e6, "lengthscales": [20.0], "noise_variance": 1e5,
    "epsilon": 0.1, "delta": 1e-6,
}  # fmt: skip
# Outputs whose digits occur nowhere else, also by chance.
SECRETS = [
    f"17{i:02d}.8{(7 * i) % 10}3{(3 * i) % 10}91{(104_729 * i) % 10**6:06d}" for i in range(ROWS)
]


def settings(folder: Path, **changed: Any) -> Settings:
    usual = {"data": folder, "requests_per_second": 1e9, "burst": 10**9, "hosts": ["testserver"]}
    return Settings(**{**usual, "predictors": 1, **changed})


def table_of(secrets: list[str] = SECRETS, first: int = 20) -> bytes:
    ages = (first + 2 * np.arange(len(secrets))).tolist()
    return pl.DataFrame({"age": ages, "cost": secrets}).write_csv().encode()


def declared(name: str, table: str, **changed: Any) -> dict[str, Any]:
    """A dataset whose inputs are public unless they have bounds."""
    made = {
        "name": name, "table": table, "inputs": ["age"], "output": "cost", "bounds": [0, 5000],
        "epsilon": 2.0, "delta": 1e-5, **changed,
    }  # fmt: skip
    return made if "x_bounds" in made else {"public_inputs": made["inputs"], **made}


@dataclass
class World:
    client: Any  # TestClient, or a client of a server that listens
    keys: dict[str, str]
    heard: list[str] = field(default_factory=list)
    application: Any = None

    def ask(self, role: str, method: str, path: str, **others: Any) -> Any:
        headers = dict(others.pop("headers", {}))
        if role != NONE:
            headers["Authorization"] = f"Bearer {self.keys[role]}"
        answer = self.client.request(
            method, path, headers=headers, follow_redirects=False, **others
        )
        self.heard.append(answer.text)
        return answer

    def get(self, role: str, path: str) -> Any:
        answer = self.ask(role, "GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def finished(self, role: str, job: dict[str, Any]) -> dict[str, Any]:
        end = time.monotonic() + 60
        while job["state"] in ("waiting", "running"):
            assert time.monotonic() < end
            time.sleep(0.02)
            job = self.get(role, f"/api/jobs/{job['id']}")
        return job

    def register(self, name: str, first: int = 20, **changed: Any) -> Any:
        kept = self.ask(CUSTODIAN, "POST", "/api/tables", content=table_of(first=first))
        assert kept.status_code == 201, kept.text
        body = declared(name, kept.json()["table"], **changed)
        return self.ask(CUSTODIAN, "POST", "/api/datasets", json=body)

    def plan(self, role: str, name: str, *, approve: bool = True, **changed: Any) -> str:
        started = self.ask(role, "POST", f"/api/datasets/{name}/plans", json={**FAST, **changed})
        assert started.status_code == 202, started.text
        job = self.finished(role, started.json())
        assert job["state"] == "done", job
        if approve:
            answer = self.ask(CUSTODIAN, "POST", f"/api/plans/{job['result']}/approve")
            assert answer.status_code == 200, answer.text
        return str(job["result"])

    def release(self, role: str, name: str, plan: str, once: str) -> Any:
        headers = {"Idempotency-Key": once}
        path = f"/api/datasets/{name}/releases"
        return self.ask(role, "POST", path, json={"plan": plan}, headers=headers)

    def function(self, name: str, once: str, **changed: Any) -> Any:
        """The job that makes a function."""
        path, headers = f"/api/datasets/{name}/functions", {"Idempotency-Key": once}
        body = {**FUNCTION, **changed}
        return self.ask(CUSTODIAN, "POST", path, json=body, headers=headers)

    def made(self, name: str, once: str, **changed: Any) -> str:
        job = self.finished(CUSTODIAN, self.function(name, once, **changed).json())
        assert job["state"] == "done", job
        return str(job["result"])

    def values(self, role: str, function: str, points: list[list[float]]) -> Any:
        body = {"points": points}
        return self.ask(role, "POST", f"/api/functions/{function}/ask", json=body)

    def released(self, role: str, name: str, plan: str, once: str) -> str:
        job = self.finished(role, self.release(role, name, plan, once).json())
        assert job["state"] == "done", job
        return str(job["result"])


@contextmanager
def running(folder: Path, **changed: Any) -> Iterator[World]:
    made = application(settings(folder, **changed))
    store = made.state.service.store
    keys = {CUSTODIAN: store.add_key("clara", "custodian")[1]}
    with TestClient(made) as client:
        world = World(client, keys)
        assert world.register("visits", reserve=1.8).status_code == 201
        assert world.register("others", first=21).status_code == 201
        for role, dataset in ((ANALYST, "visits"), (OTHER, "others")):
            body = {"name": role.replace(" ", "-"), "role": "analyst", "datasets": [dataset]}
            keys[role] = world.ask(CUSTODIAN, "POST", "/api/keys", json=body).json()["key"]
        yield world
