"""The draft for the OpenDP Deployments Registry keeps the rules of the registry's schema.

``RULES`` are those of its main branch in July 2026, for the fields that a draft may have.
"""

from __future__ import annotations

import copy

import jsonschema
import numpy as np
import polars as pl
import pytest

from privgp import Label, Number, PrivateGP, PrivateGPClassifier, PrivateGPRegressor, load
from privgp.release.certificate import certificate, page
from privgp.release.certificate.wording import HOLDER, slug
from tests.release.test_old_files import FOLDER, FORMAT_2

TEXT = {"type": "string"}
NUMBER = {"type": "number"}


def one_of(*values):
    return {"enum": list(values)}


def fields(required=(), **known):
    """An object with these fields and no others."""
    closed = {"type": "object", "additionalProperties": False}
    return {**closed, "required": list(required), "properties": known}


def texts(*names):
    return dict.fromkeys(names, TEXT)


BASIC = fields(
    required=(
        "name",
        "data_curators",
        "description",
        "intended_use",
        "data_product_type",
        "data_product_region",
        "publication_date",
    ),
    **texts("name", "description", "intended_use", "data_product_region"),
    data_curators={"type": "array", "items": TEXT, "minItems": 1},
    data_product_type=one_of(
        "Summary statistics",
        "Machine learning model",
        "Dataset",
        "Synthetic data",
        "Interactive API",
        "SQL queries",
    ),
    data_product_sector=one_of(
        "Technology", "Healthcare", "Education", "Government", "Energy", "Finance"
    ),
    publication_date={**TEXT, "format": "date"},
)
RULES = fields(
    required=("url_slug", "status", "tier", "deployment"),
    url_slug={**TEXT, "pattern": "^[a-z0-9-]+$"},
    status=one_of(
        "Converted",
        "Draft",
        "Pending",
        "Changes Required",
        "Approved",
        "Approved (Update Requested)",
        "Approved (Pending)",
    ),
    tier=one_of(1, 2, 3),
    deployment=fields(
        required=("basic",),
        basic=BASIC,
        dp_variant=fields(
            variant_name=one_of(
                "Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"
            ),
            **texts("data_domain", "unprotected_quantities"),
        ),
        privacy_loss=fields(
            **texts("privacy_unit", "privacy_unit_details", "privacy_parameters_details"),
            privacy_parameters=fields(epsilon=NUMBER, delta=NUMBER, rho=NUMBER),
        ),
        deployment_model=fields(
            model_name=one_of("Local", "Central", "Shuffle", "Federated", "Varies"),
            release_type=one_of("One release", "Many releases"),
            data_source_type=one_of("Static", "Dynamic"),
            access_type=one_of("Interactive", "Non-interactive"),
            **texts("model_name_details", "actors", "release_type_details", "access_type_details"),
        ),
        accounting=fields(**texts("post_processing", "composition")),
        implementation=fields(
            **texts("preprocessing_and_hyperparameter_tuning", "mechanisms", "justification")
        ),
        administrative=fields(
            sources=TEXT, registry_authors={"type": "array", "items": TEXT, "minItems": 1}
        ),
    ),
)
CHECK = jsonschema.Draft7Validator(RULES, format_checker=jsonschema.Draft7Validator.FORMAT_CHECKER)

X = np.random.default_rng(0).uniform(0, 10, size=(24, 1))
Y = np.sin(X[:, 0])
PEOPLE = np.arange(24) // 3
FIXED = {"hyperparameters": "fixed", "random_state": 0}
KINDS = {
    "outputs": lambda: PrivateGPRegressor(y_bounds=(-2, 2), **FIXED).fit(X, Y),
    "people": lambda: PrivateGPRegressor(y_bounds=(-2, 2), **FIXED).fit(X, Y, groups=PEOPLE),
    "gaussian": lambda: PrivateGPRegressor(y_bounds=(-2, 2), mechanism="gaussian", **FIXED).fit(
        X, Y
    ),
    "records": lambda: PrivateGPRegressor(
        y_bounds=(-2, 2), protect="records", x_bounds=(0, 10), **FIXED
    ).fit(X, Y),
    "records of people": lambda: PrivateGPRegressor(
        y_bounds=(-2, 2), protect="records", x_bounds=(0, 10), **FIXED
    ).fit(X, Y, groups=PEOPLE),
    "several": lambda: PrivateGPRegressor(y_bounds=[(-2, 2), (-1, 1)], **FIXED).fit(
        X, np.column_stack([Y, Y / 2])
    ),
    "counts": lambda: PrivateGPRegressor(
        y_bounds=(0, 9), likelihood="poisson", max_change=1, **FIXED
    ).fit(X, np.round(4 + 3 * Y), exposure=np.ones(24)),
    "mixed": lambda: PrivateGP(
        {"cost": Number(-2, 2), "kind": Label("no", "yes")}, epsilon=3.0, **FIXED
    ).fit(pl.DataFrame({"x": X[:, 0], "cost": Y, "kind": np.where(Y > 0, "yes", "no")})),
    "one of several": lambda: PrivateGP({"cost": Number(-2, 2)}, epsilon=3.0, **FIXED).fit(
        pl.DataFrame({"x": X[:, 0], "cost": Y})
    ),
    "labels": lambda: PrivateGPClassifier(classes=["no", "yes"], **FIXED).fit(
        X, np.where(Y > 0, "yes", "no")
    ),
}


