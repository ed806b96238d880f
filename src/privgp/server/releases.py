"""Endpoints of plans, and of what is published: releases and their updates, functions and sample paths."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Literal

from fastapi import Body, Request, Response
from fastapi.concurrency import run_in_threadpool

from privgp.privacy.guarantee import Guarantee
from privgp.release.certificate.page import page as certificate_page
from privgp.server import shapes
from privgp.server.declared import PlanAsked, PredictAsked, ReleaseAsked, Title
from privgp.server.errors import Refused, absent
from privgp.server.service import Anybody, Custodian, Once, Served, Service, keep_table, new_router
from privgp.server.store.functions import AnyAsked, PointsAsked
from privgp.server.store.jobs import to_text
from privgp.server.store.keys import Who
from privgp.server.store.schema import DONE, RUNNING, WAITING, Row, new_id
from privgp.server.views import exports
from privgp.server.work import FUNCTION, PLAN, RELEASE, UPDATE, finite

RELEASED = "released"
router = new_router()


@router.post("/datasets/{name}/plans", status_code=202, response_model=shapes.Job)
def add_plan(s: Served, who: Anybody, name: str, asked: PlanAsked) -> Row:
    """Plan, which is free; the job's result is the plan's number."""
    s.store.dataset(who, name)
    shown = asked.model_dump(mode="json")
    return s.start(who, PLAN, name, shown, new_id(), json.dumps(shown))


@router.get("/datasets/{name}/plans", response_model=list[shapes.PlanSummary])
def plans(s: Served, who: Anybody, name: str) -> list[Row]:
    s.store.dataset(who, name)
    left_after = s.work.account_of(name).forecast()
    jobs = {job["asked"]: job for job in s.store.jobs_of(RELEASE, name)}
    found = [(row, jobs.get(to_text({"plan": row["id"]}))) for row in s.store.plans(name)]
    return [_plan(row, job, left_after, short=True) for row, job in found]


@router.get("/plans/{number}", response_model=shapes.Plan)
def plan(s: Served, who: Anybody, number: str) -> Row:
    return _plan_now(s, s.store.plan(who, number))


@router.post("/plans/{number}/approve", response_model=shapes.PlanSummary)
def approve(s: Served, who: Custodian, number: str) -> Row:
    """Allow the plan to be carried out; the approval is an entry of the ledger."""
    return _plan_now(s, s.decide(who, number, approved=True), short=True)


@router.post("/plans/{number}/reject", response_model=shapes.PlanSummary)
def reject(s: Served, who: Custodian, number: str) -> Row:
    """Reject a plan, or withdraw its approval before it is carried out, or after that failed."""
    return _plan_now(s, s.decide(who, number, approved=False), short=True)


@router.post("/datasets/{name}/releases", status_code=202, response_model=shapes.Job)
def add_release(s: Served, who: Anybody, name: str, asked: ReleaseAsked, once: Once) -> Row:
    """Carry out an approved plan, once: charge, draw, store, give out. The same Idempotency-Key
    gets the same release at no further cost."""
    s.store.dataset(who, name)
    row = s.store.plan(who, asked.plan)
    if row["dataset"] != name:
        raise absent()
    left_after = s.work.account_of(name).forecast()
    fits = left_after(Guarantee.from_json(row["guarantee"])) is not None
    if not (fits or s.store.has_job(who, RELEASE, once)):
        raise Refused(
            409, "The plan does not fit into what is left of the budget; nothing was drawn."
        )
    return s.start(who, RELEASE, name, {"plan": asked.plan}, once, asked.plan)


@router.get("/datasets/{name}/releases", response_model=list[shapes.ReleaseSummary])
def releases(s: Served, who: Anybody, name: str) -> list[Row]:
    s.store.dataset(who, name)
    return [shapes.only(row, shapes.ReleaseSummary) for row in s.store.releases(name)]


@router.get("/releases/{number}", response_model=shapes.Release)
def release(s: Served, who: Anybody, number: str) -> Row:
    row = s.store.release(who, number)
    guarantee = s.model(row["id"]).guarantee_
    shown = shapes.only(row, shapes.ReleaseSummary)
    return {**shown, **shapes.budget_of(guarantee), "protects": guarantee.unit}


@router.post(
    "/releases/{number}/predict",
    response_class=Response,
    responses={200: {"model": shapes.Prediction}},
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
    "/releases/{number}/view", response_class=Response, responses={200: {"model": shapes.View}}
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
    s.store.log(who, "release named", number)
    return asked


@router.get("/releases/{number}/certificate")
def certificate(s: Served, who: Anybody, number: str) -> Row:
    found: Row = s.model(s.store.release(who, number)["id"]).certificate()
    return found


@router.get("/releases/{number}/certificate.html", response_class=shapes.file_of("text/html"))
def certificate_html(s: Served, who: Anybody, number: str) -> Response:
    text = certificate_page(s.model(s.store.release(who, number)["id"]).certificate())
    policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
    headers = {"content-security-policy": policy}
    return Response(text, media_type="text/html; charset=utf-8", headers=headers)


@router.get("/releases/{number}/file", response_class=shapes.file_of("application/octet-stream"))
def file(s: Served, who: Anybody, number: str) -> Response:
    """The .privgp file: the same bytes, always."""
    row = s.store.release(who, number)
    data = s.work.read_release(row)
    return _download(s, who, number, data, "privgp", "application/octet-stream")


@router.get("/releases/{number}/table.csv", response_class=shapes.file_of("text/csv"))
async def table(s: Served, who: Anybody, number: str) -> Response:
    """The view's numbers."""
    return await _export(s, who, number, "csv", "csv", "text/csv; charset=utf-8")


