"""A certificate as one printable page without outside resources, for people who decide."""

from collections.abc import Mapping
from decimal import ROUND_CEILING, Context
from html import escape
from typing import Any

import numpy as np

from privgp.privacy.guarantee import SIMULATION
from privgp.release.certificate.schema import validate
from privgp.release.certificate.wording import (
    BY_GROUP,
    HOLDER,
    ROWS_PUBLIC,
    domain,
    kind_of_promise,
    output_bounds,
    utility,
    versions,
)

_STYLE = """
body { font: 11pt/1.45 Georgia, serif; color: #111; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; }
h2 { font-size: 1.15rem; margin: 1.8rem 0 .4rem; border-bottom: 1px solid #999; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid #ddd; }
th { width: 32%; font-weight: 600; }
td > ul { margin: 0; padding-left: 1.1rem; }
td { overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
.simulation { border: 6px solid #b00020; color: #b00020; padding: 1rem; font-weight: 700; font-size: 1.3rem; text-align: center; }
.promise { font-size: 1.15rem; }
@media print { body { margin: 0; max-width: none; } h2, tr { break-inside: avoid; } }
"""
_STAMP = (
    f'<div class="simulation" role="alert">{SIMULATION.upper()}<br>'
    "The noise was simulated. Nothing is protected.</div>\n"
)


def page(certificate: Mapping[str, Any]) -> str:
    """The HTML of a valid certificate; everything in it is escaped."""
    validate(certificate)
    c = certificate
    stamp = _STAMP if c["simulation"] else ""
    name = _text(c["holder"]["name"] or "a published Gaussian process")
    return (
        '<!DOCTYPE html>\n<html lang="en-GB">\n<head>\n<meta charset="utf-8">\n'
        # Even if something slipped through the escaping, it could neither run nor fetch.
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>Privacy certificate: {name}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{stamp}<h1>Privacy certificate</h1><p>{name}, {_text(c['date'])}</p>\n"
        f'<p class="promise">{_text(promise_of(c))}</p>\n{sections(c)}\n{stamp}</body>\n</html>\n'
    )


def sections(certificate: Mapping[str, Any], level: int = 2) -> str:
    """All but the promise itself, as HTML under headings of this level."""
    return "\n".join(
        f"<h{level}>{_text(title)}</h{level}>\n{_html(content)}"
        for title, content in _sections(certificate).items()
        if content
    )


def _sections(c: Mapping[str, Any]) -> dict[str, Any]:
    mechanism, hyperparameters, data = c["mechanism"], c["hyperparameters"], c["data"]
    models = int(np.max(hyperparameters["models"]))
    noises = np.atleast_1d(hyperparameters.get("noise_variance", []))
    classes, source = c["bounds"].get("classes"), c["bounds"]["source"]
    return {
        "What is not protected": c["not_protected"],
        "What is private and what is public": {
            "Private": c["private"],
            "Public": c["public"],
            "Inputs": c.get("inputs"),
            "Unit of privacy": c["unit"],
            "Neighbouring datasets": c["neighbours"],
            "Assumptions": c["assumptions"],
        },
        "What was chosen, and how": {
            "Bounds of the outputs": None if classes else f"{output_bounds(c)}: {source}",
            "Classes": f"{', '.join(classes)}: {source}" if classes else None,
            "Bounds of the inputs": domain(c) or None,
            "Hyperparameters": hyperparameters["source"],
            "Most plausible kernel": hyperparameters["kernel"],
            "Noise variance": ", ".join(f"{noise:.4g}" for noise in noises) or None,
            "Models averaged": models if models > 1 else None,
        },
        "How it was done": {
            "Mechanism": mechanism["description"],
            "Noise": _noise(mechanism) or None,
            "Sampler": mechanism["sampler"],
            "Floating point": mechanism["floating_point"],
            "Rows": data["rows"] if ROWS_PUBLIC in c["public"] else None,
            "Groups" if BY_GROUP in c["public"] else "People": data["people"],
            "Numbers measured": data["measured_numbers"],
            "Accuracy": utility(c) or None,
            "Released": data["released"],
            "Software": versions(c),
            "Hash of the plan": c.get("plan"),
            "Hash of what was measured": c["plan_hash"],
            "Charged in the ledger": _ledger_line(c.get("ledger")),
        },
        "The promise at every epsilon": {
            "All of these hold at once": kind_of_promise(c),
            "Epsilon": "Delta",
            **{_up(epsilon, 5): _up(delta, 5) for epsilon, delta in c["curve"]},
        },
        "From the data holder": {HOLDER[key]: text for key, text in c["holder"].items() if text},
        "Statement in the terms of NIST SP 800-226": c["nist_sp_800_226"],
        "Draft record for the OpenDP Deployments Registry": c["registry"]["deployment"],
    }


def _ledger_line(ledger: Mapping[str, Any] | None) -> str | None:
    """Where the holder's ledger has the charge; whoever has the head can hold the ledger to it."""
    if ledger is None:
        return None
    signed = "; signed" if "signature" in ledger else ""
    return f"entry {ledger['entry']} of dataset {ledger['dataset']}; head {ledger['head']}{signed}"


def promise_of(c: Mapping[str, Any]) -> str:
    """The promise as a text of two sentences."""
    delta = repr(c["delta"]) if c["delta"] else "0: the promise is pure"
    budget = f"differentially private with epsilon = {c['epsilon']!r} and delta = {delta}"
    if c["simulation"]:
        return f"With real noise the release would be {budget}."
    return (
        f"The release is {budget}, protecting {c['unit']}. An attacker who knows everything else and "
        "has to tell which of two values is the true one is right with probability at most "
        f"{_up(100.0 * c['best_guess'], 3)}%; a coin toss is right with 50%."
    )


def _up(value: float, digits: int) -> str:
    """A bound with a few digits, rounded up so that it still holds."""
    context = Context(prec=digits, rounding=ROUND_CEILING)
    return f"{float(context.create_decimal(value)):.{digits}g}"


def _noise(mechanism: Mapping[str, Any]) -> str:
    parts = [f"{c!r} times the sensitivity" for c in mechanism["noise_multipliers"]]
    own = ", ".join([*parts, *(f"pure epsilon {e:g}" for e in mechanism["pure_epsilons"])])
    return "; in another batch: ".join([own, *map(_noise, mechanism.get("others", []))])


def _html(value: Any) -> str:
    """A table of what has names, a list of texts, or one text; what says nothing is left out."""
    if isinstance(value, Mapping):
        rows = {name: _html(inner) for name, inner in value.items() if _says(inner)}
        inside = (f"<tr><th>{_title(name)}</th><td>{html}</td></tr>" for name, html in rows.items())
        return f"<table>{''.join(inside)}</table>"
    if isinstance(value, list):
        return f"<ul>{''.join(f'<li>{_html(inner)}</li>' for inner in value)}</ul>"
    return _text(value)


def _says(value: Any) -> bool:
    """Whether there is anything to print."""
    if isinstance(value, Mapping):
        return any(map(_says, value.values()))
    if isinstance(value, list):
        return any(map(_says, value))
    return value is not None and bool(str(value).strip())


def _title(name: str) -> str:
    words = name.replace("_", " ")
    return _text(words[:1].upper() + words[1:])


def _text(value: Any) -> str:
    # Half of a character pair has no place in a page that is to be written as UTF-8.
    return escape(str(value).encode("utf-8", "replace").decode("utf-8"))
