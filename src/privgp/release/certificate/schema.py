"""The form of a certificate as a JSON Schema, and a check of it that needs no other package."""

import math
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from privgp.release.certificate.wording import ADDED, HOLDER, SECTORS

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
POSITIVE: Schema = {"type": "number", "exclusiveMinimum": 0}
NOT_NEGATIVE: Schema = {"type": "number", "minimum": 0}
SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
COUNT: Schema = {"type": "integer", "minimum": 1}
COUNT_OR_NULL: Schema = {"type": ["integer", "null"], "minimum": 1}
DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
MOMENT: Schema = {"type": "string", "pattern": f"^{DAY}T[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}Z$"}
HASH: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}


def _list(of: Schema, least: int = 0, most: int | None = None) -> Schema:
    limits = {"minItems": least, "maxItems": most}
    return {"type": "array", "items": of, **{name: n for name, n in limits.items() if n}}


def _or_each(of: Schema, least: int, most: int | None = None) -> Schema:
    """A value, or a list of such values."""
    return {**of, **_list(of, least, most), "type": [of["type"], "array"]}


def _record(*texts: str, absent: Sequence[str] = (), **others: Schema) -> Schema:
    """An object with these texts and other properties, and nothing else. ``absent``: which there need not be."""
    properties = {**dict.fromkeys(texts, TEXT), **others}
    closed = {"type": "object", "additionalProperties": False}
    required = [name for name in properties if name not in absent]
    return {**closed, "required": required, "properties": properties}


def _about(description: str, schema: Schema) -> Schema:
    return {"description": description, **schema}


NUMBERS = _list({"type": "number"}, 2, 2)
BUDGET = _record(epsilon=POSITIVE, delta=SHARE)

