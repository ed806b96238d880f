"""Whatever the arguments and the files are: one sentence, no file left behind, nothing spent.

``PRIVGP_FUZZ`` sets how many cases are tried in total.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from privgp.models.regressor import PrivateGPRegressor
from tests.command.running import Result, assert_one_sentence, run

CASES = int(os.environ.get("PRIVGP_FUZZ", "300"))
TABLE = b"who,age,note,cost\nann,20,x,1000.5\nann,31,y,2000.5\nbob,44,,1500.25\ncy,58,z,700\n"
RELEASE = [
    "release",
    "v.csv",
    "--inputs",
    "age",
    "--output",
    "cost",
    "--bounds",
    "0",
    "5000",
    "--epsilon",
    "1",
    "--delta",
    "1e-5",
    "-o",
    "out.privgp",
    "--groups",
    "who",
    "--hyperparameters",
    "fixed",
]
PLAN = RELEASE.copy()
PLAN[0:1], PLAN[-6:-4] = ["plan"], []
PREDICT = ["predict", "v.privgp", "v.csv", "-o", "out.csv", "--observation"]
INSPECT = ["inspect", "v.privgp", "--certificate", "out.json"]
ODD = [
    *("", " ", "-", "--", "0", "-1", "1", "nan", "inf", "1e400", "1e-320", "0x10", "age", "cost"),
    *("who", "age,cost", "age,age", ",", "v.csv", "v.privgp", "no.csv", ".", "/", "~", "*.csv"),
    *("\x00", "\x1b[31m", "\N{COLLISION SYMBOL}", "'", '"', "[bold]", "{}", "%s", "a" * 5000),
    *("rbf(1)", "white(1)", "1", "exec('1')", "age=0:1:2", "age=0:1:999999", "records", "trace"),
    *("--kernel", "--targets", "--groups", "--json", "--force", "--plot", "--seed", "-o"),
    *("plot.txt", "folder/out.privgp", "\udcff", "out.privgp", "../v.csv", "/dev/null", "-o="),
]
FIT_REACHED: list[tuple[Any, Any, Any]] = []

fuzz = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much], database=None
)


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory, release: Path) -> Iterator[Path]:
    """A folder to stand in; fits are noted and then fail, so that none takes time."""
    path = tmp_path_factory.mktemp("fuzz")
    (path / "v.csv").write_bytes(TABLE)
    (path / "v.privgp").write_bytes(release.read_bytes())

    def fit(_: PrivateGPRegressor, X: Any, y: Any, *, groups: Any, **__: Any) -> None:
        FIT_REACHED.append((X, y, groups))
        raise RuntimeError("spent")

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        patch.setattr(PrivateGPRegressor, "fit", fit)
        patch.setattr("privgp.command.io.spending.rehearse", lambda *_: None)
        yield path


def observed(folder: Path, arguments: list[str]) -> tuple[Result, bool]:
    """Run, check what must always hold, remove what was written; whether fit was reached."""
    FIT_REACHED.clear()
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    result = run(*arguments)
    after = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    for name in set(after) - set(before):
        (folder / name).unlink()
    assert {name: after.get(name) for name in before} == before
    reached = bool(FIT_REACHED)
    event(f"exit code {result.code}, fit {'' if reached else 'not '}reached")
    if result.code == 0:
        assert result.err == ""
    else:
        assert after == before
        assert_one_sentence(result, result.code)
        assert result.code == (1 if reached else 2), result
        assert ("as spent" in result.err) == reached
        assert "unexpectedly" not in result.err
    assert not any(cell in result.err + result.out for cell in ("1000.5", "2000.5", "1500.25"))
    return result, reached


def edits() -> st.SearchStrategy[list[tuple[str, int, str]]]:
    kinds = st.sampled_from(["replace", "insert", "delete", "swap"])
    tokens = st.sampled_from(ODD) | st.text(max_size=8)
    return st.lists(st.tuples(kinds, st.integers(1, 30), tokens), min_size=1, max_size=4)


def edited(command: list[str], changes: list[tuple[str, int, str]]) -> list[str]:
    tokens = command.copy()
    for kind, place, token in changes:
        at = 1 + place % max(1, len(tokens) - 1)
        if kind == "insert":
            tokens.insert(at, token)
        elif at < len(tokens):
            if kind == "replace":
                tokens[at] = token
            elif kind == "delete":
                del tokens[at]
            else:
                tokens[at], tokens[-1] = tokens[-1], tokens[at]
    # Help and installing of completions are not refusals.
    return [t for t in tokens if t not in ("-h", "--help") and "completion" not in t]


@settings(fuzz, max_examples=max(1, CASES // 3))
@given(command=st.sampled_from([RELEASE, PLAN, PREDICT, INSPECT]), changes=edits())
@example(command=RELEASE, changes=[("delete", 30, "")])
def test_any_arguments(
    folder: Path, command: list[str], changes: list[tuple[str, int, str]]
) -> None:
    observed(folder, edited(command, changes))


def damages(length: int) -> st.SearchStrategy[list[tuple[int, int, bytes]]]:
    """Cut this many bytes at a place and put others there."""
    pieces = st.sampled_from(
        [
            *(b",", b";", b'"', b" ", b"-", b"\n", b"\n\n", b"\r", b"\r\n", b"\x00", b"\xff"),
            *(b"nan", b"1e999", b"9" * 400, b"who,", b"cost"),
            *(b"\xef\xbb\xbf", b"\xe2\x80\xaf", b"\xd9\xa3"),
        ]
    )
    places = st.integers(0, length)
    return st.lists(
        st.tuples(places, st.integers(0, 4), pieces | st.binary(max_size=3)),
        min_size=1,
        max_size=4,
    )


def damaged(content: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    for place, cut, piece in changes:
        content = content[:place] + piece + content[place + cut :]
    return content


@settings(fuzz, max_examples=max(1, CASES // 3))
@given(changes=damages(len(TABLE)))
@example(changes=[(0, 0, b"")])
@example(changes=[(0, 0, b'"')])
def test_any_bytes_in_a_table(folder: Path, changes: list[tuple[int, int, bytes]]) -> None:
    content = damaged(TABLE, changes)
    data = folder / "damaged.csv"
    data.write_bytes(content)
    try:
        _, reached = observed(folder, ["release", "damaged.csv", *RELEASE[2:]])
        if reached:
            assert_read_as_written(content)
    finally:
        data.unlink()


def assert_read_as_written(content: bytes) -> None:
    """What fit was given is what Python's own reader finds."""
    (X, y, groups), *_ = FIT_REACHED
    header, *rows = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""))
    names = [name.strip() for name in header]
    assert all(len(row) == len(names) for row in rows)
    columns = {name: [row[place].strip() for row in rows] for place, name in enumerate(names)}
    assert np.array_equal(X["age"].to_numpy().astype(float), [float(c) for c in columns["age"]])
    assert np.array_equal(y, [float(cell) for cell in columns["cost"]])
    assert list(groups) == columns["who"]
    assert all(math.isfinite(value) for value in y)


