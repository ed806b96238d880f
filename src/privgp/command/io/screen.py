"""What people and programs see: results on the output stream, progress on the error stream."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from privgp.command.errors import one_line, printable

if TYPE_CHECKING:
    from privgp.privacy.guarantee import Guarantee

Step = Callable[[str], None]
FromTyper = (
    Any  # a context, a parser or a parameter: their classes differ between versions of typer
)


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
    lines, sentences and tables of rich, for people. ``guarantee``: None if nothing was released."""
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


PANELS = ("Arguments", "Options", "Privacy", "Model", "Columns", "Search", "Attack", "Results")


def show_help(
    ctx: FromTyper,
    text: str,
    arguments: Sequence[FromTyper],
    options: Sequence[FromTyper],
    example: str,
    left: int,
) -> None:
    """Print what a command does and takes.

    Parameters
    ----------
    ctx : context
        Of the command, with the path by which it is called.
    text : str
        What it does.
    arguments, options : sequence of parameters
        What is shown, the options by their panels.
    example : str
        A line that works.
    left : int
        How many options are not shown.

    """
    console = Console(highlight=False, soft_wrap=False)
    words = [each.metavar if each.required else f"[{each.metavar}]" for each in arguments]
    console.print(f"Usage: {' '.join([ctx.command_path, *words])} [OPTIONS]", markup=False)
    console.print(f"\n{' '.join(text.split())}", markup=False)
    panels: dict[str, list[tuple[str, str]]] = {title: [] for title in PANELS}
    for each in arguments:
        panels.setdefault("Arguments", []).append((each.metavar, each.help or ""))
    for each in options:
        name = "/".join([", ".join(each.opts), *each.secondary_opts])
        value = "" if each.is_flag else f" {_value_of(each, ctx)}"
        default = "" if each.is_flag or each.default in (None, ()) else f" Default: {each.default}."
        required = " Required." if each.required else ""
        said = f"{each.help or ''}{'' if 'Default:' in (each.help or '') else default}{required}"
        panels.setdefault(each.rich_help_panel or "Options", []).append((name + value, said))
    for title, rows in panels.items():
        if not rows:
            continue
        console.print(f"\n[bold]{title}[/bold]")
        shown = Table.grid(padding=(0, 2))
        shown.add_column(max_width=34, overflow="fold")
        shown.add_column()
        for name, said in rows:
            shown.add_row(Text(f"  {name}"), Text(said))
        console.print(shown)
    if example:
        console.print(f"\n[bold]Example[/bold]\n  {example}", soft_wrap=True)
    if left:
        console.print(f"\n{left} more options: {ctx.command_path} --help-all", markup=False)


# What versions of typer call kinds of values, and what help does.
VALUES = {
    "float": "NUMBER",
    "int": "COUNT",
    "integer": "COUNT",
    "int range": "COUNT",
    "path": "FILE",
}


def _value_of(option: FromTyper, ctx: FromTyper) -> str:
    """What an option takes: its own word, its choices, or its kind."""
    if option.metavar:
        return str(option.metavar)
    show = getattr(option, "display_type_rich", None) or option.make_metavar
    word = str(show(ctx=ctx)).strip("<>[]").lower()
    return word if "|" in word else VALUES.get(word, word.upper())


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
