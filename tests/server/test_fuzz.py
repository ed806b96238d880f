"""Nonsense is refused with a sentence: no 5xx, no traceback, nothing spent."""

from __future__ import annotations

import io
import json
import os

import numpy as np
import polars as pl
import pytest
import schemathesis
from hypothesis import HealthCheck, given, seed, settings
from hypothesis.strategies import integers
from schemathesis.generation import GenerationMode

from tests.server.world import ANALYST, CUSTODIAN, SECRETS, declared, running, table_of

# PRIVGP_FUZZ=10000 pytest tests/server/test_fuzz.py: as many uploads, and requests to every endpoint.
UPLOADS = int(os.environ.get("PRIVGP_FUZZ", "200"))
EXAMPLES = max(4, UPLOADS // 100)


def parquet():
    held = io.BytesIO()
    pl.DataFrame({"age": range(24), "cost": [float(s) for s in SECRETS]}).write_parquet(held)
    return held.getvalue()


def mangled(rng, good):
    """A table with bytes changed, cut out, repeated or put in."""
    content = bytearray(good[int(rng.integers(2))])
    ending = "csv" if content[:3] == b"age" else "parquet"
    for _ in range(int(rng.integers(1, 6))):
        start, length = (int(n) for n in rng.integers(0, len(content) + 1, 2))
        part = content[start : start + length % 40]
        kind = int(rng.integers(4))
        if kind == 0:
            content[start : start + 1] = rng.bytes(1)
        elif kind == 1:
            del content[start : start + length % 40]
        elif kind == 2:
            content[start:start] = part * int(rng.integers(1, 4))
        else:
            content[start:start] = [b"\n", b",", b'"', b"\0", b"\xff", b"nan", b"1e999"][length % 7]
    return bytes(content), ending if rng.integers(10) else "csv"


def test_fuzzed_uploads(world):
    rng = np.random.default_rng(0)
    good, found = (table_of(first=1000), parquet()), []
    left = world.get(CUSTODIAN, "/api/datasets/visits")["remaining"]
    for number in range(UPLOADS):
        content, ending = mangled(rng, good)
        answer = world.ask(CUSTODIAN, "POST", f"/api/tables?ending={ending}", content=content)
        found.append(answer)
        if answer.status_code == 201:
            # A name that is not its own: what is fuzzed is the table, and nothing may stay registered.
            body = declared(f"fuzz {number}", answer.json()["table"], bounds=[1, 1])
            found.append(world.ask(CUSTODIAN, "POST", "/api/datasets", json=body))
            body |= {"bounds": [0, 5000], "output": "none"}
            found.append(world.ask(CUSTODIAN, "POST", "/api/datasets", json=body))
    codes = [each.status_code for each in found]
    assert {*codes} == {201, 422}
    assert codes.count(422) > UPLOADS / 4
    assert not [each for each in found if "Traceback" in each.text or "polars" in each.text]
    assert world.get(CUSTODIAN, "/api/datasets/visits")["remaining"] == left


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory):
    """Its own server, which may end in any state."""
    with running(tmp_path_factory.mktemp("fuzz"), max_jobs_per_key=3) as world:
        yield world


def send(world, role, case):
    asked = case.as_transport_kwargs(base_url="http://testserver")
    sent = {name: asked[name] for name in ("params", "json") if asked.get(name) is not None}
    if asked.get("data") is not None:
        sent["content"] = asked["data"]
    headers = {n: v for n, v in (asked.get("headers") or {}).items() if v.isprintable()}
    headers = {name: value.encode("utf-8", "replace") for name, value in headers.items()}
    return world.ask(role, asked["method"], asked["url"], headers=headers, **sent)


def filled(case, known, chance):
    """The same request, most often about something that is there, unless that would spend."""
    path = case.operation.path
    there = known.get(path.split("/")[2], known["plans"])
    spends = case.method == "POST" and path.endswith("/functions")
    if chance < 4 and case.path_parameters and not spends:
        case.path_parameters = dict.fromkeys(case.path_parameters, there)
    return case


def codes_of(world, role, operation, known, mode):
    """The statuses of a few requests to one endpoint."""
    named = {int(code) for code in operation.definition.raw["responses"]}
    # Headers that no client sends and methods that no endpoint has are refused before it is reached.
    named |= {400, 405, 422} if mode is GenerationMode.NEGATIVE else set()
    codes = []

    @seed(0)
    @settings(
        max_examples=EXAMPLES, deadline=None, suppress_health_check=[*HealthCheck], database=None
    )
    @given(case=operation.as_strategy(generation_mode=mode), chance=integers(0, 4))
    def check(case, chance):
        answer = send(world, role, filled(case, known, chance))
        codes.append(answer.status_code)
        assert answer.status_code in named, (case, answer.text)
        assert "Traceback" not in answer.text
        if answer.headers["content-type"] == "application/json":
            json.loads(answer.text, parse_constant=pytest.fail)

    check()
    return codes


