"""The JSON endpoints. Every one asks for a key; a custodian's are marked so."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Request, Response, Security
from fastapi.concurrency import run_in_threadpool
from fastapi.security import APIKeyCookie, HTTPBearer

from privgp.errors import LedgerTampered
from privgp.ledger.chain import APPROVAL, REJECTION
from privgp.privacy.guarantee import Guarantee
from privgp.release.certificate.page import page as certificate_page
from privgp.server import reading, shapes
from privgp.server.declared import Declared, KeyAsked, PlanAsked, PredictAsked, ReleaseAsked, Title
from privgp.server.errors import Refused, absent, first_line
from privgp.server.guard import COOKIES
from privgp.server.jobs.predictors import Predictors
from privgp.server.jobs.worker import Worker
from privgp.server.settings import Settings, new_private_file
from privgp.server.store.store import DONE, RUNNING, WAITING, Row, Store, Who, new_id, now
from privgp.server.views import exports
from privgp.server.work import PLAN, RELEASE, UPDATE, Work

ONCE = Header(alias="Idempotency-Key", min_length=8, max_length=100, pattern=r"^[A-Za-z0-9_-]+$")
Once = Annotated[str, ONCE]
MOST_EVENTS = 500
RELEASED = "released"
NO_ANCHOR = "There is no anchor: an older copy of the whole ledger would not be found."
JOB = ("id", "kind", "dataset", "state", "progress", "doing", "result", "error", "made_at")


REFUSALS: dict[int | str, Row] = {
    code: {"model": shapes.Problem} for code in (400, 401, 403, 404, 408, 409, 413, 422, 429, 503)
}
# The guard has looked at both before: here they are for /openapi.json.
KEYS = [
    Security(HTTPBearer(description="An API key.", auto_error=False)),
    Security(APIKeyCookie(name=COOKIES[True], description="Signed in.", auto_error=False)),
]
router = APIRouter(prefix="/api", responses=REFUSALS, dependencies=KEYS)


def file_of(kind: str) -> type[Response]:
    """A response of this media type, for /openapi.json."""
    return type("File", (Response,), {"media_type": kind})


@dataclass(frozen=True)
class Service:
    """All that an endpoint needs."""

    settings: Settings
    store: Store
    work: Work
    worker: Worker
    predictors: Predictors

    def model(self, number: str) -> Any:
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
        title = (named.headline or row["dataset"], named.unit) if kind == "page" else ()
        return await self.predictors.view(who.key, kind, row["id"], output, *title)

    def title(self, number: str) -> Title:
        """The headline and the unit of a release; empty where nobody gave one."""
        row = self.store.titles(number).get(number, {})
        return Title(**_only(row, ("headline", "unit"))) if row else Title()

    def file_name(self, who: Who, number: str, ending: str) -> str:
        """A name that says what a file is of: the dataset, the day, and the release's first digits."""
        row = self.store.release(who, number)
        words = re.sub(r"[^A-Za-z0-9]+", "-", row["dataset"]).strip("-")
        return f"{words}-{row['made_at'][:10]}-{row['id'][:6]}.{ending}"

    def log(self, who: Who, kind: str, about: str) -> None:
        """Write down who did what."""
        self.store.log(who.key, kind, about)

    def decide(self, who: Who, kind: str, plan: Row) -> None:
        """Write an approval or a rejection of a plan into the chain of its account."""
        key = f"plan {plan['id']} by key {who.key} at {now()}"
        request = json.dumps({"plan": json.loads(plan["told"])["hash"], "key": who.key})
        self.work.account_of(plan["dataset"]).decide(kind, key, request.encode("ascii"))

    def start(self, who: Who, kind: str, dataset: str, asked: Row, retry: str, *told: str) -> Row:
        digest = hashlib.sha256(json.dumps([kind, dataset, *told]).encode("utf-8")).hexdigest()
        most = self.settings.max_jobs_per_key
        once: Row = {"retry": retry, "digest": digest, "alone": kind == RELEASE}
        job = self.store.add_job(who, kind, dataset, asked, max_jobs_per_key=most, **once)
        self.worker.wake()
        return _only(job, JOB)


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


@router.get("/me", response_model=shapes.Me)
def me(who: Anybody) -> Row:
    """Whose key this is."""
    return {"name": who.name, "role": who.role}


@router.get("/keys", response_model=list[shapes.Key])
def keys(s: Served, _: Custodian) -> list[Row]:
    return s.store.keys()


