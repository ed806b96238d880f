"""Columns of a table: what options or a file say that inputs are, and how columns become inputs and
outputs. Private columns go to the vault."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl

from privgp.command.errors import Refusal, plural, refusal, refuse_on
from privgp.command.io.files import TABLES, check_readable
from privgp.command.io.screen import Step
from privgp.command.options import ReleaseOptions
from privgp.models.published import names_of
from privgp.plan.inputs.inputs import Inputs, list_columns
from privgp.release.release import Release
from privgp.tables.cells import TEXTS, Kinds, input_columns
from privgp.tables.kinds import KINDS, Category, ColumnKinds, level
from privgp.tables.parser import list_names
from privgp.tables.source import Form, Source, load, open_source
from privgp.types import Array, Cells
from privgp.vault.table import column_values, complete_rows, seal_rows
from privgp.vault.validate import column_labels

Rows = pl.DataFrame | Array
# Numbers, labels, or several columns of numbers; of points none.
PrivateValues = Array | Cells | pl.DataFrame | None
PLAIN_KINDS = {"dates": "date", "numbers": "number", "booleans": "boolean"}  # by their options
PERIODIC = "--periodic must name columns with their periods, such as hour=24."
PLAINLY = ", such as 1250.5, without units or other signs"
FORM = (
    "--x-bounds must be such as when=2024-01-01:2024-12-31,lat=51.3:51.7, or --x-bounds LO HI once for "
    "each input that has bounds, in their order."
)


def split_names(text: str, option: str = "--inputs") -> list[str]:
    """The names in --inputs, such as 'age,bmi', or in another option."""
    names = split_list(text)
    if not all(names):
        raise Refusal(f"{option} must be names of columns separated by commas, such as age,bmi.")
    for name in names:
        if names.count(name) > 1:
            raise Refusal(f"{option} names the column '{name}' twice.")
    return names


def columns_from_options(inputs: Sequence[str], asked: ReleaseOptions) -> ColumnKinds | None:
    """``columns`` of a model from the options that say what inputs are."""
    columns: dict[str | tuple[str, ...], str | tuple[str, object]] = {}
    for option, kind in PLAIN_KINDS.items():
        columns |= dict.fromkeys(_names(getattr(asked, option), f"--{option}"), kind)
    for entry in _names(asked.categories, "--categories"):
        name, equals, levels = entry.partition("=")
        if equals and not all(levels.split("|")):
            raise Refusal("--categories must be such as region or region=north|south.")
        columns[name] = ("category", levels.split("|")) if equals else "category"
    for entry in _names(asked.periodic, "--periodic"):
        name, _, period = entry.partition("=")
        with refuse_on(PERIODIC, ValueError):
            columns[name] = ("periodic", float(period))
    place = tuple(_names(asked.places, "--places"))
    if len(place) not in (0, 2):
        raise Refusal("--places must name two columns: latitude and longitude, such as lat,lon.")
    if place:
        columns[place] = ("place", asked.crs)
    elif asked.crs is not None:
        raise Refusal("--crs is for --places only.")
    mentioned = list_columns(columns)
    for name in mentioned:
        if name not in inputs:
            raise Refusal(f"'{name}' is not among the --inputs, {list_names(inputs)}.")
        if mentioned.count(name) > 1:
            raise Refusal(f"The column '{name}' is given two kinds: leave one of them out.")
    return columns or None


def kinds_of(columns: Inputs | ColumnKinds | None) -> dict[str, str]:
    """The kind of every column, from ``columns`` of a model or from what its file says."""
    if columns is None:
        return {}
    if isinstance(columns, Inputs):
        return {name: each.kind for each in columns.columns for name in each.names}
    return {
        name: said if isinstance(said, str) else said[0]
        for key, said in columns.items()
        for name in (key if isinstance(key, tuple) else (key,))
    }


def levels_of(columns: Inputs | ColumnKinds | None) -> dict[str, list[str]]:
    """The levels of the categories, from ``columns`` of a model or from what its file says."""
    if columns is None:
        return {}
    if isinstance(columns, Inputs):
        categories = [each for each in columns.columns if isinstance(each, Category)]
        return {each.names[0]: [*each.levels] for each in categories}
    return {
        str(key): [level(each) for each in said[1]]
        for key, said in columns.items()
        if said[0] == "category" and isinstance(said[1], list)
    }


def with_names(inputs: Inputs | None, names: Sequence[str]) -> Inputs | None:
    """What a model's file says of its inputs, under the names that they have in a table."""
    if inputs is None:
        return None
    here = iter(names)
    return Inputs(
        tuple(replace(c, names=tuple(islice(here, c.name_count))) for c in inputs.columns)
    )


