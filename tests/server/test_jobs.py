"""Jobs run in their own process, which may be killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from privgp.server.jobs.process import SHARED
from privgp.server.settings import Settings
from privgp.server.work import Work
from tests.server.world import CUSTODIAN, FAST, running, settings


def test_a_job_that_takes_too_long_is_stopped(tmp_path):
    with running(tmp_path, max_job_seconds=0.01) as world:
        job = world.ask(CUSTODIAN, "POST", "/api/datasets/visits/plans", json=FAST).json()
        done = world.finished(CUSTODIAN, job)
        assert (done["state"], done["result"]) == ("failed", "")
        assert done["error"] == "The job took longer than 0.01 seconds and was stopped."


def test_a_job_whose_process_is_lost_is_reported_and_the_next_one_runs(tmp_path):
    with running(tmp_path) as world:
        world.plan(CUSTODIAN, "visits")
        os.kill(SHARED._child.pid, signal.SIGSTOP)
        job = world.ask(CUSTODIAN, "POST", "/api/datasets/visits/plans", json=FAST).json()
        while job["state"] == "waiting":
            job = world.get(CUSTODIAN, f"/api/jobs/{job['id']}")
        SHARED._child.kill()
        job = world.finished(CUSTODIAN, job)
        assert (job["state"], job["error"]) == ("failed", "The plan could not be computed.")
        world.plan(CUSTODIAN, "visits")


def test_relative_paths_mean_the_same_to_the_process_of_the_jobs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = Settings(data=Path("served"), ledger="sqlite:///budget.db")
    assert asked.data == tmp_path / "served"
    assert asked.ledger == f"sqlite:///{tmp_path / 'budget.db'}"
    assert Settings(data=Path("served"), ledger="postgresql://h/d").ledger == "postgresql://h/d"
    assert Settings(data=tmp_path, ledger="sqlite:////a.db").ledger == "sqlite:////a.db"


def test_settings_come_from_a_file_the_environment_and_the_caller(tmp_path, monkeypatch):
    file = tmp_path / "server.toml"
    file.write_text('max_rows = 7\nburst = 3\nhosts = ["a.example"]\n', "utf-8")
    monkeypatch.setenv("PRIVGP_SERVE_BURST", "9")
    monkeypatch.setenv("PRIVGP_SERVE_MAX_POINTS", "11")
    made = Settings.load(file, data=tmp_path, max_points=12)
    assert (made.max_rows, made.burst, made.max_points) == (7, 9, 12)
    assert made.hosts == ("a.example",)
    monkeypatch.setenv("PRIVGP_SERVE_HOSTS", "b.example, c.example")
    assert Settings.load(file).hosts == ("b.example", "c.example")


@pytest.mark.parametrize("text", ["max_rows = 0", "max_row = 1", 'burst = "many"', "max_rows ="])
def test_a_wrong_setting_is_refused(tmp_path, text):
    file = tmp_path / "server.toml"
    file.write_text(text, "utf-8")
    with pytest.raises(ValueError, match=r"max_row|burst|Invalid"):
        Settings.load(file)


def test_jobs_of_two_keys_run_in_turn(tmp_path):
    store = Work.of(settings(tmp_path)).store
    store.add_dataset({"name": "d", "table": "t.csv"}, ("",))
    greedy, patient = (store.who(store.add_key(name, "custodian")[1]) for name in "gp")
    limits = {"digest": "", "max_jobs_per_key": 20}
    for number in range(3):
        store.add_job(greedy, "plan", "d", {}, retry=f"g{number}", **limits)
    store.add_job(patient, "plan", "d", {}, retry="p0", **limits)
    order = [store.next_job()["retry"] for _ in range(4)]
    assert order == ["g0", "p0", "g1", "g2"]
