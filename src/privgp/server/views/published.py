"""The page of a release as one file: it holds all that it needs and asks nobody for anything."""

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
from jinja2 import Environment, PackageLoader, select_autoescape
from markupsafe import Markup
from numpy.typing import ArrayLike

from privgp.release.certificate import certificate
from privgp.release.certificate.page import promise_sentence, sections
from privgp.release.certificate.wording import ROWS_PUBLIC
from privgp.release.release import Release
from privgp.server.views.view import view

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


def certificate_context(facts: dict[str, Any], output: str = "output") -> dict[str, Any]:
    """What a template tells of a certificate; ``output``: the name of the outcome."""
    private = " and ".join(facts["private"]).replace(f"the output ({output})", "the output")
    private = private.replace("the output", f"the {output}")
    together = ", all rows of one person together" if facts["data"]["people"] else ""
    rows, budget = facts["data"]["rows"], f"ε = {facts['epsilon']:g}, δ = {facts['delta']:g}"
    size = f"{rows:,} rows, " if ROWS_PUBLIC in facts["public"] else ""
    return {
        "promise": promise_sentence(facts),
        "protected": _sentence(private + together),
        "not_protected": facts["not_protected"][0],
        "odds": 100.0 * facts["best_guess"],
        "source": f"{size}{budget}, {facts['date'][:10]}. 90% intervals.",
        "simulation": facts["simulation"],
        "released_at": facts["date"],
        "certificate": Markup(sections(facts, 3)),  # escaped where it is made
    }


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


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
    return (
        templates()
        .get_template("published.html")
        .render(
            name=name,
            unit=unit,
            policy=policy,
            styles=styles,
            scripts=scripts,
            numbers=Markup(numbers),
            **certificate_context(certificate(release), output),
        )
    )


def _inside(name: str, tag: str) -> Markup:
    """A file's text as it stands between two tags."""
    text = static(name).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    if any(word in text.lower() for word in (f"</{tag}", "<!--")):
        raise ValueError(f"{name} cannot stand inside a page.")
    return Markup(text)


def _hashes(texts: list[Markup]) -> str:
    digests = [hashlib.sha256(text.encode("utf-8")).digest() for text in texts]
    return " ".join(f"'sha256-{base64.b64encode(each).decode('ascii')}'" for each in digests)
