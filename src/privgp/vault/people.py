"""Person identifiers, read one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from privgp.types import Integers
from privgp.vault.values import entries, identity


def person_ids(groups: Any, rows: int) -> Integers | None:
    """Person identifiers of any kind as 0, 1, 2, ...; 1 and 1.0 are one person, 1 and "1" are two."""
    if groups is None:
        return None
    try:
        found = entries(groups)
    except TypeError:
        found = []
    if len(found) != rows or getattr(found, "ndim", 1) != 1:
        raise ValueError(f"groups must be one identifier for each of the {rows} rows of X.")
    if isinstance(found, np.ndarray) and found.dtype.kind in "biuUS":  # one type, nothing missing
        return np.asarray(np.unique(found, return_inverse=True)[1], dtype=np.int64)
    try:
        people = [identity(value) for value in found]
    except TypeError:
        raise ValueError("groups must be plain identifiers such as numbers or text.") from None
    if any(person is None for person in people):
        raise ValueError("groups contain missing values or NaN: every row needs an identifier.")
    places: dict[Any, int] = {}
    return np.array([places.setdefault(person, len(places)) for person in people], dtype=np.int64)
