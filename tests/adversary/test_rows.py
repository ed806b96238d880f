"""What a row of a table is: the same to Python, to the command and to the server, or refused."""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

import privgp
from privgp.command.errors import Refusal
from privgp.errors import TableError
from privgp.server.errors import Refused
from privgp.server.settings import Settings
from privgp.server.store import tables as reading
from privgp.tables.source import Form, load, open_source
from tests.command.running import assert_refused, run

CASES = int(os.environ.get("PRIVGP_FUZZ", "300"))
NAMES = ("x", "note", "y")
Rows = list[tuple[str, ...]]

# Readers that end a line at every second quote find as many rows in this as those that do not, but
# others: a note becomes a row, whose cells are public inputs, and the rows around it are lost.
STRAY = b'x,note,y\n1,a"b,5\n2,"\n4711,n,900\n22,",7\n3,a"b,5\n'
AMBIGUOUS = {
    "quotes inside fields": STRAY,
    "text after a quote": b'x,note,y\n1,"a"b,5\n2,c,6\n',
    "a space before a quote": b'x,note,y\n1, "a",5\n2,c,6\n',
    "an escaped quote": b'x,note,y\n1,"a\\"b",5\n2,c,6\n',
    "an open quote": b'x,note,y\n1,"a,5\n2,c,6\n',
    "carriage returns": b"x,note,y\r1,a,5\r2,c,6\r",
    "a carriage return in a field": b"x,note,y\n1,a\rb,5\n2,c,6\n",
    "two carriage returns": b"x,note,y\r\n1,a,5\r\r\n2,c,6\r\n",
    "an empty line": b"x,note,y\n1,a,5\n\n2,c,6\n",
    "an empty line at the start": b"\nx,note,y\n1,a,5\n2,c,6\n",
    "an empty line at the end": b"x,note,y\n1,a,5\n2,c,6\n\n",
    "more fields": b"x,note,y\n1,a,5,9\n2,c,6\n",
    "fewer fields": b"x,note,y\n1,a\n2,c,6\n",
    "no UTF-8": b"x,note,y\n1,\xe9,5\n2,c,6\n",
    "compressed": gzip.compress(b"x,note,y\n1,a,5\n"),
    "the same column twice": b"x,note,y,x\n1,a,5,2\n2,c,6,3\n",
}
CLEAR = {
    "commas, quotes and lines in quotes": b'x,note,y\n1,"a,""b""\n4711,n,900\n",5\n"2",c,6\n',
    "line ends of Windows": b'x,note,y\r\n1,"a\r\nb",5\r\n2,c,6',
    "carriage returns in quotes": b'x,note,y\n1,"a\rb",5\n2,c,6\n',
    "a byte order mark": b"\xef\xbb\xbfx,note,y\n1,a,5\n2,c,6\n",
    "a byte order mark and a quote": b'\xef\xbb\xbf"x","note","y"\n1,a,5\n2,c,6\n',
    "no comments": b"x,note,y\n#1,a,5\n2,//,6\n",
    "NUL and other signs": "x,note,y\n1,\0,5\n2,a\u2028b\x0b\x1a\x85c,6\n".encode(),
}


def cells(frame: pl.DataFrame) -> Rows:
    return [tuple("" if cell is None else str(cell) for cell in row) for row in frame.rows()]


def of_python(path: Path) -> Rows:
    files = privgp.open_table(path, ["x", "note"], "y").inputs.files
    return [row for _, _, frame in files.batches(NAMES, size=2) for row in cells(frame)]


def of_the_command(path: Path) -> Rows:
    return cells(load(open_source(path, Form(delimiter=",")), NAMES))


def of_the_server(path: Path) -> Rows:
    reading.check_table(path, Settings(data=path.parent))
    with reading.hide_problems():
        return of_python(path)


READERS: dict[str, Callable[[Path], Rows]] = {
    "Python": of_python, "command": of_the_command, "server": of_the_server,
}  # fmt: skip


