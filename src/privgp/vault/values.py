"""Private values read one by one: what is made of a record's value depends on that value alone. An
array of numbers, texts or dates has one type for all records, as its author chose. Anything
else, such as a list, is read entry by entry and never made an array first: that would promote all
entries to the type of one. Proof: docs/proofs/values.md."""

import math
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from inspect import currentframe
from numbers import Integral, Rational, Real
from typing import Any, NoReturn
from unicodedata import category, normalize
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from privgp.tables.dates import instant_text, length_text
from privgp.tables.texts import ISO_DATE, NOTHING
from privgp.types import Array

NUMBER, TEXT, BYTES = "number", "text", "bytes"
WHOLE_FLOATS = 2.0**53  # from there on, several whole numbers are one float
MOST_DIGITS = 400  # of an identifier that is read as a number
UNSEEN = ("Cc", "Cf")  # kinds of letters that have no width
TRUTHS = {"true": "1", "false": "0"}


def entries(held: object) -> list[Any] | NDArray[Any]:
    """The entries of a container, in the order of its records: an array as it was built, or a list.

    Raises
    ------
    TypeError
        It is no container, or a masked array.

    """
    if isinstance(held, np.ma.MaskedArray):
        raise TypeError
    if isinstance(held, Sequence | deque) and not isinstance(held, str | bytes | bytearray):
        return list(held)
    try:
        array = np.asarray(held)
    except Exception:  # of other libraries: they may quote values
        raise TypeError from None
    if array.ndim == 0:
        raise TypeError
    return array


def column(held: object) -> tuple[list[Any] | NDArray[Any], bool]:
    """The entries of one column, and whether it came as a table of one column.

    Raises
    ------
    TypeError
        It is no container, or some entries are rows and others are not.
    LookupError
        It has another shape.

    """
    found = entries(held)
    if isinstance(found, np.ndarray):
        if found.ndim == 2 and found.shape[1] == 1:
            return found[:, 0], True
        if found.ndim != 1:
            raise LookupError
        return found, False
    rows = [is_row(entry) for entry in found]
    if not any(rows):
        return found, False
    if not all(rows):
        raise TypeError
    inner = [entries(entry) for entry in found]
    if any(len(entry) != 1 for entry in inner):
        raise LookupError
    return [entry[0] for entry in inner], True


def is_plain(values: object) -> bool:
    """Whether values are an array of numbers (of no more than 64 bits), texts or bytes."""
    if not isinstance(values, np.ndarray) or values.dtype == np.longdouble:
        return False
    return values.dtype.kind in "biufUS"


def is_row(entry: object) -> bool:
    """Whether an entry holds several: a list, not a text."""
    if isinstance(entry, np.ndarray):
        return entry.ndim > 0
    return hasattr(entry, "__len__") and not isinstance(entry, str | bytes | bytearray | np.generic)


def plain(value: object) -> Any:
    """A Python value for a scalar of NumPy or Arrow; dates, durations and all others as they are."""
    if isinstance(value, np.ndarray) and value.ndim == 0 and not np.ma.isMaskedArray(value):
        value = value[()]
    if isinstance(value, np.longdouble):
        with np.errstate(all="ignore"):
            return float(value)
    if isinstance(value, np.bool_ | np.number | np.str_ | np.bytes_) and not isinstance(
        value, np.timedelta64
    ):
        return value.item()
    return value.as_py() if hasattr(value, "as_py") else value


def number(value: object) -> float:
    """The float64 nearest to a value.

    Raises
    ------
    TypeError
        It is not a number: texts and durations are none.
    OverflowError
        It is too large.

    """
    if type(value) is float:
        return value
    value = plain(value)
    # np.timedelta64 calls itself an integer
    if not isinstance(value, Real | Decimal) or isinstance(value, np.generic):
        raise TypeError
    try:
        return float(value)
    except OverflowError:
        raise
    except Exception:
        raise TypeError from None


