"""Endpoints of whole functions and sample paths: made by custodians, asked by whom has the dataset."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import APIRouter, Body

from privgp.server import shapes
from privgp.server.api import KEYS, REFUSALS, Anybody, Custodian, Once, Served, _only
from privgp.server.errors import Refused
from privgp.server.functions.asked import AnyAsked, PointsAsked
from privgp.server.store.store import Row
from privgp.server.work import FUNCTION, finite

router = APIRouter(prefix="/api", responses=REFUSALS, dependencies=KEYS)


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
    shown = _only(row, ("id", "dataset", "kind", "made_at"))
    return {**shown, **json.loads(row["told"]), "points_answered": row["points"]}