@router.post("/keys", status_code=201, response_model=shapes.NewKey)
def add_key(s: Served, who: Custodian, asked: KeyAsked) -> Row:
    """A new key, shown this once."""
    number, key = s.store.add_key(
        asked.name, asked.role, asked.datasets, asked.days, asked.identity
    )
    s.log(who, "key made", number)
    return {"id": number, "key": key}


@router.delete("/keys/{number}", response_model=shapes.Id)
def revoke_key(s: Served, who: Custodian, number: str) -> Row:
    """Revoke a key: it opens nothing more, and its jobs that wait are not carried out."""
    s.store.revoke(number)
    s.log(who, "key revoked", number)
    return {"id": number}


@router.get("/events", response_model=list[shapes.Event])
def events(s: Served, _: Custodian) -> list[Row]:
    """The newest sign-ins, keys, approvals, releases and downloads, the newest first."""
    return s.store.events(MOST_EVENTS)


@router.post("/tables", status_code=201, response_model=shapes.Table)
async def add_table(
    s: Served,
    who: Custodian,
    request: Request,
    ending: Literal["csv", "parquet"] = "csv",
) -> Row:
    """Upload a private table, as the body of the request; it stays on the server."""
    name, _ = await _keep_table(s, who, request, ending)
    return {"table": name}


@router.get("/tables", response_model=list[shapes.Table])
def unused_tables(s: Served, _: Custodian) -> list[Row]:
    """Uploaded private tables that no dataset is made of; the log knows who uploaded them, and when."""
    used = s.store.tables_in_use()
    names = sorted(path.name for path in s.settings.tables.iterdir())
    return [{"table": name} for name in names if name not in used]


@router.delete("/tables/{name}", response_model=shapes.Table)
def delete_table(s: Served, who: Custodian, name: str) -> Row:
    """Delete a private table that no dataset is made of."""
    unused = {row["table"] for row in unused_tables(s, who)}
    if name not in unused:
        raise absent()
    (s.settings.tables / name).unlink()
    s.log(who, "table deleted", name)
    return {"table": name}


@router.get("/tables/{name}/columns", response_model=list[shapes.Column])
def columns(s: Served, who: Custodian, name: str) -> list[Row]:
    """The columns of an uploaded table that no dataset is made of. No cell is read."""
    if name not in {row["table"] for row in unused_tables(s, who)}:
        raise absent()
    return reading.describe_columns(s.settings.tables / name)


@router.get("/datasets", response_model=list[shapes.Dataset])
def datasets(s: Served, who: Anybody) -> list[Row]:
    return [_dataset(s, row) for row in s.store.datasets(who)]


@router.post("/datasets", status_code=201, response_model=shapes.Dataset)
def add_dataset(s: Served, who: Custodian, asked: Declared) -> Row:
    """Register a table of the server's folder: kinds of columns, bounds, and a permanent budget."""
    if asked.find_bounds is not None:
        if asked.bounds is not None:
            raise Refused(422, "Give either bounds or find_bounds.")
        asked = asked.with_bounds(asked.find_bounds.widest)
    asked.check(s.settings)
    digest = hashlib.sha256(asked.path(s.settings).read_bytes()).hexdigest()
    s.store.check_new(asked.model_dump(mode="json"), digest)
    try:
        if asked.account is None:
            # The same public inputs are about the same people, who have one budget.
            known = asked.public_rows(asked.path(s.settings))
            total = asked.epsilon, asked.delta
            s.work.ledger.open(asked.name, *total, reserve=asked.reserve, public=known)
        else:
            _check_shared(s, asked)
    except ValueError as problem:
        raise Refused(422, first_line(problem)) from None
    if asked.find_bounds is not None:
        asked = s.work.find_bounds(asked)
    s.store.add_dataset(asked.model_dump(mode="json"), digest)
    s.log(who, "dataset registered", asked.name)
    return _dataset(s, s.store.dataset(who, asked.name))


@router.get("/datasets/{name}", response_model=shapes.Dataset)
def dataset(s: Served, who: Anybody, name: str) -> Row:
    return _dataset(s, s.store.dataset(who, name))


@router.get(
    "/datasets/{name}/ledger", response_model=shapes.Chain, response_model_exclude_unset=True
)
def ledger(s: Served, who: Anybody, name: str) -> Row:
    """What was charged, in the order of the chain."""
    s.store.dataset(who, name)
    account = s.work.account_of(name)
    told = ("number", "kind", "at", "hash", "previous")
    entries = [
        {**_only(vars(each), told), **({} if each.promised is None else _cost(each.promised))}
        for each in account.entries()
    ]
    return {"dataset": name, "remaining": account.remaining(), "entries": entries}


