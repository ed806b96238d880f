"""Telling how far an audit is: to a callback, on a bar, or to nobody."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.progress import Progress

# callback(share of the work done, what is being done)
Callback = Callable[[float, str], None]


@contextmanager
def show_progress(progress: bool | Callback) -> Iterator[Callback]:
    """``progress`` as a callback: True draws a bar, False tells nobody."""
    if callable(progress):
        yield progress
        return
    with Progress(disable=not progress) as bar:
        task = bar.add_task("attacking", total=1.0)
        yield lambda share, doing: bar.update(task, completed=share, description=doing)


def part(callback: Callback, start: float, end: float) -> Callback:
    """The same callback for a piece of the work that lies between the shares ``start`` and ``end``."""
    return lambda share, doing: callback(start + (end - start) * share, doing)


def repeat_draws(draw: Callable[[], Any], count: int, doing: str, tell: Callback) -> list[Any]:
    """The results of this many calls; the callback is called a hundred times on the way.

    Parameters
    ----------
    draw
        Called without arguments.
    count
        How often.
    doing
        The words that the callback is given.
    tell
        The callback.

    """
    step, drawn = max(1, count // 100), []
    for k in range(count):
        if k % step == 0:
            tell(k / count, doing)
        drawn.append(draw())
    return drawn
