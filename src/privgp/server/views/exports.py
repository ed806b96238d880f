"""A release to take away: its view as CSV and as GeoJSON, and a script that repeats it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import polars as pl
from jinja2 import Environment, PackageLoader, select_autoescape
from markupsafe import Markup
from numpy.typing import ArrayLike

from privgp.release import geojson
from privgp.release.certificate import certificate
from privgp.release.certificate.page import promise_sentence, sections, sentence
from privgp.release.certificate.wording import ROWS_PUBLIC
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
    about = geojson.about_release(release.guarantee, ", ".join(shown["outputs"]), coverage=0.9)
    return geojson.cells(axes[first], axes[second], columns, about)


def script_of(release: Release, output: str, file: str) -> str:
    """Python that makes the view's numbers and a picture out of the published file alone, and says
    how that was made. ``file``: its name."""
    promise, facts = release.guarantee, certificate(release)
    certified = ("epsilon", "delta", "plan_hash", *({"ledger"} & facts.keys()))
    shown = view(release, output)
    held = f"one input varied, the others {shown['held']}" if shown["held"] else "a grid"
    page = templates().get_template("parts/script.txt")
    comments = {
        "promised": _comment(promise.describe().splitlines()),
        "made": _comment(_constructor_lines(release)),
        "planned": _comment(release.facts.plan_summary.splitlines()),
        "points": _comment([f"The points of the page: {held}."]),
    }
    given = {"shown": shown, "file": file, "output": output, "repr": repr, **comments}
    given |= {"certified": {name: facts[name] for name in certified}}
    return f"{page.render(labels=release.parameters.labels() is not None, **given)}\n"


def _present(panel: dict[str, object]) -> list[str]:
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


def _short(value: object) -> str:
    if isinstance(value, np.ndarray):
        return repr(value.tolist()) if value.size <= MOST_SHOWN else f"<array of {value.shape}>"
    return repr(value)


STYLES, SCRIPTS = ("page.css", "view.css"), ("tools.js", "draw.js", "map.js", "view.js")
REACH = 1.645  # standard deviations in half of a 90% interval


@cache
def templates() -> Environment:
    made = Environment(loader=PackageLoader("privgp.server"), autoescape=select_autoescape())
    made.filters |= {"interval": half_interval, "short": short, "code": first_digits}
    return made


def half_interval(plan: Mapping[str, ArrayLike]) -> str:
    """Half of the 90% interval that a plan expects, for every outcome."""
    return ", ".join(f"±{plain(REACH * error)}" for error in np.ravel(plan["expected_error"]))


def plain(value: float) -> str:
    """A number with three digits, without an exponent where people would write none."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if 1e3 <= abs(rounded) < 1e12 else f"{rounded:g}"


def short(value: float) -> str:
    """A budget in few digits."""
    return f"{value:.4g}".replace("e-0", "e-")


def first_digits(text: str) -> str:
    """As much of a long number as tells it from others."""
    return re.sub(r"([0-9a-f]{8})[0-9a-f]{24}", r"\1…", text)


@cache
def static(name: str) -> bytes:
    """A file of ours."""
    return files("privgp.server").joinpath("static", name).read_bytes()


def certificate_context(facts: dict[str, Any], output: str = "output") -> dict[str, object]:
    """What a template tells of a certificate; ``output``: the name of the outcome."""
    private = " and ".join(facts["private"]).replace(f"the output ({output})", "the output")
    private = private.replace("the output", f"the {output}")
    together = ", all rows of one person together" if facts["data"]["people"] else ""
    rows, budget = (
        facts["data"]["rows"],
        f"ε = {short(facts['epsilon'])}, δ = {short(facts['delta'])}",
    )
    size = f"{rows:,} rows, " if ROWS_PUBLIC in facts["public"] else ""
    return {
        "promise": promise_sentence(facts),
        "protected": sentence(private + together),
        "not_protected": facts["not_protected"][0],
        "odds": 100.0 * facts["best_guess"],
        "source": f"{size}{budget}, {facts['date'][:10]}. 90% intervals.",
        "simulation": facts["simulation"],
        "released_at": facts["date"],
        "certificate": Markup(sections(facts, 3)),  # escaped where it is made
    }


def render_release(release: Release, output: str, name: str, unit: str = "") -> str:
    """The HTML of a release. ``output``: its name on the axes; ``name``: its title."""
    styles = [_inside(each, "style") for each in STYLES]
    scripts = [_inside(each, "script") for each in SCRIPTS]
    numbers = json.dumps(view(release, output), allow_nan=False).replace("<", "\\u003c")
    # These scripts and styles alone may be used, and nothing may be fetched.
    policy = (
        f"default-src 'none'; script-src {_hashes(scripts)}; style-src {_hashes(styles)}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    page = templates().get_template("published.html")
    shown = {"name": name, "unit": unit, "policy": policy, "numbers": Markup(numbers)}
    told = certificate_context(certificate(release), output)
    return page.render(styles=styles, scripts=scripts, **shown, **told)


def _inside(name: str, tag: str) -> Markup:
    """A file's text as it stands between two tags."""
    text = static(name).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    if any(word in text.lower() for word in (f"</{tag}", "<!--")):
        raise ValueError(f"{name} cannot stand inside a page.")
    return Markup(text)


def _hashes(texts: list[Markup]) -> str:
    digests = [hashlib.sha256(text.encode("utf-8")).digest() for text in texts]
    return " ".join(f"'sha256-{base64.b64encode(each).decode('ascii')}'" for each in digests)