@router.get("/ledger/verify", response_model=shapes.Verified)
def verify(s: Served, _: Custodian) -> Row:
    """Whether every chain is whole and signed, and whether an older copy would be found."""
    found = s.work.ledger
    try:
        found.verify()
    except LedgerTampered as problem:
        return {"whole": False, "anchored": found.has_anchor, "told": first_line(problem)}
    told = "Every chain is whole." if found.has_anchor else f"Every chain is whole. {NO_ANCHOR}"
    return {"whole": True, "anchored": found.has_anchor, "told": told}


@router.get("/ledger/key", response_class=file_of("application/x-pem-file"))
def public_key(s: Served, _: Anybody) -> Response:
    """The public key of the ledger, by which certificates are checked anywhere."""
    assert s.work.ledger.key is not None
    pem = s.work.ledger.key.public_pem
    return _download(pem.encode("ascii"), "ledger-key.pem", "application/x-pem-file")


@router.post("/datasets/{name}/plans", status_code=202, response_model=shapes.Job)
def add_plan(s: Served, who: Anybody, name: str, asked: PlanAsked) -> Row:
    """Plan, which is free; the job's result is the plan's number."""
    s.store.dataset(who, name)
    shown = asked.model_dump(mode="json")
    return s.start(who, PLAN, name, shown, new_id(), json.dumps(shown))


@router.get("/datasets/{name}/plans", response_model=list[shapes.PlanSummary])
def plans(s: Served, who: Anybody, name: str) -> list[Row]:
    s.store.dataset(who, name)
    return [_plan(s, row, short=True) for row in s.store.plans(name)]


@router.get("/plans/{number}", response_model=shapes.Plan)
def plan(s: Served, who: Anybody, number: str) -> Row:
    return _plan(s, s.store.plan(who, number))


@router.post("/plans/{number}/approve", response_model=shapes.PlanSummary)
def approve(s: Served, who: Custodian, number: str) -> Row:
    """Allow the plan to be carried out; the approval is an entry of the ledger."""
    row = s.store.plan(who, number)
    if not row["approved_at"]:
        s.decide(who, APPROVAL, row)
    s.store.approve(who, number)
    s.log(who, "plan approved", number)
    return _plan(s, s.store.plan(who, number), short=True)


@router.post("/plans/{number}/reject", response_model=shapes.PlanSummary)
def reject(s: Served, who: Custodian, number: str) -> Row:
    """Reject a plan, or withdraw its approval before it is carried out."""
    row = s.store.plan(who, number)
    if s.store.job_of(RELEASE, {"plan": number}) is not None:
        raise Refused(409, "The plan is being carried out, or was.")
    s.decide(who, REJECTION, row)
    s.store.reject(who, number)
    s.log(who, "plan rejected", number)
    return _plan(s, s.store.plan(who, number), short=True)


@router.post("/jobs/{number}/retry", status_code=202, response_model=shapes.Job)
def retry(s: Served, who: Anybody, number: str) -> Row:
    """Carry out a failed job again: its own key's, or any as a custodian. Nothing is charged twice."""
    s.store.job(who, number)
    job = s.store.retry(who, number)
    s.log(who, "job retried", number)
    s.worker.wake()
    return _only(job, JOB)


@router.post("/datasets/{name}/releases", status_code=202, response_model=shapes.Job)
def add_release(s: Served, who: Anybody, name: str, asked: ReleaseAsked, once: Once) -> Row:
    """Carry out an approved plan, once: charge, draw, store, give out. The same Idempotency-Key
    gets the same release at no further cost."""
    s.store.dataset(who, name)
    row = s.store.plan(who, asked.plan)
    if row["dataset"] != name:
        raise absent()
    if not row["approved_at"]:
        raise Refused(409, "The plan is not approved by a custodian.")
    known = s.store.has_job(who, RELEASE, once)
    account = s.work.account_of(name)
    if not known and s.work.fits(account, Guarantee.from_json(row["guarantee"])) is None:
        raise Refused(
            409, "The plan does not fit into what is left of the budget; nothing was drawn."
        )
    s.log(who, "release asked for", asked.plan)
    return s.start(who, RELEASE, name, {"plan": asked.plan}, once, asked.plan)


@router.get("/datasets/{name}/releases", response_model=list[shapes.ReleaseSummary])
def releases(s: Served, who: Anybody, name: str) -> list[Row]:
    s.store.dataset(who, name)
    return [_release_row(row) for row in s.store.releases(name)]