def read(path: Path, reader: str) -> Rows | None:
    """The rows that a reader finds; None where it refuses the table."""
    try:
        return READERS[reader](path)
    except (ValueError, Refusal, Refused):
        return None


def expected(content: bytes) -> Rows:
    """The rows that Python's own reader finds."""
    header, *rows = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
    places = [[name.strip() for name in header].index(name) for name in NAMES]
    return [tuple(row[place] for place in places) for row in rows]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("case", AMBIGUOUS)
def test_what_readers_may_read_otherwise_is_refused(tmp_path: Path, case: str, reader: str) -> None:
    (tmp_path / "t.csv").write_bytes(AMBIGUOUS[case])
    assert read(tmp_path / "t.csv", reader) is None


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("case", CLEAR)
def test_what_is_clear_is_read(tmp_path: Path, case: str, reader: str) -> None:
    (tmp_path / "t.csv").write_bytes(CLEAR[case])
    found = read(tmp_path / "t.csv", reader)
    assert found == expected(CLEAR[case])
    assert found is not None
    assert len(found) == 2


def test_quotes_of_one_record_do_not_publish_the_note_of_another(tmp_path: Path) -> None:
    """Nothing is charged, and no cell is told."""
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_bytes(STRAY)
    account = privgp.Ledger(f"sqlite:///{tmp_path}/budget.db").open("t", epsilon=1, delta=1e-5)
    asked = ["--inputs", "x", "--output", "y", "--bounds", "0", "9", "--epsilon", "1"]
    asked += ["--delta", "1e-5", "-o", tmp_path / "t.privgp", "--hyperparameters", "fixed"]
    asked += ["--ledger", f"sqlite:///{tmp_path}/budget.db", "--dataset", "t"]
    for data in (f"{tmp_path}/*.csv", tmp_path / "a.csv"):
        done = run("release", data, *asked)
        assert_refused(done, "Line 2 of", "has a quote inside a field")
        assert "4711" not in done.err
    assert not (tmp_path / "t.privgp").exists()
    assert account.remaining() == pytest.approx(1.0)


PIECES = [
    *('"', '""', ",", ";", "\n", "\r\n", "\r", "\n\n", " ", "\t", "#", "\\", "'", "\0", "\ufeff"),
    *("a", "1", '"a"', '"a\nb"', '"a,b"', '"""a"""', "1,2,3\n", '4,"5\n6",7\n', '"', "\u2028"),
]
fuzz = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    database=None,
    derandomize=True,
    deadline=None,
)


@settings(fuzz, max_examples=4 * CASES)
@given(
    pieces=st.lists(st.sampled_from(PIECES), max_size=14),
    start=st.sampled_from(
        ["x,note,y\n1,a,5\n", "x,note,y\n", '"x",note,"y"\r\n', "\ufeffx,note,y\n"]
    ),
)
@example(pieces=[STRAY.decode().partition("\n")[2]], start="x,note,y\n")
def test_any_table_has_the_same_rows_for_all_or_is_refused_by_all(
    tmp_path: Path, pieces: list[str], start: str
) -> None:
    content = (start + "".join(pieces)).encode()
    (tmp_path / "t.csv").write_bytes(content)
    found = [read(tmp_path / "t.csv", reader) for reader in READERS]
    event("refused" if found[0] is None else f"{len(found[0])} rows")
    assert found[1:] == found[:-1]
    if found[0] is not None:
        assert found[0] == expected(content)


nasty = st.text(st.sampled_from("\",;\n\r\t #\\'a1\0\ufeff\u2028é"), max_size=6)


