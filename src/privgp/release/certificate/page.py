"""A certificate as one printable page without outside resources, for people who decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING, Context
from html import escape
from typing import Any

from privgp.privacy.guarantee import SIMULATION
from privgp.release.certificate.statements import HOLDER, kind_of_promise

BLANK = "to be filled in by the data holder"

_STYLE = """
body { font: 11pt/1.45 Georgia, serif; color: #111; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; }
h2 { font-size: 1.15rem; margin: 1.8rem 0 .4rem; border-bottom: 1px solid #999; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid #ddd; }
th { width: 32%; font-weight: 600; }
td { overflow-wrap: anywhere; }
.simulation { border: 6px solid #b00020; color: #b00020; padding: 1rem; font-weight: 700; font-size: 1.3rem; text-align: center; }
.promise { font-size: 1.15rem; }
.blank { color: #777; font-style: italic; }
.curve td, .curve th { width: 50%; font-variant-numeric: tabular-nums; }
@media print { body { margin: 0; max-width: none; } h2, tr { break-inside: avoid; } }
"""


def page(certificate: Mapping[str, Any]) -> str:
    """The HTML of a valid certificate; everything in it is escaped."""
    # Only when called: the schema lives with the certificate, which offers this function.
    from privgp.release.certificate.certificate import validate

    validate(certificate)
    c = certificate
    mechanism, hyper, data = c["mechanism"], c["hyperparameters"], c["data"]
    low, high = c["bounds"]["outputs"]
    domain = " x ".join(f"[{a:g}, {b:g}]" for a, b in c["bounds"].get("inputs", ()))
    people = "not told apart" if data["people"] is None else data["people"]
    name = c["holder"]["name"] or "a published Gaussian process"
    body = [
        _simulation(c["simulation"]),
        f"<h1>Privacy certificate</h1><p>{_text(name)}, {_text(c['date'])}</p>",
        f'<p class="promise">{_promise(c)}</p>',
        _section("What is not protected", _list(c["not_protected"])),
        _section(
            "What is private and what is public",
            _table(
                {
                    "Private": _list(c["private"]),
                    "Public": _list(c["public"]),
                    "Unit of privacy": _text(c["unit"]),
                    "Neighbouring datasets": _text(c["neighbours"]),
                    "Assumptions": _list(c["assumptions"]),
                }
            ),
        ),
        _section(
            "What was chosen, and from what",
            _table(
                {
                    "Bounds of the outputs": _text(f"{low:g} to {high:g}: {c['bounds']['source']}"),
                    **({"Bounds of the inputs": _text(domain)} if domain else {}),
                    "Hyperparameters": _text(hyper["source"]),
                    "Most plausible kernel": _text(hyper["kernel"]),
                    "Noise variance": _text(f"{hyper['noise_variance']:.4g}"),
                    "Models averaged": _text(hyper["models"]),
                }
            ),
        ),
        _section(
            "How it was done",
            _table(
                {
                    "Mechanism": _text(mechanism["description"]),
                    "Noise": _text(_noise(mechanism)),
                    "Sampler": _text(mechanism["sampler"]),
                    "Floating point": _text(mechanism["floating_point"]),
                    "Rows; people": _text(f"{data['rows']}; {people}"),
                    "Numbers measured": _text(data["measured_numbers"]),
                    "Released": _text(data["released"]),
                    "Software": _text(", ".join(f"{k} {v}" for k, v in c["software"].items())),
                    "Hash of the plan": _text(c["plan_hash"]),
                }
            ),
        ),
        _section("The whole promise", _curve(c)),
        _section(
            "From the data holder",
            _table({_capital(HOLDER[key]): _filled(value) for key, value in c["holder"].items()}),
        ),
        _section("Statement in the terms of NIST SP 800-226", _nested(c["nist_sp_800_226"])),
        _section(
            "Draft record for the OpenDP Deployments Registry", _nested(c["registry"]["deployment"])
        ),
        _simulation(c["simulation"]),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en-GB">\n<head>\n<meta charset="utf-8">\n'
        # Even if something slipped through the escaping, it could neither run nor fetch.
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>Privacy certificate: {_text(name)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        "<body>\n" + "\n".join(part for part in body if part) + "\n</body>\n</html>\n"
    )


def _promise(c: Mapping[str, Any]) -> str:
    if c["simulation"]:
        return f"With real noise the release would be {_budget(c)}."
    return (
        f"The release is {_budget(c)}, protecting {_text(c['unit'])}. Somebody who knows everything "
        "but that, and has to tell which of two values is the true one, is right with probability "
        f"at most {_up(100.0 * c['best_guess'], 3)}%, where tossing a coin is right with 50%."
    )


def _up(value: float, digits: int) -> str:
    """A bound with a few digits, rounded up so that it still holds."""
    context = Context(prec=digits, rounding=ROUND_CEILING)
    return f"{float(context.create_decimal(value)):.{digits}g}"


def _budget(c: Mapping[str, Any]) -> str:
    told = f"differentially private with epsilon = {c['epsilon']!r} and delta = "
    return _text(told + (repr(c["delta"]) if c["delta"] else "0: the promise is pure"))


def _simulation(is_one: bool) -> str:
    return (
        f'<div class="simulation" role="alert">{SIMULATION.upper()}<br>'
        "The noise was simulated. Nothing is protected.</div>"
        if is_one
        else ""
    )


def _noise(mechanism: Mapping[str, Any]) -> str:
    parts = [f"{c!r} times the sensitivity" for c in mechanism["noise_multipliers"]]
    return ", ".join([*parts, *(f"pure epsilon {e:g}" for e in mechanism["pure_epsilons"])])


def _curve(c: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<tr><td>{_up(epsilon, 5)}</td><td>{_up(delta, 5)}</td></tr>"
        for epsilon, delta in c["curve"]
    )
    return (
        f"<p>All of these hold at once ({_text(kind_of_promise(c))}).</p>"
        f'<table class="curve"><tr><th>epsilon</th><th>delta</th></tr>{rows}</table>'
    )


def _section(title: str, content: str) -> str:
    return f"<h2>{_text(title)}</h2>\n{content}"


def _list(sentences: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{_text(sentence)}</li>" for sentence in sentences) + "</ul>"


def _table(rows: Mapping[str, str]) -> str:
    """Rows of a name, which is escaped here, and content, which must be already."""
    inner = "".join(
        f"<tr><th>{_text(name)}</th><td>{html}</td></tr>" for name, html in rows.items()
    )
    return f"<table>{inner}</table>"


def _nested(value: Any) -> str:
    if isinstance(value, Mapping):
        return _table({_capital(name): _nested(inner) for name, inner in value.items()})
    if isinstance(value, list):
        return "".join(_nested(inner) for inner in value)
    return _filled(value) if isinstance(value, str) else _text(repr(value))


def _filled(value: str) -> str:
    return _text(value) if value.strip() else f'<span class="blank">{BLANK}</span>'


def _capital(name: str) -> str:
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:]


def _text(value: Any) -> str:
    # Half of a character pair has no place in a page that is to be written as UTF-8.
    return escape(str(value).encode("utf-8", "replace").decode("utf-8"))
