"""Every endpoint × every role, each cell."""

from __future__ import annotations

import re

import pytest
from pydantic import BaseModel

from privgp import __version__
from privgp.server import api, releases, shapes
from privgp.server import declared as declared_models
from privgp.server.store import functions as asked
from privgp.server.views import pages
from tests.server.world import (
    ANALYST,
    CUSTODIAN,
    FAST,
    FUNCTION,
    NONE,
    OTHER,
    ROLES,
    declared,
    table_of,
)

ONCE = {"Idempotency-Key": "a-key-of-the-table"}
KEY = {"name": "k", "role": "analyst"}
TABLE = table_of()
# method, path, what is sent, and the status for each of ROLES.
GRANTED, OWNED, ALL = (401, 200, 404, 200), (401, 403, 403, 200), (401, 200, 200, 200)
CELLS = [
    ("GET", "/health", {}, (200, 200, 200, 200)),
    ("GET", "/openapi.json", {}, (200, 200, 200, 200)),
    ("GET", "/signin", {}, (200, 200, 200, 200)),
    ("POST", "/signin", {"content": b"key=nonsense"}, (401, 401, 401, 401)),
    ("POST", "/signout", {}, (401, 204, 204, 204)),
    ("GET", "/", {}, ALL),
    ("GET", "/datasets/{name}", {}, GRANTED),
    ("GET", "/datasets/{name}/releases", {}, GRANTED),
    ("GET", "/datasets/{name}/ledger", {}, GRANTED),
    ("GET", "/register", {}, OWNED),
    ("GET", "/approvals", {}, ALL),
    ("GET", "/people", {}, OWNED),
    ("GET", "/ledger", {}, ALL),
    ("GET", "/functions/{function}", {}, GRANTED),
    ("GET", "/releases/{release}", {}, GRANTED),
    ("GET", "/static/page.css", {}, (200, 200, 200, 200)),
    ("GET", "/static/page.js", {}, ALL),
    ("GET", "/static/view.js", {}, ALL),
    ("GET", "/static/nonsense", {}, (401, 404, 404, 404)),
    ("GET", "/api/me", {}, ALL),
    ("GET", "/api/keys", {}, OWNED),
    ("POST", "/api/keys", {"json": KEY}, (401, 403, 403, 201)),
    ("DELETE", "/api/keys/{key}", {}, (401, 403, 403, 404)),
    ("GET", "/api/events", {}, OWNED),
    ("POST", "/api/tables", {"content": TABLE}, (401, 403, 403, 201)),
    ("GET", "/api/tables", {}, OWNED),
    ("DELETE", "/api/tables/{table}", {}, (401, 403, 403, 404)),
    ("GET", "/api/tables/{table}/columns", {}, (401, 403, 403, 404)),
    ("GET", "/api/datasets", {}, ALL),
    ("POST", "/api/datasets", {"json": declared("n", "none.csv")}, (401, 403, 403, 422)),
    ("GET", "/api/datasets/{name}", {}, GRANTED),
    ("GET", "/api/datasets/{name}/ledger", {}, GRANTED),
    ("GET", "/api/ledger/verify", {}, OWNED),
    ("GET", "/api/ledger/key", {}, ALL),
    ("POST", "/api/datasets/{name}/plans", {"json": FAST}, (401, 202, 404, 202)),
    ("GET", "/api/datasets/{name}/plans", {}, GRANTED),
    ("GET", "/api/plans/{plan}", {}, GRANTED),
    ("POST", "/api/plans/{plan}/approve", {}, OWNED),
    ("POST", "/api/plans/{plan}/reject", {}, (401, 403, 403, 409)),
    ("POST", "/api/jobs/{job}/retry", {}, (401, 409, 404, 409)),
    ("POST", "/api/datasets/{name}/releases", {"json": {"plan": "{plan}"}, "headers": ONCE},
     (401, 202, 404, 202)),
    ("GET", "/api/datasets/{name}/releases", {}, GRANTED),
    ("GET", "/api/releases/{release}", {}, GRANTED),
    ("POST", "/api/releases/{release}/predict", {"json": {"points": [[40.0]]}}, GRANTED),
    ("GET", "/api/releases/{release}/view", {}, GRANTED),
    ("GET", "/api/releases/{release}/title", {}, GRANTED),
    ("PUT", "/api/releases/{release}/title", {"json": {"headline": "h"}}, OWNED),
    ("GET", "/api/releases/{release}/certificate", {}, GRANTED),
    ("GET", "/api/releases/{release}/certificate.html", {}, GRANTED),
    ("GET", "/api/releases/{release}/file", {}, GRANTED),
    ("GET", "/api/releases/{release}/table.csv", {}, GRANTED),
    ("GET", "/api/releases/{release}/map.geojson", {}, (401, 422, 404, 422)),
    ("GET", "/api/releases/{release}/script.py", {}, GRANTED),
    ("GET", "/api/releases/{release}/page.html", {}, GRANTED),
    ("POST", "/api/releases/{release}/updates", {"content": b"", "headers": ONCE},
     (401, 403, 403, 422)),
    ("GET", "/api/jobs/{job}", {}, GRANTED),
    ("POST", "/api/datasets/{name}/functions", {"json": {**FUNCTION, "epsilon": 0.001},
     "headers": ONCE}, (401, 403, 403, 202)),
    ("GET", "/api/datasets/{name}/functions", {}, GRANTED),
    ("GET", "/api/functions/{function}", {}, GRANTED),
    ("POST", "/api/functions/{function}/ask", {"json": {"points": [[40.0]]}}, GRANTED),
]  # fmt: skip


