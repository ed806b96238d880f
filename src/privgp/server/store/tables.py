"""Private tables on the server's disk: read when they are needed, never written, never quoted.

Whatever is wrong with a table, the sentence is the same.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from privgp.errors import TableError
from privgp.server.errors import Refused
from privgp.server.settings import Settings
from privgp.tables import parser
from privgp.vault.table import NO_LABEL, NOBODY, WRONG, WRONG_INPUTS

UNREADABLE = "The table cannot be read: it must be CSV in UTF-8 with commas (RFC 4180) and a header, or Parquet."
NOT_AS_DECLARED = (
    "The table must have each of the named columns once, and in every row a value as declared: a finite "
    "number, a date, a level, a label or a person."
)
SENTENCES = (WRONG, WRONG_INPUTS, NO_LABEL, NOBODY)  # of the vault, which hold no values


def check_table(path: Path, limits: Settings) -> None:
    """Refuse a table that cannot be read, and one that is larger than the settings allow.

    A file declares its size before it is expanded: a CSV file by its header, a Parquet file by the
    metadata of its row groups. Both are looked at first.

    Parameters
    ----------
    path
        The table.
    limits
        Settings of the server: ``max_columns``, ``max_rows``, ``max_expanded_bytes``.

    Raises
    ------
    Refused
        With one sentence, which quotes nothing.

    """
    try:
        (_check_header if parser.is_csv(str(path)) else _check_metadata)(path, limits)
        rows = parser.count_rows(str(path), most=limits.max_rows)
    except TableError:
        raise Refused(422, UNREADABLE) from None
    if rows == 0:
        raise Refused(422, "The table has no rows.")
    _check_size(rows, limits.max_rows, "rows")


def _check_header(path: Path, limits: Settings) -> None:
    _check_size(len(parser.read_header(str(path))), limits.max_columns, "columns")


def _check_metadata(path: Path, limits: Settings) -> None:
    """Compare what a Parquet file declares with the limits, and then the texts that few bytes of it
    may stand for: a dictionary holds a text once, whatever the number of rows that have it."""
    from pyarrow import ArrowException, parquet

    try:
        found = parquet.read_metadata(path)
        expanded = sum(found.row_group(k).total_byte_size for k in range(found.num_row_groups))
        counts = found.num_columns, found.num_rows
    except (ArrowException, OSError, ValueError):
        raise Refused(422, UNREADABLE) from None
    _check_size(counts[0], limits.max_columns, "columns")
    _check_size(counts[1], limits.max_rows, "rows")
    _check_size(expanded, limits.max_expanded_bytes, "bytes")
    texts = pl.col(pl.String).str.len_bytes().cast(pl.UInt64).sum()
    sums = parser.parse(
        str(path), lambda: pl.scan_parquet(path, glob=False).select(texts).collect()
    )
    _check_size(sum(sums.row(0)) if sums.width else 0, limits.max_expanded_bytes, "bytes")


def _check_size(found: int, most: int, of: str) -> None:
    if found > most:
        raise Refused(422, f"The table has more than {most} {of}.")


def describe_columns(path: Path) -> list[dict[str, str]]:
    """Names and kinds of columns as the header or the schema has them; no cell is read."""
    if parser.is_csv(str(path)):
        return [{"name": name, "kind": ""} for name in parser.read_header(str(path))]
    schema = pl.read_parquet_schema(path)
    return [{"name": name, "kind": _kind(dtype)} for name, dtype in schema.items()]


def _kind(dtype: pl.DataType) -> str:
    if dtype.is_numeric():
        return "number"
    if dtype.is_temporal():
        return "date"
    return "boolean" if dtype == pl.Boolean else "text"


@contextmanager
def hide_problems() -> Iterator[None]:
    """Refuse a table that is not as declared. No other sentences are told: they may quote values."""
    try:
        yield
    except Exception as problem:
        known = isinstance(problem, ValueError) and str(problem) in SENTENCES
        raise Refused(422, f"The {str(problem)[4:]}" if known else NOT_AS_DECLARED) from None
