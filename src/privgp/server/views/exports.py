"""A release to take away: its view as CSV and as GeoJSON, and a script that repeats it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from privgp.release.certificate import certificate
from privgp.release.exports import geojson
from privgp.release.release import Release
from privgp.server.errors import Refused
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
    shown, promise, facts = view(release, output), release.guarantee, certificate(release)
    axes = ", ".join(
        f"np.linspace({axis[0]!r}, {axis[-1]!r}, {len(axis)})" for axis in shown["axes"]
    )
    told = {"epsilon": promise.epsilon, "delta": promise.delta, "plan_hash": facts["plan_hash"]}
    if "ledger" in facts:
        told["ledger"] = facts["ledger"]
    lines = [
        '"""Repeats a release from its published file, which must lie beside this script.',
        "",
        "Needs: pip install privgp. Nothing private is read, and nothing is spent.",
        '"""',
        "",
        "import numpy as np",
        "import polars as pl",
        "",
        "import privgp",
        "",
        "# What was promised:",
        *_comment(promise.describe().splitlines()),
        "#",
        "# How it was made, by the custodian of the private table:",
        *_comment(_constructor_lines(release)),
        "#",
        "# What the plan said before anything was spent:",
        *_comment(release.facts.plan_summary.splitlines()),
        "",
        f"FILE, OUTPUT = {file!r}, {output!r}",
        f"CERTIFIED = {told!r}",
        f"INPUTS = {shown['inputs']!r}",
        "",
        "model = privgp.load(FILE)",
        "certificate = model.certificate()",
        "for name, value in CERTIFIED.items():",
        "    assert certificate[name] == value, f'{FILE} is another release: {name} differs.'",
        "",
        "# The points of the page: "
        + (
            "a grid."
            if shown["kind"] != "slices"
            else f"one input varied, the others {shown['held']}."
        ),
        f"axes = [{axes}]",
        *_points(shown),
        "",
        "table = pl.DataFrame(X, schema=INPUTS, orient='row')",
        "asked = X if not hasattr(model, 'feature_names_in_') else table",
        *_question_lines(release),
        "low, high = model.interval(asked, 0.9)",
        "columns = {'low': low, 'high': high, **found}",
        "for name, values in columns.items():",
        "    for place, column in enumerate(np.reshape(values, (len(X), -1)).T):",
        "        table = table.with_columns(pl.Series(f'{name} {place}' if values.ndim > 1 else name, column))",
        "table.write_csv('repeated.csv')",
        "model.plot().savefig('repeated.png')",
        "print(f'{len(X)} points in repeated.csv, a picture in repeated.png.')",
    ]
    return "\n".join(lines) + "\n"


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


def _comment(lines: list[str]) -> Iterator[str]:
    for line in lines:
        text = "".join(sign if sign.isprintable() else " " for sign in line)
        yield f"# {text}".rstrip()


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


def _points(shown: dict[str, Any]) -> list[str]:
    if shown["kind"] != "slices":
        return [
            "X = np.stack([each.ravel() for each in np.meshgrid(*axes, indexing='ij')], axis=1)"
        ]
    return [
        f"X = np.tile(np.array({shown['held_at']!r}), (sum(map(len, axes)), 1))",
        "start = 0",
        "for place, axis in enumerate(axes):",
        "    X[start : start + len(axis), place] = axis",
        "    start += len(axis)",
    ]


def _question_lines(release: Release) -> list[str]:
    if release.parameters.labels() is not None:
        return [
            "print('Classes, in the order of the columns:', [str(each) for each in model.classes_])",
            "found = {'probability': model.predict_proba(asked)}",
        ]
    return [
        "mean, std = model.predict(asked, return_std=True)",
        "found = {'mean': mean, 'std': std}",
    ]
