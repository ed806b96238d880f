"""What a curator keeps and answers from: drawn where it is asked for, stored, then answered.

Every point is drawn once and answered the same for ever. Two copies would draw differently, so a
state is neither copied nor used by two processes. Proofs: docs/proofs/function.md,
function_records.md, path_rounding.md.
"""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from typing import Any, ClassVar, NoReturn

import numpy as np

from privgp.gp.threads import one_thread
from privgp.plan.inputs.arguments import check_inside
from privgp.storage.codec import Codec
from privgp.storage.state_file import StateFile
from privgp.types import Array

BATCH = 1024


class Kept:
    """One function, or some paths, with the file that holds them.

    A subclass says how many points there may be, how further points are drawn, and its words.
    """

    COPIED: ClassVar[str]
    OTHER_PROCESS: ClassVar[str]

    def __init__(self, contents: Any, codec: Codec, file: StateFile | None = None) -> None:
        self.contents, self.file, self._codec = contents, file, codec
        self._unsaved = False
        self._engine: Any = None
        self._places: dict[bytes, int] = {}
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def most(self) -> int:
        """The most points that are ever answered."""
        raise NotImplementedError

    @property
    def domain(self) -> tuple[tuple[float, float], ...] | None:
        """Points outside are refused."""
        return getattr(self.contents.model, "domain", None)

    def ask(self, X: Array) -> Array:
        """The answers at these points, (points, ...); the file holds them before they are returned."""
        self._check_process()
        X = X + 0.0  # no negative zeros
        if X.ndim != 2 or X.shape[1] != self.contents.draws.points.shape[1]:
            raise ValueError("X must have one column per input.")
        with self._lock, one_thread(), np.errstate(all="ignore"):
            if self.domain is not None:
                check_inside(X, self.domain)
            return self._answers(X)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a new file, and keep it up to date."""
        self._check_process()
        with self._lock:
            if self.file is not None:
                raise RuntimeError(self._second_file(self.file.path))
            self.file = StateFile.create(path, self.contents, self._codec)
            self._unsaved = False

    def _answers(self, X: Array) -> Array:
        asked = [row.tobytes() for row in X]
        self._find_places()
        new = list(dict.fromkeys(point for point in asked if point not in self._places))
        if len(self._places) + len(new) > self.most:
            raise ValueError(self._too_many(self.most, len(self._places)))
        for start in range(0, len(new), BATCH):
            part = new[start : start + BATCH]
            self._draw_at(np.frombuffer(b"".join(part)).reshape(len(part), -1))
        self._find_places()
        self._persist()
        answers: Array = self.contents.draws.answers[[self._places[point] for point in asked]]
        return answers

    def _draw_at(self, points: Array) -> None:
        """Draw these new points. An interrupt leaves all of the draw or nothing of it."""
        # Nor does an interrupt leave an engine that was stopped halfway: it is made anew.
        engine, self._engine = self._engine or self._new_engine(), None
        try:
            draws = self._further(engine, points)
        except ValueError:  # these points are refused, before anything was changed
            self._engine = engine
            raise
        self._take(draws)
        self._engine = engine

    def _new_engine(self) -> Any:
        """What draws further points, computed from the contents."""
        raise NotImplementedError

    def _further(self, engine: Any, points: Array) -> Any:
        """The draws with these new points among them."""
        raise NotImplementedError

    def _take(self, draws: Any) -> None:
        """Go on with these draws, by one assignment."""
        self._unsaved = True
        self.contents = replace(self.contents, draws=draws)

    def _persist(self) -> None:
        """Bring the file up to date; answers wait for it."""
        if self.file is not None and self._unsaved:
            self.file.keep(self.contents)
            self._unsaved = False

    def _find_places(self) -> None:
        """Where every point stands among the answers."""
        points = self.contents.draws.points
        for place in range(len(self._places), len(points)):
            self._places[points[place].tobytes()] = place

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise RuntimeError(self.OTHER_PROCESS)

    def _too_many(self, most: int, answered: int) -> str:
        raise NotImplementedError

    def _second_file(self, path: str) -> str:
        raise NotImplementedError

    def __getstate__(self) -> NoReturn:
        raise TypeError(self.COPIED)