def numbers(values: Iterable[object]) -> Array:
    """The number of each value, (values,).

    At once if the values are an array of numbers, which is the same: a cast from one machine
    type to float64 rounds every entry to the nearest.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        with np.errstate(all="ignore"):
            return values.astype(np.float64)
    each = values.flat if isinstance(values, np.ndarray) else values
    return np.array([number(value) for value in each], dtype=np.float64)


def label(value: object) -> tuple[str, Any] | None:
    """The kind and the value that a label is compared by; None if it is not a label.

    Equal are numbers of one exact value (1, 1.0, True, Decimal(1)), and texts of the same
    characters.
    """
    value = plain(value)
    if isinstance(value, str):
        return TEXT, str(value)
    if isinstance(value, bytes):
        return BYTES, bytes(value)
    if isinstance(value, np.generic):
        return None
    if isinstance(value, Integral):
        return NUMBER, int(value)
    if isinstance(value, Rational):
        return NUMBER, value
    if isinstance(value, Decimal):
        return (NUMBER, value) if value.is_finite() else None
    if isinstance(value, Real):
        try:
            found = float(value)
        except Exception:
            return None
        return (NUMBER, found) if math.isfinite(found) else None
    return None


def is_finite(value: object) -> bool:
    """False for NaN and infinity of any type of numbers."""
    value = plain(value)
    if isinstance(value, Decimal):
        return value.is_finite()
    return not isinstance(value, float) or math.isfinite(value)


def identity(value: object) -> Hashable:
    """The key that tells a person apart: that of a label, or the value itself, such as a date.

    Returns
    -------
    Hashable
        None if it is missing.

    Raises
    ------
    TypeError
        It is no identifier.

    """
    found = label(value)
    if found is not None:
        return found
    value = plain(value)
    if is_row(value):
        raise TypeError
    if value is None or not is_finite(value):
        return None
    try:
        if not bool(value == value):  # NaT and other marks of missing values
            return None
    except (TypeError, ValueError):
        return None
    if isinstance(value, np.datetime64 | np.timedelta64):
        return *np.datetime_data(value.dtype), int(value.astype(np.int64))
    hash(value)
    return "other", value


def person(value: object) -> Hashable:
    """The key that tells a person apart, however a table writes the identifier.

    1, 1.0, "1", " 01" and b"1.0" are one person. If that makes one of two people, both are
    protected.

    Returns
    -------
    Hashable
        None if it is missing, also by a text such as NA.

    Raises
    ------
    TypeError
        It is no identifier.
    OverflowError
        It is a float that several whole numbers round to.

    """
    found = label(value)
    if found is None:
        return _other_person(value)
    kind, held = found
    if kind != NUMBER:
        return _normalise_person(_decode_text(held) if kind == BYTES else held)
    if isinstance(held, float) and abs(held) >= WHOLE_FLOATS:
        raise OverflowError
    if isinstance(held, Decimal) and held.adjusted() > MOST_DIGITS:
        raise OverflowError
    return str(int(held) if held == int(held) else float(held))


def _decode_text(held: bytes) -> str:
    try:
        return held.decode("utf-8")
    except UnicodeDecodeError:
        return held.decode("latin-1")  # in which every byte is a letter


def _other_person(value: object) -> Hashable:
    """Dates by their instant, durations by their length, both of whatever type and unit."""
    found, value = identity(value), plain(value)
    if found is None:
        return None
    if isinstance(value, date | np.datetime64):
        return instant_text(value)
    if isinstance(value, timedelta | np.timedelta64):
        return length_text(value)
    return str(value) if isinstance(value, UUID) else found


def _normalise_person(text: str) -> str | None:
    """A text without what is not seen: spaces around it, parts of one letter, marks of no width. Where
    it is a numeral, a truth value or a date, what that says."""
    if not (text.isascii() and text.isprintable()):
        seen = (each for each in text if each.isspace() or category(each) not in UNSEEN)
        text = normalize("NFKC", "".join(seen))
    text = " ".join(text.split())
    if text.lower() in NOTHING:
        return None
    if text.lower() in TRUTHS:
        return TRUTHS[text.lower()]
    if ISO_DATE.match(text):
        try:
            return instant_text(text)
        except (ValueError, OverflowError):
            return text
    try:
        held = Decimal(text)
        if not held.is_finite() or held.adjusted() > MOST_DIGITS:
            return text
        return str(int(held) if held == int(held) else float(held))
    except (ArithmeticError, ValueError):
        return text


def has_no_value(value: object) -> bool:
    """Whether a value is None, NaN, infinite or another mark of what is not there."""
    try:
        return identity(value) is None
    except Exception:  # a value that has no hash is there
        return False


def differ(labels: Any, predictions: Any) -> Array:
    """1 where a label is not its prediction, else 0; (records,).

    A prediction that is not a label is wrong. Arrays of one kind are compared at once: no entry is
    changed for it.
    """
    both = is_plain(labels) and is_plain(predictions)
    if both and labels.dtype.kind == predictions.dtype.kind:
        return np.asarray(labels != predictions, dtype=np.float64)
    pairs = [(label(y), label(p)) for y, p in zip(labels, predictions, strict=True)]
    return np.array([y is None or y != p for y, p in pairs], dtype=np.float64)


def read_number(cell: object) -> float:
    """The number in a cell of a table, also as a text with a decimal numeral such as 12, -1.5 or
    2e3.

    Spaces around it do not matter; TypeError if there is none.
    """
    if not isinstance(cell, str):
        return number(cell)
    if not cell.isascii() or "_" in cell:
        raise TypeError
    try:
        return float(cell)
    except ValueError:
        raise TypeError from None


def read_label(cell: object) -> str | None:
    """The label in a cell of a table, as text; None if there is none.

    Numbers, and texts that hold one, are written in one way, so that 1, 1.0 and "1" are one
    label whatever type their column has; other texts are themselves without the spaces around
    them.
    """
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, str):
        text = cell.strip()
        try:
            whole = text.isascii() and text.lstrip("+-").isdigit()
            return str(int(text)) if whole else _numeral(read_number(text)) or text
        except (TypeError, ValueError):
            return text or None
    if isinstance(cell, int):
        return str(cell)
    try:
        return _numeral(number(cell))
    except (TypeError, OverflowError):
        return None


def _numeral(value: float) -> str | None:
    if not math.isfinite(value):
        return None
    return str(int(value)) if value.is_integer() else str(value)


class Sealed:
    """Private values, checked, which only the vault opens. Their number is public, and their names.

    Parameters
    ----------
    values : object
        The private values.
    rows : int
        How many rows they have.
    columns : tuple of str, optional
        The names of several columns.

    """

    __slots__ = ("_open", "columns", "rows")
    _open: Callable[[], Any]
    rows: int
    columns: tuple[str, ...]

    def __init__(self, values: object, rows: int, columns: tuple[str, ...] = ()) -> None:
        def open_values() -> Any:
            _check_caller()
            return values

        for name, value in (("_open", open_values), ("rows", rows), ("columns", columns)):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return self.rows

    def __repr__(self) -> str:
        return "Sealed(...)"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("private values are sealed once.")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("private values are neither copied nor stored.")


def unseal(given: object) -> Any:
    """Private values as they are, for the vault alone; what is not sealed is handed back."""
    if not isinstance(given, Sealed):
        return given
    _check_caller()
    return given._open()


def _check_caller() -> None:
    """Refuse whatever calls the calling function, unless it is of the vault."""
    caller: Any = currentframe()
    if not caller.f_back.f_back.f_globals["__name__"].startswith("privgp.vault."):
        raise TypeError("private values are opened in the vault alone.")
