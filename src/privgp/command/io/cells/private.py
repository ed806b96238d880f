"""Private inputs that are not all numbers: what was declared of them, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from privgp.command.errors import Refusal, list_names, refuse_on
from privgp.command.io.cells.kinds import Kinds
from privgp.command.io.tables import Source
from privgp.plan.inputs.inputs import Inputs
from privgp.tables.kinds import KINDS
from privgp.vault.tables import seal_rows

FORM = (
    "--x-bounds must be such as when=2024-01-01:2024-12-31,lat=51.3:51.7, or --x-bounds LO HI once for "
    "each input that has bounds, in their order."
)


def bounds_by_name(words: Sequence[str], kinds: Kinds) -> dict[str, tuple[str, str]]:
    """The ends of every private input that has bounds, as they were written. ``kinds``: of all inputs."""
    bounded = [name for name, kind in kinds.items() if KINDS[kind].bounded]
    entries = [entry.rpartition("=") for entry in ",".join(words).split(",")] if words else []
    names = [name.strip() for name, equals, _ in entries if equals]
    if names and len(names) < len(entries):
        raise Refusal(FORM)
    if not names:
        names = bounded[: len(entries)] + ["?"] * (len(entries) - len(bounded))
    if sorted(names) != sorted(bounded):
        raise Refusal(
            "--x-bounds must have one range for each input that has bounds, "
            f"{list_names(bounded)}: bounds that the private inputs are known to lie in, chosen without "
            "looking at them."
        )
    given = dict(zip(names, (said for *_, said in entries), strict=True))
    return {name: _ends(given[name], kinds[name]) for name in bounded}


def _ends(said: str, kind: str) -> tuple[str, str]:
    """Both ends of ``LO:HI``, which may be times with colons of their own."""
    parts = [part.strip() for part in said.split(":")]
    halves = [(":".join(parts[:k]), ":".join(parts[k:])) for k in range(1, len(parts))]
    found = [pair for pair in halves if all(_is(end, kind) for end in pair)]
    if len(found) != 1:
        raise Refusal(FORM)
    return found[0]


def _is(end: str, kind: str) -> bool:
    """Whether a text is an end of a range: a date for dates, a number for all others."""
    column = KINDS["date" if kind == "date" else "number"](("",))
    try:
        column.numbers([np.array([end], dtype=object)])
    except (ValueError, OverflowError):
        return False
    return True


def private_table(frame: pl.DataFrame, inputs: Inputs, source: Source) -> pl.DataFrame:
    """Private cells as they stand, once the vault has read each. Whatever is wrong, and with whichever
    of them, the sentence is the same."""
    sentence = f"The input columns of '{source.path}' must hold a value of their kind in every row."
    with refuse_on(sentence, ValueError):
        seal_rows(frame, inputs)
    return frame.select(inputs.names)
