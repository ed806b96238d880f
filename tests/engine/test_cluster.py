"""A cluster of processes: the same bits as threads, also when a worker is killed in the middle; one draw
of noise, one charge; and no output in what workers log, keep, write or raise."""

from __future__ import annotations

import os
import pickle
import signal
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone

from privgp import Ledger, PrivateGPRegressor, open_table
from privgp.engine.workers import Serial
from privgp.models.rows.fit import Tallied, fit_for_rows, rows_in_memory
from privgp.plan.inputs.blocks import ArrayInputs, Blocks
from privgp.plan.inputs.tally import tally_rows
from privgp.question.rules import Beside
from privgp.vault import measure
from privgp.vault.grouped.totals import Encoding, Key, PrivateBlock, Summing

distributed = pytest.importorskip("distributed")
ROWS = 40_000
NAMES = ["a", "b"]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workers")
    kinds = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with (
        distributed.LocalCluster(
            **kinds, dashboard_address=None, local_directory=str(folder), silence_logs=False
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.folder = folder
        yield client


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 2))
    return X, np.sin(X[:, 0]) + 0.3 * rng.standard_normal(ROWS)


def private(**settings) -> PrivateGPRegressor:
    given = {"y_bounds": (-3, 3), "random_state": 0, "hyperparameters": "fixed"}
    return PrivateGPRegressor(**{**given, **settings})


def fit_blocks(model: PrivateGPRegressor, X: np.ndarray, y: np.ndarray, watch: object) -> None:
    """A fit of rows in memory in blocks, which tells how many are done."""
    model.n_features_in_ = 2
    rows = Tallied.of(model, rows_in_memory(model, X, None, Beside()), ())
    fit_for_rows(model, rows, model._data(y, len(X)), None, None, watch)


@pytest.fixture(scope="module")
def known(data):
    return private().fit(*data).predict(data[0][:50])


def test_the_same_release_from_memory_and_from_files(client, data, known, tmp_path, monkeypatch):
    X, y = data
    # a command has no other client than that of its scheduler's address
    monkeypatch.setattr("distributed.client.default_client", None)
    for number, rows in enumerate(np.array_split(np.arange(ROWS), 7)):
        table = pl.DataFrame({"a": X[rows, 0], "b": X[rows, 1], "cost": y[rows]})
        table.write_parquet(tmp_path / f"{number}.parquet")
    table = open_table(tmp_path, NAMES, "cost")
    model = private(engine=client)
    assert clone(model).engine is client
    address = client.scheduler.address
    for fitted in (
        model.fit(X, y),
        private(engine=address).fit(table.inputs, table.output),
    ):
        assert np.array_equal(fitted.release_.mean_and_variance(X[:50])[0], known)


def test_a_killed_worker_changes_nothing(client, data, known, tmp_path, monkeypatch):
    X, y = data
    draws, add_noise = [], measure.add_noise
    monkeypatch.setattr("privgp.plan.inputs.blocks.BATCH", 4096)
    monkeypatch.setattr(measure, "add_noise", lambda *given: draws.append(1) or add_noise(*given))
    account = Ledger(f"sqlite:///{tmp_path}/budget.db").open("visits", 10.0, 1e-3)
    model = private(engine=client, ledger=account)
    killed = []

    def kill(done: int, of: int) -> None:
        if done == 1 and of > 2:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    fit_blocks(model, X, y, kill)
    assert killed
    assert np.array_equal(model.release_.mean_and_variance(X[:50])[0], known)
    assert len(draws) == 1
    assert len(account.entries()) == 1


def planted(rows: int) -> np.ndarray:
    """Outputs that nothing else would hold, as numbers, as text and as bytes."""
    return 1.0 + np.random.default_rng(5).permutation(rows) * 1.0000123e-6


def seen_in(texts: list[bytes], y: np.ndarray) -> list[float]:
    """Of 200 outputs, of all blocks, those that are found."""
    whole, some = b"\0".join(texts), y[:: len(y) // 200]
    return [v for v in some if v.tobytes() in whole or f"{v:.9f}".encode() in whole]


def test_workers_hold_log_and_write_no_output(client, data, tmp_path, monkeypatch):
    monkeypatch.setattr("privgp.plan.inputs.blocks.BATCH", 2048)
    monkeypatch.setattr("privgp.models.rows.fit.STREAMED", 1000)
    X, y = data[0][:12_000], planted(12_000)
    kept: list[bytes] = []

    def look(done: int, of: int) -> None:
        held = client.run(lambda dask_worker: pickle.dumps(dict(dask_worker.data)))
        kept.extend(held.values())

    fit_blocks(private(engine=client), X, y, look)
    bad = y.copy()
    bad[-1] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity") as caught:
        private(engine=client).fit(X, bad)
    table = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "cost": [f"{v:.9f}" for v in y]})
    table = table.with_columns(
        cost=pl.when(pl.int_range(pl.len()) == 7).then(pl.lit("1.0x")).otherwise("cost")
    )
    table.write_csv(tmp_path / "t.csv")
    opened = open_table(tmp_path / "t.csv", NAMES, "cost")
    with pytest.raises(ValueError, match="finite number in every row") as refused:
        private(engine=client).fit(opened.inputs, opened.output)
    logs = [*client.get_worker_logs().values(), client.get_scheduler_logs()]
    texts = [str(line).encode() for log in logs for line in log]
    texts += [str(each.value).encode() + repr(each.value).encode() for each in (caught, refused)]
    files = [path for path in Path(client.folder).rglob("*") if path.is_file()]
    texts += [path.read_bytes() for path in files]
    assert kept
    assert texts
    assert not seen_in([*texts, *kept], y)
    assert seen_in([pickle.dumps(y)], y)  # what is searched for is found where it is


def test_results_of_workers_are_masked():
    """The partial sums of a block with a single row would be its output."""
    block, encoding = Blocks.of(ArrayInputs(np.zeros((1, 1)))), Encoding((0.0, 1.0))
    private_block = PrivateBlock(block, np.array([[0.731]]))
    tally, key = tally_rows(block, Serial()), Key.new()
    masked = Summing(tally, (encoding,), key)(private_block)
    sums = masked.unmask(key)
    assert not np.any(masked.numbers == sums)
    assert sums[0, :2] * 2.0**-tally.bits == pytest.approx([2.0**-tally.bits, 0.462])
    other = Summing(tally, (encoding,), Key.new())(private_block)
    assert not np.any(masked.numbers == other.numbers)


def test_masks_are_uniform():
    """65,536 numbers: each bit is 1 in half of them, within 7 standard deviations."""
    mask = Key.new().mask(3, (65_536,)).view(np.uint64)
    for bit in range(64):
        ones = int(((mask >> np.uint64(bit)) & np.uint64(1)).sum())
        assert abs(ones - 32_768) < 7 * 128
