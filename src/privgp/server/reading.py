"""Private tables on the server's disk: read when they are needed, never written, never quoted.

Whatever is wrong with a table, the sentence is the same.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from privgp.server.errors import Refused
from privgp.tables import parser
from privgp.tables.parser import TableError
from privgp.vault.table import NO_LABEL, NOBODY, WRONG, WRONG_INPUTS

UNREADABLE = "The table cannot be read: it must be CSV in UTF-8 with commas (RFC 4180) and a header, or Parquet."
NOT_AS_DECLARED = (
    "The table must have each of the named columns once, and in every row a value as declared: a finite "
    "number, a date, a level, a label or a person."
)
SENTENCES = (WRONG, WRONG_INPUTS, NO_LABEL, NOBODY)  # of the vault, which hold no values


def check_rows(path: Path, most: int) -> None:
    """Refuse a table that cannot be read, every line of it, and one without rows or with too many."""
    try:
        rows = parser.count_rows(str(path))
    except TableError:
        raise Refused(422, UNREADABLE) from None
    if rows == 0:
        raise Refused(422, "The table has no rows.")
    if rows > most:
        raise Refused(422, f"The table has more than {most} rows.")


@contextmanager
def hide_problems() -> Iterator[None]:
    """Refuse a table that is not as declared. No other sentences are told: they may quote values."""
    try:
        yield
    except Exception as problem:
        known = isinstance(problem, ValueError) and str(problem) in SENTENCES
        raise Refused(422, f"The {str(problem)[4:]}" if known else NOT_AS_DECLARED) from None
