"""What a report is made of: numbers beside the paper's, words and pictures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

# progress(share of the work done, what is being done)
Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class Result:
    """One quantity: as printed in the paper, by the paper's method here, by the default method here.

    None where there is no such number.
    """

    quantity: str
    paper: float | None
    papers_method: float | None
    default_method: float | None


@dataclass(frozen=True)
class Table:
    """Column names and rows of text, as a paper prints them."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Section:
    """A heading, paragraphs of plain text, a table and a picture."""

    title: str
    text: tuple[str, ...] = ()
    figure: Figure | None = None
    table: Table | None = None


@dataclass(frozen=True)
class Report:
    """One report, ready to be written as a page and as ``results.json``.

    ``summary``: a few sentences with which the page begins; all numbers stand at its end.
    ``details``: further numbers that only ``results.json`` lists; the page has them in its tables.
    """

    name: str
    title: str
    results: tuple[Result, ...]
    sections: tuple[Section, ...]
    details: tuple[Result, ...] = ()
    summary: tuple[str, ...] = ()


def judged(statement: str, holds: bool) -> str:
    """A statement with whether it holds in the run that prints it."""
    return f"{'Holds' if holds else 'DOES NOT HOLD'}: {statement}."


@dataclass(frozen=True)
class Request:
    """How to run: where the data lie, whether a short run is enough, whom to tell of progress."""

    data: Path | None = None
    quick: bool = False
    progress: Progress = lambda share, doing: None