@router.get("/releases/{number}", response_model=shapes.Release)
def release(s: Served, who: Anybody, number: str) -> Row:
    row = s.store.release(who, number)
    guarantee = s.model(row["id"]).guarantee_
    return {**_release_row(row), **_cost(guarantee), "protects": guarantee.unit}


@router.post(
    "/releases/{number}/predict",
    response_class=Response,
    responses=shapes.answers(shapes.Prediction),
)
async def predict(s: Served, who: Anybody, number: str, asked: PredictAsked) -> Response:
    """The released function at any points: free, as often as you like."""
    row = await run_in_threadpool(s.store.release, who, number)
    if len(asked.points) > s.settings.max_points:
        raise Refused(422, f"At most {s.settings.max_points} points at a time.")
    coverage = asked.coverage if asked.interval else None
    text = await s.predictors.predict(who.key, row["id"], asked.points, coverage)
    return Response(text, media_type="application/json")


@router.get(
    "/releases/{number}/view", response_class=Response, responses=shapes.answers(shapes.View)
)
async def view(s: Served, who: Anybody, number: str) -> Response:
    """The curve, the map or slices, with the privacy noise apart."""
    return Response(await s.view(who, "view", number), media_type="application/json")


@router.get("/releases/{number}/title")
def title(s: Served, who: Anybody, number: str) -> Title:
    """The headline and the unit of a release; empty where nobody gave one."""
    return s.title(s.store.release(who, number)["id"])


@router.put("/releases/{number}/title")
def set_title(s: Served, who: Custodian, number: str, asked: Title) -> Title:
    """Give a release a headline and a unit, which its page and its published file show."""
    s.store.release(who, number)
    s.store.set_title(number, asked.headline, asked.unit)
    s.log(who, "release named", number)
    return asked


@router.get("/releases/{number}/certificate")
def certificate(s: Served, who: Anybody, number: str) -> Row:
    found: Row = s.model(s.store.release(who, number)["id"]).certificate()
    return found


@router.get("/releases/{number}/certificate.html", response_class=file_of("text/html"))
def certificate_html(s: Served, who: Anybody, number: str) -> Response:
    text = certificate_page(s.model(s.store.release(who, number)["id"]).certificate())
    policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
    headers = {"content-security-policy": policy}
    return Response(text, media_type="text/html; charset=utf-8", headers=headers)


@router.get("/releases/{number}/file", response_class=file_of("application/octet-stream"))
def file(s: Served, who: Anybody, number: str) -> Response:
    """The .privgp file: the same bytes, always."""
    row = s.store.release(who, number)
    data = s.work.read_release(row)
    s.log(who, "release downloaded", number)
    return _download(data, s.file_name(who, number, "privgp"), "application/octet-stream")


@router.get("/releases/{number}/table.csv", response_class=file_of("text/csv"))
async def table(s: Served, who: Anybody, number: str) -> Response:
    """The view's numbers."""
    return await _export(s, who, number, "csv", "csv", "text/csv; charset=utf-8")


@router.get("/releases/{number}/map.geojson", response_class=file_of("application/geo+json"))
async def map_geojson(s: Served, who: Anybody, number: str) -> Response:
    """The map's cells, if the inputs are longitude and latitude."""
    return await _export(s, who, number, "geojson", "geojson", "application/geo+json")


@router.get("/releases/{number}/script.py", response_class=file_of("text/x-python"))
def script(s: Served, who: Anybody, number: str) -> Response:
    """Python that repeats the view from the .privgp file."""
    row, output = s.shown(who, number)
    file = s.file_name(who, number, "privgp")
    text = exports.script_of(s.model(row["id"])._released, output, file)
    name = s.file_name(who, number, "py")
    return _download(text.encode("utf-8"), name, "text/x-python; charset=utf-8")


@router.get("/releases/{number}/page.html", response_class=file_of("text/html"))
async def published_page(s: Served, who: Anybody, number: str) -> Response:
    """The page of the release as one file, for publishing."""
    return await _export(s, who, number, "page", "html", "text/html; charset=utf-8")


@router.post("/releases/{number}/updates", status_code=202, response_model=shapes.Job)
async def add_update(
    s: Served,
    who: Custodian,
    request: Request,
    number: str,
    once: Once,
    ending: Literal["csv", "parquet"] = "csv",
) -> Row:
    """Measure rows of new people, the body of the request, and learn from all measurements."""
    await run_in_threadpool(s.store.release, who, number)
    name, digest = await _keep_table(s, who, request, ending)
    return await run_in_threadpool(_start_update, s, who, number, once, name, digest)


