"""Private labels compared with the declared classes, each separately.

A label that was not declared belongs to no class: it is silently ignored. A missing
one is refused, like a missing number. Proof: docs/proofs/classes.md.
"""

import warnings
from collections.abc import Iterator, Sequence

import numpy as np
from sklearn.exceptions import DataConversionWarning

from privgp.types import Array, Column, UserData
from privgp.vault.values import (
    NUMBER,
    TEXT,
    column,
    has_no_value,
    is_plain,
    label,
    read_label,
    unseal,
)

NO_CLASS = -1.0
SOME = "y must have a label in every row, without NaN or infinity."


def label_codes(y: Column, classes: Sequence[object], rows: int) -> Array:
    """The place of every label among the classes, ``NO_CLASS`` if it is none of them, (rows,).
    Private.

    Parameters
    ----------
    y
        Private labels, each read separately; a label that was not declared is silently in no
        class.
    classes
        The declared ones, public.
    rows
        How many labels there must be.

    Raises
    ------
    ValueError
        The shape or the type is wrong, or a label is missing; no label is named.

    """
    found, is_table = None, False
    try:
        found, is_table = column(unseal(y))
    except LookupError:
        pass  # of another shape: refused below
    except TypeError:
        raise ValueError("y must be labels, one for each row.") from None
    if is_table:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected.",
            DataConversionWarning,
            stacklevel=3,
        )
    if found is None or len(found) != rows:
        raise ValueError("y must be one-dimensional, one label for each row of X.")
    if isinstance(found, np.ndarray) and is_plain(found):  # all entries at once, which is the same
        _check_type(found, classes)
        if found.dtype.kind == "f" and not np.all(np.isfinite(found)):
            raise ValueError(SOME)
        codes = np.full(rows, NO_CLASS)
        for place, name in enumerate(classes):
            codes[found == name] = place
        return codes
    labels = [label(value) for value in found]
    if any(each is None and has_no_value(value) for each, value in zip(labels, found, strict=True)):
        raise ValueError(SOME)
    places = {label(name): float(place) for place, name in enumerate(classes)}
    return np.array([places.get(each, NO_CLASS) for each in labels])


def class_texts(names: Sequence[str]) -> list[str]:
    """Declared classes, which are public, as labels of a table are written."""
    return [read_label(name) or "" for name in names]


def _check_type(y: np.ndarray, classes: Sequence[object]) -> None:
    """Refuse an array whose type, which its owner chose for all entries, is not that of the classes."""
    first = label(classes[0])
    kinds = {NUMBER: "biuf", TEXT: "U"}
    if first is None or y.dtype.kind not in kinds.get(first[0], ""):
        raise ValueError("y and classes must be of one type: both numbers, or both text.")


def values_of(y: UserData, classes: Sequence[object], rows: int) -> Array:
    """The number that stands for every label, (rows,): with two classes the share of the second.

    With more classes it is the place of the label among them.

    Parameters
    ----------
    y, classes, rows
        As in ``label_codes``.

    """
    codes = label_codes(y, classes, rows)
    return shares_of_second(codes) if len(classes) == 2 else codes


def shares_of_each(codes: Array, classes: int) -> Iterator[Array]:
    """For every class, 1 where a label has it and 0 where it has another; the even share for none.

    Parameters
    ----------
    codes
        (rows,), places among the classes.
    classes
        How many there are.

    Yields
    ------
    Array
        (rows,), one for every class.

    """
    known = np.isin(codes, np.arange(classes))
    for place in range(classes):
        yield np.where(known, codes == place, 1.0 / classes)


def shares_about_even(codes: Array, classes: int) -> Iterator[Array]:
    """The same about the even share, all of a label together as a vector of norm 1; 0 for none."""
    norm = float(np.sqrt(1.0 - 1.0 / classes))
    for shares in shares_of_each(codes, classes):
        yield (shares - 1.0 / classes) / norm


def shares_of_second(codes: Array) -> Array:
    """For two classes, 1 for the second, 0 for the first and one half for none."""
    return np.where(codes == NO_CLASS, 0.5, codes)
