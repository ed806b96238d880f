"""A certificate as a document without outside resources: one page for anyone, then technical details."""

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from privgp.privacy.guarantee import SIMULATION
from privgp.release.certificate.schema import validate
from privgp.release.certificate.wording import (
    BY_GROUP,
    HOLDER,
    ROWS_PUBLIC,
    at_most,
    domain,
    kind_of_promise,
    output_bounds,
    size_of_data,
    utility,
    versions,
)

Facts = Mapping[str, Any]
_STYLE = """
body { font: 11pt/1.5 system-ui, sans-serif; color: #1a1a1a; max-width: 44rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.1rem; margin: 1.6rem 0 .3rem; }
.by { color: #555; margin-top: 0; }
.strength { border-left: 4px solid #0072b2; padding-left: .9rem; font-size: 1.1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid #ddd; }
th { width: 32%; font-weight: 600; }
ul { margin: .2rem 0; padding-left: 1.2rem; }
td { font-variant-numeric: tabular-nums; }
.technical { border-top: 2px solid #1a1a1a; margin-top: 2.5rem; padding-top: .5rem; font-size: .92em; }
.simulation { border: 6px solid #b00020; color: #b00020; padding: 1rem; font-weight: 700; font-size: 1.3rem; text-align: center; }
img { max-width: 100%; margin-top: 1rem; }
.sign span { display: inline-block; width: 9rem; border-bottom: 1px solid #111; margin: 2rem 1rem 0 0; }
@media print { body { margin: 0; max-width: none; } h2, tr { break-inside: avoid; } .technical { break-before: page; } }
"""
_STAMP = (
    f'<div class="simulation" role="alert">{SIMULATION.upper()}<br>'
    "The noise was simulated. Nothing is protected.</div>\n"
)


def page(certificate: Facts) -> str:
    """The HTML of a valid certificate: one page for anyone, then the technical details.

    Everything in it is escaped. Drafts for registries are in the JSON alone.
    """
    validate(certificate)
    c = certificate
    stamp = _STAMP if c["simulation"] else ""
    name = _text(
        c["holder"]["name"] or c.get("output", {}).get("name") or "a published curve or map"
    )
    return _document(
        f"Privacy certificate: {name}",
        f"{stamp}<h1>Privacy certificate: {name}</h1>\n"
        f'<p class="by">{_text(publisher_line(c))}</p>\n{_with_headings(_first_page(c), 2)}\n'
        f'<section class="technical"><h1>Technical details</h1>\n{_with_headings(_sections(c), 2)}</section>\n{stamp}',
    )


