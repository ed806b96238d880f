"""Jobs run in a process of their own, which may be killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from privgp.server.jobs.process import SHARED
from privgp.server.settings import Settings
from tests.server.world import CUSTODIAN, FAST, running


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
