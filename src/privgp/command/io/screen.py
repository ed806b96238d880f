"""What people see: results on the output stream, progress on the error stream."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from privgp.command.errors import printable
from privgp.privacy.guarantee import Guarantee
from privgp.types import STAMP

Step = Callable[[str], None]


def say(text: str) -> None:
    """Print lines as they are: names of columns and files are never taken for markup."""
    for line in text.splitlines() or [""]:
        print(printable(line))


def say_if_simulated(guarantee: Guarantee) -> None:
    """Say first that this must not be published, where that is so."""
    if guarantee.is_simulation:
        say(f"{STAMP}: the noise came from a seed and protects nobody.")


def say_json(value: dict[str, Any], *, simulation: bool) -> None:
    """Print one JSON object, which always says whether it tells of a simulation; what is not finite
    becomes null."""
    print(json.dumps(_finite({**value, "simulation": simulation}), indent=2, allow_nan=False))


def show(renderable: Any) -> None:
    """Print a table or another object of rich."""
    Console().print(renderable)


@contextmanager
def progress(steps: int) -> Iterator[Step]:
    """A bar of so many steps; calling ``step(label)`` finishes one and names the next."""
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


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
