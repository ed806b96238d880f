"""A certificate says what the guarantee says, to machines and to people, and hides no limit."""

from __future__ import annotations

import copy
import json
import re
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from html.parser import HTMLParser

import jsonschema
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privgp
from privgp import Ledger, PrivateGPRegressor, load
from privgp.release.certificate import SCHEMA, certificate, page, plan_hash, validate
from privgp.release.certificate.wording import FIXED, HOLDER, LEARNED

X = np.random.default_rng(0).uniform(0, 10, size=(24, 2))
Y = np.sin(X[:, 0])


def fitted(groups=None, inputs=X, **settings) -> PrivateGPRegressor:
    settings = {"y_bounds": (-2, 2), "hyperparameters": "fixed", "random_state": 0, **settings}
    return PrivateGPRegressor(**settings).fit(inputs, Y, groups=groups)


MODELS = {
    "real": {"random_state": None},
    "simulated": {},
    "learned": {"hyperparameters": "learned"},
    "unbiased": {"reconstruct": "unbiased", "random_state": None},
    "groups": {"groups": np.arange(24) // 3, "random_state": None},
    "named": {"inputs": pd.DataFrame(X, columns=["age", "<b>bmi</b>"]), "random_state": None},
}


@pytest.fixture(scope="module")
def models() -> dict[str, PrivateGPRegressor]:
    return {name: fitted(**settings) for name, settings in MODELS.items()}


@pytest.mark.parametrize("name", MODELS)
def test_every_certificate_fits_its_schema_and_is_plain_json(name, models):
    document = certificate(models[name])
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(document, SCHEMA)
    validate(document)
    assert json.loads(json.dumps(document, allow_nan=False)) == document


@pytest.mark.parametrize("name", MODELS)
def test_its_numbers_are_those_of_the_guarantee(name, models):
    model, promised = models[name], models[name].guarantee_
    document = certificate(model)
    assert (document["epsilon"], document["delta"]) == (promised.epsilon, promised.delta)
    assert document["mu"] == promised.mu
    assert document["mechanism"]["noise_multipliers"] == list(promised.noise_multipliers)
    assert document["mechanism"]["sampler"] == promised.sampler
    assert (document["unit"], document["neighbours"]) == (promised.unit, promised.neighbours)
    assert all(delta == promised.delta_at(epsilon) for epsilon, delta in document["curve"])
    epsilons, deltas = zip(*document["curve"], strict=True)
    assert epsilons[0] == 0.0
    assert promised.epsilon in epsilons
    assert list(deltas) == sorted(deltas, reverse=True)
    assert document["best_guess"] == 0.5 + 0.5 * promised.delta_at(0.0)
    for record in (
        document["registry"]["deployment"]["privacy_loss"]["privacy_parameters"],
        document["nist_sp_800_226"]["parameters"],
    ):
        assert record == {"epsilon": promised.epsilon, "delta": promised.delta}
    assert document["data"]["rows"] == 24
    assert document["data"]["people"] == (8 if name == "groups" else None)
    assert document["bounds"] == {"outputs": [-2.0, 2.0], "source": "declared by the data holder"}
    assert document["software"]["privgp"] == privgp.__version__


def test_it_says_where_hyperparameters_came_from(models):
    for name in MODELS:
        source = certificate(models[name])["hyperparameters"]["source"]
        assert source == (LEARNED if name == "learned" else FIXED)


def test_the_page_tells_the_limits(models):
    for name, model in models.items():
        document = certificate(model)
        text = page(document)
        limits = " ".join(document["not_protected"])
        for word in (
            "inputs",
            "file contains",
            "how many rows",
            "groups",
            "further release",
            "looking at",
        ):
            assert word in limits
        assert ("All outputs of one person" in limits) == (name == "groups")
        assert all(
            sentence.replace("'", "&#x27;") in text for sentence in document["not_protected"]
        )
        assert document["plan_hash"] in text


def test_a_simulation_is_shown_loudly_and_a_release_is_not(models):
    for name, model in models.items():
        simulated = name in ("simulated", "learned")
        document = certificate(model)
        assert document["simulation"] == simulated
        assert page(document).count("SIMULATION, NOT FOR RELEASE") == (2 if simulated else 0)
        assert ("NOTHING is protected" in document["not_protected"][0]) == simulated
        assert ("is right at most" in page(document)) == (not simulated)


def test_the_page_leaves_out_what_it_has_nothing_to_say_about(models):
    for name, model in models.items():
        document = certificate(model)
        rows = set(re.findall(r"<th>([^<]*)</th>", page(document)))
        assert "Rows" in rows
        assert ("People" in rows) == (name == "groups")
        assert ("Models averaged" in rows) == (document["hyperparameters"]["models"] > 1)
        assert "Bounds of the inputs" not in rows
        assert "Assumptions" in rows
        assert "<th>Assumptions" not in page({**document, "assumptions": []})


def test_the_mechanism_is_told_in_plain_words(models):
    for model in models.values():
        told = certificate(model)["mechanism"]["description"]
        count = model.plan_.strategy.size
        assert told.startswith(f"{count} noisy total")
        assert "each value clipped to the declared range" in told
        assert ("squares" in told) == (model.plan_.strategy.energy_weight > 0)


class Reader(HTMLParser):
    """Collects tags and attributes, and that all is closed in order."""

    VOID = ("meta", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attributes}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def read_page(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    return reader


def test_the_page_is_whole_and_needs_nothing_from_outside(models):
    for model in models.values():
        text = page(certificate(model))
        reader = read_page(text)
        assert not reader.tags & {"script", "link", "img", "iframe", "object", "b"}
        assert not reader.attributes & {"src", "href", "onload", "onclick", "style"}
        assert "http" not in text.replace("http-equiv", "")
        assert "url(" not in text
    assert "&lt;b&gt;bmi&lt;/b&gt;" in page(certificate(models["named"]))


@given(st.text())
def test_whatever_the_holder_writes_stays_text(words):
    hostile = f"</td><script>alert(1)</script>{words}\"'&"
    document = certificate(_model(), holder=dict.fromkeys(HOLDER, hostile))
    reader = read_page(page(document))
    assert "script" not in reader.tags
    page(document).encode("utf-8")


@cache
def _model() -> PrivateGPRegressor:
    return fitted()


def test_the_holder_fills_in_what_only_the_holder_knows(models):
    section = "From the custodian"
    empty = certificate(models["real"])
    assert set(empty["holder"].values()) == {""}
    assert section not in page(empty)
    some = page(certificate(models["real"], holder={"curator": "the clinic"}))
    assert section in some
    assert HOLDER["curator"].capitalize() in some
    assert HOLDER["sources"].capitalize() not in some
    full = certificate(models["real"], holder={name: f"my {name}" for name in HOLDER})
    assert all(meaning.capitalize() in page(full) for meaning in HOLDER.values())
    basic = full["registry"]["deployment"]["basic"]
    assert basic["data_curators"] == ["my curator"]
    assert full["registry"]["url_slug"] == f"my-name-my-curator-{full['date'][:4]}"
    assert full["nist_sp_800_226"]["security_and_access_control"] == "my security"
    jsonschema.validate(full, SCHEMA)
    with pytest.raises(ValueError, match="no field 'owner'"):
        certificate(models["real"], holder={"owner": "me"})
    with pytest.raises(ValueError, match="name must be a text"):
        certificate(models["real"], holder={"name": 3})


def test_a_loaded_model_has_the_same_certificate(models, tmp_path):
    for name, model in models.items():
        model.save(tmp_path / f"{name}.privgp")
        again = load(tmp_path / f"{name}.privgp")
        assert certificate(again) == certificate(model)
        certificate(again)["bounds"]["outputs"][0] = 0.0  # a copy: the model keeps its own
        told = {"holder": {"name": "n"}, "date": datetime(2030, 1, 2, tzinfo=UTC)}
        assert certificate(again, **told) == certificate(model, **told)


def test_dates_are_in_utc(models):
    model = models["real"]
    now = datetime.now(UTC)
    made = datetime.strptime(certificate(model)["date"], "%Y-%m-%dT%H:%M:%S%z")
    assert abs(now - made) < timedelta(hours=1)
    east = datetime(2026, 1, 1, 0, 30, tzinfo=timezone(timedelta(hours=2)))
    document = certificate(model, date=east)
    assert document["date"] == "2025-12-31T22:30:00Z"
    assert document["registry"]["deployment"]["basic"]["publication_date"] == "2025-12-31"
    with pytest.raises(ValueError, match="time zone"):
        certificate(model, date=datetime(2026, 1, 1))


def test_the_hash_is_of_the_public_plan_alone():
    one, two = fitted(random_state=1), fitted(random_state=2)
    other = fitted(epsilon=3.0)
    assert certificate(one)["plan_hash"] == certificate(two)["plan_hash"]
    assert certificate(one)["plan_hash"] != certificate(other)["plan_hash"]
    plan = PrivateGPRegressor(y_bounds=(-2, 2), hyperparameters="fixed").plan(X)
    again = plan_hash(plan.functionals, plan.y_bounds, plan.epsilon, plan.promised_delta)
    assert again == certificate(one)["plan_hash"]
    assert again != plan_hash(plan.functionals, (-2.0, 2.5), plan.epsilon, plan.promised_delta)


def places(value, path=()):
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def is_valid(document) -> bool:
    try:
        validate(document)
    except ValueError as problem:
        assert "\n" not in str(problem)  # noqa: PT017 - a refusal is one of two good outcomes
        return False
    return True


@given(st.data())
def test_the_light_check_agrees_with_jsonschema(data):
    document = copy.deepcopy(certificate(_model()))
    path = data.draw(st.sampled_from([p for p in places(document) if p]))
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    values = [
        "x",
        -1,
        0,
        3,
        0.7,
        True,
        None,
        [],
        {},
        [0.5, 0.5],
        {"x": "y"},
        "2026-01-01T00:00:00Z",
    ]
    if data.draw(st.booleans()):
        inner[path[-1]] = data.draw(st.sampled_from(values))
    else:
        inner.pop(path[-1])
    assert is_valid(document) == jsonschema.Draft202012Validator(SCHEMA).is_valid(document)


def test_numbers_that_are_none_are_refused():
    for value in (float("nan"), float("inf")):
        document = {**certificate(_model()), "epsilon": value}
        assert not is_valid(document)
        with pytest.raises(ValueError, match="epsilon"):
            page(document)


def test_bounds_on_the_page_are_never_rounded_down(models):
    model = models["real"]
    text = page(certificate(model))
    rows = re.findall(r"<tr><th>([0-9.e+-]+)</th><td>([0-9.e+-]+)</td></tr>", text)
    assert len(rows) == len(certificate(model)["curve"])
    for epsilon, delta in rows:
        assert float(delta) >= model.guarantee_.delta_at(float(epsilon))
    shown = re.search(r"at most ([0-9.]+)%", text)
    assert shown is not None
    assert float(shown[1]) / 100 >= certificate(model)["best_guess"]


def test_the_first_page_names_the_column_its_units_and_what_is_left(tmp_path):
    account = Ledger(f"sqlite:///{tmp_path}/budget.db").open("waits", epsilon=3.0, delta=1e-5)
    model = fitted(ledger=account).name_output("waiting time", "minutes")
    shown = re.sub(r"<[^>]*>", "", page(certificate(model)).partition("Technical details")[0])
    assert "how waiting time (in minutes) depends on" in shown
    assert "One value of waiting time." in shown
    assert re.search(r"The expected error is [\d.]+ minutes \(", shown)
    assert "the publisher is not named" in shown
    assert f"epsilon = {account.remaining():g} was left" in shown
    assert f"its hash must be {certificate(model)['plan']}" in shown
    assert "may spend epsilon = 3 and delta = 1e-05" in shown
