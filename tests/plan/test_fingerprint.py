"""Fingerprints: fields that came later leave those of older plans as they were."""

from __future__ import annotations

from dataclasses import dataclass

from privgp.plan.fingerprint import fingerprint
from privgp.types import later


@dataclass(frozen=True)
class Before:
    size: float


@dataclass(frozen=True)
class Now:
    size: float
    most: float = later(2.0)
    kind: str = later("plain")
    rows: tuple[float, ...] | None = later(None)


def test_later_fields_count_once_they_are_used() -> None:
    before = fingerprint(Before(1.0))
    assert fingerprint(Now(1.0)) == before
    used = [Now(1.0, most=1.0), Now(1.0, kind="fancy"), Now(1.0, rows=(1.0, 2.0)), Now(2.0)]
    assert len({before, *map(fingerprint, used)}) == 5
