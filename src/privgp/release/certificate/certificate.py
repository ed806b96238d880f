"""A certificate of what was promised, for machines (JSON), registries and review boards (a page)."""

from __future__ import annotations

import copy
import hashlib
import json
import platform
import re
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from importlib import metadata, resources
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from privgp.gp.functionals import Functionals
from privgp.gp.posterior import Posterior
from privgp.plan.bins.records import RecordsPlan
from privgp.plan.streamed.columns import StreamedSums
from privgp.release.at_targets import AtTargets
from privgp.release.certificate.page import page
from privgp.release.certificate.statements import (
    BOUNDS_SOURCE,
    FIXED,
    FIXED_RECORDS,
    HOLDER,
    LEARNED,
    floating_point,
    guideline,
    not_protected,
    registry,
)

__all__ = ["certificate", "page", "plan_hash", "validate"]

PACKAGES = ("privgp", "numpy", "scipy", "scikit-learn", "opendp", "dp-accounting")
STATEMENTS = ("holder", "registry", "nist_sp_800_226")


def certificate(
    model: Any,
    *,
    holder: Mapping[str, str] | None = None,
    date: datetime | None = None,
) -> dict[str, Any]:
    """What a fitted or loaded model promises, as JSON that ``certificate.schema.json`` describes.

    ``holder``: what only the data holder knows, by the names in ``privgp.release.certificate.statements.HOLDER``
    (name, curator, intended_use, justification, ...); the page asks for what is left out.
    ``date``: of the release, with its time zone; when the model was fitted unless given.
    """
    check_is_fitted(model)
    known = _holder(holder)
    loaded = vars(model).get("loaded_")
    core = _core(model) if loaded is None else copy.deepcopy(loaded.certificate)
    if date is not None:
        core["date"] = utc(date)
    for name in STATEMENTS:
        core.pop(name, None)
    statements = (known, registry(core, known), guideline(core, known))
    return {**core, **dict(zip(STATEMENTS, statements, strict=True))}


def utc(date: datetime) -> str:
    """A moment as text, in UTC to the second."""
    if date.tzinfo is None:
        raise ValueError("date must have a time zone.")
    return date.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def plan_hash(
    functionals: Functionals, y_bounds: tuple[float, float], epsilon: float, delta: float
) -> str:
    """SHA-256 of the public plan: what is measured, between which bounds, at which budget."""
    digest = hashlib.sha256(b"privgp plan 1")
    for field in fields(functionals):
        if getattr(functionals, field.name) is None:
            continue
        values = np.array(getattr(functionals, field.name), dtype="<f8", order="C")
        digest.update(f"{field.name} {values.shape}".encode())
        digest.update(values.tobytes())
    digest.update(np.array([*y_bounds, epsilon, delta], dtype="<f8").tobytes())
    return digest.hexdigest()


def validate(document: Any) -> None:
    """Raise ValueError, saying where, unless a document has the form of a certificate."""
    _check(document, _schema(), "certificate")


