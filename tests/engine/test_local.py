"""Blocks in this process: all of them once, few at a time, errors passed on."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from privgp import PrivateGPRegressor
from privgp.engine.workers import Cluster, Serial, Threads, engine_of
from privgp.plan.inputs.blocks import runs

ENGINES = [Serial(), Threads(1), Threads(3)]


@pytest.mark.parametrize("engine", ENGINES, ids=str)
def test_every_block_is_done_once_and_told(engine):
    told = []
    found = list(engine.map(lambda x: x * x, range(20), lambda *done: told.append(done)))
    assert sorted(found) == [x * x for x in range(20)]
    assert told == [(done, 20) for done in range(1, 21)]
    assert list(engine.map(lambda x: x, [])) == []
    with pytest.raises(ZeroDivisionError):
        list(engine.map(lambda x: 1 // (x - 7), range(20)))


def test_few_blocks_are_worked_on_at_a_time():
    lock, started, most, taken = threading.Lock(), [0], [0], [0]

    def work(_):
        with lock:
            started[0] += 1
            most[0] = max(most[0], started[0] - taken[0])
        return 1

    for _ in Threads(2).map(work, range(50)):
        taken[0] += 1
    assert most[0] <= 2 + 3


def test_engines_are_what_was_given(monkeypatch):
    monkeypatch.setattr("privgp.engine.workers.ANSWER", 0.2)
    assert engine_of(None) == Threads()
    assert engine_of(Serial()) == Serial()
    for wrong in (5, "here", object(), True):
        with pytest.raises(ValueError, match="engine must be"):
            engine_of(wrong)
    with pytest.raises(ValueError, match="no scheduler answers"):
        engine_of("tcp://127.0.0.1:1")


def test_runs_are_whole_and_about_as_many():
    for chunks in (1, 5, 40):
        for number in (1, 7, 40, 100):
            found = runs(chunks, number)
            assert [place for run in found for place in range(*run)] == list(range(chunks))
            assert len(found) == min(chunks, number)


@pytest.mark.parametrize("groups", [False, True])
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_a_release_is_the_same_on_every_engine(groups, mechanism, monkeypatch):
    monkeypatch.setattr("privgp.models.rows.fit.STREAMED", 1000)
    rng = np.random.default_rng(1)
    X, y, who = rng.normal(size=(4500, 2)), rng.normal(size=4500), rng.integers(0, 600, 4500)
    found = [
        PrivateGPRegressor(
            y_bounds=(-3, 3), inducing=12, random_state=0, hyperparameters="fixed",
            mechanism=mechanism, engine=engine,
        ).fit(X, y, groups=who if groups else None).predict(X[:50])
        for engine in (Serial(), Serial(10), Threads(1), Threads(2), None)
    ]  # fmt: skip
    assert all(np.array_equal(each, found[0]) for each in found)


def test_a_cluster_is_no_larger_than_its_client_says():
    class Client:
        def nthreads(self):
            return {"one": 2, "two": 3}

    assert Cluster(Client()).workers == 5
