"""The custodian's file of a function or of paths: private, and written before any answer leaves.

Its name, its first line and its permissions say that it is private. An archive follows, and an entry
for every further question:

    b"draw", number of points, CRC-32 of both and of the seal before     12 bytes
    what these points have added                                         float64, little-endian
    the entry's seal: SHA-256 of the seal before and of all this

The archive's own digest is the seal before the first entry. An entry that ends too early was being
written when the process died: its answer was never given, and it does not count. Once the entries
outweigh the rest the file is written anew, whole or not at all. It moves on only if it still is what
this process left there: two processes never draw one function differently."""

import fcntl
import hashlib
import math
import os
import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Protocol, Self, cast

import numpy as np

from privgp.storage import archive
from privgp.storage.archive import DamagedFile, Triangle, entries, require
from privgp.storage.codec import Codec, check_state
from privgp.storage.parts import PRIVATE, PathLike
from privgp.types import Array

FORM = "private-state"
NOTICE = "PRIVATE: for the curator only. Never publish this file."
SEAL = 32
HEAD = 12
MOST_ENTRIES = 2**23  # bytes, or as many as the rest of the file has
_MARK = b"draw"
_FLOAT = np.dtype("<f8")
_CHANGED = "an entry was changed since it was saved"
_MOVED = "{!r} was changed by another process: load it again to go on."


class Draws(Protocol):
    """A dataclass of draws. An entry adds to ``GROWS``, arrays with one row per
    point, and triangles, and replaces ``CHANGES``, numbers and vectors whose size stays."""

    GROWS: ClassVar[tuple[str, ...]]
    CHANGES: ClassVar[tuple[str, ...]]

    @property
    def points(self) -> Array: ...


class Contents(Protocol):
    """What a state file holds: what never changes, and the draws."""

    @property
    def draws(self) -> Draws: ...


@dataclass(frozen=True)
class Mark:
    """The end of a state file.

    Attributes
    ----------
    end : how many bytes it has
    seal : the last 32 of them, a hash of all
    points : how many points it holds
    base : the end of its archive and the beginning of its entries

    """

    end: int
    seal: bytes
    points: int
    base: int


class StateFile:
    """A file, and the states that it may be in: the last that is certain, and any tried since.

    Parameters
    ----------
    path : path of a file that exists
    mark : the present end of the file
    codec : codec of its contents

    """

    def __init__(self, path: PathLike, mark: Mark, codec: Codec) -> None:
        self.path = os.path.realpath(path)  # a link would be left behind
        self._marks, self._codec = [mark], codec

    @classmethod
    def create(cls, path: PathLike, contents: Contents, codec: Codec) -> Self:
        """Write a new file; never in place of another.

        Parameters
        ----------
        path
            Must end in ".private-state".
        contents
            Private; only the custodian may read the file.
        codec
            Codec of the contents.

        """
        data = whole(contents, codec)
        with lock_folder(path) as folder:
            archive.write(path, data, overwrite=False, form=FORM, mode=PRIVATE)
            os.fsync(folder)
        mark = Mark(len(data), data[-SEAL:], len(contents.draws.points), len(data))
        return cls(path, mark, codec)

    @classmethod
    def open(cls, path: PathLike, codec: Codec) -> tuple[Self, Any]:
        """A file that exists, and what it holds; entries that were cut short do not count."""
        with archive.damage_of(path):
            contents, mark = read_whole(archive.read(path), codec)
        return cls(path, mark, codec), contents

    def keep(self, contents: Contents) -> None:
        """Bring the file to these contents; on return they are on the disk.

        An answer may be given only after this.

        Raises
        ------
        RuntimeError
            The file is gone, or another process went on with it: nothing is answered.

        """
        with lock_folder(self.path) as folder, self._open_file() as file:
            mark, draws = self._current(file, contents.draws), contents.draws
            # Draws without a new point, as those through inducing inputs, go into the archive.
            if len(draws.points) > mark.points and not _outgrown(mark):
                data = entry(draws, mark)
                end, base = mark.end + len(data), mark.base
            else:
                data = whole(contents, self._codec)
                end = base = len(data)
            # Known from now on, whether or not the rest gets through.
            self._marks.append(Mark(end, data[-SEAL:], len(draws.points), base))
            if base == end:
                archive.write(self.path, data, overwrite=True, form=FORM, mode=PRIVATE)
                os.fsync(folder)
            else:
                file.seek(mark.end)
                while data:  # unbuffered files may write less than they were given
                    data = data[file.write(data) :]
                os.fdatasync(file.fileno())
        del self._marks[:-1]

    def _open_file(self) -> BinaryIO:
        try:
            return cast(BinaryIO, open(self.path, "r+b", buffering=0))
        except OSError:
            raise RuntimeError(
                f"{self.path!r} is gone or cannot be written: without it nothing is answered."
            ) from None

    def _current(self, file: BinaryIO, draws: Draws) -> Mark:
        """Where the file stands, if this process left it there; else it is refused."""
        for mark in reversed(self._marks):
            file.seek(mark.end - SEAL)
            if file.read(SEAL) == mark.seal:
                break
        else:
            raise RuntimeError(_MOVED.format(self.path))
        if tail := file.read():
            try:
                moved = _next_entry(memoryview(tail), draws, mark) is not None
            except DamagedFile:
                moved = True
            if moved:
                raise RuntimeError(_MOVED.format(self.path))
            file.truncate(mark.end)  # an entry that was begun when its process died
        return mark


