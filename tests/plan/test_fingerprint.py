"""Fingerprints: fields that came later leave those of older plans as they were."""

from __future__ import annotations

from dataclasses import dataclass

from privgp.storage.codec import fingerprint
from privgp.types import added_field


@dataclass(frozen=True)
class Before:
    size: float


@dataclass(frozen=True)
class Now:
    size: float
    most: float = added_field(2.0)
    kind: str = added_field("plain")
    rows: tuple[float, ...] | None = added_field(None)


def test_later_fields_count_once_they_are_used() -> None:
    before = fingerprint(Before(1.0))
    assert fingerprint(Now(1.0)) == before
    used = [Now(1.0, most=1.0), Now(1.0, kind="fancy"), Now(1.0, rows=(1.0, 2.0)), Now(2.0)]
    assert len({before, *map(fingerprint, used)}) == 5
