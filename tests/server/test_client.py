"""``privgp.Client`` against a server that listens."""

from __future__ import annotations

import numpy as np
import pytest

import privgp
from privgp import Client
from privgp.ledger.signing import check_certificate
from privgp.server.client import ServerRefused
from tests.server.live import listening
from tests.server.world import CUSTODIAN, FAST, table_of

DECLARED = {"inputs": ["age"], "public_inputs": ["age"], "output": "cost", "bounds": [0, 5000]}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with listening(tmp_path_factory.mktemp("client"), predictors=1) as world:
        yield Client(str(world.client.base_url), world.keys[CUSTODIAN])


@pytest.fixture(scope="module")
def released(served, tmp_path_factory):
    table = tmp_path_factory.mktemp("tables") / "visits.csv"
    table.write_bytes(table_of())
    made = served.register("visits", table, epsilon=2.0, delta=1e-5, **DECLARED)
    assert (made["remaining"], served.dataset("visits")["name"]) == (2.0, "visits")
    plan = served.plan("visits", **FAST)
    assert plan["fits"]
    with pytest.raises(ServerRefused, match="approve") as refused:
        served.release("visits", plan["id"])
    assert refused.value.status == 409
    assert served.approve(plan["id"])["state"] == "approved"
    first = served.release("visits", plan["id"], key="once-and-for-all")
    assert served.release("visits", plan["id"], key="once-and-for-all") == first
    return first["id"]


def test_from_a_table_to_predictions(served, released, tmp_path):
    found = served.predict(released, [[30.0], [45.0]])
    file = served.download(released, tmp_path / "visits.privgp")
    mean, std = privgp.load(file).predict({"age": [30.0, 45.0]}, return_std=True)
    np.testing.assert_allclose(found["mean"], mean, rtol=1e-9)
    np.testing.assert_allclose(found["std"], std, rtol=1e-9)
    assert np.all(found["low"] < found["high"])
    plain = served.predict(released, np.array([[30.0]]), coverage=None)
    assert {*plain} == {"mean", "std"}
    with pytest.raises(FileExistsError):
        served.download(released, file)


def test_a_certificate_is_checked_with_the_servers_key(served, released):
    certificate = served._ask("GET", f"/api/releases/{released}/certificate")
    assert check_certificate(certificate, served.public_key())["dataset"] == "visits"


def test_what_is_there(served, released):
    assert served.me()["role"] == "custodian"
    assert [each["name"] for each in served.datasets()] == ["visits"]
    assert [each["id"] for each in served.releases("visits")] == [released]
    assert [each["state"] for each in served.plans("visits")] == ["released"]
    kinds = [each["kind"] for each in served.ledger("visits")["entries"]]
    assert kinds == ["approval", "charge", "answer"]
    other = served.plan("visits", epsilon=0.01, delta=1e-7, hyperparameters="fixed")
    assert served.reject(other["id"])["state"] == "rejected"


def test_refusals_are_told(served, released, tmp_path):
    with pytest.raises(ServerRefused, match="nothing here"):
        served.dataset("nothing/../keys")
    with pytest.raises(ServerRefused, match="1 cells"):
        served.predict(released, [[1.0, 2.0]])
    with pytest.raises(ValueError, match="what must be"):
        served.download(released, tmp_path / "x.csv", what="everything")
    with pytest.raises(ValueError, match=r"end in \.csv"):
        served.download(released, tmp_path / "x.txt", what="table")
    wrong = Client(served.url, "privgp-nonsense")
    with pytest.raises(ServerRefused) as refused:
        wrong.me()
    assert refused.value.status == 401
    assert "nonsense" not in repr(wrong)


@pytest.mark.parametrize(
    ("url", "key"),
    [("http://privgp.example.org", "k"), ("ftp://a", "k"), ("privgp", "k"), ("https://a", "")],
)
def test_keys_do_not_travel_without_tls(url, key):
    with pytest.raises(ValueError, match=r"url must|key must"):
        Client(url, key)


def test_a_server_that_is_not_there():
    with pytest.raises(ConnectionError, match="cannot be reached"):
        Client("http://127.0.0.1:9", "k", timeout=2.0).me()
