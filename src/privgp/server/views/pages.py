"""The pages. The server renders them; scripts of our own send what people decide to the JSON endpoints."""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles
from starlette.middleware.gzip import GZipMiddleware

from privgp.models.rows.updates import is_updatable
from privgp.release.geojson import places_in
from privgp.server import api
from privgp.server import releases as published
from privgp.server.declared import Declared
from privgp.server.guard import COOKIES
from privgp.server.service import Anybody, Custodian, Served, Service
from privgp.server.store.keys import Who
from privgp.server.store.schema import Row
from privgp.server.views.exports import certificate_context, short, templates

router = APIRouter(include_in_schema=False)
WRONG = "This is not a valid key."
TITLES = {403: "Not allowed", 404: "Nothing here", 405: "Not possible", 503: "Try again later"}
DATASETS, APPROVALS, PEOPLE, LEDGER = "Datasets", "Approvals", "People", "Ledger"


static = GZipMiddleware(StaticFiles(packages=[("privgp.server", "static")]))


def render(name: str, *, status: int = 200, **shown: object) -> HTMLResponse:
    return HTMLResponse(templates().get_template(name).render(**shown), status_code=status)


def _page(s: Service, who: Who, name: str, here: str, **shown: object) -> HTMLResponse:
    """A page with the bar at its top, which says how many plans wait."""
    waiting = s.store.count_waiting(who).total()
    text = templates().get_template(name).render(who=who, here=here, waiting=waiting, **shown)
    return HTMLResponse(text)


def error_page(request: Request, status: int, sentence: str) -> HTMLResponse:
    """The page of a refusal, for somebody who opened an address in a browser."""
    who = getattr(request.state, "who", None)
    title = TITLES.get(status, "That did not work")
    return render("error.html", status=status, who=who, here="", title=title, sentence=sentence)


@router.get("/signin")
def sign_in_page(s: Served) -> HTMLResponse:
    return render("signin.html", problem="", oidc=s.settings.oidc_issuer)


@router.post("/signin")
async def sign_in(s: Served, request: Request) -> Response:
    """Exchange a key for a cookie, which scripts cannot read."""
    try:
        form = parse_qs((await request.body()).decode("ascii", "replace"), max_num_fields=10)
    except ValueError:  # more fields than any form of ours has
        form = {}
    who = await run_in_threadpool(s.store.who, form.get("key", [""])[0].strip())
    if who is None:
        return render("signin.html", status=401, problem=WRONG, oidc=s.settings.oidc_issuer)
    return await set_session(s, who, RedirectResponse("/", status_code=303))


async def set_session(s: Service, who: Who, response: Response) -> Response:
    """An answer that signs somebody in, by a cookie."""
    token = await run_in_threadpool(s.store.sign_in, who)
    await run_in_threadpool(s.store.log, who, "sign-in", "")
    name, secure = COOKIES[s.settings.secure], s.settings.secure
    response.set_cookie(name, token, httponly=True, samesite="strict", secure=secure, path="/")
    return response


@router.post("/signout")
def sign_out(s: Served, request: Request) -> Response:
    s.store.sign_out(request.cookies.get(COOKIES[s.settings.secure], ""))
    response = Response(status_code=204)
    response.delete_cookie(COOKIES[s.settings.secure], path="/", secure=s.settings.secure)
    return response


@router.get("/")
def home(s: Served, who: Anybody) -> HTMLResponse:
    return _page(s, who, "home.html", DATASETS, datasets=_cards(s, who))


@router.get("/register")
def register(s: Served, who: Custodian) -> HTMLResponse:
    known = [Declared.from_store(row["declared"]) for row in s.store.datasets(who)]
    return _page(s, who, "register.html", DATASETS, known=known)


@router.get("/approvals")
def approvals(s: Served, who: Anybody) -> HTMLResponse:
    names = [each["name"] for each in s.store.datasets(who)]
    rows = _choice_of([plan for name in names for plan in published.plans(s, who, name)])
    rows.sort(key=lambda plan: str(plan["made_at"]), reverse=True)

    def in_state(*states: str) -> list[Row]:
        return [plan for plan in rows if plan["state"] in states]

    groups = [
        ("Waiting for a custodian", in_state("planned"), "No plan is waiting."),
        ("Approved", in_state("approved"), "No plan is approved and not yet released."),
        ("In progress or failed", in_state("running", "failed"), "Nothing is running."),
        ("Decided", in_state("released", "rejected"), "Nothing was decided yet."),
    ]
    return _page(s, who, "approvals.html", APPROVALS, groups=groups)