@settings(fuzz, max_examples=CASES)
@given(
    rows=st.lists(st.tuples(nasty, nasty, nasty), min_size=1, max_size=6),
    ends=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_any_cells_that_a_program_wrote_are_read(
    tmp_path: Path, rows: Rows, ends: str, quoting: int
) -> None:
    if quoting == csv.QUOTE_MINIMAL:  # some versions of the writer put no quotes around this one
        rows = [tuple(cell.replace("\r", "") for cell in row) for row in rows]
    with (tmp_path / "t.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator=ends, quoting=quoting)  # type: ignore[arg-type]
        writer.writerows([NAMES, *rows])
    for reader in READERS:
        assert read(tmp_path / "t.csv", reader) == rows


def test_rows_of_a_large_table_are_those_that_were_written(tmp_path: Path) -> None:
    """The parser reads parts of it at a time, which may begin inside quotes."""
    note = "1,2,3\n4,5,6\n" * 20 + '"'
    rows = [(str(k), note if k % 3 else "", str(k % 7)) for k in range(30_000)]
    with (tmp_path / "t.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([NAMES, *rows])
    files = privgp.open_table(tmp_path / "t.csv", ["x"], "y").inputs.files
    read_again = [row for _, _, frame in files.batches(NAMES, size=7_001) for row in cells(frame)]
    assert read_again == rows
    assert of_the_command(tmp_path / "t.csv") == rows


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "windows-1252"])
@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_other_encodings_are_the_same_table(tmp_path: Path, encoding: str, ending: str) -> None:
    text = 'x;note;y\r\n1;"é\n""b"";";5\r\n2;c;6\r\n'
    data = text.encode(encoding)
    path = tmp_path / f"t{ending}"
    path.write_bytes(gzip.compress(data) if ending == ".csv.gz" else data)
    source = open_source(path, Form(encoding=encoding))
    assert cells(load(source, NAMES)) == [("1", 'é\n"b";', "5"), ("2", "c", "6")]
    path.write_bytes(gzip.compress(data[:-5]) if ending == ".csv.gz" else data[:-5])
    with pytest.raises(TableError):
        load(source, NAMES)
    with pytest.raises(TableError):
        open_source(path, Form(encoding=encoding))


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(b"x,note,y\n1,a,5\n", mtime=0)[:-4],
        gzip.compress(b"x,note,y\n1,a,5\n", mtime=0) + b"2,c,6\n",
        b"x,note,y\n1,a,5\n",
    ],
)
def test_a_compressed_table_that_is_damaged_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.csv.gz").write_bytes(content)
    assert read(tmp_path / "t.csv.gz", "command") is None


def test_a_compressed_table_in_two_members_is_whole_or_refused(tmp_path: Path) -> None:
    content = b"x,note,y\n1,a,5\n", b"2,c,6\n"
    (tmp_path / "t.csv.gz").write_bytes(b"".join(map(gzip.compress, content)))
    assert read(tmp_path / "t.csv.gz", "command") in (None, [("1", "a", "5"), ("2", "c", "6")])


@pytest.mark.parametrize("reader", READERS)
def test_a_parser_that_finds_other_rows_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    """Whichever of its ways to the rows is wrong: that to their number, or that to their cells."""
    (tmp_path / "t.csv").write_bytes(CLEAR["no comments"])
    assert read(tmp_path / "t.csv", reader) is not None
    right = pl.LazyFrame.collect
    for wrong in (pl.DataFrame.clear, lambda frame: frame.vstack(frame), lambda frame: frame + 1):
        with monkeypatch.context() as patch:
            patch.setattr(pl.LazyFrame, "collect", lambda table, w=wrong: w(right(table)))
            assert read(tmp_path / "t.csv", reader) is None


@pytest.mark.parametrize("reader", READERS)
def test_a_panic_of_the_parser_is_not_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], reader: str
) -> None:
    """It is no Exception, and writes the cell to the error stream of the process."""

    class Panic(BaseException):
        pass

    def panic(_: pl.LazyFrame) -> None:
        os.write(2, b"thread panicked at 4711")
        raise Panic("4711")

    (tmp_path / "t.csv").write_bytes(CLEAR["no comments"])
    monkeypatch.setattr(pl.LazyFrame, "collect", panic)
    assert read(tmp_path / "t.csv", reader) is None
    assert capfd.readouterr().err == ""
