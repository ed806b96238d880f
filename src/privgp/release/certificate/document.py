"""The certificate of a release, written from its plan and its guarantee."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import fields
from datetime import datetime
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from privgp.gp.measurement import Functionals
from privgp.plan.inputs.inputs import narrow_kernel
from privgp.plan.part import table_rows, unit_of
from privgp.plan.plan import Plan, output_columns
from privgp.privacy.guarantee import Event
from privgp.release.certificate import wording
from privgp.release.parts import totals, utc
from privgp.storage.codec import fingerprint
from privgp.types import Pair

if TYPE_CHECKING:
    from privgp.privacy.guarantee import Guarantee
    from privgp.release.release import Planned, Release

COVERAGE = 0.9  # that of intervals, unless another is asked for
PACKAGES = ("privgp", "numpy", "scipy", "scikit-learn", "opendp", "dp-accounting")


def certificate(
    released: Any, *, holder: Mapping[str, str] | None = None, date: datetime | None = None
) -> dict[str, Any]:
    """The guarantee of a release as JSON that ``SCHEMA`` describes.

    Parameters
    ----------
    released : Release or fitted model
        What was published.
    holder : mapping, optional
        What only the data holder knows, by the names in ``wording.HOLDER``; the page has a place for what is
        left out.
    date : datetime, optional
        The date of the release, with its time zone; None: that of the fit.

    """
    if not hasattr(released, "parts"):
        check_is_fitted(released)
    release: Release = getattr(released, "_released", released)
    known, written = holder_fields(holder), deepcopy(release.facts.statement(release))
    if date is not None:
        written["date"] = utc(date)
    return {
        **written,
        "holder": known,
        "registry": wording.registry(written, known),
        "nist_sp_800_226": wording.guideline(written, known),
    }


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


def core_of(release: Release, facts: Planned) -> dict[str, object]:
    """The certificate of a release without what the holder adds."""
    plan, promised, asked = facts.plan, release.guarantee, release.parameters
    strategy, unit = plan.strategy, unit_of(plan.parts[0])
    records, people = unit.private_inputs, strategy.people_count
    whose = wording.BY_PERSON if plan.max_change is None else wording.BY_GROUP
    at_targets, names = plan.unbiased is not None, release.names or ()
    learned = asked.hyperparameters == "learned" and not at_targets
    fixed = wording.FIXED_RECORDS if records else wording.FIXED
    epsilons = [0.0, *(promised.epsilon * 2.0 ** (k / 4.0) for k in range(-16, 9))]
    inputs = f"inputs ({', '.join(map(str, names))})" if len(names) else "inputs"
    several, called = release.output_names or (), facts.called
    classes = asked.labels() or []
    output = "the label" if classes else "the output"
    output = f"the outputs ({', '.join(several)})" if several else output
    output = f"{output} ({wording.output_title(called)})" if called else output
    private = f"the {inputs} and {output}" if records else output
    bounds: dict[str, object] = {"outputs": np.array(asked.y_bounds).tolist()}
    bounds["source"] = wording.BOUNDS_SOURCE
    if classes:
        bounds["classes"] = classes
    labels = {name: own.labels() for name, own in zip(several, asked.parts(), strict=False)}
    labels = {name: own for name, own in labels.items() if own is not None}
    if labels:
        bounds["labels"] = labels
    if plan.x_bounds is not None:
        bounds["inputs"] = [list(pair) for pair in plan.x_bounds]
    stated = {
        "certificate": "privgp",
        "version": 1,
        "date": facts.date,
        "simulation": promised.is_simulation,
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
            *wording.list_public(unit, inputs, whose),
            *([] if plan.unit is None else ["the exposure of every row"]),
            wording.declaration_word(classes) + ", kernel, targets and budget",
            "the noisy measurement and all that follows from it",
        ],
        "private": [f"{private} of every row"],
        **({"outputs": list(several)} if several else {}),
        **({"output": called} if called else {}),
        **({} if asked.columns is None else {"inputs": asked.columns.describe()}),
        "bounds": bounds,
        "hyperparameters": {
            "source": facts.chosen_by or (wording.LEARNED if learned else fixed),
            **_each_or_one([_model_facts(one) for one in release.each]),
        },
        "mechanism": {
            "description": promised.mechanism,
            **steps_of(promised.events[0]),
            "sampler": promised.sampler,
            "floating_point": wording.describe_arithmetic(promised, plan.noises),
            **({"others": list(map(steps_of, promised.others))} if promised.others else {}),
        },
        "data": {
            "rows": strategy.rows,
            "people": people,
            "distinct_inputs": strategy.distinct_inputs,
            "measured_numbers": sum(noise.size for noise in plan.noises),
            "released": wording.describe_release(
                len(several), classes, at_targets=at_targets, rates=plan.unit is not None
            ),
            **totals(release.spent),
        },
        "utility": {
            "expected_error": np.asarray(plan.expected_error()).tolist(),
            "unit": plan.error_unit,
            "interval_coverage": COVERAGE,
        },
        "software": dict(_software()),
        "plan_hash": hash_of(release),
        "plan": plan.hash,
        **({} if facts.receipt is None else {"ledger": dict(facts.receipt)}),
        "not_protected": wording.list_limits(
            promised.is_simulation,
            unit.several_rows,
            records,
            len(several),
            plan.max_change,
            classes,
        ),
    }
    return asked.restate(stated)


def plan_statement(
    plan: Plan, promised: Guarantee, errors: Mapping[float, object]
) -> dict[str, object]:
    """What a plan would spend, on what, and for which accuracy: all of it is public.

    Parameters
    ----------
    plan : Plan
        As its file has it.
    promised : Guarantee
        That of a release by this plan.
    errors : mapping
        Expected errors by epsilon; lists of them for several outputs.

    """
    made_for = plan.made_for
    assert made_for is not None
    asked = made_for.parameters
    bounds: dict[str, object] = {"outputs": np.array(asked.y_bounds).tolist()}
    if asked.x_bounds is not None and asked.columns is None:  # kinds state theirs
        bounds["inputs"] = np.array(asked.x_bounds).reshape(-1, 2).tolist()
    kinds, names = asked.columns, list(made_for.names or ())
    stated: dict[str, object] = {
        "hash": plan.hash,
        "spent": False,
        "epsilon": plan.epsilon,
        "delta": plan.promised_delta,
        "delta_offered": plan.delta,
        "best_guess": 0.5 + 0.5 * promised.delta_at(0.0),
        "unit": promised.unit,
        "neighbours": promised.neighbours,
        "assumptions": list(promised.assumptions),
        "mechanism": promised.mechanism,
        "columns": names if kinds is None else kinds.describe(),
        "groups": made_for.groups,
        "exposure": made_for.exposure,
        "weights": made_for.weights,
        "outputs": output_columns(plan),
        "bounds": {**bounds, "classes": asked.labels()},
        "public": [],
        "private": [],
        "not_protected": [],
        "data": {"rows": table_rows(plan.parts[0])},
        "measured": plan.strategy.size,
        "expected_error": np.asarray(plan.expected_error()).tolist(),
        "expected_errors": [{"epsilon": e, "expected_error": error} for e, error in errors.items()],
        "error_unit": plan.error_unit,
        "description": plan.describe(),
    }
    return asked.restate(stated)


def _model_facts(release: Release) -> dict[str, object]:
    """The most plausible model of one output, and how many are averaged."""
    (part,), (answer,), asked = release.parts, release.answers, release.parameters
    kernel, inputs = part.models[0].kernel, asked.columns
    return {
        "kernel": str(kernel if inputs is None else narrow_kernel(inputs, kernel)),
        **({"noise_variance": float(part.noise_variance)} if asked.scatters else {}),
        "models": len(getattr(answer, "components", (answer,))),
    }


def _each_or_one(facts: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """The facts about one output, or lists of them where there are several."""
    if len(facts) == 1:
        return dict(facts[0])
    known = [name for name in facts[0] if all(name in fact for fact in facts)]
    return {name: [fact[name] for fact in facts] for name in known}


def steps_of(event: Event) -> dict[str, object]:
    """What people of one batch spend."""
    return {
        "noise_multipliers": list(event.noise_multipliers),
        "pure_epsilons": list(event.pure_epsilons),
        "delta_slack": event.delta_slack,
    }


def hash_of(release: Release) -> str:
    """The hash of what was measured."""
    budget = release.guarantee.epsilon, release.guarantee.delta
    pairs = zip(release.parameters.parts(), release.parts, strict=True)
    each = [plan_hash(part.functionals, cast(Pair, own.y_bounds), *budget) for own, part in pairs]
    return release.collect(each, fingerprint)


def holder_fields(given: Mapping[str, str] | None) -> dict[str, str]:
    """Every field of the holder's, empty where nothing is given; ValueError for any other."""
    holder = dict(given or {})
    for name, value in holder.items():
        if name not in wording.HOLDER:
            raise ValueError(f"holder has no field {name!r}: use {', '.join(wording.HOLDER)}.")
        if not isinstance(value, str):
            raise ValueError(f"holder's {name} must be a text, got {type(value).__name__}.")
    return {name: holder.get(name, "") for name in wording.HOLDER}


@cache  # slow to look up
def _software() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    versions |= dict.fromkeys(PACKAGES, "not installed as a package")
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions
