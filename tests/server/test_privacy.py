"""No answer holds a private value, and no refusal depends on one."""

from __future__ import annotations

import json
import re

import pytest

from privgp.server.app import application
from privgp.server.guard import HEADERS, Rates
from tests.server.world import (
    ANALYST,
    CUSTODIAN,
    NONE,
    SECRETS,
    declared,
    running,
    settings,
    table_of,
)


def everything(world, plan, release):
    """All that can be read of a dataset, by anybody."""
    paths = ["/api/me", "/api/datasets", "/api/keys", "/api/ledger/verify", "/", "/datasets/visits"]
    paths += [f"/api/datasets/visits{tail}" for tail in ("", "/ledger", "/plans", "/releases")]
    paths += [f"/api/plans/{plan}", f"/api/jobs/{release}", f"/releases/{release}"]
    tails = ("", "/view", "/certificate", "/certificate.html", "/file", "/table.csv", "/script.py")
    paths += [f"/api/releases/{release}{tail}" for tail in tails]
    return [world.ask(role, "GET", path) for role in (ANALYST, CUSTODIAN) for path in paths]


def test_no_answer_holds_a_private_value(world, plan, release):
    answers = everything(world, plan, release)
    assert sum(each.status_code == 200 for each in answers) > 30
    heard = "\n".join([*world.heard, *(each.content.decode("latin-1") for each in answers)])
    for secret in SECRETS:
        assert secret not in heard
        assert secret.partition(".")[2] not in heard
    table = world.client.app.state.service.store.read_declaration("visits")["table"]
    assert table not in "\n".join(each.text for each in answers)  # nor where it lies


def test_the_search_would_find_one(world):
    assert any(secret.encode() in table_of() for secret in SECRETS)


def test_private_values_stay_in_the_folder_of_tables(world, plan, release):
    folder = world.client.app.state.service.settings.data
    kept = b"".join(path.read_bytes() for path in folder.glob("*") if path.is_file())
    assert len(kept) > 10_000
    assert not [secret for secret in SECRETS if secret.encode() in kept]
    assert (folder / "tables").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("bad", ["nan", "", "text", "inf", "1e999", "12,5"])
def test_whatever_is_wrong_with_a_private_column_the_sentence_is_the_same(world, bad):
    cells = [*SECRETS[:-1], bad]
    content = table_of(cells, first=22)
    kept = world.ask(CUSTODIAN, "POST", "/api/tables", content=content).json()["table"]
    body = declared("broken", kept)
    answer = world.ask(CUSTODIAN, "POST", "/api/datasets", json=body)
    assert answer.status_code == 422
    assert answer.json()["error"] == "The output column must hold a finite number in every row."


@pytest.mark.parametrize("named", [{"inputs": ["age", "cost"]}, {"groups": "cost"}])
def test_the_private_column_has_one_role(world, named):
    kept = world.ask(CUSTODIAN, "POST", "/api/tables", content=table_of(SECRETS, first=22))
    body = declared("twice", kept.json()["table"], **named)
    answer = world.ask(CUSTODIAN, "POST", "/api/datasets", json=body)
    assert answer.status_code == 422
    assert "private output" in answer.json()["error"]


def numbers_in(value):
    if isinstance(value, dict):
        return [n for each in value.values() for n in numbers_in(each)]
    if isinstance(value, list):
        return [n for each in value for n in numbers_in(each)]
    return [value]


def test_numbers_are_finite_and_never_null(world, plan, release):
    for answer in everything(world, plan, release):
        if answer.headers["content-type"] == "application/json" and "certificate" not in str(
            answer.url
        ):
            found = numbers_in(json.loads(answer.text, parse_constant=lambda _: None))
            assert None not in found, answer.url


def test_every_answer_forbids_other_hosts(world):
    for role, path in ((NONE, "/signin"), (NONE, "/nothing"), (ANALYST, "/"), (ANALYST, "/api/me")):
        headers = world.ask(role, "GET", path).headers
        for name, value in HEADERS.items():
            assert headers[name.decode()] == value.decode()
        assert "unsafe" not in headers["content-security-policy"]


def test_pages_name_no_other_host_and_have_no_inline_script(world, plan, release):
    own = ["/signin", "/", "/register", "/approvals", "/people", "/ledger", "/datasets/visits"]
    own += [f"/datasets/visits/{tab}" for tab in ("releases", "ledger")]
    own += [f"/releases/{release}", "/static/page.js"]
    for path in [*own, "/static/page.css"]:
        text = world.ask(CUSTODIAN, "GET", path).text
        assert not re.findall(r"https?://|src=\"//|@import", text)
        assert not re.findall(r"<script(?![^>]*src=)|\son\w+=|style=", text)


def test_names_are_escaped_on_pages(world):
    name = "a-b"
    store = world.client.app.state.service.store
    kept = {
        **store.read_declaration("visits"),
        "name": name,
        "output": "<script>x</script>",
        "table": "q.csv",
    }
    store.add_dataset(kept, ("",))
    try:
        assert "<script>x" not in world.ask(CUSTODIAN, "GET", f"/datasets/{name}").text
    finally:
        from privgp.server.store.schema import datasets

        with store.database.write() as connection:
            connection.execute(datasets.delete().where(datasets.c.name == name))


def test_the_framework_reports_to_nobody(tmp_path, monkeypatch):
    monkeypatch.setenv("FASTAPI_OTEL_AUTO_CONFIGURE", "true")
    kept = getattr(application(settings(tmp_path)), "_telemetry", {})
    assert not [name for name, value in kept.items() if value is True]


def test_limits(tmp_path):
    with running(
        tmp_path, max_body_bytes=2000, max_upload_bytes=5000, max_points=3, max_rows=30
    ) as world:
        plan = world.plan(CUSTODIAN, "visits")
        release = world.released(CUSTODIAN, "visits", plan, "for-the-limits")
        path = f"/api/releases/{release}/predict"
        ask = lambda points: world.ask(CUSTODIAN, "POST", path, json={"points": points})  # noqa: E731
        assert ask([[1.0]] * 3).status_code == 200
        assert ask([[1.0]] * 4).status_code == 422
        assert ask([[1.0]] * 1000).status_code == 413
        parts = (b"x" * 1000 for _ in range(9))  # of no declared length
        assert world.ask(CUSTODIAN, "POST", path, content=parts).status_code == 413
        assert world.ask(CUSTODIAN, "POST", "/api/tables", content=b"x" * 5001).status_code == 413
        many = b"age\n" + b"1\n" * 31
        assert world.ask(CUSTODIAN, "POST", "/api/tables", content=many).status_code == 422


def test_requests_of_a_key_are_limited():
    rates = Rates(rate=0.001, burst=5)
    assert [rates.allow("a") for _ in range(7)] == [True] * 5 + [False] * 2
    assert rates.allow("b")