def plan_page(facts: Facts, picture: bytes) -> str:
    """A plan as a document for its approver: what would be spent on what, with a line to sign.

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
        f"Private output{'s' if len(outputs) > 1 else ''}": ", ".join(outputs),
        "Classes" if bounds["classes"] else "Bounds of the output": declared,
        "Person identifiers": facts["groups"],
        "Exposure": facts["exposure"],
        "Survey weights": facts["weights"],
        "People" if facts["unit"].startswith("all records") else "Rows": facts["data"]["rows"],
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
        f'<p class="strength">{_text(_plan_promise(facts))}</p>\n{body}\n'
        f'<img alt="Expected error against epsilon" src="data:image/png;base64,{image}">\n'
        f"<h2>What will be measured</h2>\n<ul>{lines}</ul>\n<h2>Approval</h2>\n"
        "<p>I approve that the plan with the hash above is carried out once.</p>\n"
        '<p class="sign">Name <span></span> Date <span></span> Signature <span></span></p>\n',
    )


def _plan_promise(facts: Facts) -> str:
    budget = f"epsilon = {facts['epsilon']:g} and delta = {facts['delta']:g}"
    odds = _odds(facts, "values is the true one")
    return f"A release by this plan spends {budget}, protecting {facts['unit']}. {odds}"


def _odds(facts: Facts, what: str) -> str:
    return (
        f"Somebody who knows everything else and has to tell which of two {what} is right at most "
        f"{at_most(100.0 * facts['best_guess'])}% of the time; a coin toss is right 50% of the time."
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
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )


def _with_headings(parts: Mapping[str, object], level: int) -> str:
    return "\n".join(
        f"<h{level}>{_text(title)}</h{level}>\n{_html(content)}"
        for title, content in parts.items()
        if _says(content)
    )


def sections(certificate: Facts, level: int = 2) -> str:
    """The limits and the technical details, as HTML under headings of this level."""
    first = {key: _first_page(certificate)[key] for key in ("What is not protected", "Budget")}
    return _with_headings({**first, **_sections(certificate)}, level)


def publisher_line(c: Facts) -> str:
    """Who published the release, and when."""
    who, day = c["holder"]["curator"], c["date"][:10]
    return (
        f"Published by {who} on {day}" if who else f"Published on {day}; the publisher is not named"
    )


def _input_names(c: Facts) -> str:
    """The names of the inputs in words; empty where they have none."""
    named = re.compile(r"^the inputs \((.+?)\) (?:of every row$|and the (?:out|lab))")
    found = map(named.search, [*c["private"], *c["public"]])
    return next((match[1] for match in found if match), "")


def _first_page(c: Facts) -> dict[str, object]:
    holder, data, name = c["holder"], c["data"], c.get("output", {}).get("name")
    inputs, shown = _input_names(c) or "the inputs", data["released"]
    if name:
        units = f" (in {c['output']['units']})" if "units" in c["output"] else ""
        shown = f"{shown}: how {name}{units} depends on {and_last(inputs)}"
    unit = c["unit"].replace("output value", f"value of {name}") if name else c["unit"]
    return {
        "What was published": [
            sentence(shown),
            f"It was computed from {data['measured_numbers']} totals with random noise. {sentence(size_of_data(c))}",
            holder["description"],
            holder["intended_use"] and f"Purpose: {holder['intended_use']}",
        ],
        "What is protected": sentence(unit.replace(f"value of {name}s", f"values of {name}")),
        "What is not protected": c["not_protected"],
        "How strong the protection is": Strong(promise_sentence(c)),
        "How accurate it is": utility(c) and sentence(utility(c)),
        "What must be true": [*map(sentence, c["assumptions"])],
        "Budget": _budget(c.get("ledger", {})),
        "How to verify": [
            c.get("plan") and f"If a plan was approved, its hash must be {c['plan']}.",
            "privgp inspect FILE --certificate PAGE computes this page again from the published file, without what the "
            "custodian filled in.",
            c.get("ledger")
            and f"privgp ledger verify --ledger ADDRESS --head {c['ledger']['head']} checks the charge.",
            "signature" in c.get("ledger", {})
            and "The charge is signed; the total budget and the remaining budget are not. privgp ledger verify "
            "--certificate FILE --key KEY checks the signature with a public key.",
            f"Every mechanism has a proof. The tests of privgp {c['software'].get('privgp', 'unknown')} attack "
            "each one, and compare byte by byte what two datasets that differ in one person would publish.",
        ],
        "Contact": {
            HOLDER[key]: holder[key]
            for key in ("accountable", "contact", "dpia", "review_date")
            if holder.get(key)
        },
    }


def and_last(names: str) -> str:
    """Names with "and" before the last one."""
    return " and ".join(names.rsplit(", ", 1))


def sentence(words: str) -> str:
    """Words as a sentence."""
    return f"{words[:1].upper()}{words[1:]}."


def _budget(ledger: Facts) -> object:
    """What may be spent on the same people, and what is left; False without a ledger."""
    return "left" in ledger and (
        f"All releases of dataset {ledger['dataset']} together may spend epsilon = {ledger['total_epsilon']:g} "
        f"and delta = {ledger['total_delta']:g}. After this release (entry {ledger['entry']} of the ledger), "
        f"epsilon = {ledger['left']:g} was left."
    )


class Strong(str):
    """A text that is set apart."""


def _sections(c: Facts) -> dict[str, object]:
    mechanism, hyperparameters, data = c["mechanism"], c["hyperparameters"], c["data"]
    models = int(np.max(hyperparameters["models"]))
    noises = np.atleast_1d(hyperparameters.get("noise_variance", []))
    classes, source = c["bounds"].get("classes"), c["bounds"]["source"]
    return {
        "Private and public": {
            "Private": c["private"],
            "Public": c["public"],
            "Inputs": c.get("inputs"),
            "Unit of privacy": c["unit"],
            "Neighbouring datasets": c["neighbours"],
            "Assumptions": c["assumptions"],
        },
        "Choices": {
            "Bounds of the outputs": None if classes else f"{output_bounds(c)}: {source}",
            "Classes": f"{', '.join(classes)}: {source}" if classes else None,
            "Bounds of the inputs": domain(c) or None,
            "Hyperparameters": hyperparameters["source"],
            "Most plausible kernel": hyperparameters["kernel"],
            "Noise variance": ", ".join(f"{noise:.4g}" for noise in noises) or None,
            "Models averaged": models if models > 1 else None,
        },
        "Mechanism": {
            "Mechanism": mechanism["description"],
            "Noise": _noise(mechanism) or None,
            "Sampler": mechanism["sampler"],
            "Floating point": mechanism["floating_point"],
            "Rows": data["rows"] if ROWS_PUBLIC in c["public"] else None,
            "Groups" if BY_GROUP in c["public"] else "People": data["people"],
            "Numbers measured": data["measured_numbers"],
            "Released": data["released"],
            "Software": versions(c),
            "Time of the release": c["date"],
            "Hash of the plan": c.get("plan"),
            "Hash of what was measured": c["plan_hash"],
        },
        "Delta at every epsilon": {
            "All of these hold at once": kind_of_promise(c),
            "Epsilon": "Delta",
            **{at_most(epsilon, 5): at_most(delta, 5) for epsilon, delta in c["curve"]},
        },
        "From the custodian": {HOLDER[key]: text for key, text in c["holder"].items() if text},
    }


def promise_sentence(c: Facts) -> str:
    """How strong the protection is, in two or three sentences."""
    delta = repr(c["delta"]) if c["delta"] else "0 (pure)"
    budget = f"differentially private with epsilon = {c['epsilon']!r} and delta = {delta}"
    if c["simulation"]:
        return f"With real noise the release would be {budget}."
    what = "labels" if "classes" in c["bounds"] else "values"
    named = c.get("output", {}).get("name")
    of = f"of {named}" if named else "of one person"
    odds = _odds(c, f"{what} {of} is the true one")
    return f"{odds} In technical terms, the release is {budget}, protecting {c['unit']}."


def _noise(mechanism: Facts) -> str:
    parts = [f"{c!r} times the sensitivity" for c in mechanism["noise_multipliers"]]
    own = ", ".join([*parts, *(f"pure epsilon {e:g}" for e in mechanism["pure_epsilons"])])
    return "; in another batch: ".join([own, *map(_noise, mechanism.get("others", []))])


def _html(value: object) -> str:
    """A table of what has names, a list of texts, or one text; what is empty is left out."""
    if isinstance(value, Strong):
        return f'<p class="strength">{_text(value)}</p>'
    if isinstance(value, Mapping):
        rows = {name: _html(inner) for name, inner in value.items() if _says(inner)}
        inside = (f"<tr><th>{_title(name)}</th><td>{html}</td></tr>" for name, html in rows.items())
        return f"<table>{''.join(inside)}</table>"
    if isinstance(value, list):
        said = (f"<li>{_html(inner)}</li>" for inner in value if _says(inner))
        return f"<ul>{''.join(said)}</ul>"
    return _text(value)


def _says(value: object) -> bool:
    """Whether there is anything to print."""
    if value is False:
        return False
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
