"""What input columns are, as options say it or as a file knows it."""

from __future__ import annotations

import csv
from collections.abc import Sequence

import numpy as np

from privgp.command.errors import Refusal
from privgp.plan.inputs.inputs import Inputs
from privgp.tables.cells import Kinds
from privgp.tables.kinds import KINDS, Category, ColumnKinds, level
from privgp.tables.parser import list_names

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


def columns_from_options(
    inputs: Sequence[str],
    dates: str | None,
    categories: str | None,
    places: str | None,
    periodic: str | None,
    booleans: str | None,
    crs: str | None,
    numbers: str | None = None,
) -> ColumnKinds | None:
    """``columns`` of a model from the options --dates, --categories, --places, --periodic, --booleans
    and --numbers."""
    columns: dict[str | tuple[str, ...], str | tuple[str, object]] = {}
    columns |= dict.fromkeys(_names(dates, "--dates"), "date")
    columns |= dict.fromkeys(_names(numbers, "--numbers"), "number")
    columns |= dict.fromkeys(_names(booleans, "--booleans"), "boolean")
    for entry in _names(categories, "--categories"):
        name, equals, levels = entry.partition("=")
        if equals and not all(levels.split("|")):
            raise Refusal("--categories must be such as region or region=north|south.")
        columns[name] = ("category", levels.split("|")) if equals else "category"
    for entry in _names(periodic, "--periodic"):
        name, _, period = entry.partition("=")
        try:
            columns[name] = ("periodic", float(period))
        except ValueError:
            raise Refusal(
                "--periodic must name columns with their periods, such as hour=24."
            ) from None
    place = tuple(_names(places, "--places"))
    if place:
        if len(place) != 2:
            raise Refusal(
                "--places must name two columns: latitude and longitude, such as lat,lon."
            )
        columns[place] = ("place", crs)
    elif crs is not None:
        raise Refusal("--crs is for --places only.")
    mentioned = [name for key in columns for name in (key if isinstance(key, tuple) else (key,))]
    for name in mentioned:
        if name not in inputs:
            raise Refusal(f"'{name}' is not among the --inputs, {list_names(inputs)}.")
        if mentioned.count(name) > 1:
            raise Refusal(f"The column '{name}' is said to be two things.")
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


def kinds_by_name(inputs: Inputs | None, names: Sequence[str]) -> Kinds | None:
    """What the columns of these names are, which replace those in the model's file."""
    if inputs is None:
        return None
    known = kinds_of(inputs)
    return dict(zip(names, (known[name] for name in inputs.names), strict=True))


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
            "--x-bounds must have one range for each input that has bounds, "
            f"{list_names(bounded)}: bounds that the private inputs are known to lie in, chosen without "
            "looking at them."
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
