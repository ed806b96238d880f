"""Files to read and to write: checked before any work, written whole or not at all."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from privgp.command.errors import Failure, Refusal, refuse_on
from privgp.storage.parts import part_beside

if TYPE_CHECKING:
    from privgp.command.options import ReleaseFiles

PICTURES = (".png", ".svg")
TABLES = (".csv", ".csv.gz", ".parquet")
MANY_TABLES = (*TABLES, "")  # also folders and patterns of such files
ANY_TABLES = (*MANY_TABLES, "")  # also tables in databases
DATABASES = ("duckdb", "postgres", "postgresql")
NEW_TABLES = (".csv", ".parquet")
SHEETS = (".xlsx", ".xls", ".ods")
CERTIFICATES = (".html", ".json")
PAGES = (".html",)
RELEASES = (".privgp",)
PLANS = (".plan",)
DOCUMENTS = (*RELEASES, *PLANS)
STATES = (".private-state",)

Read = TypeVar("Read")
Files = Sequence[tuple[Path | None, Sequence[str]]]


def suffix_of(path: Path) -> str:
    """The ending of a file's name, in small letters; of a compressed table both."""
    name = path.name.lower()
    return ".csv.gz" if name.endswith(".csv.gz") else path.suffix.lower()


def _either(endings: Sequence[str]) -> str:
    return " or ".join([*([", ".join(endings[:-1])] if endings[1:] else []), endings[-1]])


def check_files(reads: Files, writes: Files, *, force: bool | None) -> None:
    """Refuse files that cannot be read or written. Each comes with the endings it may have.
    ``force``: whether results may replace files; None where they never do."""
    for path, endings in writes:
        if path is not None:
            check_destination(path, endings, force=force)
    check_apart([path for path, _ in reads], [path for path, _ in writes])
    for path, endings in reads:
        if path is not None and address_of(path) is not None:
            if endings is not ANY_TABLES:
                raise Refusal("A table in a database is taken by plan and release alone.")
            continue
        if path is not None and "" in endings and is_many(path):
            continue  # its files are checked when they are opened
        if path is not None:
            check_readable(path, [ending for ending in endings if ending])


def check_release_files(reads: Files, release: Path, beside: ReleaseFiles) -> None:
    """The same for a release that is written with others beside it."""
    pictures, pages = (beside.plot, PICTURES), (beside.certificate, CERTIFICATES)
    check_files(reads, [(release, RELEASES), pages, pictures], force=beside.force)


def is_many(path: Path) -> bool:
    """Whether a table is a folder or a pattern of files."""
    with refuse_on(f"The file '{path}' cannot be read.", OSError, ValueError):
        return path.is_dir() or (not path.exists() and bool(set(str(path)) & set("*?[")))


def address_of(path: Path) -> str | None:
    """The address of a table in a database, with the slashes that a path leaves out; None for files."""
    scheme, sign, rest = str(path).partition(":/")
    if not sign or scheme not in DATABASES:
        return None
    return f"{scheme}:///{rest}" if scheme == "duckdb" else f"{scheme}://{rest}"


def shown_name(path: Path) -> str:
    """What a table is called in sentences: of one in a database its name, without users and passwords."""
    if address_of(path) is None:
        return str(path) if is_many(path) else path.name
    return next(
        (part[6:] for part in re.split("[?&]", str(path)) if part[:6] == "table="), "a table"
    )


def check_destination(path: Path, endings: Sequence[str], *, force: bool | None) -> None:
    """Refuse a file that could not be written later: wrong ending, no folder, in the way."""
    if path.suffix not in endings:
        raise Refusal(f"The file '{path}' must end in {_either(endings)}.")
    with refuse_on(f"'{path}' cannot be written there.", OSError, ValueError):
        if path.is_dir():
            raise Refusal(f"'{path}' is a folder, not a file to write.")
        if os.path.lexists(path) and not force:
            or_force = "" if force is None else ", or --force to replace it"
            raise Refusal(f"'{path}' exists already: give another name{or_force}.")
        if not path.parent.is_dir():
            raise Refusal(f"The folder '{path.parent}' does not exist: make it first.")
        # Asking for permission is not enough: read-only disks and superusers answer wrongly.
        with part_beside(path):
            pass


def check_readable(path: Path, endings: Sequence[str]) -> None:
    """Refuse what has the wrong ending, is no file, cannot be opened, or is empty."""
    if suffix_of(path) not in endings:
        raise Refusal(f"'{path}' must end in {_either(endings)}{_instead(path, endings)}.")
    with refuse_on(f"The file '{path}' cannot be read.", OSError, ValueError):
        if path.is_dir():
            raise Refusal(f"'{path}' is a folder, not a file.")
        if not path.exists():
            raise Refusal(f"The file '{path}' does not exist: check its name and folder.")
        with path.open("rb") as file:
            if not file.read(1):
                raise Refusal(f"The file '{path}' is empty: save it again.")


def _instead(path: Path, endings: Sequence[str]) -> str:
    """What to do with a table of another kind."""
    if ".csv" not in endings:
        return ""
    if suffix_of(path) in SHEETS:
        return ": save the sheet as CSV UTF-8"
    if suffix_of(path) in (".txt", ".tsv", ".tab"):
        return ": if it is a table of text, rename it"
    return ": a table is read more than once, so save it as a file" if str(path) == "-" else ""


def open_own(path: Path, read: Callable[[Path], Read]) -> Read:
    """A release, a plan or a state from its file; their readers' own sentences may be told."""
    try:
        return read(path)
    except OSError:
        raise Refusal(f"The file '{path}' cannot be read.") from None
    except ValueError as problem:
        raise Refusal(str(problem)) from None


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A path to write to that becomes ``path`` once everything is written."""
    try:
        with part_beside(path, ending=path.suffix) as part:
            yield part
            os.replace(part, path)
    except OSError:
        raise Failure(f"'{path}' could not be written.") from None


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")


def write_json(path: Path, facts: object) -> None:
    """The same for facts as JSON."""
    write_text(path, json.dumps(facts, indent=2) + "\n")


def check_apart(sources: Sequence[Path | None], destinations: Sequence[Path | None]) -> None:
    """Refuse two results in one file, and a result in place of a file that is read."""
    seen = {_resolve(path) for path in sources if path is not None}
    for path in destinations:
        if path is None:
            continue
        resolved = _resolve(path)
        if resolved in seen:
            raise Refusal(f"'{path}' is used twice: every file needs its own name.")
        seen.add(resolved)


def _resolve(path: Path) -> Path:
    with refuse_on(f"'{path}' cannot be used as a path.", OSError, RuntimeError, ValueError):
        return path.resolve()
