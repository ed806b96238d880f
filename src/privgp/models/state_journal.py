"""The bytes of a state file: a line of text, an archive, and an entry for every further question.

    b"draw", count, CRC-32 of both and of the seal before       12 bytes
    points, numbers, answers, squares                           float64, little-endian
    the entry's seal: SHA-256 of the seal before and of all this

The archive's own digest is the seal before the first entry. An entry that ends too early was being
written when the process died: its answer was never given, and it does not count.
"""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from dataclasses import replace

import numpy as np

from privgp.models.state_contents import FORM, NOTICE, Contents, checked, decode, encode
from privgp.release.archive import DamagedFile
from privgp.types import Array

SEAL = 32
HEAD = 12
_MARK = b"draw"
_FLOAT = np.dtype("<f8")


def whole(contents: Contents) -> bytes:
    """A file with everything in its archive and no entries."""
    data = encode(contents)
    return _line(len(data)) + data


def entry(contents: Contents, first: int, seal: bytes) -> bytes:
    """What the questions from the ``first`` point on have added, to follow what has this seal."""
    c, draws = contents, contents.draws
    parts = (c.points[first:], draws.numbers[first:], c.answers[first:], draws.squares)
    body = _head(len(c.answers) - first, seal)
    body += b"".join(part.astype(_FLOAT, copy=False).tobytes() for part in parts)
    return body + hashlib.sha256(seal + body).digest()


def is_whole_entry(tail: bytes, seal: bytes, contents: Contents) -> bool:
    """Whether an entry follows; False if it was cut short."""
    return len(tail) >= HEAD and len(tail) >= _size(tail[:HEAD], seal, contents)


def read_whole(data: bytes) -> tuple[Contents, int]:
    """The contents of a file, and where its last whole entry ends."""
    found = re.match(rb'\{"format": "private-state", "bytes": ([1-9][0-9]{0,9}),[^\n]*\n', data)
    if found is None or found[0] != _line(int(found[1])):
        raise DamagedFile(f"it is no .{FORM} file, or was changed since it was saved")
    end = found.end() + int(found[1])
    if len(data) < end:
        raise DamagedFile("it was cut short since it was saved")
    contents = decode(data[found.end() : end])
    columns, inputs = contents.points.shape[1], len(contents.draws.sums)
    seal, squares = data[end - SEAL : end], contents.draws.squares
    parts: list[tuple[Array, ...]] = [(contents.points, contents.draws.numbers, contents.answers)]
    while len(data) - end >= HEAD:
        size = _size(data[end : end + HEAD], seal, contents)
        body = data[end : end + size - SEAL]
        if len(data) - end < size:
            break
        before, seal = seal, data[end + size - SEAL : end + size]
        if hashlib.sha256(before + body).digest() != seal:
            raise DamagedFile("an entry was changed since it was saved")
        values = np.frombuffer(body, _FLOAT, offset=HEAD).astype(np.float64)
        count = (len(values) - inputs) // (columns + 2)
        points, numbers, answers, squares = np.split(
            values, np.cumsum([count * columns, count, count])
        )
        parts.append((points.reshape(count, columns), numbers, answers))
        end += size
    points, numbers, answers = (np.concatenate(part) for part in zip(*parts, strict=True))
    draws = replace(contents.draws, numbers=numbers, squares=squares)
    return checked(replace(contents, draws=draws, points=points, answers=answers)), end


def _line(size: int) -> bytes:
    return f'{{"format": "{FORM}", "bytes": {size}, "notice": "{NOTICE}"}}\n'.encode("ascii")


def _head(count: int, seal: bytes) -> bytes:
    start = _MARK + struct.pack("<I", count)
    return start + struct.pack("<I", zlib.crc32(seal + start))


def _size(head: bytes, seal: bytes, contents: Contents) -> int:
    """The length of the entry that starts so."""
    (count,) = struct.unpack_from("<I", head, len(_MARK))
    if head != _head(count, seal):
        raise DamagedFile("an entry was changed since it was saved")
    numbers = count * (contents.points.shape[1] + 2) + len(contents.draws.sums)
    return int(HEAD + numbers * _FLOAT.itemsize + SEAL)
