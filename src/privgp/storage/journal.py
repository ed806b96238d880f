"""The bytes of a state file: a line of text, an archive, and an entry for every further question.

    b"draw", number of points, CRC-32 of both and of the seal before     12 bytes
    what these points have added                                         float64, little-endian
    the entry's seal: SHA-256 of the seal before and of all this

The archive's own digest is the seal before the first entry. An entry that ends too early was being
written when the process died: its answer was never given, and it does not count.
"""

from __future__ import annotations

import hashlib
import math
import re
import struct
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol

import numpy as np

from privgp.storage import archive
from privgp.storage.archive import DamagedFile
from privgp.storage.codec import Codec, checked
from privgp.storage.triangles import Triangle, entries
from privgp.types import Array

FORM = "private-state"
NOTICE = "PRIVATE: for the curator only. Never publish this file."
SEAL = 32
HEAD = 12
_MARK = b"draw"
_FLOAT = np.dtype("<f8")
_CHANGED = "an entry was changed since it was saved"


class Draws(Protocol):
    """A dataclass of draws. Its class names the fields that an entry adds to or replaces.

    ``GROWS``: arrays with one row per point, and triangles; ``CHANGES``: numbers and vectors whose
    size stays, replaced by every entry.
    """

    GROWS: ClassVar[tuple[str, ...]]
    CHANGES: ClassVar[tuple[str, ...]]

    @property
    def points(self) -> Array: ...


class Contents(Protocol):
    """What a state file holds: what never changes, and the draws."""

    @property
    def draws(self) -> Draws: ...


def whole(contents: Contents, codec: Codec) -> bytes:
    """A file with everything in its archive and no entries."""
    data = archive.pack(codec.encode(contents), FORM)
    return _line(len(data)) + data


def entry(draws: Draws, first: int, seal: bytes) -> bytes:
    """What the points from the ``first`` on have added, to follow what has this seal."""
    added = [_rows(getattr(draws, name), first) for name in draws.GROWS]
    added += [np.ravel(getattr(draws, name)) for name in draws.CHANGES]
    body = _head(len(draws.points) - first, seal)
    body += b"".join(np.asarray(part, dtype=_FLOAT).tobytes() for part in added)
    return body + hashlib.sha256(seal + body).digest()


def is_whole_entry(tail: bytes, draws: Draws, first: int, seal: bytes) -> bool:
    """Whether an entry follows; False if it was cut short."""
    if len(tail) < HEAD:
        return False
    return len(tail) >= _size(draws, first, _count(tail[:HEAD], seal))


def read_whole(data: bytes, codec: Codec) -> tuple[Any, int, int]:
    """The contents of a file, where its archive ends, and where its last whole entry does."""
    line = re.match(rb'\{"format": "private-state", "bytes": ([1-9][0-9]{0,9}),[^\n]*\n', data)
    if line is None or line[0] != _line(int(line[1])):
        raise DamagedFile(f"it is no .{FORM} file, or was changed since it was saved")
    base = end = line.end() + int(line[1])
    if len(data) < end:
        raise DamagedFile("it was cut short since it was saved")
    contents = codec.decode(archive.unpack(data[line.end() : end], FORM))
    draws: Draws = contents.draws
    seal, first = data[end - SEAL : end], len(draws.points)
    bodies: list[tuple[int, Array]] = []
    while len(data) - end >= HEAD:
        count = _count(data[end : end + HEAD], seal)
        size = _size(draws, first, count)
        if len(data) - end < size:
            break
        body = data[end : end + size - SEAL]
        before, seal = seal, data[end + size - SEAL : end + size]
        if hashlib.sha256(before + body).digest() != seal:
            raise DamagedFile(_CHANGED)
        bodies.append((count, np.frombuffer(body, _FLOAT, offset=HEAD).astype(np.float64)))
        end += size
        first += count
    if bodies:
        contents = checked(replace(contents, draws=_with_entries(draws, bodies)))
    return contents, base, end


def _with_entries(draws: Draws, bodies: Sequence[tuple[int, Array]]) -> Any:
    """The draws with all entries added, each the number of its points and their numbers."""
    if not all(np.all(np.isfinite(values)) for _, values in bodies):
        raise DamagedFile("it holds numbers that are not finite")
    names, first = (*draws.GROWS, *draws.CHANGES), len(draws.points)
    parts: dict[str, list[Array]] = {name: [] for name in names}
    for count, values in bodies:
        ends = np.cumsum(_sizes(draws, first, count))
        for name, part in zip(names, np.split(values, ends[:-1]), strict=True):
            parts[name].append(part)
        first += count
    changes = {name: _grown(getattr(draws, name), parts[name]) for name in draws.GROWS}
    for name in draws.CHANGES:
        last = parts[name][-1]
        changes[name] = last if np.ndim(getattr(draws, name)) else float(last[0])
    return replace(draws, **changes)  # type: ignore[type-var]


def _grown(value: Any, parts: Sequence[Array]) -> Any:
    if isinstance(value, Triangle):
        return Triangle.of(np.concatenate([value.packed(), *parts]))
    return np.concatenate([value, np.concatenate(parts).reshape(-1, *value.shape[1:])])


def _rows(value: Any, first: int) -> Array:
    rows = value.packed(first) if isinstance(value, Triangle) else value[first:]
    return np.ravel(rows)


def _sizes(draws: Draws, first: int, count: int) -> list[int]:
    """The number of numbers of every part of an entry of ``count`` points after the ``first``."""
    sizes = []
    for name in draws.GROWS:
        value = getattr(draws, name)
        if isinstance(value, Triangle):
            sizes.append(entries(first + count) - entries(first))
        else:
            sizes.append(count * math.prod(value.shape[1:]))
    return sizes + [np.size(getattr(draws, name)) for name in draws.CHANGES]


def _size(draws: Draws, first: int, count: int) -> int:
    """The bytes of an entry."""
    return HEAD + sum(_sizes(draws, first, count)) * _FLOAT.itemsize + SEAL


def _line(size: int) -> bytes:
    return f'{{"format": "{FORM}", "bytes": {size}, "notice": "{NOTICE}"}}\n'.encode("ascii")


def _head(count: int, seal: bytes) -> bytes:
    start = _MARK + struct.pack("<I", count)
    return start + struct.pack("<I", zlib.crc32(seal + start))


def _count(head: bytes, seal: bytes) -> int:
    """The number of points that the entry with this head has added."""
    count = int(struct.unpack_from("<I", head, len(_MARK))[0])
    if head != _head(count, seal):
        raise DamagedFile(_CHANGED)
    return count
