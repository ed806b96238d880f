"""A certificate as one printable page without outside resources, for people who decide."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
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

Facts = Mapping[str, Any]
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
img { max-width: 100%; margin-top: 1rem; }
.sign span { display: inline-block; width: 9rem; border-bottom: 1px solid #111; margin: 2rem 1rem 0 0; }
@media print { body { margin: 0; max-width: none; } h2, tr { break-inside: avoid; } }
"""
_STAMP = (
    f'<div class="simulation" role="alert">{SIMULATION.upper()}<br>'
    "The noise was simulated. Nothing is protected.</div>\n"
)


def page(certificate: Facts) -> str:
    """The HTML of a valid certificate; everything in it is escaped."""
    validate(certificate)
    c = certificate
    stamp = _STAMP if c["simulation"] else ""
    name = _text(c["holder"]["name"] or "a published Gaussian process")
    return _document(
        f"Privacy certificate: {name}",
        f"{stamp}<h1>Privacy certificate</h1><p>{name}, {_text(c['date'])}</p>\n"
        f'<p class="promise">{_text(promise_of(c))}</p>\n{sections(c)}\n{stamp}',
    )


def plan_page(facts: Facts, picture: bytes) -> str:
    """A plan for whoever approves it: what would be spent on what, with a line to sign.

    Parameters
    ----------
    facts : mapping
        As ``plan_statement`` gives them.
    picture : bytes
        A PNG of the error against epsilon.

    """
    bounds, outputs = facts["bounds"], facts["outputs"]
    declared = ", ".join(bounds["classes"]) if bounds["classes"] else _ranges(bounds["outputs"])
    columns = {
        "Inputs": "; ".join(facts["columns"]),
        "Bounds of the inputs": _ranges(bounds["inputs"]) if "inputs" in bounds else None,
        "Private outputs": ", ".join(outputs),
        "Classes" if bounds["classes"] else "Bounds of the output": declared,
        "Person identifiers": facts["groups"],
        "Exposure": facts["exposure"],
        "Rows": f"{facts['data']['rows']:,}",
    }
    errors = {
        f"{each['epsilon']:g}{' (this plan)' if each['epsilon'] == facts['epsilon'] else ''}": ", ".join(
            f"{error:.4g}" for error in np.atleast_1d(each["expected_error"])
        )
        for each in facts["expected_errors"]
    }
    parts = {
        "What is protected": {
            "Unit of protection": facts["unit"],
            "Neighbouring datasets": facts["neighbours"],
            "Assumptions": facts["assumptions"],
        },
        "Columns and declared bounds": columns,
        "What a budget buys": {"Epsilon": f"Expected error {facts['error_unit']}", **errors},
    }
    body = "\n".join(f"<h2>{title}</h2>\n{_html(each)}" for title, each in parts.items())
    image = b64encode(picture).decode("ascii")
    lines = "".join(f"<li>{_text(line)}</li>" for line in facts["description"].splitlines())
    return _document(
        "Plan of a private release",
        "<h1>Plan of a private release</h1>"
        f"<p>Hash {_text(facts['hash'])}. Nothing has been spent.</p>\n"
        f'<p class="promise">{_text(_plan_promise(facts))}</p>\n{body}\n'
        f'<img alt="Expected error against epsilon" src="data:image/png;base64,{image}">\n'
        f"<h2>What will be measured</h2>\n<ul>{lines}</ul>\n<h2>Approval</h2>\n"
        "<p>I approve that the plan with the hash above is carried out once.</p>\n"
        '<p class="sign">Name <span></span> Date <span></span> Signature <span></span></p>\n',
    )


def _plan_promise(facts: Facts) -> str:
    budget = f"epsilon = {facts['epsilon']:g} and delta = {facts['delta']:g}"
    return (
        f"A release by this plan spends {budget}, protecting {facts['unit']}. An attacker who knows "
        "everything else and has to tell which of two values is the true one is right with "
        f"probability at most {_up(100.0 * facts['best_guess'], 3)}%; a coin toss is right with 50%."
    )


def _ranges(pairs: Sequence[Sequence[float]]) -> str:
    return ", ".join(f"{low:.12g} to {high:.12g}" for low, high in np.reshape(pairs, (-1, 2)))


def _document(title: str, body: str) -> str:
    """A page without scripts. ``title`` and ``body`` are escaped already."""
    return (
        '<!DOCTYPE html>\n<html lang="en-GB">\n<head>\n<meta charset="utf-8">\n'
        # Even if something slipped through the escaping, it could neither run nor fetch.
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n"
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}</body>\n</html>\n"
    )


def sections(certificate: Facts, level: int = 2) -> str:
    """All but the promise itself, as HTML under headings of this level."""
    return "\n".join(
        f"<h{level}>{_text(title)}</h{level}>\n{_html(content)}"
        for title, content in _sections(certificate).items()
        if content
    )


def _sections(c: Facts) -> dict[str, Any]:
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


def _ledger_line(ledger: Facts | None) -> str | None:
    """Where the holder's ledger has the charge; whoever has the head can hold the ledger to it."""
    if ledger is None:
        return None
    signed = "; signed" if "signature" in ledger else ""
    return f"entry {ledger['entry']} of dataset {ledger['dataset']}; head {ledger['head']}{signed}"


def promise_of(c: Facts) -> str:
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


def _noise(mechanism: Facts) -> str:
    parts = [f"{c!r} times the sensitivity" for c in mechanism["noise_multipliers"]]
    own = ", ".join([*parts, *(f"pure epsilon {e:g}" for e in mechanism["pure_epsilons"])])
    return "; in another batch: ".join([own, *map(_noise, mechanism.get("others", []))])


def _html(value: object) -> str:
    """A table of what has names, a list of texts, or one text; what says nothing is left out."""
    if isinstance(value, Mapping):
        rows = {name: _html(inner) for name, inner in value.items() if _says(inner)}
        inside = (f"<tr><th>{_title(name)}</th><td>{html}</td></tr>" for name, html in rows.items())
        return f"<table>{''.join(inside)}</table>"
    if isinstance(value, list):
        return f"<ul>{''.join(f'<li>{_html(inner)}</li>' for inner in value)}</ul>"
    return _text(value)


def _says(value: object) -> bool:
    """Whether there is anything to print."""
    if isinstance(value, Mapping):
        return any(map(_says, value.values()))
    if isinstance(value, list):
        return any(map(_says, value))
    return value is not None and bool(str(value).strip())


def _title(name: str) -> str:
    words = name.replace("_", " ")
    return _text(words[:1].upper() + words[1:])


def _text(value: object) -> str:
    # Half of a character pair has no place in a page that is to be written as UTF-8.
    return escape(str(value).encode("utf-8", "replace").decode("utf-8"))
