"""Records of people: whose they are, how many people there are, and how much each record counts."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np

from privgp.types import Array, Column, Integers
from privgp.vault.validate import identities, person_ids
from privgp.vault.values import entries

WHOLE_CODES = 2**61  # below it codes are whole numbers, above it hashes
MOST_DIGITS = 18  # of whole numbers that stand for themselves


def count_people(groups: Column | None, rows: int) -> int:
    """The number of different people, which is public.

    Parameters
    ----------
    groups
        Identifiers of any kind, one per row.
    rows
        How many there must be.

    """
    people = person_ids(groups, rows)
    assert people is not None
    return int(people.max(initial=-1)) + 1


def shares(people: Integers, most: int) -> tuple[Integers, Array]:
    """The rows that are used, the first ``most`` of every person, and the weight of each.

    A weight is one over the number of used rows of its person, so that nobody weighs more than
    1.

    Parameters
    ----------
    people
        (rows,), 0, 1, 2, ...
    most
        Rows of one person that are used.

    """
    order = np.argsort(people, kind="stable")
    counts = np.bincount(people)
    first = np.cumsum(counts) - counts
    place = np.empty(len(people), dtype=np.int64)
    place[order] = np.arange(len(people)) - first[people[order]]
    kept = np.flatnonzero(place < most)
    return kept, 1.0 / np.minimum(counts, most)[people[kept]]


def person_codes(groups: Column | None, rows: int) -> Integers:
    """A number below 2**62 for each row's person: a whole number stands for itself.

    It is the same wherever the person is read. That two people share one is next to impossible,
    and would protect both as one.
    """
    given = entries(groups)
    if isinstance(given, np.ndarray) and given.dtype.kind in "iu" and given.shape == (rows,):
        ends = (int(given.min(initial=0)), int(given.max(initial=0)))
        if max(map(abs, ends)) < 10**MOST_DIGITS:
            return np.asarray(given, dtype=np.int64)
    people = person_ids(groups, rows)
    assert people is not None
    firsts = np.unique(people, return_index=True)[1]
    held = identities(groups)
    codes = np.array([_code(held(place)) for place in firsts.tolist()], dtype=np.int64)
    return np.asarray(codes[people])


def _code(person: Any) -> int:
    """The whole number that a person is told apart by, or a hash of a text or of another identifier."""
    digits = person.removeprefix("-") if isinstance(person, str) else ""
    whole = digits.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS
    if whole and person == str(int(person)):
        return int(person)
    text = person if isinstance(person, str) else " ".join(map(str, person[1:]))
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return WHOLE_CODES + (int.from_bytes(digest, "little") >> 3)