@router.get("/people")
def people(s: Served, who: Custodian) -> HTMLResponse:
    keys = api.keys(s, who)
    shown = {
        "keys": keys, "names": {key["id"]: key["name"] for key in keys}, "events": api.events(s, who),
        "unused": api.unused_tables(s, who), "oidc": s.settings.oidc_issuer,
        "datasets": [row["name"] for row in s.store.datasets(who)],
    }  # fmt: skip
    return _page(s, who, "people.html", PEOPLE, **shown)


@router.get("/ledger")
def ledger(s: Served, who: Anybody) -> HTMLResponse:
    cards = sorted(_cards(s, who), key=lambda each: each["declared"].account is None)
    own = {each["declared"].payer: each for each in cards}  # the dataset that opened it, if seen
    return _page(s, who, "ledger.html", LEDGER, accounts=[own[name] for name in sorted(own)])


@router.get("/datasets/{name}")
def dataset(s: Served, who: Anybody, name: str) -> HTMLResponse:
    shown = _dataset(s, who, name)
    plans = published.plans(s, who, name)
    usable = [each["id"] for each in plans if each["comparison"] and each["fits"]]
    shown |= {"plans": _choice_of(plans)[::-1], "comparison": usable[-1] if usable else ""}
    outcomes = _outcomes(shown["declared"])
    return _page(s, who, "plan.html", DATASETS, tab="Plan", outcomes=outcomes, **shown)


@router.get("/datasets/{name}/releases")
def releases(s: Served, who: Anybody, name: str) -> HTMLResponse:
    rows = published.releases(s, who, name)[::-1]
    titles = s.store.titles(*(row["id"] for row in rows))
    shown: Row = {"releases": rows, "functions": published.functions(s, who, name)}
    shown |= {"headlines": {number: row["headline"] for number, row in titles.items()}}
    shown |= _dataset(s, who, name)
    return _page(s, who, "releases.html", DATASETS, tab="Releases", **shown)


@router.get("/datasets/{name}/ledger")
def charges(s: Served, who: Anybody, name: str) -> HTMLResponse:
    entries = api.ledger(s, who, name)["entries"]
    pairs = pairwise(entries)
    broken = [after["number"] for before, after in pairs if after["previous"] != before["hash"]]
    shown = _dataset(s, who, name)
    return _page(
        s, who, "charges.html", DATASETS, tab="Ledger", entries=entries, broken=broken[:1], **shown
    )


@router.get("/functions/{number}")
def function(s: Served, who: Anybody, number: str) -> HTMLResponse:
    row = published.function(s, who, number)
    declared = s.work.declaration_of(row["dataset"])
    shown = {"title": declared.title, "inputs": declared.inputs}
    return _page(s, who, "function.html", DATASETS, function=row, **shown)


@router.get("/releases/{number}")
def release(s: Served, who: Anybody, number: str) -> HTMLResponse:
    row = s.store.release(who, number)
    declared, model = s.work.declaration_of(row["dataset"]), s.model(row["id"])
    can_update = who.is_custodian and is_updatable(model)
    named, facts = s.title(number), dict[str, Any](model.certificate())
    shown = {
        "release": row, "title": declared.title, "unit": named.unit, "plan_hash": facts["plan_hash"],
        "headline": named.headline or declared.headline,
        "file_name": s.file_name(who, number, "privgp"),
        "budget": f"epsilon = {short(facts['epsilon'])}, delta = {short(facts['delta'])}",
        "places": len(declared.inputs) == 2 and places_in(declared.inputs) is not None,
        "updatable": {"epsilon": model.epsilon, "delta": model.delta} if can_update else None,
    }  # fmt: skip
    shown |= certificate_context(facts, declared.title)
    return _page(s, who, "release.html", DATASETS, **shown)


def _dataset(s: Service, who: Who, name: str) -> Row:
    """What all pages of a dataset show at their top."""
    declared = Declared.from_store(s.store.dataset(who, name)["declared"])
    return {"declared": declared, "left": s.work.account_of(name).remaining()}


def _cards(s: Service, who: Who) -> list[Row]:
    """What a card says of every dataset."""
    made, waiting = [], s.store.count_waiting(who)
    for row in s.store.datasets(who):
        released = s.store.releases(row["name"])
        newest = released[-1]["id"] if released else ""
        shown = {"newest": newest, "releases": len(released), "waiting": waiting[row["name"]]}
        made.append({**_dataset(s, who, row["name"]), **shown})
    return made


def _choice_of(plans: list[Row]) -> list[Row]:
    """The plans that somebody chose; comparisons of budgets are none."""
    return [each for each in plans if not each["comparison"] or each["approved_at"]]


def _outcomes(declared: Declared) -> list[Row]:
    """The name and the range of every outcome, of labels that of a probability."""
    pairs = declared.pairs or ((0.0, 1.0),) * len(declared.outputs)
    named = zip(declared.outputs, pairs, strict=True)
    return [{"name": name, "low": float(low), "high": float(high)} for name, (low, high) in named]