def _core(model: Any) -> dict[str, Any]:
    plan, promised = model.plan_, model.guarantee_
    records = isinstance(plan, RecordsPlan)
    streamed = isinstance(plan.strategy, StreamedSums)
    simulation = promised.is_simulation
    people = None if records else plan.strategy.people
    released = model.release_
    averaged = len(released.components) if isinstance(released, Posterior) else 1
    unbiased = isinstance(released, AtTargets)
    learned = model.hyperparameters == "learned" and not unbiased
    epsilons = [0.0, *(promised.epsilon * 2.0 ** (k / 4.0) for k in range(-16, 9))]
    names = getattr(model, "feature_names_in_", None)
    inputs = "inputs" if names is None else f"inputs ({', '.join(map(str, names))})"
    identifiers = [] if people is None else ["which rows belong to one person"]
    return {
        "certificate": "privgp",
        "version": 1,
        "date": model.released_at_,
        "simulation": simulation,
        "epsilon": promised.epsilon,
        "delta": promised.delta,
        "curve": [[epsilon, promised.delta_at(epsilon)] for epsilon in epsilons],
        "mu": promised.mu,
        # Total variation is delta at epsilon 0; guessing between two worlds gains half of it.
        "best_guess": 0.5 + 0.5 * promised.delta_at(0.0),
        "unit": promised.unit,
        "neighbours": promised.neighbours,
        "assumptions": list(promised.assumptions),
        "public": [
            *([] if records else [f"the {inputs} of every row"]),
            "the number of rows",
            *identifiers,
            "bounds, kernel, targets and budget",
            "the noisy measurement and all that follows from it",
        ],
        "private": [f"the {inputs} and the output of every row"]
        if records
        else ["the output of every row"],
        "bounds": {
            "outputs": list(plan.y_bounds),
            **({"inputs": [list(pair) for pair in plan.x_bounds]} if records else {}),
            "source": BOUNDS_SOURCE,
        },
        "hyperparameters": {
            "source": vars(model).get("chosen_by_")
            or (LEARNED if learned else FIXED_RECORDS if records else FIXED),
            "kernel": str(model.kernel_),
            "noise_variance": float(model.noise_variance_),
            "models": averaged,
        },
        "mechanism": {
            "description": promised.mechanism,
            "noise_multipliers": list(promised.noise_multipliers),
            "pure_epsilons": list(promised.pure_epsilons),
            "delta_slack": promised.delta_slack,
            "sampler": promised.sampler,
            "floating_point": floating_point(
                simulation=simulation,
                exponent=plan.noise.exponent,
                std=plan.noise.std,
                pure=plan.is_pure,
            ),
        },
        "data": {
            "rows": plan.strategy.rows,
            "people": None if people is None else int(people.max()) + 1,
            "distinct_inputs": None if records or streamed else len(plan.inputs),
            "measured_numbers": int(plan.strategy.size),
            "released": "values at the targets" if unbiased else "a function of the inputs",
        },
        "software": _software(),
        "plan_hash": plan_hash(model.functionals_, plan.y_bounds, promised.epsilon, promised.delta),
        "not_protected": not_protected(
            simulation=simulation, people=people is not None, records=records
        ),
    }


def _holder(given: Mapping[str, str] | None) -> dict[str, str]:
    holder = dict(given or {})
    for name, value in holder.items():
        if name not in HOLDER:
            raise ValueError(f"holder has no field {name!r}: use {', '.join(HOLDER)}.")
        if not isinstance(value, str):
            raise ValueError(f"holder's {name} must be a text, got {type(value).__name__}.")
    return {name: holder.get(name, "") for name in HOLDER}


def _software() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed as a package"
    return versions


@cache
def _schema() -> dict[str, Any]:
    text = resources.files("privgp.release").joinpath("certificate.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}


def _check(value: Any, schema: Mapping[str, Any], where: str) -> None:
    """The few keywords of JSON Schema that ours uses; jsonschema itself is for the tests."""
    kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    fits = any(isinstance(value, _TYPES[kind]) for kind in kinds)
    if not fits or (isinstance(value, bool) and "boolean" not in kinds):
        raise ValueError(f"{where} is not of type {' or '.join(kinds)}.")
    if "const" in schema and value != schema["const"]:
        raise ValueError(f"{where} is not {schema['const']!r}.")
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        raise ValueError(f"{where} is not of the form {schema['pattern']}.")
    if isinstance(value, int | float) and not (
        schema.get("minimum", -np.inf) <= value <= schema.get("maximum", np.inf)
        and schema.get("exclusiveMinimum", -np.inf) < value < np.inf
    ):
        raise ValueError(f"{where} is out of range.")
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            raise ValueError(f"{where} is of a wrong length.")
        for place, item in enumerate(value):
            _check(item, schema["items"], f"{where}[{place}]")
    if isinstance(value, dict):
        known = schema.get("properties", {})
        if missing := [name for name in schema.get("required", ()) if name not in value]:
            raise ValueError(f"{where} lacks {missing[0]}.")
        for name, item in value.items():
            inner = known.get(name, schema.get("additionalProperties", False))
            if not inner:
                raise ValueError(f"{where} has a field that is not known.")
            _check(item, inner, f"{where}.{name}")