@pytest.fixture(scope="module")
def known(fuzzed):
    """What there is to be asked for, by the first word of a path."""
    plan = fuzzed.plan(CUSTODIAN, "visits", epsilon=0.01)
    made = fuzzed.released(CUSTODIAN, "visits", plan, "to-be-fuzzed")
    other = fuzzed.plan(ANALYST, "visits", epsilon=0.01, approve=False)
    function = fuzzed.made("visits", "also-to-be-fuzzed", epsilon=0.001)
    return {
        "datasets": "visits", "releases": made, "jobs": made, "functions": function, "plans": other,
    }  # fmt: skip


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize("role", [ANALYST, CUSTODIAN])
def test_requests_by_the_schema(fuzzed, known, role, mode):
    """Requests that fit the OpenAPI document, and such that do not: every answer is one that the document
    names, JSON holds finite numbers, and nothing is spent."""
    schema = schemathesis.openapi.from_dict(fuzzed.client.app.openapi())
    before = fuzzed.get(CUSTODIAN, "/api/datasets/visits")["remaining"]
    operations = [each.ok() for each in schema.get_all_operations()]
    assert len(operations) > 20
    codes = [
        code
        for operation in operations
        if operation.method.upper() != "DELETE"  # it would take the keys away
        for code in codes_of(fuzzed, role, operation, known, mode)
    ]
    assert len(codes) > 60
    assert max(codes) < 500
    assert fuzzed.get(CUSTODIAN, "/api/datasets/visits")["remaining"] == before


NONSENSE = (
    b"", b"{", b"[]", b"null", b"\xff", b"1e999", b"{}", b'{"epsilon": NaN, "delta": 0}',
    b'{"epsilon": 1e999, "delta": 0}', b'{"epsilon": -1, "delta": 2}', b'{"epsilon": "1"}',
    b'{"points": [[NaN]]}', b'{"points": [[1e999]]}', b'{"points": [[]]}', b'{"points": [[1, 2]]}',
    b'{"points": [[1e308], [-1e308]]}', b'{"points": [[1]], "coverage": 1}', b'{"plan": "x"}',
    b'{"name": "../x", "role": "analyst"}', b'{"name": "a\\u0000", "role": "king"}',
    b'{"epsilon": 1e-300, "delta": 1e-300, "hyperparameters": "fixed"}', b"[" * 5000,
    b'{"name": "x", "table": "../../etc/passwd.csv"}', b'{"datasets": ["nothing"]}',
    b'{"name": "x", "role": "analyst", "datasets": ["nothing"]}',
    b'{"kind": "paths", "variance": 1, "lengthscales": [], "epsilon": 1, "delta": 0.1}',
    b'{"kind": "spell", "variance": 1, "lengthscales": [1], "epsilon": 1, "delta": 0.1}',
    b'{"kind": "function", "variance": 1e300, "lengthscales": [0], "epsilon": 1, "delta": 0}',
)  # fmt: skip


def test_nonsense_is_refused(fuzzed):
    plan = fuzzed.plan(CUSTODIAN, "visits", epsilon=0.1)
    release = fuzzed.released(CUSTODIAN, "visits", plan, "for-the-nonsense")
    function = fuzzed.made("visits", "also-for-nonsense")
    before = fuzzed.get(CUSTODIAN, "/api/datasets/visits")["remaining"]
    once = {"Idempotency-Key": "nonsense-1", "Content-Type": "application/json"}
    paths = ["keys", "datasets", "datasets/visits/plans", "datasets/visits/releases"]
    paths += [f"releases/{release}/predict", f"releases/{release}/updates", "tables"]
    paths += ["datasets/visits/functions", f"functions/{function}/ask"]
    for path in paths:
        for body in NONSENSE:
            answer = fuzzed.ask(CUSTODIAN, "POST", f"/api/{path}", content=body, headers=once)
            accepted = (
                {200, 201, 202} if path in (paths[2], paths[4], paths[6], paths[8]) else set()
            )
            assert answer.status_code in {400, 404, 409, 422, 429} | accepted, (path, body)
            json.loads(answer.text, parse_constant=pytest.fail)
    assert fuzzed.get(CUSTODIAN, "/api/datasets/visits")["remaining"] == before