def filled(world, plan, release, function, path, sent):
    known = {"name": "visits", "plan": plan, "release": release, "job": release, "key": "0" * 16}
    known["table"] = "none.csv"
    known["function"] = function
    sent = dict(sent)
    if sent.get("json") == {"plan": "{plan}"}:  # a plan is carried out once
        sent["json"] = {"plan": world.plan(ANALYST, "visits", epsilon=0.01)}
    return path.format(**known), sent


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("method", "path", "sent", "expected"), CELLS)
def test_every_cell(world, plan, release, function, method, path, sent, expected, role):
    path, sent = filled(world, plan, release, function, path, sent)
    answer = world.ask(role, method, path, **sent)
    assert answer.status_code == expected[ROLES.index(role)], answer.text


def test_the_table_has_every_endpoint(world):
    shape = re.compile(r"\{\w+\}")
    known = {(method, shape.sub("{}", path)) for method, path, _, _ in CELLS}
    known |= {("GET", "/static/{}")}
    routers = (api.router, releases.router, pages.router)
    routes = [route for each in routers for route in each.routes]
    there = {(m, shape.sub("{}", each.path)) for each in routes for m in each.methods}
    assert len(there) > 25
    assert there <= known


def test_without_a_key_nothing_is_learned(world, plan, release):
    """Not even which datasets, releases or endpoints exist: every answer is the same."""
    there = ["/api/datasets/visits", f"/api/releases/{release}", "/api/keys", "/datasets/visits"]
    absent = ["/api/datasets/nothing", "/api/releases/nothing", "/api/nothing", "/nothing"]
    answers = [world.ask(NONE, "GET", path) for path in there + absent]
    wrong = f"privgp-{'0' * 16}-{'0' * 64}"
    half = world.keys[ANALYST][:-1] + "g"
    for key in (wrong, half, "", "é", world.keys[ANALYST] + " x"):
        headers = {"Authorization": f"Bearer {key}".encode("latin-1")}
        answers.append(world.client.get("/api/datasets/visits", headers=headers))
    assert {each.status_code for each in answers} == {401}
    assert len({each.text for each in answers}) == 1


def test_an_analyst_cannot_tell_what_exists_from_what_does_not(world, plan, release, function):
    for there, absent in (
        ("/api/datasets/visits", "/api/datasets/nothing"),
        (f"/api/releases/{release}/file", f"/api/releases/{'0' * 32}/file"),
        (f"/api/plans/{plan}", f"/api/plans/{'0' * 32}"),
        (f"/api/jobs/{release}", f"/api/jobs/{'0' * 32}"),
        (f"/api/functions/{function}", f"/api/functions/{'0' * 32}"),
        ("/datasets/visits", "/datasets/nothing"),
    ):
        first, second = (world.ask(OTHER, "GET", path) for path in (there, absent))
        assert (first.status_code, first.text) == (second.status_code, second.text)
        assert first.status_code == 404


