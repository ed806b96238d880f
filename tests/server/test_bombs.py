"""Tables that are small on the wire and large in memory are refused by what they declare."""

from __future__ import annotations

import io
import resource

import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from privgp.server.errors import Refused
from privgp.server.store import tables as reading
from tests.server.world import CUSTODIAN, settings, table_of

MANY = 2_000_000


def parquet_of(columns, **options) -> bytes:
    held = io.BytesIO()
    parquet.write_table(pa.table(columns), held, compression="zstd", **options)
    return held.getvalue()


def long_texts() -> bytes:
    """One text of a megabyte, which 50,000 rows have: 50 gigabytes in under a kilobyte."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 50_000, pa.int32()), ["x" * 10**6])
    return parquet_of({"age": text, "cost": [0.0] * 50_000}, store_schema=False)


BOMBS = {
    "rows of Parquet": ("parquet", lambda: parquet_of({"age": [0.0] * MANY}), "100000 rows"),
    "bytes of Parquet": (
        "parquet",
        lambda: parquet_of({"age": ["y" * 30_000] * 100}, use_dictionary=False),
        "1048576 bytes",
    ),
    "texts of Parquet": ("parquet", long_texts, "1048576 bytes"),
    "columns of Parquet": (
        "parquet",
        lambda: parquet_of({f"c{k}": [1] for k in range(1_001)}),
        "1000 columns",
    ),
    "columns of CSV": ("csv", lambda: b"a" + b",a" * 10**6 + b"\n", "1000 columns"),
    "rows of CSV": ("csv", lambda: b"a\n" + b"1\n" * MANY, "100000 rows"),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_table_that_would_fill_the_memory_is_refused(tmp_path, kind):
    ending, make, problem = BOMBS[kind]
    path = tmp_path / f"bomb.{ending}"
    path.write_bytes(make())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(Refused, match=f"more than {problem}"):
        reading.check_table(path, settings(tmp_path, max_expanded_bytes=2**20))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 100 * 1024  # kilobytes


def test_a_bomb_is_refused_when_it_is_uploaded(world):
    sent = {"content": long_texts(), "params": {"ending": "parquet"}}
    answer = world.ask(CUSTODIAN, "POST", "/api/tables", **sent)
    assert (answer.status_code, answer.json()["error"]) == (
        422,
        "The table has more than 268435456 bytes.",
    )


def test_a_table_within_the_limits_is_kept(tmp_path):
    pl.DataFrame({"age": [1.0, 2.0], "note": ["a", None]}).write_parquet(tmp_path / "t.parquet")
    reading.check_table(tmp_path / "t.parquet", settings(tmp_path))
    (tmp_path / "t.csv").write_bytes(table_of())
    reading.check_table(tmp_path / "t.csv", settings(tmp_path))
    (tmp_path / "t.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(Refused, match="cannot be read"):
        reading.check_table(tmp_path / "t.parquet", settings(tmp_path))


def test_an_upload_that_is_refused_or_broken_off_leaves_no_file(world):
    folder = world.client.app.state.service.settings.tables
    before = {*folder.iterdir()}
    for content in (b"", b"a,b\n1\n", b"a\n"):
        assert world.ask(CUSTODIAN, "POST", "/api/tables", content=content).status_code == 422
    assert {*folder.iterdir()} == before
