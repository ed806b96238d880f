"""What all endpoints share: who asks, what they are served by, and how jobs are started."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Request, Security
from fastapi.concurrency import run_in_threadpool
from fastapi.security import APIKeyCookie, HTTPBearer
from sqlalchemy import Connection

from privgp.ledger.chain import APPROVAL, REJECTION
from privgp.models.published import Published
from privgp.server import shapes
from privgp.server.declared import Title
from privgp.server.errors import Refused
from privgp.server.guard import COOKIES
from privgp.server.jobs.predictors import Predictors
from privgp.server.jobs.worker import Worker
from privgp.server.settings import Settings, new_private_file
from privgp.server.store import tables
from privgp.server.store.keys import Who
from privgp.server.store.schema import Row, new_id
from privgp.server.store.store import Store
from privgp.server.work import ABOUT_PLAN, FUNCTION, PLAN, Work, decision

ONCE = Header(alias="Idempotency-Key", min_length=8, max_length=100, pattern=r"^[A-Za-z0-9_-]+$")
Once = Annotated[str, ONCE]
REFUSALS: dict[int | str, Row] = {
    code: {"model": shapes.Problem} for code in (400, 401, 403, 404, 408, 409, 413, 422, 429, 503)
}
# The guard has looked at both before: here they are for /openapi.json.
KEYS = [
    Security(HTTPBearer(description="An API key.", auto_error=False)),
    Security(APIKeyCookie(name=COOKIES[True], description="Signed in.", auto_error=False)),
]


def new_router() -> APIRouter:
    """For endpoints, each of which asks for a key."""
    return APIRouter(prefix="/api", responses=REFUSALS, dependencies=KEYS)


@dataclass(frozen=True)
class Service:
    """All that an endpoint needs."""

    settings: Settings
    store: Store
    work: Work
    worker: Worker
    predictors: Predictors

    def model(self, number: str) -> Published:
        """What answers for a release."""
        return self.predictors.answers.model(number)

    def shown(self, who: Who, number: str) -> tuple[Row, str]:
        """A release, if the key may see it, and the name of its output."""
        row = self.store.release(who, number)
        return row, self.work.declaration_of(row["dataset"]).title

    async def view(self, who: Who, kind: str, number: str) -> str:
        """A view or an export of a release."""
        row, output = await run_in_threadpool(self.shown, who, number)
        named = await run_in_threadpool(self.title, number)
        declared = await run_in_threadpool(self.work.declaration_of, row["dataset"])
        title = (named.headline or declared.headline, named.unit) if kind == "page" else ()
        return await self.predictors.view(who.key, kind, row["id"], output, *title)

    def title(self, number: str) -> Title:
        """The headline and the unit of a release; empty where nobody gave one."""
        row = self.store.titles(number).get(number, {})
        return Title(headline=row["headline"], unit=row["unit"]) if row else Title()

    def file_name(self, who: Who, number: str, ending: str) -> str:
        """A name that says what a file is of: the dataset, the day, and the release's first digits."""
        row = self.store.release(who, number)
        words = re.sub(r"[^A-Za-z0-9]+", "-", row["dataset"]).strip("-")
        return f"{words}-{row['made_at'][:10]}-{row['id'][:6]}.{ending}"

    def decide(self, who: Who, number: str, *, approved: bool) -> Row:
        """Approve or reject a plan, in one transaction with the entry in the chain of its account."""
        plan = self.store.plan(who, number)
        kind = APPROVAL if approved else REJECTION
        key = f"{ABOUT_PLAN.format(number)}{who.key}: {new_id()}"
        request = decision(json.loads(plan["told"])["hash"], who.key)

        def note(connection: Connection) -> bool:
            return self.store.decide(connection, who, number, approved=approved)

        self.work.account_of(plan["dataset"]).decide(kind, key, request, note)
        self.store.log(who, "plan approved" if approved else "plan rejected", number)
        return self.store.plan(who, number)

    def start(self, who: Who, kind: str, dataset: str, asked: Row, retry: str, *told: str) -> Row:
        """The job that was asked for. What would spend is written into the log: the plan of a release,
        the release that is updated, the dataset of a function."""
        if kind != PLAN:
            about = dataset if kind == FUNCTION else told[0]
            self.store.log(who, f"{kind} asked for", about)
        digest = hashlib.sha256(json.dumps([kind, dataset, *told]).encode("utf-8")).hexdigest()
        most = self.settings.max_jobs_per_key
        once: Row = {"retry": retry, "digest": digest, "max_jobs_per_key": most}
        job = self.store.add_job(who, kind, dataset, asked, **once)
        self.worker.wake()
        return shapes.only(job, shapes.Job)


def service(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


def anybody(request: Request) -> Who:
    who: Who = request.state.who
    return who


def custodian(request: Request) -> Who:
    who = anybody(request)
    if not who.is_custodian:
        raise Refused(403, "This needs a custodian's key.")
    return who


Served = Annotated[Service, Depends(service)]
Anybody = Annotated[Who, Depends(anybody)]
Custodian = Annotated[Who, Depends(custodian)]


async def keep_table(s: Service, who: Who, request: Request, ending: str) -> tuple[str, str]:
    """Write a table into the server's folder as it comes; its name and its SHA-256. How many rows it
    has may be private."""
    name, digest = f"upload-{new_id()}.{ending}", hashlib.sha256()
    path = s.settings.tables / name
    with new_private_file(path) as file:
        async for part in request.stream():
            digest.update(part)
            await run_in_threadpool(file.write, part)
        file.flush()
        await run_in_threadpool(tables.check_table, path, s.settings)
    await run_in_threadpool(s.store.log, who, "table uploaded", name)
    return name, digest.hexdigest()