# The rules of schemas/deployments-schema.yaml of the registry, for the fields that are filled in.
REGISTRY = _record(
    url_slug={**TEXT, "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"},
    status={**TEXT, "const": "Draft"},
    tier={"type": "integer", "const": 3},
    deployment=_record(
        basic=_record(
            *("name", "intended_use", "data_product_type", "data_product_region", "description"),
            data_curators=_list(TEXT, 1),
            publication_date={**TEXT, "pattern": f"^{DAY}$"},
            data_product_sector={**TEXT, "pattern": f"^({'|'.join(SECTORS)})$"},
            absent=("data_product_sector",),  # other sectors have no name in the registry yet
        ),
        dp_variant=_record("variant_name", "data_domain", "unprotected_quantities"),
        privacy_loss=_record(
            *("privacy_unit", "privacy_unit_details", "privacy_parameters_details"),
            privacy_parameters=BUDGET,
        ),
        deployment_model=_record(
            *("model_name", "model_name_details", "actors", "release_type", "release_type_details"),
            *("data_source_type", "access_type", "access_type_details"),
        ),
        accounting=_record("post_processing", "composition"),
        implementation=_record(
            "preprocessing_and_hyperparameter_tuning", "mechanisms", "justification"
        ),
        administrative=_record("sources", registry_authors=_list(TEXT, 1)),
    ),
)
GUIDELINE = _record(
    *("privacy_unit", "neighbouring_definition", "bounded_or_unbounded", "trust_model"),
    *("threat_model", "composition", "mechanism", "implementation", "utility_and_bias"),
    *("side_channels", "security_and_access_control", "data_collection_exposure"),
    parameters=BUDGET,
)
BOUNDS = _record(
    "source",
    outputs=_about(
        "Values outside are clipped. A pair, or one for each of several outputs.",
        _list(_or_each({"type": "number"}, 2, 2), 1),
    ),
    inputs=_about("Bounds of private inputs, a pair for each.", _list(NUMBERS, 1)),
    classes=_about("All labels that may occur.", _list(TEXT, 2)),
    labels=_about(
        "The classes of outputs that are labels, by the names of the outputs.",
        {"type": "object", "additionalProperties": _list(TEXT, 2)},
    ),
    absent=("inputs", "classes", "labels"),
)
HYPERPARAMETERS = _record(
    "source",
    kernel=_about("The most plausible kernel, or one for each output.", _or_each(TEXT, 2)),
    noise_variance=_or_each(POSITIVE, 2),
    models=_about("How many models are averaged, or how many for each.", _or_each(COUNT, 2)),
    absent=("noise_variance",),  # labels have none
)
MECHANISM = _record(
    *("description", "sampler"),
    noise_multipliers=_about("Noise std over sensitivity, for Gaussian noise.", _list(POSITIVE)),
    pure_epsilons=_about("Epsilon of every step that needs no delta.", _list(POSITIVE)),
    delta_slack=_about("The part of delta that the lattice takes.", SHARE),
    floating_point=_about("Measures against leaks through rounding.", TEXT),
)
STEPS = ("noise_multipliers", "pure_epsilons", "delta_slack")
MECHANISM["properties"]["others"] = _about(
    "What people in other batches spend instead.",
    _list(_record(**{name: MECHANISM["properties"][name] for name in STEPS}), 1),
)
DATA = _record(
    "released",
    rows=COUNT,
    people=_about("How many people, if they were distinguished.", COUNT_OR_NULL),
    distinct_inputs=COUNT_OR_NULL,
    measured_numbers={"type": "integer", "minimum": 0},
)
UTILITY = _record(
    "unit",
    expected_error=_about(
        "Root mean square at the targets, as planned; or one for each output.",
        _or_each(NOT_NEGATIVE, 1),
    ),
    interval_coverage=_about("The probability that 90% intervals are built for.", SHARE),
)
OUTPUT = _record("name", "units", "column", absent=("units", "column"))
CHARGE = {
    "at": _about("When the budget was charged, in UTC.", TEXT),
    "epsilon": _about("The epsilon of the charge.", POSITIVE),
    "delta": _about("The delta of the charge.", SHARE),
    "unit": _about("What the charge protects.", TEXT),
    "neighbours": _about("The datasets that the charge makes hard to distinguish.", TEXT),
    "simulation": {"type": "boolean"},
    "signature": _about("By the ledger's Ed25519 key, of all fields except the three below.", TEXT),
    "total_epsilon": _about("The total budget of the dataset.", POSITIVE),
    "total_delta": _about("The delta of that total.", SHARE),
    "left": _about("The epsilon that was left after the charge.", NOT_NEGATIVE),
}
HEAD = _about("The head of the ledger's chain after the charge.", HASH)
LEDGER = _record("dataset", entry=COUNT, head=HEAD, **CHARGE, absent=tuple(CHARGE))
# Certificates of privgp 0.1 have no plan, those of 0.2 no utility; one output has no list of names.
ABSENT = ("utility", "plan", "outputs", "output", "inputs", "ledger")
SCHEMA: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Certificate of a privgp release",
    **_record(
        certificate={**TEXT, "const": "privgp"},
        version={"type": "integer", "const": 1},
        date=_about("When the budget was spent, in UTC.", MOMENT),
        simulation=_about("True: simulated noise; nobody is protected.", {"type": "boolean"}),
        epsilon=_about("The epsilon that was guaranteed, with delta.", POSITIVE),
        delta=_about("The delta that was guaranteed; 0 where the guarantee is pure.", SHARE),
        curve=_about("Pairs (epsilon, delta) that all hold.", _list(_list(NOT_NEGATIVE, 2, 2), 2)),
        mu=_about("The total of all Gaussian mechanisms; 0: there is none.", NOT_NEGATIVE),
        best_guess=_about("How often the best attack is right.", {**SHARE, "minimum": 0.5}),
        unit=_about("What is protected.", TEXT),
        neighbours=_about("Which datasets the release hides from each other.", TEXT),
        assumptions=_about("What the guarantee takes for granted.", _list(TEXT)),
        public=_about("What is treated as public.", _list(TEXT, 1)),
        private=_about("What is private.", _list(TEXT, 1)),
        outputs=_about("The names of several outputs, in their order.", _list(TEXT, 1)),
        output=_about("What the output is called, and its units.", OUTPUT),
        inputs=_about(
            "What the input columns are, where they are not all numbers.", _list(TEXT, 1)
        ),
        bounds=_about("Bounds and where they came from.", BOUNDS),
        hyperparameters=_about("Hyperparameters and where they came from.", HYPERPARAMETERS),
        mechanism=MECHANISM,
        data=DATA,
        utility=_about("How accurate the release is expected to be.", UTILITY),
        software=_about("Versions used.", {"type": "object", "additionalProperties": TEXT}),
        plan_hash=_about("SHA-256 of what was measured, the bounds and the budget.", HASH),
        plan=_about("SHA-256 of the whole plan, as its .plan file has it.", HASH),
        ledger=_about("The charge in the custodian's ledger.", LEDGER),
        not_protected=_about("Limits of the guarantee, in plain sentences.", _list(TEXT, 1)),
        holder=_record(
            **{name: _about(meaning, TEXT) for name, meaning in HOLDER.items()}, absent=ADDED
        ),
        registry=_about("A draft record for the OpenDP Deployments Registry.", REGISTRY),
        nist_sp_800_226=_about("What NIST SP 800-226 asks of a guarantee.", GUIDELINE),
        absent=ABSENT,
    ),
}
# What is written anew whenever a certificate is made: files have none of it, or that of privgp 0.2.
DERIVED = ("registry", "nist_sp_800_226")
REGISTRY_BEFORE = deepcopy(REGISTRY)
REGISTRY_BEFORE["required"].remove("url_slug")
REGISTRY_BEFORE["properties"]["deployment"]["properties"]["basic"]["properties"] |= {
    "data_curators": _list(_record("data_curator_name", "data_curator_type"), 1),
    "data_product_sector": TEXT,
}
STORED: Schema = {
    **SCHEMA,
    "required": [name for name in SCHEMA["required"] if name not in DERIVED],
    "properties": {**SCHEMA["properties"], "registry": REGISTRY_BEFORE},
}

_TYPES: dict[str, tuple[type, ...]] = {
    **{"object": (dict,), "array": (list,), "string": (str,), "number": (int, float)},
    **{"integer": (int,), "boolean": (bool,), "null": (type(None),)},
}


def validate(document: object) -> None:
    """Raise ValueError, saying where, unless a document has the form of a certificate."""
    _check(document, SCHEMA, "certificate")


def validate_file(document: object) -> None:
    """The same of a certificate in a file, which has nothing that is derived, or that of privgp 0.2."""
    _check(document, STORED, "certificate")


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
        schema.get("minimum", -math.inf) <= value <= schema.get("maximum", math.inf)
        and schema.get("exclusiveMinimum", -math.inf) < value < math.inf
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
