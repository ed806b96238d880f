"""Whole functions and paths: charged once, drawn where they are asked for, always the same."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from fastapi.testclient import TestClient

from privgp.ledger.chain import CHARGE
from privgp.models.function.estimator import PrivateFunction
from privgp.server.app import application
from privgp.server.store import functions as kept
from privgp.server.store.schema import WAITING
from tests.server.world import ANALYST, CUSTODIAN, OTHER, SECRETS, World, running, settings

RECORDS = {"protect": "records", "x_bounds": [[0.0, 100.0]], "epsilon": 20.0}
PATHS = {"kind": "paths", "noise_variance": None, "n_paths": 3, "epsilon": 5.0, "max_points": 40}
POINTS = [[30.0], [41.5], [30.0]]


def charges(world, name="visits"):
    entries = world.get(CUSTODIAN, f"/api/datasets/{name}/ledger")["entries"]
    return [each for each in entries if each["kind"] == CHARGE]


@pytest.fixture
def folder(tmp_path):
    """A server of its own that was stopped, with a function of its first dataset."""
    with running(tmp_path) as world:
        function = world.made("visits", "kept-for-ever")
        first = world.values(ANALYST, function, POINTS).json()["values"]
    return tmp_path, world.keys, function, first


def restarted(folder, keys):
    return World(TestClient(application(settings(folder))), keys)


def test_one_charge_pays_for_every_answer(world, function):
    before = charges(world)
    first = world.values(ANALYST, function, POINTS).json()["values"]
    assert first[0] == first[2] != first[1]
    more = world.values(CUSTODIAN, function, [[55.0], [41.5]]).json()["values"]
    assert more[1] == first[1]
    assert world.made("visits", "the-first-function") == function
    assert charges(world) == before
    told = world.get(ANALYST, f"/api/functions/{function}")
    assert (told["epsilon"], told["protects"]) == (0.1, "one output value")
    assert world.get(ANALYST, "/api/datasets/visits/functions")[0] == told
    assert told["points_answered"] >= 3


def test_the_same_key_with_another_function_is_refused(world, function):
    assert world.function("visits", "the-first-function", epsilon=0.2).status_code == 409


def test_who_has_no_grant_finds_nothing(world, function):
    answer = world.values(OTHER, function, POINTS)
    assert (answer.status_code, answer.text) == (
        404, world.values(OTHER, "0" * 32, POINTS).text,
    )  # fmt: skip


def test_a_restart_goes_on_with_the_same_function(folder):
    path, keys, function, first = folder
    world = restarted(path, keys)
    assert world.values(ANALYST, function, [[41.5], [30.0]]).json()["values"] == first[1::-1]
    assert len(charges(world)) == 1


def test_an_older_file_put_back_answers_nothing(folder):
    """It would draw the same points anew."""
    path, keys, function, _ = folder
    world = restarted(path, keys)
    (file,) = (path / "states").glob("*.private-state")
    older = path / "older"
    shutil.copy(file, older)
    assert world.values(ANALYST, function, [[77.0]]).status_code == 200
    shutil.copy(older, file)
    answer = world.values(ANALYST, function, [[78.0]])  # by the server that runs
    assert (answer.status_code, answer.json()["error"]) == (503, kept.GONE)
    assert restarted(path, keys).values(ANALYST, function, [[88.0]]).status_code == 503
    file.unlink()
    assert restarted(path, keys).values(ANALYST, function, [[30.0]]).status_code == 503


def test_another_server_on_the_folder_is_followed(folder):
    path, keys, function, first = folder
    one, two = restarted(path, keys), restarted(path, keys)
    assert one.values(ANALYST, function, POINTS).json()["values"] == first
    there = two.values(ANALYST, function, [[60.0]]).json()["values"]
    assert one.values(ANALYST, function, [[61.0], [60.0]]).json()["values"][1:] == there


def test_who_waits_too_long_for_others_is_told(folder):
    path, keys, function, first = folder
    world = World(TestClient(application(settings(path, max_wait_seconds=0.01))), keys)
    assert world.values(ANALYST, function, POINTS).json()["values"] == first
    with world.client.app.state.service.work.keeper._busy[function]:
        answer = world.values(ANALYST, function, POINTS)
    assert (answer.status_code, answer.json()["error"]) == (503, kept.BUSY)
    assert world.values(ANALYST, function, POINTS).status_code == 200


@pytest.mark.parametrize("moment", ["after the charge", "after the file"])
def test_a_function_that_was_stopped_is_charged_once(tmp_path, monkeypatch, moment):
    with running(tmp_path) as world:
        keys = world.keys
    before = restarted(tmp_path, keys)
    started = before.function("visits", "stopped-half-way").json()
    service = before.client.app.state.service
    job = service.store.next_job()

    def die(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if moment == "after the charge":
            patch.setattr(PrivateFunction, "_take", lambda made, _: die() if made.ledger else None)
            patch.setattr(kept.Keeper, "path", lambda *_: tmp_path / "elsewhere.private-state")
        else:
            patch.setattr(type(service.store), "add_function", die)
        with pytest.raises((KeyboardInterrupt, OSError)):
            service.work.run(job, lambda *_: None)
    assert len(charges(before)) == 1
    with TestClient(application(settings(tmp_path))) as client:
        after = World(client, keys)
        assert after.finished(CUSTODIAN, {**started, "state": WAITING})["state"] == "done"
        assert after.values(CUSTODIAN, started["id"], POINTS).status_code == 200
        assert len(charges(after)) == 1


def test_what_does_not_fit_is_not_drawn(world, function):
    before = charges(world)
    job = world.finished(CUSTODIAN, world.function("visits", "too-large-1", epsilon=50.0).json())
    assert job["state"] == "failed"
    assert "nothing was drawn" in job["error"]
    assert charges(world) == before
    assert world.ask(CUSTODIAN, "GET", f"/api/functions/{job['id']}").status_code == 404


def test_through_inducing_inputs_any_number_of_points_is_free(tmp_path):
    with running(tmp_path, max_function_total=3, max_function_points=20) as world:
        number = world.made("visits", "fixed-by-numbers", inducing=4)
        first = world.values(ANALYST, number, [[float(x)] for x in range(20)]).json()["values"]
        lazy = world.made("visits", "drawn-bit-by-bit")
        assert world.values(ANALYST, lazy, [[1.0], [2.0], [3.0]]).status_code == 200
        answer = world.values(ANALYST, lazy, [[4.0]])
        assert (answer.status_code, "At most 3" in answer.text) == (422, True)
        assert world.values(ANALYST, lazy, [[3.0], [1.0]]).status_code == 200
        assert world.values(ANALYST, lazy, [[1.0]] * 21).status_code == 422
        assert world.values(ANALYST, lazy, [[1.0, 2.0]]).status_code == 422
    again = restarted(tmp_path, world.keys)
    assert again.values(ANALYST, number, [[7.0]]).json()["values"] == first[7:8]


def test_paths_and_functions_of_records(tmp_path):
    with running(tmp_path) as world:
        assert world.register("records", first=22, **RECORDS).status_code == 201
        paths = world.made("records", "three-paths-1", **PATHS)
        values = np.array(world.values(CUSTODIAN, paths, POINTS).json()["values"])
        assert values.shape == (3, 3)
        assert np.array_equal(values[:, 0], values[:, 2])
        told = world.get(CUSTODIAN, f"/api/functions/{paths}")
        assert 4.9 < told["epsilon"] <= 5.0
        assert told["protects"] == "one whole record (inputs and output)"
        function = world.made("records", "a-function-1")
        assert world.values(CUSTODIAN, function, POINTS).status_code == 200
        for number in (paths, function):
            answer = world.values(CUSTODIAN, number, [[100.5]])
            assert (answer.status_code, "domain" in answer.text) == (422, True)
        assert len(charges(world, "records")) == 2
        refused = world.finished(
            CUSTODIAN, world.function("visits", "paths-of-outputs", **PATHS).json()
        )
        assert (refused["state"], "records" in refused["error"]) == ("failed", True)
        assert not charges(world)
        heard = "".join(world.heard)
        assert not [secret for secret in SECRETS if secret in heard]
