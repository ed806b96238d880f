"""How numbers and dates of a table are written: declared or seen in public columns, never guessed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

from privgp.command.errors import Refusal
from privgp.command.io.columns import output_column, read_inputs, split_names
from privgp.errors import TableError
from privgp.tables.cells import input_columns
from privgp.tables.source import Form, load, open_source

Write = Callable[..., Path]


@pytest.mark.parametrize(
    ("content", "form", "a", "y"),
    [
        ("a;b;y\n1.280;0,5;2.300\n9;1,5;1.250,5\n", Form(), [1280, 9], [2300.0, 1250.5]),
        ("a;b;y\n1.28;x;2.5\n9;z;1,250.5\n", Form(), [1.28, 9], [2.5, 1250.5]),
        ('a,b,y\n"1,280.5",x,"2,300"\n9,z,1\n', Form(), [1280.5, 9], [2300.0, 1.0]),
        ('a,b,y\n"1,280",x,2\n9,z,1.250\n', Form(decimal_comma=False), [1280, 9], [2.0, 1.25]),
        ("a;b;y\n1.280;x;2,5\n9;z;1\n", Form(decimal_comma=True), [1280, 9], [2.5, 1.0]),
        ("a,b,y\n1.280,x,2.125\n9.125,z,1\n", Form(), [1.28, 9.125], [2.125, 1.0]),
        ("a;b;y\n-1.234.567,5;x;-2,5\n9;z;1\n", Form(), [-1234567.5, 9], [-2.5, 1.0]),
    ],
)
def test_public_cells_show_how_private_ones_are_written(
    write: Write, content: str, form: Form, a: list[float], y: list[float]
) -> None:
    source = open_source(write("t.csv", content), form, ["a", "b"])
    frame = load(source, ["a", "b", "y"])
    assert input_columns(frame, ["a"], source)["a"].to_list() == a
    assert output_column(frame, "y", source).tolist() == y


@pytest.mark.parametrize("cell", ["2.5", "0.123", "12.34,5", "1.25.300", "1,2,3"])
def test_another_sign_than_the_one_seen_is_no_number(write: Write, cell: str) -> None:
    source = open_source(write("t.csv", f"a;y\n1,5;{cell}\n"), None, ["a"])
    with pytest.raises(Refusal, match="finite number"):
        output_column(load(source, ["y"]), "y", source)


@pytest.mark.parametrize("content", ["a;y\n1.280;1\n", "a;y\n1,280;1\n", 'a,y\n"1,280",1\n'])
def test_thousands_that_may_be_decimals_are_asked_for(write: Write, content: str) -> None:
    with pytest.raises(TableError, match=r"1280 or 1.280: give `decimal_comma` or `decimal_point`"):
        open_source(write("t.csv", content), None, ["a"])


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ("45%\n7%", "numbers that are written as text, such as '45%'"),
        ("(12)\n(3)", "numbers"),
        ("−3\n−4", "numbers"),
        ("51.5° N\n51.6° N", "numbers"),
        ("03.02.2024\n04.02.2024", "`date_format`"),
        ("2/13/2024 3:05 PM\n1/2/2024 1:00 AM", "`date_format`"),
        ("01067\n10115", "`categories`"),
        ("north\nNA", "in row 2, as if there were no value"),
    ],
)
def test_text_that_is_something_else_is_no_category(write: Write, cells: str, words: str) -> None:
    data = write("t.csv", f"a\n{cells}\n")
    with pytest.raises(TableError, match=words):
        read_inputs(data, ["a"], {})
    assert read_inputs(data, ["a"], {"a": "category"})["a"].to_list() == cells.split("\n")


@pytest.mark.parametrize(
    ("cell", "date_format"),
    [
        ("13.02.2024 15:05", "%d.%m.%Y %H:%M"),
        ("02/13/2024 3:05 PM", "%m/%d/%Y %I:%M %p"),
        ("1707836700", "seconds"),
        ("1707836700000", "milliseconds"),
        ("2024-02-13T15:05", None),
    ],
)
def test_one_instant_in_every_way_of_writing(write: Write, cell: str, date_format: str) -> None:
    found = read_inputs(
        write("t.csv", f"a\n{cell}\n"), ["a"], {"a": "date"}, Form(date_format=date_format)
    )
    assert found["a"].to_list() == [datetime(2024, 2, 13, 15, 5)]


def test_dates_in_another_order_are_refused_by_their_row(write: Write) -> None:
    data = write("t.csv", "a\n01.02.2024\n02/13/2024\n")
    with pytest.raises(TableError, match=r"written like 31.12.2024: row 2"):
        read_inputs(data, ["a"], {"a": "date"}, Form(date_format="%d.%m.%Y"))


@pytest.mark.parametrize("encoding", ["windows-1252", "utf-16", "utf-8-sig"])
def test_letters_of_other_encodings(tmp_path: Path, encoding: str) -> None:
    data = tmp_path / "t.csv"
    data.write_bytes("Größe;Ort\r\n1,5;Köln\r\n".encode(encoding))
    found = read_inputs(data, ["Größe", "Ort"], {}, Form(encoding=encoding))
    assert found.equals(pl.DataFrame({"Größe": [1.5], "Ort": ["Köln"]}))
    if encoding == "windows-1252":
        with pytest.raises(TableError, match="state its encoding"):
            read_inputs(data, ["Größe"], {})


def test_a_name_with_a_comma_stands_in_quotes() -> None:
    assert split_names('"Trust, in council", age') == ["Trust, in council", "age"]
    assert split_names("age, bmi") == ["age", "bmi"]
    with pytest.raises(Refusal, match="separated by commas"):
        split_names("")
