"""The curator's file of a function: private, and written before any answer leaves.

Its name, its first bytes and its permissions say that it is private. It goes from one version to
the next only if it still is what this process left there: two processes never draw one function
differently.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from privgp.models import state_contents
from privgp.release import archive
from privgp.release.archive import DIGEST, DamagedFile

MODE = 0o600
FORM = state_contents.FORM

PathLike = str | os.PathLike[str]


class Codec(Protocol):
    """What a file holds, as bytes and back: a function, or sample paths."""

    def encode(self, contents: Any, /) -> bytes: ...

    def decode(self, data: bytes, /) -> Any: ...


def check_new(path: PathLike) -> None:
    """Refuse a path with another ending, or one that is taken."""
    archive.check_target(path, overwrite=False, form=FORM)


class StateFile:
    """A file of which the digests that it may have are known."""

    def __init__(self, path: PathLike, known: tuple[bytes, ...], codec: Codec) -> None:
        self.path, self._known = os.path.realpath(path), known  # a link would be left behind
        self._codec = codec

    @classmethod
    def create(cls, path: PathLike, contents: Any, codec: Codec = state_contents) -> StateFile:
        """Write a new file; never in place of another."""
        data = codec.encode(contents)
        with _locked(path):
            archive.write(path, data, overwrite=False, form=FORM, mode=MODE)
        return cls(path, (data[-DIGEST:],), codec)

    @classmethod
    def open(cls, path: PathLike, codec: Codec = state_contents) -> tuple[StateFile, Any]:
        """A file that exists, and what it holds."""
        try:
            data = archive.read(path)
            return cls(path, (data[-DIGEST:],), codec), codec.decode(data)
        except DamagedFile as problem:
            raise DamagedFile(f"{os.fspath(path)!r} cannot be loaded: {problem}.") from None

    def keep(self, contents: Any) -> None:
        """Replace the file by its next version, whole or not at all."""
        data = self._codec.encode(contents)
        digest = data[-DIGEST:]
        self._known = (self._known[0], digest)  # whether or not the rest gets through
        with _locked(self.path):
            if self._digest() not in self._known:
                raise RuntimeError(
                    f"{self.path!r} was changed by another process: load it again to go on."
                )
            archive.write(self.path, data, overwrite=True, form=FORM, mode=MODE)
        self._known = (digest,)

    def _digest(self) -> bytes:
        try:
            with open(self.path, "rb") as file:
                file.seek(-DIGEST, os.SEEK_END)
                return file.read()
        except OSError:
            raise RuntimeError(
                f"{self.path!r} is gone or cannot be read: without it nothing is answered."
            ) from None


@contextmanager
def _locked(path: PathLike) -> Iterator[None]:
    """One process at a time in the file's folder; afterwards what was written is on the disk."""
    folder = os.open(Path(path).absolute().parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
        os.fsync(folder)
    finally:
        os.close(folder)
