"""Asks a kept thing a sequence of questions, and holds it to what it may never do."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from privgp.vault.states import function_file as state_contents
from privgp.vault.states import paths_file as paths_contents
from tests.adversary.questions import sequence
from tests.adversary.settings import SETTINGS, started, taken

_NAMES = count()


def asked(kind: str, seed: int, folder: Path) -> Any:
    """The contents after one sequence; every tenth is drawn by the sampler that protects."""
    place = seed % len(SETTINGS)
    setting = SETTINGS[place]
    kept = started(kind, place, None if seed % 10 == 0 else seed)
    for step in sequence(seed, setting.box, setting.reach if kind == "outputs" else None):
        before = kept._contents
        answers = _answers(kept, step.points)
        if answers is None:
            assert kept._contents is before, "a question that was refused has changed the state"
            assert step.outside or kind != "paths", "a question in the domain was refused"
            continue
        assert not step.outside, "a question outside the domain was answered"
        after = kept._contents
        for old, new in zip(_pinned(before), _pinned(after), strict=False):
            assert old.tobytes() == new[: len(old)].tobytes(), "what was drawn has changed"
        if seed % 4 == 0:
            again = _answers(kept, step.points[::-1])
            assert np.array_equal(again, answers[..., ::-1]), "a second answer is another one"
            assert kept._contents is after, "a point was drawn twice"
        kept = restarted(kind, kept, step.restart, folder)
        for old, new in zip(_pinned(after), _pinned(kept._contents), strict=True):
            assert old.tobytes() == new.tobytes(), "a restart has changed what was drawn"
    return kept._contents


def _answers(kept: Any, points: np.ndarray) -> Any:
    try:
        return kept.release(points)
    except ValueError:
        return None


def _pinned(contents: Any) -> Iterator[np.ndarray]:
    """All that must stay as it is once it was drawn; points first along every array."""
    c = contents
    yield c.points
    yield c.answers.T
    if hasattr(c, "normals"):
        yield from (c.normals.T, c.records.inputs, c.records.outputs, c.factor, *c.lower)
        return
    yield c.draws.numbers
    if hasattr(c.draws, "weights"):
        yield from (c.draws.exact, c.draws.inputs, c.draws.weights, *c.draws.lower)
    else:
        yield c.draws.sums


def restarted(kind: str, kept: Any, how: str, folder: Path) -> Any:
    """The thing that goes on: another process, from memory, from bytes or from a file."""
    if how == "none":
        return kept
    if how == "file":
        if kept._file is None:
            kept.save_state(folder / f"{next(_NAMES)}.private-state")
        return type(kept).load_state(kept._file.path)
    if how == "process":
        return taken(kind, kept._contents)
    codec: Any = paths_contents if kind == "paths" else state_contents
    return taken(kind, codec.decode(codec.encode(kept._contents)))
