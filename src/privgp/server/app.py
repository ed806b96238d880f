"""The application: endpoints and pages behind the guard, with one sentence for every error."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from anyio import to_thread
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from privgp.errors import LedgerError, LedgerUnreachable
from privgp.server import api, releases
from privgp.server.errors import Refused, first_line
from privgp.server.guard import Guard
from privgp.server.jobs.predictors import Answers, Predictors
from privgp.server.jobs.worker import Worker
from privgp.server.service import Service
from privgp.server.settings import Settings
from privgp.server.shapes import TAGS, tag_of
from privgp.server.views import pages
from privgp.server.work import Work

# The framework could send requests and errors, and what they quote, to where the environment points.
SILENT: Any = dict.fromkeys(
    ("tracing", "metrics", "logs", "operation_spans", "auto_configure"), False
)

SIGNS = {"string_pattern_mismatch": "This has a sign that is not allowed here"}


def application(settings: Settings) -> FastAPI:
    """The server of these settings; its jobs run between startup and shutdown."""
    work = Work.of(settings)
    worker, predictors = Worker(work), Predictors(Answers(work))

    @asynccontextmanager
    async def run_worker(_: FastAPI) -> AsyncIterator[None]:
        # More threads than this would only take turns.
        limiter = to_thread.current_default_thread_limiter()
        limiter.total_tokens = settings.threads + settings.predictors
        worker.start()
        predictors.warm()
        yield
        worker.stop()

    made = FastAPI(
        title="privgp",
        version=version("privgp"),
        openapi_tags=[{"name": name, "description": text} for name, text in TAGS.items()],
        description="Budgets, plans and releases of private datasets.",
        docs_url=None,
        redoc_url=None,
        lifespan=run_worker,
        telemetry=SILENT,
    )
    made.state.service = Service(settings, work.store, work, worker, predictors)
    for route in (*api.router.routes, *releases.router.routes):
        if isinstance(route, APIRoute):
            route.tags = [tag_of(route.path)]
    for each in (api, releases, pages):
        made.include_router(each.router)
    made.mount("/static", pages.static)
    if settings.oidc_issuer:
        from privgp.server.views.oidc import add_sign_in

        add_sign_in(made, settings)
    made.add_exception_handler(Refused, _answer_refusal)
    made.add_exception_handler(LedgerError, _ledger)
    made.add_exception_handler(RequestValidationError, _invalid)
    made.add_exception_handler(HTTPException, _http)
    made.add_middleware(Guard, settings=settings, store=work.store, predictions=predictors.turns)
    return made


def _error(request: Request, status: int, sentence: str) -> Response:
    """A sentence: as a page for a browser that opened an address, otherwise as JSON."""
    is_page = "text/html" in request.headers.get("accept", "")
    if is_page and not request.url.path.startswith("/api/"):
        return pages.error_page(request, status, sentence)
    return JSONResponse({"error": sentence}, status_code=status)


def _answer_refusal(request: Request, problem: Any) -> Response:
    return _error(request, problem.status, problem.sentence)


def _ledger(request: Request, problem: Any) -> Response:
    status = 503 if isinstance(problem, LedgerUnreachable) else 409
    return _error(request, status, first_line(problem))


def _invalid(request: Request, problem: Any) -> Response:
    """What is wrong and where, without the value."""
    told = [
        f"{'.'.join(str(part) for part in each['loc'][1:]) or 'body'}: {SIGNS.get(each['type'], each['msg'])}"
        for each in problem.errors()[:3]
    ]
    return _error(request, 422, "; ".join(told)[:600])


def _http(request: Request, problem: Any) -> Response:
    known = {404: "There is nothing here for this key.", 405: "This method is not known here."}
    sentence = known.get(problem.status_code, "The request is malformed.")
    return _error(request, problem.status_code, sentence)