def _outgrown(mark: Mark) -> bool:
    """Whether entries take up so much that all is written anew."""
    return mark.end - mark.base > max(MOST_ENTRIES, mark.base)


@contextmanager
def lock_folder(path: PathLike) -> Iterator[int]:
    """Let one process at a time into the file's folder.

    Yields
    ------
    int
        The descriptor of the folder, for ``os.fsync``.

    """
    folder = os.open(Path(path).absolute().parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield folder
    finally:
        os.close(folder)


def whole(contents: Contents, codec: Codec) -> bytes:
    """The bytes of a file with everything in its archive and no entries."""
    data = archive.pack(codec.encode(contents), FORM)
    return _line(len(data)) + data


def entry(draws: Draws, mark: Mark) -> bytes:
    """The bytes of what the points after this mark have added, to follow it."""
    body = _head(len(draws.points) - mark.points, mark.seal)
    for name in (*draws.GROWS, *draws.CHANGES):
        value = getattr(draws, name)
        if isinstance(value, Triangle):
            value = value.pack_rows(mark.points)
        elif name in draws.GROWS:
            value = value[mark.points :]
        body += np.asarray(value, dtype=_FLOAT).tobytes()
    return body + hashlib.sha256(mark.seal + body).digest()


def read_whole(data: bytes, codec: Codec) -> tuple[Any, Mark]:
    """The contents of a file, and where its last whole entry ends.

    Raises
    ------
    DamagedFile
        It is no state file, or was changed or cut short since it was saved.

    """
    line = re.match(rb'\{"format": "private-state", "bytes": ([1-9][0-9]{0,9}),[^\n]*\n', data)
    if line is None or line[0] != _line(int(line[1])):
        raise DamagedFile(f"it is no .{FORM} file, or was changed since it was saved")
    base = line.end() + int(line[1])
    require(len(data) >= base, "it was cut short since it was saved")
    contents = codec.decode(archive.unpack(data[line.end() : base], FORM))
    draws: Draws = contents.draws
    mark = Mark(base, data[base - SEAL : base], len(draws.points), base)
    added: list[list[Array]] = []
    while (following := _next_entry(memoryview(data)[mark.end :], draws, mark)) is not None:
        count, sizes, end = following
        body, seal = data[mark.end : end - SEAL], data[end - SEAL : end]
        require(hashlib.sha256(mark.seal + body).digest() == seal, _CHANGED)
        values = np.frombuffer(body, _FLOAT, offset=HEAD).astype(np.float64)
        require(bool(np.all(np.isfinite(values))), "it holds numbers that are not finite")
        added.append(np.split(values, np.cumsum(sizes)[:-1]))
        mark = Mark(end, seal, mark.points + count, base)
    if added:
        contents = check_state(replace(contents, draws=_with_entries(draws, added)))
    return contents, mark


def _with_entries(draws: Draws, added: Sequence[Sequence[Array]]) -> Any:
    """The draws with all entries added, each the numbers of every part."""
    changes: dict[str, object] = {}
    for name, parts in zip((*draws.GROWS, *draws.CHANGES), zip(*added, strict=True), strict=True):
        value = getattr(draws, name)
        if isinstance(value, Triangle):
            changes[name] = Triangle.of(np.concatenate([value.pack_rows(), *parts]))
        elif name in draws.GROWS:
            rows = np.concatenate(parts).reshape(-1, *value.shape[1:])
            changes[name] = np.concatenate([value, rows])
        else:
            changes[name] = parts[-1] if np.ndim(value) else float(parts[-1][0])
    return replace(draws, **changes)  # type: ignore[type-var]


def _next_entry(data: memoryview, draws: Draws, mark: Mark) -> tuple[int, list[int], int] | None:
    """The entry that follows a mark: its points, the sizes of its parts, and where it ends.
    None: there is no such entry, or it was cut short."""
    if len(data) < HEAD:
        return None
    count = int(struct.unpack_from("<I", data, len(_MARK))[0])
    require(data[:HEAD] == _head(count, mark.seal), _CHANGED)
    first, sizes = mark.points, []
    for name in (*draws.GROWS, *draws.CHANGES):
        value = getattr(draws, name)
        if isinstance(value, Triangle):
            sizes.append(entries(first + count) - entries(first))
        elif name in draws.GROWS:
            sizes.append(count * math.prod(value.shape[1:]))
        else:
            sizes.append(np.size(value))
    length = HEAD + sum(sizes) * _FLOAT.itemsize + SEAL
    return (count, sizes, mark.end + length) if length <= len(data) else None


def _line(size: int) -> bytes:
    return f'{{"format": "{FORM}", "bytes": {size}, "notice": "{NOTICE}"}}\n'.encode("ascii")


def _head(count: int, seal: bytes) -> bytes:
    start = _MARK + struct.pack("<I", count)
    return start + struct.pack("<I", zlib.crc32(seal + start))