@router.get("/releases/{number}/map.geojson", response_class=shapes.file_of("application/geo+json"))
async def map_geojson(s: Served, who: Anybody, number: str) -> Response:
    """The map's cells, if the inputs are longitude and latitude."""
    return await _export(s, who, number, "geojson", "geojson", "application/geo+json")


@router.get("/releases/{number}/script.py", response_class=shapes.file_of("text/x-python"))
def script(s: Served, who: Anybody, number: str) -> Response:
    """Python that repeats the view from the .privgp file."""
    row, output = s.shown(who, number)
    file = s.file_name(who, number, "privgp")
    text = exports.script_of(s.model(row["id"])._released, output, file)
    media = "text/x-python; charset=utf-8"
    return _download(s, who, number, text.encode("utf-8"), "py", media)


@router.get("/releases/{number}/page.html", response_class=shapes.file_of("text/html"))
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
    name, digest = await keep_table(s, who, request, ending)
    return await run_in_threadpool(_start_update, s, who, number, once, name, digest)


@router.post("/datasets/{name}/functions", status_code=202, response_model=shapes.Job)
def add_function(
    s: Served, who: Custodian, name: str, asked: Annotated[AnyAsked, Body()], once: Once
) -> Row:
    """Make a whole function or sample paths, once: one charge pays for every answer. The same
    Idempotency-Key gets the same one at no further cost."""
    s.store.dataset(who, name)
    shown = asked.model_dump(mode="json")
    return s.start(who, FUNCTION, name, shown, once, json.dumps(shown, sort_keys=True))


@router.get("/datasets/{name}/functions", response_model=list[shapes.Function])
def functions(s: Served, who: Anybody, name: str) -> list[Row]:
    s.store.dataset(who, name)
    return [_function_summary(row) for row in s.store.functions(name)]


@router.get("/functions/{number}", response_model=shapes.Function)
def function(s: Served, who: Anybody, number: str) -> Row:
    return _function_summary(s.store.function(who, number))


@router.post("/functions/{number}/ask", response_model=shapes.Values)
def ask(s: Served, who: Anybody, number: str, asked: PointsAsked) -> Row:
    """The values at these points, of paths one list each: free, and always the same."""
    row = s.store.function(who, number)
    if len(asked.points) > s.settings.max_function_points:
        raise Refused(422, f"At most {s.settings.max_function_points} points at a time.")
    return {"values": finite(s.work.keeper.ask(row, asked.points)).tolist()}


def _function_summary(row: Row) -> Row:
    shown = {**row, **json.loads(row["told"]), "points_answered": row["points"]}
    return shapes.only(shown, shapes.Function)


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


def _plan_now(s: Service, row: Row, *, short: bool = False) -> Row:
    job = s.store.job_of(RELEASE, {"plan": row["id"]})
    return _plan(row, job, s.work.account_of(row["dataset"]).forecast(), short=short)


def _plan(
    row: Row,
    job: Row | None,
    left_after: Callable[[Guarantee], float | None],
    *,
    short: bool = False,
) -> Row:
    """A plan as it stands: the job that carries it out, and what its release would leave."""
    told, left = json.loads(row["told"]), left_after(Guarantee.from_json(row["guarantee"]))
    number, error = ("", "") if job is None else (job["id"], job["error"])
    after: Row = {"fits": left is not None, "left_after": left or 0.0, "job": number}
    after |= {"state": _plan_state(row, job), "comparison": len(told["options"]) > 1}
    after |= {"error": error, "carried_out_by": number if after["state"] == RELEASED else ""}
    return shapes.only({**row, **told, **after}, shapes.PlanSummary if short else shapes.Plan)


def _plan_state(row: Row, job: Row | None) -> str:
    """Where a plan stands: planned, approved, rejected, running, failed or released."""
    if row["rejected_at"]:
        return "rejected"
    if job is not None:
        return {WAITING: RUNNING, DONE: RELEASED}.get(job["state"], str(job["state"]))
    return "approved" if row["approved_at"] else "planned"


async def _export(
    s: Service, who: Who, number: str, kind: str, ending: str, media: str
) -> Response:
    text = await s.view(who, kind, number)
    return await run_in_threadpool(_download, s, who, number, text.encode("utf-8"), ending, media)


def _download(s: Service, who: Who, number: str, data: bytes, ending: str, media: str) -> Response:
    """A file of a release, which is written into the log."""
    s.store.log(who, "release downloaded", number)
    return shapes.download(data, s.file_name(who, number, ending), media)
