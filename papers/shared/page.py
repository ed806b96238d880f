"""A report as one page without outside resources: pictures stand inside it."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from html import escape
from typing import Any

from matplotlib.figure import Figure

from papers.shared.report import Report, Result, Section, Table
from privgp.pictures.style import figure_bytes
from privgp.types import STAMP

SIMULATED = f"{STAMP}: every release on this page is simulated, on public or simulated data."

_STYLE = """
body { font: 11pt/1.45 Georgia, serif; color: #111; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; }
h2 { font-size: 1.15rem; margin: 1.8rem 0 .4rem; border-bottom: 1px solid #999; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: right; vertical-align: top; padding: .25rem 0 .25rem 1rem; border-bottom: 1px solid #ddd;
  font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
img { max-width: 100%; margin: .6rem 0; }
@media print { body { margin: 0; max-width: none; } h2, tr, img { break-inside: avoid; } }
"""


def page(report: Report) -> str:
    """The HTML of a report; all text in it is escaped."""
    body = [f"<h1>{escape(report.title)}</h1>"]
    body += [f"<p>{escape(paragraph)}</p>" for paragraph in report.summary]
    body += [_section(section) for section in report.sections]
    body += ["<h2>All numbers</h2>", results_table(report.results)]
    return document(report.title, body)


def index_page(reports: Sequence[Report]) -> str:
    """One page that leads to the pages of several reports and has all their numbers."""
    body = ["<h1>The papers' tables and figures</h1>"]
    for report in reports:
        name = escape(report.name)
        body.append(f'<h2><a href="{name}.html">{escape(report.title)}</a></h2>')
        body.append(results_table(report.results))
    return document("The papers' tables and figures", body)


def as_json(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """The numbers for programs; what is not finite becomes null."""
    return [
        {
            "quantity": result.quantity,
            "paper": _finite(result.paper),
            "papers_method": _finite(result.papers_method),
            "default_method": _finite(result.default_method),
        }
        for report in reports
        for result in (*report.results, *report.details)
    ]


def results_table(results: Sequence[Result]) -> str:
    head = "".join(
        f"<th>{name}</th>"
        for name in ("quantity", "printed in the paper", "papers' method here", "default here")
    )
    rows = "".join(
        f"<tr><td>{escape(r.quantity)}</td><td>{_number(r.paper)}</td>"
        f"<td>{_number(r.papers_method)}</td><td>{_number(r.default_method)}</td></tr>"
        for r in results
    )
    return f"<table><tr>{head}</tr>{rows}</table>"


def document(title: str, body: Sequence[str]) -> str:
    return (
        '<!DOCTYPE html>\n<html lang="en-GB">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n"
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join([*body, f"<p>{escape(SIMULATED)}</p>"])
        + "\n</body>\n</html>\n"
    )


def _section(section: Section) -> str:
    words = "".join(f"<p>{escape(paragraph)}</p>\n" for paragraph in section.text)
    table = "" if section.table is None else _table(section.table)
    picture = "" if section.figure is None else _picture(section.figure, section.title)
    return f"<h2>{escape(section.title)}</h2>\n{words}{table}{picture}"


def _table(table: Table) -> str:
    def row(cells: Sequence[str], kind: str) -> str:
        inside = "".join(f"<{kind}>{escape(cell)}</{kind}>" for cell in cells)
        return f"<tr>{inside}</tr>"

    body = "".join(row(cells, "td") for cells in table.rows)
    return f"<table>{row(table.columns, 'th')}{body}</table>\n"


def _picture(figure: Figure, title: str) -> str:
    data = base64.b64encode(figure_bytes(figure, ".svg")).decode("ascii")
    return f'<img alt="{escape(title)}" src="data:image/svg+xml;base64,{data}">'


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def _number(value: float | None) -> str:
    return "" if _finite(value) is None else f"{value:.4g}"