@router.get("/jobs/{number}", response_model=shapes.Job)
def job(s: Served, who: Anybody, number: str) -> Row:
    return _only(s.store.job(who, number), JOB)


def _start_update(s: Service, who: Who, number: str, once: str, table: str, digest: str) -> Row:
    """Start the job, or find the one that was started with the same rows, whose table is there."""
    path = s.settings.tables / table
    row = s.store.release(who, number)
    try:
        if s.store.has_job(who, UPDATE, once):
            path.unlink()
            return s.start(who, UPDATE, row["dataset"], {}, once, number, digest)
        declared = s.work.declaration_of(row["dataset"])
        declared.all_columns(declared.usual_model(), path)
    except Refused:
        path.unlink(missing_ok=True)
        raise
    asked = {"release": number, "table": table}
    return s.start(who, UPDATE, row["dataset"], asked, once, number, digest)


async def _keep_table(s: Service, who: Who, request: Request, ending: str) -> tuple[str, str]:
    """Write a table into the server's folder as it comes; its name and its SHA-256. How many rows it
    has may be private."""
    name, digest = f"upload-{new_id()}.{ending}", hashlib.sha256()
    path = s.settings.tables / name
    with new_private_file(path) as file:
        async for part in request.stream():
            digest.update(part)
            await run_in_threadpool(file.write, part)
        file.flush()
        await run_in_threadpool(reading.check_table, path, s.settings)
    await run_in_threadpool(s.log, who, "table uploaded", name)
    return name, digest.hexdigest()


def _dataset(s: Service, row: Row) -> Row:
    declared = Declared.from_store(row["declared"])
    remaining = s.work.ledger.account(declared.charged).remaining()
    return {**declared.public_part(), "remaining": remaining, "made_at": row["made_at"]}


def _check_shared(s: Service, asked: Declared) -> None:
    """Refuse a dataset whose people have another budget than the one it wants to share."""
    first = s.work.declaration_of(asked.charged)
    if (asked.epsilon, asked.delta) != (first.epsilon, first.delta):
        raise Refused(
            422,
            f"The budget of {first.name} is epsilon = {first.epsilon:g}, delta = {first.delta:g}.",
        )
    if _bytes_of(s, asked) != _bytes_of(s, first):
        raise Refused(422, f"An account is shared by one table: that of {first.name} is another.")


def _bytes_of(s: Service, declared: Declared) -> bytes:
    return declared.path(s.settings).read_bytes()


def _plan(s: Service, row: Row, *, short: bool = False) -> Row:
    told = json.loads(row["told"])
    shown = ("id", "dataset", "made_at", "approved_at", "approved_by", "rejected_at", "rejected_by")
    left = s.work.fits(s.work.account_of(row["dataset"]), Guarantee.from_json(row["guarantee"]))
    after: Row = {"fits": left is not None, "left_after": 0.0 if left is None else left}
    job = s.store.job_of(RELEASE, {"plan": row["id"]})
    after["state"] = _plan_state(row, job)
    after["job"] = "" if job is None else job["id"]
    after["error"] = "" if job is None else job["error"]
    after["carried_out_by"] = after["job"] if after["state"] == RELEASED else ""
    after["comparison"] = len(told["options"]) > 1
    if short:
        told = _only(told, ("epsilon", "delta", "expected_error", "hash"))
    return {**_only(row, shown), **told, **after}


def _plan_state(row: Row, job: Row | None) -> str:
    """Where a plan stands: planned, approved, rejected, running, failed or released."""
    if job is not None:
        return {WAITING: RUNNING, DONE: RELEASED}.get(job["state"], str(job["state"]))
    if row["rejected_at"]:
        return "rejected"
    return "approved" if row["approved_at"] else "planned"


def _release_row(row: Row) -> Row:
    return _only(row, ("id", "dataset", "previous", "made_at"))


def _cost(guarantee: Guarantee) -> Row:
    return {"epsilon": guarantee.epsilon, "delta": guarantee.delta}


def _only(row: Row, names: tuple[str, ...]) -> Row:
    return {name: row[name] for name in names}


async def _export(
    s: Service, who: Who, number: str, kind: str, ending: str, media: str
) -> Response:
    text = await s.view(who, kind, number)
    name = await run_in_threadpool(s.file_name, who, number, ending)
    return _download(text.encode("utf-8"), name, media)


def _download(data: bytes, name: str, kind: str) -> Response:
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(data, media_type=kind, headers=headers)
