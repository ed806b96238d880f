"""Functions and paths that a custodian keeps in a state: opened, written, asked and told of."""

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from privgp.command.errors import Failure, Refusal, refusal, stop_phrase
from privgp.command.io.columns import in_blocks, refuse_questions
from privgp.command.io.kernel_text import write_kernel
from privgp.command.io.screen import Step, progress, tell
from privgp.errors import LedgerError
from privgp.models.function.estimator import PrivateFunction
from privgp.models.paths import PosteriorPaths
from privgp.models.published import names_of
from privgp.question.rules import check_inside
from privgp.tables.parser import list_names
from privgp.types import Array

BLOCK = 512
Kept = PrivateFunction | PosteriorPaths


def input_names(kept: Kept) -> list[str]:
    """The inputs' names; those of an array have none and are called x1, x2, ..."""
    return list(names_of(kept) or (f"x{k + 1}" for k in range(kept.n_features_in_)))


@contextmanager
def guard_state(state: Path) -> Iterator[None]:
    """Private values are taken in: whatever stops that, the sentence is the same."""
    try:
        yield
    except LedgerError as problem:
        raise refusal(problem) from None
    except Exception:
        raise Failure(f"'{state}' could not be written; nothing was spent.") from None


@contextmanager
def guard_answers(state: Path, what: str, points: Array, more: int) -> Iterator[Step]:
    """From here on something may have been answered, and every answer is kept. Yields the steps of
    a bar: those of ``answers`` at the points, and ``more`` others."""
    kept = f"every answer that was given is kept in '{state}', so ask again for the same {what}."
    try:
        with progress(-(-len(points) // BLOCK) + more) as step:
            yield step
    except Refusal:
        raise
    except Failure as problem:
        raise Failure(f"{str(problem).rstrip('.')}; {kept}") from None
    except (KeyboardInterrupt, Exception) as problem:
        raise Failure(f"{stop_phrase(problem)}; {kept}") from None


def answers(kept: Kept, points: Array, step: Step) -> Array:
    """What is released at the points, (..., points), asked a block at a time."""
    _check_room(kept, points)
    parts = []
    for block in in_blocks(names_of(kept), points, BLOCK, step, "Drawing from point"):
        with refuse_questions():
            parts.append(kept.release(block))
    return np.concatenate(parts, axis=-1)


def _check_room(kept: Kept, points: Array) -> None:
    """Refuse points that cannot all be answered before any is: answers cannot be taken back."""
    domain = kept._kept.contents.model.domain
    if domain is not None:
        with refuse_questions():
            check_inside(points, domain)
    known = {row.tobytes() for row in kept._kept.contents.draws.points}
    new = {row.tobytes() for row in points + 0.0} - known  # no negative zeros
    left = kept.points_left_
    if len(new) > left:
        raise Refusal(f"{len(new):,} of the points are new, {left:,} are left: ask for fewer.")


def tell_state(
    kept: Kept,
    state: Path,
    own: Sequence[str],
    facts: Sequence[str],
    holds: str = "",
    *,
    as_json: bool,
) -> None:
    """What may be told of a state: what all have, and of its own kind some lines and attributes.
    ``holds``: what is private in a state that was just created."""
    guarantee, left = kept.guarantee_, kept.points_left_
    kernel, *others = own
    created = [
        f"Created {state}.",
        f"PRIVATE: the file holds {holds}. Keep it, never publish it, and never go back to an older "
        "copy.",
        "",
    ]
    lines = [
        *(created if holds else []),
        guarantee.describe(),
        "",
        f"Inputs: {list_names(input_names(kept))}.",
        f"Kernel: {write_kernel(kept.kernel, figures=4)}; {kernel}",
        *others,
        f"Points answered so far: {kept.points_answered_:,}; more may be asked: "
        f"{'any number' if left == math.inf else f'{left:,.0f}'}.",
        "The budget counts as spent once anything was answered.",
    ]
    told = {
        "state": state,
        **{name.rstrip("_"): getattr(kept, name) for name in facts},
        "sensitivity": kept.sensitivity_,
        "points_answered": kept.points_answered_,
        "points_left": left,
        "guarantee": json.loads(guarantee.to_json()),
    }
    tell(told, lines, guarantee, as_json=as_json)