def kinds_by_name(inputs: Inputs | None, names: Sequence[str]) -> Kinds | None:
    """The kinds of these columns; None where all are numbers."""
    return None if inputs is None else kinds_of(with_names(inputs, names))


def bounds_by_name(words: Sequence[str], kinds: Kinds) -> dict[str, tuple[str, str]]:
    """The ends of every private input that has bounds, as they were written. ``kinds``: of all inputs."""
    bounded = [name for name, kind in kinds.items() if KINDS[kind].bounded]
    entries = [entry.rpartition("=") for entry in ",".join(words).split(",")] if words else []
    names = [name.strip() for name, equals, _ in entries if equals]
    if names and len(names) < len(entries):
        raise Refusal(FORM)
    if not names:
        names = bounded[: len(entries)] + ["?"] * (len(entries) - len(bounded))
    if sorted(names) != sorted(bounded):
        raise Refusal(
            f"--x-bounds must have one range for each of {list_names(bounded)}, such as age=0:90: "
            "where the private inputs are known to lie, chosen without looking at them. A category needs no "
            "range: declare its levels with --categories."
        )
    given = dict(zip(names, (said for *_, said in entries), strict=True))
    return {name: _ends(given[name], kinds[name]) for name in bounded}


def _ends(said: str, kind: str) -> tuple[str, str]:
    """Both ends of ``LO:HI``, which may be times with their own colons."""
    parts = [part.strip() for part in said.split(":")]
    halves = [(":".join(parts[:k]), ":".join(parts[k:])) for k in range(1, len(parts))]
    found = [pair for pair in halves if all(_is(end, kind) for end in pair)]
    if len(found) != 1:
        raise Refusal(FORM)
    return found[0]


def _is(end: str, kind: str) -> bool:
    """Whether a text is an end of a range: a date for dates, a number for all others."""
    column = KINDS["date" if kind == "date" else "number"](("",))
    try:
        column.numbers([np.array([end], dtype=object)])
    except (ValueError, OverflowError):
        return False
    return True


def split_list(text: str) -> list[str]:
    """Names between commas; one that has a comma itself must be in double quotes."""
    if '"' not in text:
        return [name.strip() for name in text.split(",")]
    try:
        return [name.strip() for name in next(csv.reader([text], skipinitialspace=True))]
    except csv.Error:
        raise Refusal("Names of columns must have no line breaks.") from None


def _names(text: str | None, option: str) -> list[str]:
    if text is None:
        return []
    names = split_list(text)
    if not all(names):
        raise Refusal(f"{option} must be names of columns separated by commas.")
    bare = [name.partition("=")[0] for name in names]
    if len({*bare}) != len(bare):
        raise Refusal(f"{option} names a column twice.")
    return names


class Fitted(Protocol):
    """A model that knows its inputs."""

    n_features_in_: int


def as_table(names: Sequence[str] | None, X: Rows) -> Rows:
    """Rows under the names of a model's inputs, if any."""
    # without orient, a square array would be read by columns
    if isinstance(X, pl.DataFrame):
        return X.to_numpy() if names is None else X.rename(dict(zip(X.columns, names, strict=True)))
    return X if names is None else pl.DataFrame(X, schema=list(names), orient="row")


def in_blocks(
    names: Sequence[str] | None, X: Rows, size: int, step: Step, doing: str
) -> Iterator[Rows]:
    """The rows as above, some at a time; every block is a step of a bar."""
    for start in range(0, len(X), size):
        step(f"{doing} {start + 1} of {len(X)}")
        yield as_table(names, X[start : start + size])


@contextmanager
def refuse_questions(**options: str) -> Iterator[None]:
    """What is refused is about the question, and may be told. ``options``: as ``refusal`` has them."""
    try:
        with np.errstate(all="ignore"):
            yield
    except ValueError as problem:
        raise refusal(problem, **options) from None


def input_names(model: Fitted, path: Path, given: str | None) -> tuple[str, ...]:
    """The inputs by the names given with --inputs, else by those in the model's file."""
    names = names_of(model) if given is None else tuple(split_names(given))
    count = model.n_features_in_
    if names is None:
        raise Refusal(f"'{path}' does not name its {plural(count, 'input')}: do so with --inputs.")
    if len(names) != count:
        raise Refusal(f"'{path}' has {plural(count, 'input')}, but --inputs names {len(names)}.")
    return names


