"""The tables and the picture of docs/error-bars.md, from what ``benchmarks.calibration`` measured.

``python -m benchmarks.calibration_page [FOLDER]``, FOLDER being the ``--out`` of
``python -m benchmarks.calibration``, writes both, and keeps the numbers in ``benchmarks/measured``, from
which ``make pictures`` draws. Nothing is measured again.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.calibration_picture import draw

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE, PICTURE = DOCS / "error-bars.md", DOCS / "pictures" / "calibration.svg"
KEPT = Path(__file__).resolve().parent / "measured"
BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"
Results = dict[str, Any]

ERRORS = {"RMSE": "rmse", "without privacy": "without_privacy", "best bins": "best_bins"}
OF_FUNCTION = {"function covered": "coverage", "at the worst place": "worst_place"}
OF_OUTPUTS = {"outputs covered": "outputs", "in the worst release": "worst_release"}
SCORE = {"interval score": "score"}
COMPARED = ("rmse", "score")
SHARES = (*OF_FUNCTION.values(), *OF_OUTPUTS.values())


def tables(results: Results, before: Results | None) -> str:
    """Two tables in Markdown, of known functions and of real data."""
    known = {name: one for name, one in results.items() if "coverage" in one}
    other = {name: one for name, one in results.items() if name not in known}
    parts = [
        _table("function", known, before, ERRORS | SCORE | OF_FUNCTION | OF_OUTPUTS),
        _table("data", other, before, ERRORS | SCORE | OF_OUTPUTS),
    ]
    return "\n".join(part for part in parts if part)


def filled(page: str, text: str) -> str:
    """The page with this text between its two marks."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError("the page has no marks to write between.")
    return f"{head}{BEGIN}\n{text}\n{END}{tail}"


def _table(what: str, results: Results, before: Results | None, columns: dict[str, str]) -> str:
    if not results:
        return ""
    releases = sorted({one["releases"] for one in results.values()})
    each = " to ".join(str(number) for number in {releases[0]: 0, releases[-1]: 0})
    lines = [f"{each} releases of each.{_mean_score(results, before)}", ""]
    lines += [_row([what, *columns]), _row(["---"] * (len(columns) + 1))]
    for name, one in results.items():
        cells = [
            _cell(key, one, None if before is None else before[name]) for key in columns.values()
        ]
        lines.append(_row([name, *cells]))
    return "\n".join(lines) + "\n"


def _mean_score(results: Results, before: Results | None) -> str:
    """How the interval score compares with before, on average."""
    if before is None:
        return ""
    logs = [math.log(one["score"] / before[name]["score"]) for name, one in results.items()]
    mean = math.exp(sum(logs) / len(logs))
    return (
        " In brackets: as a multiple of what the version before had with the same data and seeds. "
        f"The geometric mean of the scores' multiples is {mean:.2f}."
    )


def _cell(key: str, one: Results, before: Results | None) -> str:
    if key not in one:
        return "–"
    if key in SHARES:
        return f"{100.0 * one[key]:.0f}%"
    shown = f"{one[key]:,.0f}" if one[key] >= 1000.0 else f"{one[key]:.3g}"
    if key in COMPARED and before is not None:
        shown += f" (×{one[key] / before[key]:.2f})"
    return shown


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def read(folder: Path) -> tuple[Results, Results | None]:
    """What was measured, and what the version before had, if it was measured too."""
    before = folder / "before" / "calibration.json"
    results = json.loads((folder / "calibration.json").read_text())
    return results, json.loads(before.read_text()) if before.exists() else None


def keep(results: Results, before: Results | None, folder: Path) -> None:
    """Write what the page shows into a folder that ``read`` reads."""
    kept = {folder: results}
    if before is not None:
        kept[folder / "before"] = {
            name: {key: before[name][key] for key in COMPARED} for name in results
        }
    for place, numbers in kept.items():
        place.mkdir(parents=True, exist_ok=True)
        (place / "calibration.json").write_text(json.dumps(numbers))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("calibration"))
    results, before = read(parser.parse_args().folder)
    PAGE.write_text(filled(PAGE.read_text("utf-8"), tables(results, before)), "utf-8")
    draw(results, before, PICTURE)
    keep(results, before, KEPT)


if __name__ == "__main__":
    main()
