"""Records of people: whose they are, how many people there are, and how much each record counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from privgp.types import Array, Integers
from privgp.vault.validate import person_ids


def count_people(groups: Any, rows: int) -> int:
    """The number of different people, which is public."""
    people = person_ids(groups, rows)
    assert people is not None
    return int(people.max(initial=-1)) + 1


def shares(people: Integers, most: int) -> tuple[Integers, Array]:
    """The rows that are used, the first ``most`` of every person, and the weight of each: one over
    the number of those of its person."""
    order = np.argsort(people, kind="stable")
    counts = np.bincount(people)
    first = np.cumsum(counts) - counts
    place = np.empty(len(people), dtype=np.int64)
    place[order] = np.arange(len(people)) - first[people[order]]
    kept = np.flatnonzero(place < most)
    return kept, 1.0 / np.minimum(counts, most)[people[kept]]
