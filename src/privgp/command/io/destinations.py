"""Where results go: checked before any work, written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from privgp.command.errors import Failure, Refusal
from privgp.storage.parts import part_beside

PICTURES = (".png", ".svg")
TABLES = (".csv", ".parquet")
CERTIFICATES = (".html", ".json")
RELEASES = (".privgp",)
STATES = (".private-state",)


def check_destination(path: Path | None, endings: Sequence[str], *, force: bool | None) -> None:
    """Refuse a file that could not be written later: wrong ending, no folder, in the way.

    ``force``: whether a file in the way may be replaced; None where none ever is.
    """
    if path is None:
        return
    if path.suffix not in endings:
        raise Refusal(f"The file '{path}' must end in {' or '.join(endings)}.")
    try:
        if path.is_dir():
            raise Refusal(f"'{path}' is a folder, not a file to write.")
        if os.path.lexists(path) and not force:
            or_force = "" if force is None else ", or --force to replace it"
            raise Refusal(f"'{path}' exists already: give another name{or_force}.")
        if not path.parent.is_dir():
            raise Refusal(f"The folder '{path.parent}' does not exist.")
        # Asking for permission is not enough: read-only disks and superusers answer wrongly.
        with part_beside(path):
            pass
    except (OSError, ValueError):
        raise Refusal(f"'{path}' cannot be written there.") from None


def check_apart(sources: Sequence[Path | None], destinations: Sequence[Path | None]) -> None:
    """Refuse two results in one file, and a result in place of a file that is read."""
    seen: set[Path] = {_resolved(path) for path in sources if path is not None}
    for path in destinations:
        if path is None:
            continue
        resolved = _resolved(path)
        if resolved in seen:
            raise Refusal(f"'{path}' is used twice: every file needs a name of its own.")
        seen.add(resolved)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A path to write to that becomes ``path`` once everything is written."""
    try:
        with part_beside(path, ending=path.suffix) as part:
            yield part
            os.replace(part, path)
    except OSError:
        raise Failure(f"'{path}' could not be written.") from None


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        raise Refusal(f"'{path}' is no path that can be used.") from None