PARQUET = io.BytesIO()
pl.read_csv(TABLE, infer_schema_length=None).write_parquet(PARQUET)


@settings(fuzz, max_examples=max(1, CASES // 6))
@given(changes=damages(len(PARQUET.getvalue())))
@example(changes=[(0, 0, b"")])
def test_any_bytes_in_a_parquet_file(folder: Path, changes: list[tuple[int, int, bytes]]) -> None:
    data = folder / "damaged.parquet"
    data.write_bytes(damaged(PARQUET.getvalue(), changes))
    try:
        with tempfile.TemporaryFile() as stream:
            before = os.dup(2)
            os.dup2(stream.fileno(), 2)
            try:
                observed(folder, ["release", "damaged.parquet", *RELEASE[2:]])
            finally:
                os.dup2(before, 2)
                os.close(before)
            assert stream.tell() == 0  # what is not Python writes past sys.stderr
    finally:
        data.unlink()


def magnitudes(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high).map(lambda power: float(10.0**power))


def signed(low: float, high: float) -> st.SearchStrategy[float]:
    return st.builds(
        lambda sign, size: sign * size, st.sampled_from([-1, 1]), magnitudes(low, high)
    )


@settings(fuzz, max_examples=max(1, CASES // 6))
@given(
    bounds=st.builds(
        lambda low, share: [low, low + abs(low) * share], signed(-110, 101), magnitudes(-12.1, 2)
    ),
    budget=st.tuples(magnitudes(-8, 4.1), magnitudes(-13, -0.001) | magnitudes(-320, -13)),
    kernel=st.none() | st.tuples(magnitudes(-51, 51), magnitudes(-51, 51)),
    cells=st.lists(signed(-320, 308), min_size=1, max_size=5),
    options=st.sampled_from(
        [[], ["--objective", "trace"], ["--objective", "max"], ["--reconstruct", "unbiased"]]
    ),
)
@example(bounds=[0.0, 1.0], budget=(1.0, 1e-5), kernel=(1.0, 1.0), cells=[1.0, 2.0], options=[])
def test_any_magnitudes_in_a_plan(
    folder: Path,
    bounds: list[float],
    budget: tuple[float, float],
    kernel: tuple[float, float] | None,
    cells: list[float],
    options: list[str],
) -> None:
    low, high, epsilon, delta = (repr(number) for number in (*bounds, *budget))
    data = folder / "magnitudes.csv"
    data.write_text("\n".join(["age", *map(repr, cells)]))
    text = [] if kernel is None else ["--kernel", f"{kernel[0]!r}*rbf({kernel[1]!r})"]
    try:
        result = run(
            *("plan", "magnitudes.csv", "--inputs", "age", "--bounds", low, high, *text, *options),
            *("--epsilon", epsilon, "--delta", delta, "--hyperparameters", "fixed", "--json"),
        )
    finally:
        data.unlink()
    event(f"exit code {result.code}")
    if result.code == 0:
        assert json.loads(result.out)["expected_error"] >= 0.0
    else:
        told = json.loads(result.err)
        assert told["code"] == result.code
        assert told["error"].endswith(".")
        assert "unexpectedly" not in result.err, result
