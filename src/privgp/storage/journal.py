"""The bytes of a state file: a line of text, an archive, and an entry for every further question.

    b"draw", count, CRC-32 of both and of the seal before       12 bytes
    what these so many points have added                        float64, little-endian
    the entry's seal: SHA-256 of the seal before and of all this

The archive's own digest is the seal before the first entry. An entry that ends too early was being
written when the process died: its answer was never given, and it does not count.
"""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from typing import Any, Protocol

import numpy as np

from privgp.storage.archive import DamagedFile
from privgp.types import Array

FORM = "private-state"
NOTICE = "PRIVATE: for the curator only. Never publish this file."
SEAL = 32
HEAD = 12
_MARK = b"draw"
_FLOAT = np.dtype("<f8")
_CHANGED = "an entry was changed since it was saved"


class Codec(Protocol):
    """What a file holds, as bytes and back: a function, or sample paths.

    A codec with entries has three more functions: ``added(contents, first)``, what the points from
    the first on have added, as arrays, or None if all must be written anew;
    ``added_size(contents, first, count)``, how many numbers that is; and
    ``with_added(contents, [(count, numbers), ...])``.
    """

    def encode(self, contents: Any, /) -> bytes: ...

    def decode(self, data: bytes, /) -> Any: ...


def whole(contents: Any, codec: Codec) -> bytes:
    """A file with everything in its archive and no entries."""
    data = codec.encode(contents)
    return _line(len(data)) + data


def entry(contents: Any, first: int, seal: bytes, codec: Any) -> bytes | None:
    """What the points from the ``first`` on have added, to follow what has this seal."""
    parts = codec.added(contents, first) if hasattr(codec, "added") else None
    if parts is None:
        return None
    body = _head(len(contents.points) - first, seal)
    body += b"".join(np.asarray(part, dtype=_FLOAT).tobytes() for part in parts)
    return body + hashlib.sha256(seal + body).digest()


def is_whole_entry(tail: bytes, first: int, seal: bytes, contents: Any, codec: Any) -> bool:
    """Whether an entry follows; False if it was cut short."""
    if not hasattr(codec, "added"):
        return True
    if len(tail) < HEAD:
        return False
    count = _count(tail[:HEAD], seal)
    return len(tail) >= _size(codec.added_size(contents, first, count))


def read_whole(data: bytes, codec: Any) -> tuple[Any, int, int]:
    """The contents of a file, where its archive ends, and where its last whole entry does."""
    found = re.match(rb'\{"format": "private-state", "bytes": ([1-9][0-9]{0,9}),[^\n]*\n', data)
    if found is None or found[0] != _line(int(found[1])):
        raise DamagedFile(f"it is no .{FORM} file, or was changed since it was saved")
    base = end = found.end() + int(found[1])
    if len(data) < end:
        raise DamagedFile("it was cut short since it was saved")
    contents = codec.decode(data[found.end() : end])
    if not hasattr(codec, "added"):
        if len(data) > end:
            raise DamagedFile("it holds bytes that belong to nothing")
        return contents, base, end
    seal, first = data[end - SEAL : end], len(contents.points)
    entries: list[tuple[int, Array]] = []
    while len(data) - end >= HEAD:
        count = _count(data[end : end + HEAD], seal)
        size = _size(codec.added_size(contents, first, count))
        if len(data) - end < size:
            break
        body = data[end : end + size - SEAL]
        before, seal = seal, data[end + size - SEAL : end + size]
        if hashlib.sha256(before + body).digest() != seal:
            raise DamagedFile(_CHANGED)
        entries.append((count, np.frombuffer(body, _FLOAT, offset=HEAD).astype(np.float64)))
        end += size
        first += count
    return codec.with_added(contents, entries) if entries else contents, base, end


def _line(size: int) -> bytes:
    return f'{{"format": "{FORM}", "bytes": {size}, "notice": "{NOTICE}"}}\n'.encode("ascii")


def _head(count: int, seal: bytes) -> bytes:
    start = _MARK + struct.pack("<I", count)
    return start + struct.pack("<I", zlib.crc32(seal + start))


def _count(head: bytes, seal: bytes) -> int:
    """How many points the entry that starts so has added."""
    count = int(struct.unpack_from("<I", head, len(_MARK))[0])
    if head != _head(count, seal):
        raise DamagedFile(_CHANGED)
    return count


def _size(numbers: int) -> int:
    return HEAD + numbers * _FLOAT.itemsize + SEAL
