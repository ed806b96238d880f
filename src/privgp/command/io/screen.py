"""What people and programs see: results on the output stream, progress on the error stream."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from privgp.command.errors import one_line, printable

if TYPE_CHECKING:
    from privgp.privacy.guarantee import Guarantee

Step = Callable[[str], None]


def say(text: str) -> None:
    """Print lines as they are: names of columns and files are never taken for markup."""
    for line in text.splitlines() or [""]:
        print(printable(line))


def warn(sentences: Sequence[str]) -> None:
    """Sentences on the error stream."""
    for sentence in sentences:
        print(one_line(f"Warning: {sentence}"), file=sys.stderr)


def tell(
    facts: Mapping[str, object],
    lines: Sequence[str | Table],
    guarantee: Guarantee | None,
    *,
    as_json: bool,
) -> None:
    """Say what was done, and whether it is a simulation: the facts as one JSON object, or the
    lines, sentences and tables of rich, for people, and ``warnings`` of the facts on the error stream.
    ``guarantee``: None if nothing was released."""
    simulation = guarantee is not None and guarantee.is_simulation
    if as_json:
        object_ = _plain({**facts, "simulation": simulation})
        print(json.dumps(object_, indent=2, allow_nan=False))
        return
    if simulation:
        from privgp.types import STAMP

        say(f"{STAMP}: the noise came from a seed and protects nobody.")
    for line in lines:
        if isinstance(line, str):
            say(line)
        else:
            Console().print(line)
    warnings = facts.get("warnings")
    warn(warnings if isinstance(warnings, list) else [])


def table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], chosen: int) -> Table:
    """A table whose last column marks the chosen row."""
    made = Table(title=title, title_justify="left")
    for heading in headings[:-1]:
        made.add_column(heading, justify="right")
    made.add_column("")
    for place, cells in enumerate(rows):
        here = place == chosen
        made.add_row(*cells, headings[-1] if here else "", style="bold" if here else None)
    return made


@contextmanager
def show_blocks() -> Iterator[Callable[[int, int], None]]:
    """A bar of blocks of rows that are done, of how many, on the error stream of a terminal."""
    with terminal_bar() as bar:
        task = bar.add_task("Blocks of rows", total=None)
        yield lambda blocks, total: bar.update(task, completed=blocks, total=total)


@contextmanager
def progress(steps: int | None) -> Iterator[Step]:
    """A bar of this many steps, None if that is not known; calling ``step(label)`` finishes one and names the next."""
    with terminal_bar() as bar:
        task = bar.add_task("Starting", total=steps, completed=-1)
        yield lambda label: bar.update(task, advance=1, description=label, refresh=True)


def terminal_bar() -> Progress:
    """A bar that is drawn on a terminal only: a log or a pipe holds nothing but sentences."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )


def _plain(value: object) -> object:
    """As JSON can hold it: paths become text, numbers that are not finite null."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
