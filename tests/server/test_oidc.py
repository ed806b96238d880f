"""Sign-in at an OpenID Connect provider: a key that a custodian made for the identity opens, nothing else."""

from __future__ import annotations

from urllib.parse import urlsplit

import httpx
import pytest

pytest.importorskip("authlib")

from joserfc.jwk import OctKey, RSAKey

from privgp.server.settings import Settings
from privgp.server.views.oidc import FAILED, NOBODY
from tests.server.live import listening
from tests.server.provider import CLIENT, SECRET, providing
from tests.server.world import CUSTODIAN

CLARA = "clara@hospital.example"
VERIFIED = {"email": CLARA, "email_verified": True}


@pytest.fixture(scope="module", params=["", "/"], ids=["plain", "slash"])
def both(request, tmp_path_factory):
    """A server and the provider that it believes, whose name may end in a slash."""
    folder = tmp_path_factory.mktemp("oidc")
    with providing(request.param) as provider:
        given = {
            "oidc_issuer": provider.issuer,
            "oidc_client_id": CLIENT,
            "oidc_client_secret": SECRET,
        }
        with listening(folder, address="http://localhost", **given) as world:
            key = {"name": "clara", "role": "custodian", "identity": CLARA}
            assert world.ask(CUSTODIAN, "POST", "/api/keys", json=key).status_code == 201
            again = world.ask(CUSTODIAN, "POST", "/api/keys", json={**key, "name": "eve"})
            assert (again.status_code, again.json()["error"]) == (
                409, "This identity has a key: revoke it first.",
            )  # fmt: skip
            yield world, provider


@pytest.fixture
def provider(both):
    _, found = both
    found.claims, found.header, found.key = {**VERIFIED}, {"alg": "RS256", "kid": "1"}, None
    return found


def browser(world):
    return httpx.Client(base_url=world.client.base_url, timeout=30)


def callback(client):
    """Where the provider sends a browser back to."""
    asked = client.get("/signin/oidc")
    assert asked.status_code == 302
    back = urlsplit(httpx.get(asked.headers["location"]).headers["location"])
    assert (back.scheme, back.netloc) == ("http", "localhost")
    return f"{back.path}?{back.query}"


def test_a_person_with_a_key_signs_in(both, provider):
    world, _ = both
    with browser(world) as client:
        assert "Sign in with your organisation" in client.get("/signin").text
        answer = client.get(callback(client))
        assert answer.status_code == 200
        cookies = answer.headers.get_list("set-cookie")
        (own,) = [each for each in cookies if each.startswith("privgp=")]
        assert "HttpOnly" in own
        assert "SameSite=strict" in own
        assert 'url=/"' in answer.text  # as the cookie does not come with a redirect from elsewhere
        assert client.get("/api/me").json() == {"name": "clara", "role": "custodian"}
        events = client.get("/api/events").json()
        assert events[0]["kind"] == "sign-in"


LIES = {
    "an unverified address": {"email_verified": False},
    "no word about it": {"email_verified": None},
    "text for yes": {"email_verified": "true"},
    "no address": {"email": None},
    "a list": {"email": [CLARA]},
    "another issuer": {"iss": "https://elsewhere.example"},
    "another audience": {"aud": "another"},
    "another nonce": {"nonce": "another"},
    "an old token": {"iat": 1, "exp": 2},
}


@pytest.mark.parametrize("lie", LIES)
def test_what_the_provider_does_not_vouch_for_is_refused(both, provider, lie):
    world, _ = both
    provider.claims |= LIES[lie]
    with browser(world) as client:
        answer = client.get(callback(client))
        assert (answer.status_code, FAILED in answer.text) == (401, True)
        assert client.get("/api/me").status_code == 401


@pytest.mark.parametrize("how", ["another key", "a secret", "none"])
def test_other_signatures_are_refused(both, provider, how):
    world, _ = both
    if how == "another key":
        provider.key = RSAKey.generate_key(2048, {"kid": "1"})
    elif how == "a secret":  # which the provider does not say that it signs with
        provider.header = {"alg": "HS256", "kid": "1"}
        provider.key = OctKey.import_key(SECRET.encode() * 2)
    else:
        provider.token = lambda asked: "eyJhbGciOiJub25lIn0.eyJlbWFpbCI6ICJjbGFyYSJ9."
    try:
        with browser(world) as client:
            assert client.get(callback(client)).status_code == 401
    finally:
        provider.__dict__.pop("token", None)


def test_strangers_and_revoked_keys_do_not_get_in(both, provider):
    world, _ = both
    provider.claims |= {"email": "eve@hospital.example"}
    with browser(world) as client:
        answer = client.get(callback(client))
        assert (answer.status_code, NOBODY in answer.text) == (403, True)
        asked = {"name": "eve", "role": "analyst", "identity": "eve@hospital.example"}
        number = world.ask(CUSTODIAN, "POST", "/api/keys", json=asked).json()["id"]
        assert client.get(callback(client)).status_code == 200
        assert client.get("/api/me").json()["name"] == "eve"
        world.ask(CUSTODIAN, "DELETE", f"/api/keys/{number}")
        assert client.get("/api/me").status_code == 401
        assert client.get(callback(client)).status_code == 403


def test_a_callback_works_once_and_in_the_browser_that_asked(both, provider):
    world, _ = both
    with browser(world) as client, browser(world) as other:
        where = callback(client)
        assert other.get(where).status_code == 401
        assert client.get(where).status_code in (200, 401)  # whoever else used the code up
        assert client.get(where).status_code == 401
        assert client.get("/signin/oidc/callback?code=x&state=y").status_code == 401
        assert client.get("/signin/oidc/callback").status_code == 401


def test_a_provider_that_is_away_is_one_sentence(tmp_path):
    given = {
        "oidc_issuer": "http://127.0.0.1:9",
        "oidc_client_id": "x",
        "address": "http://localhost",
    }
    with listening(tmp_path, **given) as world:
        answer = world.client.get("/signin/oidc")
        assert (answer.status_code, FAILED in answer.text) == (401, True)


@pytest.mark.parametrize(
    "given",
    [
        {
            "oidc_issuer": "http://provider.example",
            "oidc_client_id": "x",
            "address": "https://a.example",
        },
        {"oidc_issuer": "https://provider.example", "address": "https://a.example"},
        {"oidc_issuer": "https://provider.example", "oidc_client_id": "x"},
        {
            "oidc_issuer": "https://provider.example//",
            "oidc_client_id": "x",
            "address": "https://a.example",
        },
    ],
)
def test_settings_that_are_not_whole_are_refused(tmp_path, given):
    with pytest.raises(ValueError, match="oidc"):
        Settings(data=tmp_path, **given)


def test_without_the_setting_there_is_no_such_page(world):
    assert world.client.get("/signin/oidc").status_code == 404
    assert "organisation" not in world.client.get("/signin").text
