"""The pages: their numbers come from the JSON endpoints, through a small script of our own."""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from typing import Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse

from privgp.models.rows.updates import is_updatable
from privgp.release.exports.geojson import places_in
from privgp.server.api import Anybody, Served
from privgp.server.declared import Declared
from privgp.server.guard import COOKIES, cookie_in
from privgp.server.views.page import PLOTTING, certificate_context, templates
from privgp.server.views.page import static as static_file

router = APIRouter(include_in_schema=False)
STYLE, SCRIPT = "text/css", "text/javascript"
KINDS = {
    "page.css": STYLE, "plot.css": STYLE, "view.js": SCRIPT, "page.js": SCRIPT, PLOTTING: SCRIPT
}  # fmt: skip
WRONG = "This is no valid key."


def _render(name: str, *, status: int = 200, **told: Any) -> HTMLResponse:
    return HTMLResponse(templates().get_template(name).render(**told), status_code=status)


@router.get("/signin")
def sign_in_page(request: Request) -> HTMLResponse:
    status = 200 if request.scope["raw_path"] == b"/signin" else 401
    return _render("signin.html", status=status, problem="")


@router.post("/signin")
async def sign_in(s: Served, request: Request) -> Response:
    """Exchange a key for a cookie, which scripts cannot read."""
    try:
        form = parse_qs((await request.body()).decode("ascii", "replace"), max_num_fields=10)
    except ValueError:  # more fields than any form of ours has
        form = {}
    who = await run_in_threadpool(s.store.who, form.get("key", [""])[0].strip())
    if who is None:
        return _render("signin.html", status=401, problem=WRONG)
    token = await run_in_threadpool(s.store.sign_in, who)
    await run_in_threadpool(s.log, who, "sign-in", "")
    response = RedirectResponse("/", status_code=303)
    name, secure = COOKIES[s.settings.secure], s.settings.secure
    response.set_cookie(name, token, httponly=True, samesite="strict", secure=secure, path="/")
    return response


@router.post("/signout")
def sign_out(s: Served, request: Request) -> Response:
    s.store.sign_out(cookie_in(request.headers.get("cookie", ""), s.settings))
    response = Response(status_code=204)
    response.delete_cookie(COOKIES[s.settings.secure], path="/", secure=s.settings.secure)
    return response


@router.get("/")
def home(s: Served, who: Anybody) -> HTMLResponse:
    rows = s.store.datasets(who)
    return _render(
        "home.html", who=who, datasets=[Declared.from_store(row["declared"]) for row in rows]
    )


@router.get("/datasets/{name}")
def dataset(s: Served, who: Anybody, name: str) -> HTMLResponse:
    row = s.store.dataset(who, name)
    return _render("dataset.html", who=who, declared=Declared.from_store(row["declared"]))


@router.get("/releases/{number}")
def release(s: Served, who: Anybody, number: str) -> HTMLResponse:
    row = s.store.release(who, number)
    declared, model = s.work.declaration_of(row["dataset"]), s.model(row["id"])
    can_update = who.is_custodian and is_updatable(model)
    return _render(
        "release.html",
        who=who,
        release=row,
        places=len(declared.inputs) == 2 and places_in(declared.inputs) is not None,
        updatable={"epsilon": model.epsilon, "delta": model.delta} if can_update else None,
        **certificate_context(model.certificate()),
    )


@router.get("/static/{name}")
def static(request: Request, name: str) -> Response:
    if name not in KINDS:
        return Response(status_code=404)
    data, small, tag = _versions(name)
    headers = {"cache-control": "private, max-age=3600", "etag": tag, "vary": "accept-encoding"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(data, media_type=KINDS[name], headers=headers)
    return Response(small, media_type=KINDS[name], headers={**headers, "content-encoding": "gzip"})


@cache
def _versions(name: str) -> tuple[bytes, bytes, str]:
    """A file, the same compressed, and its tag."""
    data = static_file(name)
    return data, gzip.compress(data, 6, mtime=0), f'"{hashlib.sha256(data).hexdigest()[:32]}"'
