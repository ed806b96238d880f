"""The curator's file of a function or of paths: private, and written before any answer leaves.

Its name, its first line and its permissions say that it is private. Every answer adds an entry at
its end; once the entries outweigh the rest it is written anew, whole or not at all. It moves on only
if it still is what this process left there: two processes never draw one function differently.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from privgp.storage import archive
from privgp.storage.archive import DamagedFile
from privgp.storage.codec import Codec
from privgp.storage.journal import FORM, SEAL, Contents, entry, is_whole_entry, read_whole, whole
from privgp.storage.parts import PRIVATE

MOST_ENTRIES = 2**23  # bytes, or as many as the rest of the file has

PathLike = str | os.PathLike[str]


def check_new(path: PathLike) -> None:
    """Refuse a path with another ending, or one that is taken."""
    archive.check_target(path, overwrite=False, form=FORM)


@dataclass(frozen=True)
class Mark:
    """A file that ends here with this seal and holds this many points; its archive ends at base."""

    end: int
    seal: bytes
    points: int
    base: int


class StateFile:
    """A file, and the states that it may be in: the last that is certain, and any tried since."""

    _MOVED = "{!r} was changed by another process: load it again to go on."

    def __init__(self, path: PathLike, mark: Mark, codec: Codec) -> None:
        self.path = os.path.realpath(path)  # a link would be left behind
        self._marks, self._codec = [mark], codec

    @classmethod
    def create(cls, path: PathLike, contents: Contents, codec: Codec) -> StateFile:
        """Write a new file; never in place of another."""
        data = whole(contents, codec)
        with locked(path) as folder:
            archive.write(path, data, overwrite=False, form=FORM, mode=PRIVATE)
            os.fsync(folder)
        mark = Mark(len(data), data[-SEAL:], len(contents.draws.points), len(data))
        return cls(path, mark, codec)

    @classmethod
    def open(cls, path: PathLike, codec: Codec) -> tuple[StateFile, Any]:
        """A file that exists, and what it holds."""
        try:
            data = archive.read(path)
            contents, base, end = read_whole(data, codec)
        except DamagedFile as problem:
            raise DamagedFile(f"{os.fspath(path)!r} cannot be loaded: {problem}.") from None
        mark = Mark(end, data[end - SEAL : end], len(contents.draws.points), base)
        return cls(path, mark, codec), contents

    def keep(self, contents: Contents) -> None:
        """Bring the file to these contents; on return they are on the disk."""
        with locked(self.path) as folder, self._opened() as file:
            mark, draws = self._current(file, contents), contents.draws
            # Draws without a new point, as those through inducing inputs, go into the archive.
            if len(draws.points) > mark.points and not _outgrown(mark):
                data = entry(draws, mark.points, mark.seal)
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
                _write_all(file, data)
                os.fdatasync(file.fileno())
        del self._marks[:-1]

    def _opened(self) -> BinaryIO:
        try:
            return cast(BinaryIO, open(self.path, "r+b", buffering=0))
        except OSError:
            raise RuntimeError(
                f"{self.path!r} is gone or cannot be written: without it nothing is answered."
            ) from None

    def _current(self, file: BinaryIO, contents: Contents) -> Mark:
        """Where the file stands, if this process left it there; else it is refused."""
        for mark in reversed(self._marks):
            file.seek(mark.end - SEAL)
            if file.read(SEAL) == mark.seal:
                break
        else:
            raise RuntimeError(self._MOVED.format(self.path))
        if tail := file.read():
            try:
                moved = is_whole_entry(tail, contents.draws, mark.points, mark.seal)
            except DamagedFile:
                moved = True
            if moved:
                raise RuntimeError(self._MOVED.format(self.path))
            file.truncate(mark.end)  # an entry that was begun when its process died
        return mark


def _outgrown(mark: Mark) -> bool:
    """Whether entries take up so much that all is written anew."""
    return mark.end - mark.base > max(MOST_ENTRIES, mark.base)


def _write_all(file: BinaryIO, data: bytes) -> None:
    """Unbuffered files may write less than they were given."""
    while data:
        data = data[file.write(data) :]


@contextmanager
def locked(path: PathLike) -> Iterator[int]:
    """One process at a time in the file's folder."""
    folder = os.open(Path(path).absolute().parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield folder
    finally:
        os.close(folder)