def test_a_key_has_the_name_of_a_person(world):
    body = {"name": "Zoë Müller-Łoś", "role": "analyst", "datasets": []}
    made = world.ask(CUSTODIAN, "POST", "/api/keys", json=body)
    assert made.status_code == 201
    names = {each["id"]: each["name"] for each in world.get(CUSTODIAN, "/api/keys")}
    assert names[made.json()["id"]] == body["name"]
    for name in ("", " Zoë", "Zoë\n", "\0"):
        answer = world.ask(CUSTODIAN, "POST", "/api/keys", json={**body, "name": name})
        assert answer.status_code == 422
        assert "^" not in answer.json()["error"]  # in words


def test_a_number_that_is_too_large_is_refused(world):
    answer = world.ask(CUSTODIAN, "GET", f"/api/events?before={10**20}")
    assert answer.status_code == 422


def test_only_a_hash_of_a_key_is_kept(world):
    database = world.client.app.state.service.settings.data
    kept = b"".join(path.read_bytes() for path in database.glob("ledger.db*"))
    for key in world.keys.values():
        number, secret = key.split("-")[1:]
        assert number.encode() in kept
        assert secret.encode() not in kept


def test_a_revoked_key_opens_nothing(world):
    body = {"name": "gone", "role": "analyst", "datasets": ["visits"]}
    made = world.ask(CUSTODIAN, "POST", "/api/keys", json=body).json()
    headers = {"Authorization": f"Bearer {made['key']}"}
    assert world.client.get("/api/me", headers=headers).status_code == 200
    world.ask(CUSTODIAN, "DELETE", f"/api/keys/{made['id']}")
    assert world.client.get("/api/me", headers=headers).status_code == 401


def test_a_signed_in_page_changes_nothing_for_another_host(world):
    """The cookie alone, as a form of another host would send it, is not enough to change anything."""
    answer = world.client.post(
        "/signin", content=f"key={world.keys[CUSTODIAN]}", follow_redirects=False
    )
    assert answer.status_code == 303
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert world.client.get("/").status_code == 200  # the client keeps the cookie
    assert world.client.post("/api/keys", json=KEY).status_code == 403
    own = {"X-Privgp": "page"}
    assert world.client.post("/api/keys", json=KEY, headers=own).status_code == 201
    assert world.client.post("/signout", headers=own).status_code == 204
    world.client.cookies.set("privgp", cookie.partition("=")[2].partition(";")[0])
    assert world.client.get("/api/me").status_code == 401
    world.client.cookies.clear()


def test_every_endpoint_is_described(world):
    """In /openapi.json: what it is about, which keys it takes, and what it answers."""
    described = world.get(NONE, "/openapi.json")
    known = {each["name"] for each in described["tags"]}
    assert described["info"]["version"] == __version__
    assert {*described["components"]["securitySchemes"]} == {"HTTPBearer", "APIKeyCookie"}
    for path, methods in described["paths"].items():
        for each in methods.values():
            assert {*each["tags"]} <= known, path
            assert each["security"], path
            (good,) = [code for code in each["responses"] if code.startswith("2")]
            shape = each["responses"][good].get("content", {}).get("application/json", {})
            plain = path.endswith(("/certificate", "/key")) or "." in path or path.endswith("/file")
            assert plain or "$ref" in str(shape), path
        names = re.findall(r"#/components/schemas/(\w+)", str(methods))
        for name in {*names} - {"Problem"}:
            assert described["components"]["schemas"][name]["examples"], name


def test_examples_are_what_the_endpoints_take_and_answer():
    """Each is checked against its model; and every model that has one is a model of ours."""
    models = {}
    for module in (shapes, declared_models, asked):
        for name, each in vars(module).items():
            if isinstance(each, type) and issubclass(each, BaseModel):
                models[name] = each
    for name, example in shapes.EXAMPLES.items():
        models[name].model_validate(example)
    assert len(shapes.EXAMPLES) > 30
