"""What people say of a release and see of a table: headline and unit, names and types of columns."""

from __future__ import annotations

from typing import Annotated, Literal

import polars as pl
from fastapi import APIRouter
from pydantic import BaseModel, Field

from privgp.server.api import REFUSALS, Anybody, Custodian, Served, Service
from privgp.server.declared import Asked, Declared
from privgp.server.errors import absent
from privgp.server.store.store import Row
from privgp.tables.parser import read_header

router = APIRouter(prefix="/api", responses=REFUSALS)
Line = Annotated[str, Field(max_length=160, pattern=r"^[^\x00-\x1f\x7f]*$")]


class Title(Asked):
    """A headline that states the finding, and the unit of the outcome."""

    headline: Line = ""
    unit: Annotated[Line, Field(max_length=40)] = ""


class TableColumn(BaseModel):
    """A column of an uploaded table, as its header or its schema describes it."""

    name: str
    kind: Literal["number", "date", "boolean", "text", ""]


@router.get("/releases/{number}/title")
def title(s: Served, who: Anybody, number: str) -> Title:
    """The headline and the unit of a release; empty where nobody gave one."""
    s.store.release(who, number)
    return title_of(s, number)


@router.put("/releases/{number}/title")
def set_title(s: Served, who: Custodian, number: str, asked: Title) -> Title:
    """Give a release a headline and a unit, which its page and its published file show."""
    s.store.set_title(who, number, asked.headline, asked.unit)
    s.log(who, "release named", number)
    return asked


@router.get("/tables/{name}/columns")
def columns(s: Served, who: Custodian, name: str) -> list[TableColumn]:
    """The columns of an uploaded table that no dataset is made of. No cell is read."""
    path = s.settings.tables / name
    if name in s.store.tables_in_use() or "/" in name or not path.is_file():
        raise absent()
    if path.suffix == ".csv":
        return [TableColumn(name=each, kind="") for each in read_header(str(path))]
    return [
        TableColumn(name=n, kind=_kind(dtype)) for n, dtype in pl.read_parquet_schema(path).items()
    ]


def title_of(s: Service, number: str) -> Title:
    row: Row = s.store.titles(number).get(number, {})
    return Title(headline=row.get("headline", ""), unit=row.get("unit", ""))


def default_headline(declared: Declared) -> str:
    """What a release is called before somebody gives it a headline."""
    title = declared.title
    return f"{title[:1].upper()}{title[1:]} by {', '.join(declared.inputs)}"


def _kind(dtype: pl.DataType) -> Literal["number", "date", "boolean", "text"]:
    if dtype.is_numeric():
        return "number"
    if dtype.is_temporal():
        return "date"
    return "boolean" if dtype == pl.Boolean else "text"