def question_rows(
    model: Fitted, path: Path, table: Path, given: str | None, form: Form | None = None
) -> pl.DataFrame:
    """The inputs in a new table."""
    names = input_names(model, path, given)
    return read_inputs(table, names, kinds_by_name(getattr(model, "inputs_", None), names), form)


def columns_to_keep(
    release: Release, table: Path, names: Sequence[str], form: Form | None = None
) -> pl.DataFrame:
    """All columns of a new table as they are, the inputs ``names`` among them; but not one that has the
    name of the private output, as the table may be the custodian's."""
    kinds = kinds_by_name(release.parameters.columns, names)
    source = open_source(table, _with_texts(form, kinds or {}), names)
    private = {*(release.output_names or ()), (release.facts.called or {}).get("column")}
    kept = [name for name in source.names if name not in private and source.names.count(name) == 1]
    return load(source, kept)


def read_inputs(
    path: Path, names: Sequence[str], kinds: Kinds | None = None, form: Form | None = None
) -> pl.DataFrame:
    check_readable(path, TABLES)
    source = open_source(path, _with_texts(form, kinds or {}), names)
    return input_columns(load(source, names), names, source, kinds=kinds)


def _with_texts(form: Form | None, kinds: Kinds) -> Form:
    texts = tuple(name for name, kind in kinds.items() if kind in TEXTS)
    return replace(form or Form(), texts=texts)


def whole_rows(frame: pl.DataFrame, levels: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    """The rows that have a value in every column. Which they are is public, as the custodian chose.
    ``levels``: the declared ones of categories, by their names."""
    names = frame.columns
    cells = [frame[name].to_list() for name in names]
    return frame.filter(complete_rows(cells, [levels.get(name, ()) for name in names]))


def check_decimals(source: Source) -> None:
    """Refuse to guess how private numbers are written: 1.250 may be 1250."""
    layout = source.layout
    known = layout.decimal_comma is not None or layout.delimiter == ","
    if source.is_csv and not known:
        raise Refusal(
            f"The public columns of '{source.path}' do not show whether its private numbers have a "
            "decimal point or a decimal comma: give --decimal-point or --decimal-comma."
        )


def private_columns(frame: pl.DataFrame, names: Sequence[str], source: Source) -> pl.DataFrame:
    """Private inputs. Whatever is wrong, and with whichever of them, the sentence is the same."""
    sentence = f"The input columns of '{source.path}' must hold a finite number in every row."
    with refuse_on(sentence, *([Refusal] if len(names) > 1 else [])):
        return output_columns(frame, names, source)


def output_column(frame: pl.DataFrame, name: str, source: Source, choice: str = "") -> Array:
    """The private outputs, read by the vault. Whatever is wrong with them, the sentence is the same.
    ``choice``: what else a column may hold."""
    sentence = f"Column '{name}' of '{source.path}' must hold a finite number in every row{PLAINLY}{choice}."
    with refuse_on(sentence, TypeError, ValueError, pl.exceptions.PolarsError):
        return column_values(frame[name])


def output_columns(frame: pl.DataFrame, names: Sequence[str], source: Source) -> pl.DataFrame:
    """Several private outputs, under their names."""
    return pl.DataFrame([pl.Series(name, output_column(frame, name, source)) for name in names])


def outputs(frame: pl.DataFrame, name: str, source: Source, task: str) -> Array | Cells:
    """Outputs to score against: numbers for regression, else labels as text. No row is named."""
    column = frame[name]
    if task == "regression":
        return output_column(frame, name, source)
    if not (column.dtype == pl.String or column.dtype.is_numeric() or column.dtype == pl.Boolean):
        raise Refusal(f"Column '{name}' of '{source.path}' must hold labels.")
    sentence = f"Column '{name}' of '{source.path}' must hold a label in every row."
    with refuse_on(sentence, ValueError):
        return column_labels(column.to_list())


def private_table(frame: pl.DataFrame, inputs: Inputs, source: Source) -> pl.DataFrame:
    """Private cells as they stand, once the vault has read each. Whatever is wrong, and with whichever
    of them, the sentence is the same."""
    sentence = (
        f"The input columns of '{source.path}' must hold a value of their kind in every row, such as "
        "12.5 for a number and 2025-12-31 for a date."
    )
    with refuse_on(sentence, ValueError):
        seal_rows(frame, inputs)
    return frame.select(inputs.names)
