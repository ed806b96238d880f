"""Files on their way: written beside their place, locked meanwhile, cleared up if their writer
died. A part is locked from before its first byte until it is moved or removed. A lock goes with its
process, so a part that can be locked has no writer any more, and anyone who next writes or reads in
that folder removes it. Where the file system has no locks nothing is ever removed."""

import fcntl
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PathLike = str | os.PathLike[str]
NAME = re.compile(r"\.privgp-[0-9a-f]{32}\.part(\.[a-z]{1,8}(-[a-z]{1,8})?)?")
PRIVATE = 0o600
PUBLIC = 0o666  # less what the process's umask takes away


@contextmanager
def part_beside(path: PathLike, *, mode: int = PUBLIC, ending: str = "") -> Iterator[Path]:
    """A new, empty file in the folder of ``path``, to be moved there; otherwise it is removed.

    Parameters
    ----------
    path
        The final place of the file.
    mode
        Its permissions from the first moment on.
    ending
        The end of its name.

    """
    folder = Path(path).parent
    remove_stale(folder)
    part, held = _create(folder, mode, ending)
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)
        os.close(held)


def write_through(part: Path, data: bytes) -> None:
    """Write bytes into a part; on return they are on the disk."""
    with open(part, "r+b") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def remove_stale(folder: PathLike) -> None:
    """Remove the parts that writers which were killed have left in a folder; never fails."""
    with suppress(OSError):
        here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for name in os.listdir(here):
                if NAME.fullmatch(name):
                    _remove_if_dead(name, here)
        finally:
            os.close(here)


def _create(folder: Path, mode: int, ending: str) -> tuple[Path, int]:
    """A new part and the descriptor that holds its lock."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    while True:
        part = folder / f".privgp-{secrets.token_hex(16)}.part{ending}"
        held = os.open(part, flags, mode)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # taken for a dead one, between its creation and its lock
            os.close(held)
            part.unlink(missing_ok=True)
            continue
        except OSError:  # no locks here: nobody can lock it to remove it either
            return part, held
        if os.fstat(held).st_nlink == 1:
            return part, held
        os.close(held)  # removed at that same moment


def _remove_if_dead(name: str, here: int) -> None:
    """Remove a part unless somebody writes it, or it is a link, a folder or another user's."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with suppress(OSError):
        held = os.open(name, flags, dir_fd=here)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            seen, there = os.fstat(held), os.stat(name, dir_fd=here, follow_symlinks=False)
            ours = stat.S_ISREG(seen.st_mode) and seen.st_uid == os.geteuid()
            if ours and seen.st_nlink == 1 and os.path.samestat(seen, there):
                os.unlink(name, dir_fd=here)
        finally:
            os.close(held)
