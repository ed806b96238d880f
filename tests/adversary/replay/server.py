"""Replay of the server: a row is a dataset that is registered, planned, released or asked.

Then everything that can be fetched is fetched: addresses are found in the server's own routes. Jobs are carried out in this process, where their noise is frozen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from fastapi.testclient import TestClient

from privgp.models.load import unpack_model
from privgp.privacy.guarantee import Event, Guarantee
from privgp.server import api, releases
from privgp.server.app import application
from privgp.server.jobs.child import carry_out
from privgp.server.jobs.process import SHARED, End
from privgp.server.store.functions import ESTIMATORS
from privgp.server.views import pages
from tests.adversary.replay.leaving import Left, of_content
from tests.adversary.replay.tables import ENDS, table_with
from tests.ledger import promises
from tests.server.world import ANALYST, CUSTODIAN, World, settings

NAME = "visits"
PLAN = {"epsilon": 4.0, "delta": 1e-5, "hyperparameters": "fixed"}
DECLARED = {"name": NAME, "inputs": ["age"], "epsilon": 9.0, "delta": 1e-4}
ROUTES = [
    (method, route.path)
    for router in (api.router, releases.router, pages.router)
    for route in router.routes
    for method in route.methods  # type: ignore[attr-defined]
]
FIXED = {"/static/{name}", "/health", "/signin"}  # the same on every server
OTHERS = {  # about keys, plans and names of files alone
    ("POST", "/signout"), ("DELETE", "/api/keys/{number}"), ("DELETE", "/api/tables/{name}"),
    ("POST", "/api/plans/{number}/reject"), ("POST", "/api/jobs/{number}/retry"),
    ("PUT", "/api/releases/{number}/title"), ("GET", "/api/tables/{name}/columns"),
}  # fmt: skip


@dataclass(frozen=True)
class Dataset:
    """``declared``: what a custodian declares; ``plan``, ``function``: what is asked for, one of them;
    ``cells``: what private columns of one row, or of some, hold in the first and the second table;
    ``updates``: whether the private table is that of an update."""

    declared: Mapping[str, Any] = field(
        default_factory=lambda: {"output": "cost", "bounds": [0, 5000]}
    )
    plan: Mapping[str, Any] | None = None
    function: Mapping[str, Any] | None = None
    cells: Mapping[str, tuple[Any, Any]] = field(default_factory=lambda: {"cost": (0.0, 5000.0)})
    row: int | slice = 0
    rows: tuple[int, int] = (24, 24)
    updates: bool = False
    point: tuple[Any, ...] = ()  # where the release is asked; none: at numbers
    refused: bool = False

    def neighbours(self) -> tuple[int, int]:
        return 0, 1

    def _table(self, which: int) -> pl.DataFrame:
        return table_with(self.cells, which, self.row).tail(self.rows[which])

    def data(self, which: int) -> bytes:
        return self._table(which).write_csv().encode()

    def run(self, which: int, folder: Path) -> tuple[Any, Left]:
        private = self._table(which)
        other = (
            table_with({}, which).with_columns(age=private["age"] + 1) if self.updates else private
        )
        with serving(folder) as visit:
            kept = visit("POST", "/api/tables", content=other.write_csv().encode()).json()
            declared = {**DECLARED, **self.declared, "table": kept["table"]}
            if "x_bounds" not in declared:
                declared["public_inputs"] = declared["inputs"]
            if "account" in declared:
                first = {**declared, "name": declared["account"], "account": None}
                assert visit("POST", "/api/datasets", json=first).status_code == 201
            if visit("POST", "/api/datasets", json=declared).status_code != 201 and self.refused:
                return None, visit.left
            key = {"name": "ann", "role": "analyst", "datasets": [NAME]}
            visit.world.keys[ANALYST] = visit("POST", "/api/keys", json=key).json()["key"]
            if self.function is not None:
                return self._ask(visit, folder), visit.left
            plan = visit.job(
                "POST", f"/api/datasets/{NAME}/plans", json={**PLAN, **(self.plan or {})}
            )
            visit("POST", f"/api/plans/{plan}/approve")
            made = visit.job("POST", f"/api/datasets/{NAME}/releases", json={"plan": plan})
            if self.updates:
                path, body = f"/api/releases/{made}/updates", private.write_csv().encode()
                made = visit.job("POST", path, content=body)
            points = {"points": [[*self.point] or [30.0] * len(declared["inputs"])]}
            visit("POST", f"/api/releases/{made}/predict", json=points)
            visit.all({"plans": plan, "releases": made, "jobs": made})
            file = visit("GET", f"/api/releases/{made}/file").content
            left = visit.left | of_content(file, "file of the release")
            if "find_bounds" in declared:  # which was charged beside the release
                return SimpleNamespace(guarantee_=visit.charged()), left
            return unpack_model(file), left

    def _ask(self, visit: Visit, folder: Path) -> Any:
        asked: dict[str, Any] = {**(self.function or {})}
        made = visit.job("POST", f"/api/datasets/{NAME}/functions", json=asked)
        points = {"points": [[20.0], [50.0], [80.0]]}
        visit("POST", f"/api/functions/{made}/ask", json=points)
        visit.all({"functions": made, "jobs": made})
        (state,) = folder.rglob("*.private-state")
        return ESTIMATORS[asked["kind"]].load_state(state)


@dataclass
class Visit:
    """A visitor who keeps every answer: status, headers and content."""

    world: World
    ended: SimpleQueue[str]
    left: Left = field(default_factory=dict)

    def __call__(self, method: str, path: str, role: str = CUSTODIAN, **others: Any) -> Any:
        found = self.world.ask(role, method, path, **others)
        headers = "\n".join(f"{name}: {value}" for name, value in found.headers.items())
        way, kind = f"{role}: {method} {path}", "answer" if found.is_success else "refusal"
        self.left[f"headers of {way}"] = f"{found.status_code}\n{headers}".encode()
        self.left[f"{kind} to {way}"] = found.content
        return found

    def job(self, method: str, path: str, **others: Any) -> str:
        """Start a job and wait for its end."""
        started = self(method, path, headers={"Idempotency-Key": "replayed-once"}, **others).json()
        assert self.ended.get(timeout=60) == started["id"]
        ended = self("GET", f"/api/jobs/{started['id']}").json()
        assert ended["state"] == "done", ended
        return str(ended["result"])

    def charged(self) -> Guarantee:
        """What all charges of the account state together."""
        account = self.world.client.app.state.service.work.ledger.account(NAME)
        events = [e for each in account.entries() if each.promised for e in each.promised.events]
        epsilons = tuple(epsilon for event in events for epsilon in event.pure_epsilons)
        return promises.of(Event(pure_epsilons=epsilons), epsilon=sum(epsilons))

    def all(self, numbers: Mapping[str, str]) -> None:
        """Get every address that there is, of these numbers; a custodian what an analyst may not."""
        for method, route in ROUTES:
            kind = route.removeprefix("/api").split("/")[1]
            known = "{number}" not in route or kind in numbers
            if method == "GET" and route not in FIXED and known:
                address = route.format(name=NAME, number=numbers.get(kind))
                if self(method, address, ANALYST).status_code == 403:
                    self(method, address)


@contextmanager
def serving(folder: Path) -> Iterator[Visit]:
    made = application(settings(folder, predictors=0))
    work = made.state.service.work

    ended: SimpleQueue[str] = SimpleQueue()

    def carried_out(_: Any, job: Any, stop: Any) -> End:
        carry_out(work, job)
        ended.put(job["id"])
        return End.OVER

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SHARED, "warm", lambda: None)
        patch.setattr(SHARED, "run", carried_out)
        key = work.store.add_key("clara", "custodian")[1]
        with TestClient(made) as client:
            yield Visit(World(client, {CUSTODIAN: key}), ended)


NUMBERS = {"output": "cost", "bounds": [0, 5000]}
RECORDS = {**NUMBERS, "protect": "records", "x_bounds": [[0, 100]]}
PRIOR = {"variance": 1e6, "epsilon": 4.0, "delta": 1e-5}
FUNCTION = {**PRIOR, "kind": "function", "lengthscales": [20.0], "noise_variance": 250_000.0}
PATHS = {**PRIOR, "kind": "paths", "lengthscales": [20.0], "shape": "matern12"}
SERVED: dict[str, Dataset] = {
    "outputs, laplace": Dataset(plan={"mechanism": "laplace"}),
    "outputs, gaussian": Dataset(plan={"mechanism": "gaussian"}),
    "two stages": Dataset(
        plan={"mechanism": "laplace", "residuals": "always", "hyperparameters": "learned"}
    ),
    "a shared account": Dataset({**NUMBERS, "account": "first"}, {"mechanism": "laplace"}),
    "people who are others": Dataset({**NUMBERS, "unrelated": True}, {"mechanism": "laplace"}),
    "people, gaussian": Dataset(
        {**NUMBERS, "groups": "person"}, {"mechanism": "gaussian"}, row=slice(0, 2)
    ),
    "bounds that are found": Dataset(
        {"output": "cost", "find_bounds": {"epsilon": 4.0, "low": 0}}, {"mechanism": "laplace"}
    ),
    "max_change": Dataset(
        {**NUMBERS, "max_change": 100}, {"mechanism": "laplace"}, cells={"cost": (0.0, 100.0)}
    ),
    "inducing": Dataset(plan={"inducing": 3}),
    "two classes": Dataset({"output": "ill", "classes": ["no", "yes"]}, cells={"ill": ("no", "yes")}),
    "two classes, probit": Dataset(
        {"output": "ill", "classes": ["no", "yes"]}, {"link": "probit", "prevalence": 0.2}, cells={"ill": ("no", "yes")}
    ),
    "three classes": Dataset(
        {"output": "ill", "classes": ["no", "yes", "unknown"]}, {"mechanism": "gaussian"},
        cells={"ill": ("no", "yes")},
    ),
    "records, gaussian": Dataset(RECORDS, {"mechanism": "gaussian"}, cells=ENDS),
    "records, laplace": Dataset(RECORDS, {"mechanism": "laplace"}, cells=ENDS),
    "records of people": Dataset(
        {**RECORDS, "groups": "person"}, {"mechanism": "gaussian"}, cells=ENDS, row=slice(0, 2)
    ),
    "records of people, one fewer": Dataset(
        {**RECORDS, "groups": "person"}, {"mechanism": "gaussian"}, rows=(24, 23),
    ),
    "counts, exposures": Dataset(
        {"output": "cases", "bounds": [0, 50], "likelihood": "poisson", "exposure": "bmi", "max_change": 3},
        {"mechanism": "gaussian"}, cells={"cases": (10.0, 13.0)},
    ),
    "several outputs": Dataset(
        {"output": ["cost", "pay"], "bounds": [[0, 5000], [0, 100]]}, {"mechanism": "gaussian"},
        cells={"cost": (0.0, 5000.0), "pay": (0.0, 100.0)},
    ),
    "kinds of columns": Dataset(
        {**NUMBERS, "inputs": ["when", "region", "hour"], "kinds": [
            {"columns": ["when"], "kind": "date"}, {"columns": ["region"], "kind": "category", "levels": ["north", "south"]},
            {"columns": ["hour"], "kind": "periodic", "period": 24},
        ]},
        {"mechanism": "gaussian"}, point=("2024-03-01", "north", 6.0),
    ),
    "records of dates and levels": Dataset(
        {**NUMBERS, "protect": "records", "inputs": ["when", "region"],
         "x_bounds": [["2024-01-01", "2024-12-31"]], "kinds": [
            {"columns": ["when"], "kind": "date"},
            {"columns": ["region"], "kind": "category", "levels": ["north", "south", "east"]},
        ]},
        {"mechanism": "gaussian"}, point=("2024-03-01", "north"),
        cells={"when": ("2024-01-02", "2024-12-30"), "region": ("north", "south"), "cost": (0.0, 5000.0)},
    ),
    "records of places": Dataset(
        {**NUMBERS, "protect": "records", "inputs": ["lat", "lon"], "x_bounds": [[51, 52], [-1, 1]],
         "kinds": [{"columns": ["lat", "lon"], "kind": "place"}]},
        {"mechanism": "laplace"}, point=(51.5, 0.0), cells={"lat": (51.1, 51.9), "lon": (-0.9, 0.9)},
    ),
    "updated counts": Dataset(
        {"output": "cases", "bounds": [0, 50], "likelihood": "poisson", "max_change": 3},
        cells={"cases": (10.0, 13.0)}, updates=True,
    ),
    "updated": Dataset(updates=True),
    "function": Dataset(function=FUNCTION),
    "function, inducing": Dataset(function={**FUNCTION, "inducing": 3}),
    "function of records": Dataset(
        RECORDS, function={**FUNCTION, "lengthscales": [50.0], "noise_variance": 1e6},
        cells={"age": (50.0, 52.0), "cost": (5000.0, 0.0)}, row=slice(-1, None), rows=(1, 1),
    ),
    "paths": Dataset(RECORDS, function=PATHS),
    "unreadable cell": Dataset(cells={"cost": ("secret", "x 1")}, refused=True),
}  # fmt: skip