@pytest.fixture(scope="module")
def facts():
    return {name: certificate(fit()) for name, fit in KINDS.items()}


def problems(record):
    return [f"{'.'.join(map(str, e.path))}: {e.message}" for e in CHECK.iter_errors(record)]


@pytest.mark.parametrize("name", KINDS)
def test_a_draft_keeps_the_rules_of_the_registry(name, facts):
    assert problems(facts[name]["registry"]) == []


def test_a_draft_with_all_that_the_holder_knows_keeps_them_too():
    model = KINDS["outputs"]()
    for sector, told in (("healthcare", "Healthcare"), ("Sea & coast", None)):
        holder = {**{name: f"My <{name}>, ©" for name in HOLDER}, "sector": sector}
        draft = certificate(model, holder=holder)["registry"]
        assert problems(draft) == []
        assert draft["deployment"]["basic"].get("data_product_sector") == told


@pytest.mark.parametrize("path", [FOLDER / "learned.privgp", FORMAT_2 / "laplace.privgp"])
def test_the_draft_of_an_older_file_is_written_anew(path):
    assert problems(load(path).certificate()["registry"]) == []


def test_the_rules_refuse_what_the_registry_refuses(facts):
    """The draft of privgp 0.2, part by part."""
    draft = facts["outputs"]["registry"]

    def changed(*path, to):
        record = copy.deepcopy(draft)
        *parents, last = path
        place = record
        for name in parents:
            place = place[name]
        place[last] = to
        return record

    curator = {"data_curator_name": "a", "data_curator_type": "b"}
    assert problems({k: v for k, v in draft.items() if k != "url_slug"})
    assert problems(changed("deployment", "basic", "data_curators", to=[curator]))
    assert problems(changed("deployment", "basic", "data_product_sector", to="health"))
    assert problems(changed("deployment", "basic", "publication_date", to="1/1/2026"))
    assert problems(changed("deployment", "surprise", to=""))


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("outputs", "the data have 24 rows"),
        ("people", "the data have 24 rows of 8 people"),
        ("records of people", "the data are of 8 people"),
    ],
)
def test_it_has_the_number_of_those_who_are_protected(name, size, facts):
    loss = facts[name]["registry"]["deployment"]["privacy_loss"]
    assert loss["privacy_unit_details"].endswith(f"; {size}")


@pytest.mark.parametrize("name", KINDS)
def test_it_has_the_error_to_expect_and_the_coverage(name, facts):
    document = facts[name]
    told = document["utility"]
    errors = np.atleast_1d(told["expected_error"])
    assert len(errors) == (2 if name in ("several", "mixed") else 1)
    assert np.all(errors > 0)
    units = {
        "counts": "relative to the rate",
        "mixed": "in units of the output, as a probability",
        "labels": "as a probability",
    }
    assert told["unit"] == units.get(name, "in units of the output")
    assert told["interval_coverage"] == 0.9
    sentence = f"the expected error is {errors[0]:.4g}"
    implementation = document["registry"]["deployment"]["implementation"]
    assert sentence in implementation["justification"]
    assert "with probability 0.9" in implementation["justification"]
    assert sentence in document["nist_sp_800_226"]["utility_and_bias"]
    assert f"T{sentence[1:]}" in page(document)


def test_one_outcome_by_name_can_be_saved(tmp_path):
    model = KINDS["one of several"]()
    model.save(tmp_path / "one.privgp")
    assert load(tmp_path / "one.privgp").certificate() == model.certificate()


def test_the_error_is_that_of_the_plan():
    model = KINDS["outputs"]()
    told = certificate(model)["utility"]["expected_error"]
    assert told == model.plan_.expected_error()


def test_an_address_has_plain_letters():
    assert slug("Crème brûlée & Co.", "", "2026") == "creme-brulee-co-2026"
