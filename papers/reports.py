"""Reports on the papers' tables and figures, run and written whole, one by one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from papers.shared.data import MissingData
from papers.shared.page import as_json, index_page, page
from papers.shared.report import Progress, Report, Request
from privgp.command.errors import Refusal
from privgp.command.io.files import whole_file
from privgp.command.io.screen import say, terminal_bar

BESIDE = Path("..") / "shared" / "data"


def write_reports(
    names: Sequence[str], *, data: Path | None, quick: bool, out: Path, together: bool
) -> None:
    """Run the named reports and write NAME.html each, results.json, and an index of several."""
    folder = _data_folder(data)
    reports: list[Report] = []
    started = time.monotonic()
    with _folder(out), _bar(len(names)) as progress_of:
        for place, name in enumerate(names):
            request = Request(data=folder, quick=quick, progress=progress_of(place, name))
            reports.append(_run(name, request))
            _write(out / f"{name}.html", page(reports[-1]))
    _write(out / "results.json", json.dumps(as_json(reports), indent=2, allow_nan=False) + "\n")
    if together:
        _write(out / "index.html", index_page(reports))
    for report in reports:
        say(f"{out / f'{report.name}.html'}: {report.title}")
    say(f"The numbers are in {out / 'results.json'}. Done in {time.monotonic() - started:.0f} s.")


def _run(name: str, request: Request) -> Report:
    try:
        report: Report = import_module(f"papers.{name}.report").run(request)
    except MissingData as missing:
        raise Refusal(str(missing)) from None
    except FileNotFoundError as missing:
        what = str(missing) if missing.filename is None else f"'{missing.filename}' was not found."
        raise Refusal(f"Data are missing: {what} Give --data with their folder.") from None
    return report


def _data_folder(given: Path | None) -> Path | None:
    try:
        if given is not None and not given.is_dir():
            raise Refusal(f"The data folder '{given}' does not exist.")
        return given if given is not None else BESIDE if BESIDE.is_dir() else None
    except (OSError, ValueError):
        raise Refusal(f"The data folder '{given}' cannot be used.") from None


@contextmanager
def _folder(out: Path) -> Iterator[None]:
    """A folder for the reports, found out to be possible before the work; without any, it goes."""
    try:
        made = not out.is_dir()
        if made:
            out.mkdir()
    except (OSError, ValueError):
        raise Refusal(f"The folder '{out}' cannot be made.") from None
    try:
        yield
    finally:
        if made and not any(out.iterdir()):
            out.rmdir()


def _write(path: Path, text: str) -> None:
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")


@contextmanager
def _bar(count: int) -> Iterator[Any]:
    """A bar over all reports."""
    with terminal_bar() as bar:
        task = bar.add_task("Starting", total=float(count))

        def progress_of(place: int, name: str) -> Progress:
            def progress(share: float, doing: str) -> None:
                done = place + min(max(share, 0.0), 1.0)
                bar.update(task, completed=done, description=f"{name}: {doing}")

            return progress

        yield progress_of
