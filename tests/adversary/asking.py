"""Asks a kept thing a sequence of questions, and holds it to what it may never do."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from tests.adversary.questions import sequence
from tests.adversary.settings import SETTINGS, started, taken

_NAMES = count()


def asked(kind: str, seed: int, folder: Path) -> Any:
    """The contents after one sequence; every tenth is drawn by the sampler that protects, and every
    third is asked by the public name."""
    place = seed % len(SETTINGS)
    setting, public = SETTINGS[place], seed % 3 == 0
    kept = started(kind, place, None if seed % 10 == 0 else seed)
    for step in sequence(seed, setting.box, setting.reach if kind == "outputs" else None):
        before = kept._kept.contents
        answers = _answers(kept, step.points, public)
        if answers is None:
            assert kept._kept.contents is before, (
                "a question that was refused has changed the state"
            )
            assert step.outside or kind != "paths", "a question in the domain was refused"
            continue
        assert not step.outside, "a question outside the domain was answered"
        after = kept._kept.contents
        for old, new in zip(_pinned(before), _pinned(after), strict=False):
            assert old.tobytes() == new[: len(old)].tobytes(), "what was drawn has changed"
        if seed % 4 == 0:
            again = _answers(kept, step.points[::-1], not public)
            assert np.array_equal(again, answers[::-1]), "a second answer is another one"
            assert kept._kept.contents is after, "a point was drawn twice"
        kept = restarted(kept, step.restart, folder)
        for old, new in zip(_pinned(after), _pinned(kept._kept.contents), strict=True):
            assert old.tobytes() == new.tobytes(), "a restart has changed what was drawn"
    return kept._kept.contents


def _answers(kept: Any, points: np.ndarray, public: bool) -> Any:
    """By the public name or by the vault's own, (points, ...); None where they are refused."""
    try:
        return kept.release(points).T if public else kept._kept.ask(points)
    except ValueError:
        return None


def _pinned(contents: Any) -> Iterator[np.ndarray]:
    """All that must stay as it is once it was drawn; points first along every array."""
    d = contents.draws
    yield from (d.points, d.answers)
    if hasattr(d, "normals"):
        yield from (d.normals, d.inputs, d.outputs, d.factor, *d.lower.rows)
        return
    yield d.numbers
    if hasattr(d, "weights"):
        yield from (d.exact, d.inputs, d.weights, *d.lower.rows)
    else:
        yield d.sums


def restarted(kept: Any, how: str, folder: Path) -> Any:
    """The thing that goes on: another process, from memory, from bytes or from a file."""
    if how == "none":
        return kept
    if how == "file":
        if kept._kept.file is None:
            kept.save_state(folder / f"{next(_NAMES)}.private-state")
        return type(kept).load_state(kept._kept.file.path)
    contents, codec = kept._kept.contents, kept._CODEC
    if how == "bytes":
        contents = codec.decode(codec.encode(contents))
    return taken(kept, contents)
