"""The page of a release as one file: it holds all that it needs and asks nobody for anything."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, select_autoescape
from markupsafe import Markup

from privgp.release.certificate import certificate
from privgp.release.certificate.page import promise_of, sections
from privgp.release.release import Release
from privgp.server.views.view import view

PLOTTING = "plotly.js"


@cache
def templates() -> Environment:
    return Environment(loader=PackageLoader("privgp.server"), autoescape=select_autoescape())


@cache
def static(name: str) -> bytes:
    """Our own files, and the plotting script of the installed plotly."""
    if name == PLOTTING:
        return files("plotly").joinpath("package_data", "plotly.min.js").read_bytes()
    return files("privgp.server").joinpath("static", name).read_bytes()


def certificate_context(facts: dict[str, Any]) -> dict[str, Any]:
    """What a template tells of a certificate."""
    return {
        "promise": promise_of(facts),
        "simulation": facts["simulation"],
        "released_at": facts["date"],
        "certificate": Markup(sections(facts, 3)),  # escaped where it is made
    }


def render_release(release: Release, output: str, name: str) -> str:
    """The HTML of a release. ``output``: its name on the axes; ``name``: what it is called."""
    styles = [_inside("page.css", "style"), _inside("plot.css", "style")]
    scripts = [_inside(PLOTTING, "script"), _inside("view.js", "script")]
    numbers = json.dumps(view(release, output), allow_nan=False).replace("<", "\\u003c")
    # These scripts alone may run, and nothing may be fetched; the plotting script writes styles.
    policy = (
        f"default-src 'none'; script-src {_hashes(scripts)}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    return (
        templates()
        .get_template("published.html")
        .render(
            name=name,
            policy=policy,
            styles=styles,
            scripts=scripts,
            numbers=Markup(numbers),
            **certificate_context(certificate(release)),
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
