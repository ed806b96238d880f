"""A release to take away: its view as CSV and as GeoJSON, and a script that repeats it."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from privgp.release import geojson
from privgp.release.certificate import certificate
from privgp.release.release import Release
from privgp.server.errors import Refused
from privgp.server.views.published import templates
from privgp.server.views.view import COLUMNS, view

NO_PLACES = (
    "GeoJSON needs exactly two inputs, named longitude and latitude or lon and lat, in degrees."
)
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how one begins
MOST_SHOWN = 20  # entries of an array in a comment


def csv_of(release: Release, output: str) -> str:
    """The points of the view with the numbers of every output."""
    shown = view(release, output)
    count = 1 if shown["kind"] != "slices" else len(shown["inputs"])
    frames = []
    for place in range(count):
        panels = shown["panels"][place::count]
        names = _apart([plain_text(name) for name in shown["inputs"]])
        frame = pl.DataFrame(panels[0]["points"], schema=names, orient="row")
        for panel in panels:
            for name in _present(panel):
                title = _free_name(f"{name} of {panel['output']}", frame.columns)
                frame = frame.with_columns(pl.Series(title, panel[name]))
        if shown["simulation"]:
            frame = frame.with_columns(pl.lit(True).alias(_free_name("simulation", frame.columns)))
        frames.append(frame)
    whole = pl.concat(frames)
    texts = pl.col(pl.String).map_elements(plain_text, return_dtype=pl.String)
    return whole.with_columns(texts).write_csv()


def plain_text(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text


def geojson_of(release: Release, output: str) -> str:
    """The map's cells with the numbers of every output; inputs must be longitude and latitude."""
    shown = view(release, output)
    if not shown["places"]:
        raise Refused(422, NO_PLACES)
    first, second = shown["places"]
    axes = [np.array(axis) for axis in shown["axes"]]
    shape, several = [len(axis) for axis in axes], len(shown["panels"]) > 1
    columns = {}
    for panel in shown["panels"]:
        for name in _present(panel):
            values = np.reshape(panel[name], shape)
            title = f"{name} of {panel['output']}" if several else name
            columns[title] = values if first < second else values.T
    promise = release.guarantee
    about = {
        "output": ", ".join(shown["outputs"]),
        "coverage": 0.9,
        "epsilon": promise.epsilon,
        "delta": promise.delta,
        "simulation": promise.is_simulation,
    }
    return geojson.cells(axes[first], axes[second], columns, about)


def script_of(release: Release, output: str, file: str) -> str:
    """Python that makes the view's numbers and a picture out of the published file alone, and says
    how that was made. ``file``: its name."""
    promise, facts = release.guarantee, certificate(release)
    certified = ("epsilon", "delta", "plan_hash", *({"ledger"} & facts.keys()))
    shown = view(release, output)
    held = f"one input varied, the others {shown['held']}" if shown["held"] else "a grid"
    made = (
        templates()
        .get_template("parts/script.txt")
        .render(
            promised=_comment(promise.describe().splitlines()),
            made=_comment(_constructor_lines(release)),
            planned=_comment(release.facts.plan_summary.splitlines()),
            certified={name: facts[name] for name in certified},
            points=_comment([f"The points of the page: {held}."]),
            shown=shown,
            labels=release.parameters.labels() is not None,
            file=file,
            output=output,
            repr=repr,
        )
    )
    return f"{made}\n"


def _present(panel: dict[str, Any]) -> list[str]:
    return [name for name in COLUMNS if name in panel]


def _free_name(name: str, taken: list[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _apart(names: list[str]) -> list[str]:
    made: list[str] = []
    for name in names:
        made.append(_free_name(name, made))
    return made


def _comment(lines: list[str]) -> str:
    texts = ["".join(sign if sign.isprintable() else " " for sign in line) for line in lines]
    return "\n".join(f"# {text}".rstrip() for text in texts)


def _constructor_lines(release: Release) -> list[str]:
    parameters = release.parameters
    given = [f"    {name}={_short(value)}," for name, value in parameters.arguments().items()]
    return [
        f"model = {parameters.estimator}(",
        *given,
        ")",
        "plan = model.plan(X, groups=groups)  # free",
        "model.fit(X, y, groups=groups, plan=plan)  # spends",
    ]


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return repr(value.tolist()) if value.size <= MOST_SHOWN else f"<array of {value.shape}>"
    return repr(value)
