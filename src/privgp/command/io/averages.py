"""``privgp predict --average`` and ``--areas``: averages of what was published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from privgp.command.errors import Refusal, plural
from privgp.command.io.files import open_own, whole_file
from privgp.command.io.screen import progress, tell, warn

AVERAGE_HELP = (
    "Instead of predictions: averages over the rows of NEW, such as by=region, by=region,weights=people "
    "or all."
)
AREAS_HELP = (
    "Instead of predictions: averages over the polygons of a GeoJSON file, over a grid in each or over "
    "the rows of NEW; needs the extra geo."
)
SIMULTANEOUS_HELP = "Give intervals that hold the function at all rows at once."
FORM = "--average must be by=COLUMN, by=COLUMN,weights=COLUMN, weights=COLUMN or all."
AREA_TABLES = (".csv", ".parquet", ".geojson")
PUBLIC = "The rows of NEW must be public: averages tell where they are. Keep {out} private if not."


def read_average(text: str) -> dict[str, str]:
    """What --average asks for: names of columns, by their use."""
    if text.strip() == "all":
        return {}
    parts = [part.partition("=") for part in text.split(",")]
    found = {key.strip(): value.strip() for key, _, value in parts}
    wrong = len(found) != len(parts) or not all(found.values()) or not {*found} <= {"by", "weights"}
    if wrong:
        raise Refusal(FORM)
    return found


def write_averages(
    release: Path,
    data: Path | None,
    out: Path,
    inputs: str | None,
    form: Any,
    asked: dict[str, str],
    areas: Path | None,
    coverage: float,
    plot: Path | None,
    json: bool,
) -> None:
    """Average what was published and write a table, or GeoJSON of areas.

    Parameters
    ----------
    release, data, out, areas, plot
        Files; ``data`` may be absent where there are areas.
    inputs, form
        How the table is read.
    asked
        Names of columns, as ``read_average`` gives them.
    coverage, json
        As on the command line.

    """
    from polars import DataFrame

    from privgp.command.io.columns import as_table, kept_columns, question_rows, refuse_questions
    from privgp.command.io.results import picture_lines, write_picture, write_table
    from privgp.models.load import load

    model = open_own(release, load)
    X: Any = None
    more: dict[str, Any] = {}
    if data is not None:
        X = question_rows(model, release, data, inputs, form)
        whole = kept_columns(model._released, data, X.columns, form)
        for name in asked.values():
            if name not in whole.columns:
                raise Refusal(f"'{data}' has no column '{name}', which --average names.")
        more = {use: whole[name] for use, name in asked.items()}
        X = as_table(model._released.names, X)
    with progress(2) as step, refuse_questions():
        step("Averaging")
        if areas is not None:
            found = model.areas(areas, X, weights=more.get("weights"), coverage=coverage)
        else:
            found = model.average(X, coverage=coverage, **more)
        step("Writing")
        if out.suffix == ".geojson":
            with whole_file(out) as part:
                part.write_text(found.to_geojson(), encoding="utf-8")
            columns = [*found.to_frame().columns]
        else:
            frame = DataFrame(dict(found.columns()))
            columns = write_table(frame, out, simulation=model.guarantee_.is_simulation)
        if plot is not None:
            write_picture(found.plot() if areas is not None else model.plot(), plot)
    averages = plural(len(found.labels), "average")
    lines = [
        f"Wrote {averages} into {out}: mean, std, and from low to high intervals of probability "
        f"{coverage:g}."
    ]
    warnings = [PUBLIC.format(out=out)] if data is not None and model.protect == "records" else []
    facts = {
        "averages": out,
        "rows": len(found.labels),
        "columns": columns,
        "output": model.output_,
        "coverage": coverage,
        "plot": plot,
        "warnings": warnings,
    }
    tell(facts, [*lines, *picture_lines(plot)], model.guarantee_, as_json=json)
    if not json:
        warn(warnings)
