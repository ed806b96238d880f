"""What a custodian keeps and answers from: drawn where it is asked for, stored, then answered. Every
point is drawn once and always gets the same answer. Two copies would draw differently, so a state
is neither copied nor used by two processes. Proofs: docs/proofs/function.md, path_rounding.md."""

import os
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from privgp.gp.arithmetic import one_thread
from privgp.privacy.guarantee import Guarantee
from privgp.question.rules import check_inside
from privgp.storage.archive import damage_of, require
from privgp.storage.codec import Codec
from privgp.storage.parts import PathLike
from privgp.storage.state_file import StateFile
from privgp.types import Array, added_field

BATCH = 1024
COPIED = (
    "what was fitted to private data cannot be copied or pickled: two copies would draw different "
    "answers. Use save_state and load_state."
)
OTHER_PROCESS = (
    "this state belongs to another process, which would draw other answers: save it to a file, and "
    "load that with load_state."
)
NOT_TOGETHER = "its parts do not belong together"
OTHER_PROMISE = "its guarantee does not belong to it"
TOO_MUCH = "it has drawn more than it may"
NOT_DRAWN = "its draws are not those of its records"
OLD_PATHS = (
    "it holds sample paths of privgp 0.1, whose answers could give records away: delete it and fit "
    "the paths again, which spends another budget"
)
OLD_RATIONAL = (
    "it holds a function of records of privgp 0.1 with a RationalQuadratic kernel, which could break "
    "its guarantee: delete it and fit the function again, which spends another budget"
)
OLD_FUNCTION = (
    "it was written by privgp 0.1: ask it with that version, or fit the function again, which spends "
    "another budget"
)


@dataclass(frozen=True)
class Contents:
    """All there is to a function, or to some paths; a subclass says how they go on.

    Attributes
    ----------
    guarantee : guarantee of all answers together
    names : names of the inputs, if they have any
    model : the public part
    draws : the private values and all that was drawn, which alone changes
    stated : guarantee of these answers and of a private choice that led to them, if there was one

    """

    guarantee: Guarantee
    names: tuple[str, ...] | None
    model: Any
    draws: Any
    _: KW_ONLY
    stated: Guarantee | None = added_field(None)

    ADVICE: ClassVar[str] = "."  # for a caller who asks for too many points

    @property
    def most(self) -> float:
        """The most points that are ever answered."""
        raise NotImplementedError

    def parameters(self) -> dict[str, Any]:
        """The arguments that an estimator of these contents was made with."""
        raise NotImplementedError

    def engine(self) -> Any:
        """What computes further points; it may be lost and made anew at any time."""
        raise NotImplementedError

    def grow(self, engine: Any, points: Array) -> Any:
        """The draws with these new points among them: their noise is drawn.

        Parameters
        ----------
        engine
            As ``engine()`` made it.
        points
            (new, columns), none of them drawn before.

        """
        raise NotImplementedError

    def draw_at_once(self) -> Any:
        """The draws after which no point needs a further draw, if there are such."""
        return None

    def values(self, X: Array) -> Array:
        """Answers that need no further draw, (points, ...)."""
        raise NotImplementedError

    def check(self) -> None:
        """Refuse parts that do not belong together, as only a file can have them."""
        columns = self.model.columns
        named = self.names is None or len(self.names) == columns
        require(named and self.draws.points.shape[1] == columns, NOT_TOGETHER)
        if self.stated is not None:
            total, own = self.stated, self.guarantee
            total.check()
            same = (total.unit, total.neighbours) == (own.unit, own.neighbours)
            more = total.epsilon >= own.epsilon and total.delta >= own.delta
            require(same and more, OTHER_PROMISE)

    def verify_draws(self) -> Any:
        """An engine that holds all that was drawn, if those are draws of the records.

        Only a file can have others, which are refused. None if privacy does not rest on that.
        """
        return None

    def holds_inputs(self, inputs: Array) -> bool:
        """Whether private inputs lie in the domain."""
        low, high = np.array(self.model.domain).T
        return bool(np.all((inputs >= low) & (inputs <= high)))


class Kept:
    """Contents with the file that holds them; one question at a time.

    Parameters
    ----------
    contents : with their private values
    codec : codec of the file
    file : that holds them, if there is one

    """

    def __init__(self, contents: Contents, codec: Codec, file: StateFile | None = None) -> None:
        self.contents, self.file, self._codec = contents, file, codec
        self._unsaved = False
        self._engine: Any = None
        self._places: dict[bytes, int] = {}
        self._lock = threading.Lock()
        self._process = os.getpid()

    @classmethod
    def new(cls, contents: Contents, codec: Codec, path: PathLike | None) -> Self:
        """The contents of a fit, in a new file if there is to be one.

        Noise that can be drawn at once is drawn now, when nobody waits for an answer.
        """
        with one_thread(), np.errstate(all="ignore"):
            at_once = contents.draw_at_once()
        contents = contents if at_once is None else replace(contents, draws=at_once)
        file = None if path is None else StateFile.create(path, contents, codec)
        return cls(contents, codec, file)

    @classmethod
    def load(cls, path: PathLike, codec: Codec) -> Self:
        """The contents of a file, checked against its records.

        Raises
        ------
        DamagedFile
            The file is none, or its draws are not those of its records.

        """
        file, contents = StateFile.open(path, codec)
        kept = cls(contents, codec, file)
        with one_thread(), np.errstate(all="ignore"), damage_of(path):
            kept._engine = contents.verify_draws()
        return kept

    def ask(self, X: Array) -> Array:
        """The answers at these points, (points, ...); the file holds them before they are returned.

        Parameters
        ----------
        X
            (points, columns), inside the declared domain if there is one.

        Raises
        ------
        ValueError
            The points have another shape, lie outside, or are more than are ever answered.
        RuntimeError
            Another process has gone on with the file, or made this object.

        """
        self._check_process()
        X = X + 0.0  # no negative zeros
        if X.ndim != 2 or X.shape[1] != self.contents.model.columns:
            raise ValueError("X must have one column per input.")
        with self._lock, one_thread(), np.errstate(all="ignore"):
            if self.contents.model.domain is not None:
                check_inside(X, self.contents.model.domain)
            return self._answers(X)

    def count_new(self, X: Array) -> int:
        """How many of these points need a further draw; public."""
        with self._lock:
            if self.contents.draw_at_once() is not None:
                return 0
            self._find_places()
            return len({row.tobytes() for row in X + 0.0} - self._places.keys())

    def save(self, path: PathLike) -> None:
        """Write everything into a new file, in which it is kept from then on.

        Raises
        ------
        RuntimeError
            It is kept in a file already: a second one would fall behind.

        """
        self._check_process()
        with self._lock:
            if self.file is not None:
                path = self.file.path
                raise RuntimeError(f"it is kept in {path!r}: a second file would fall behind.")
            self.file = StateFile.create(path, self.contents, self._codec)
            self._unsaved = False

    def state(self, guarantee: Guarantee) -> None:
        """State the guarantee of a choice and of all answers, in the file too if there is one."""
        with self._lock:
            self.contents, self._unsaved = replace(self.contents, stated=guarantee), True
            self._persist()

    def at_rest(self) -> AbstractContextManager[Any]:
        """Waits for a question of another thread, and lets none begin."""
        return self._lock if self._process == os.getpid() else nullcontext()

    def _answers(self, X: Array) -> Array:
        at_once = self.contents.draw_at_once()
        if at_once is not None:
            if at_once is not self.contents.draws:
                self._take(at_once)
            self._persist()
            return self.contents.values(X)
        asked = [row.tobytes() for row in X]
        self._find_places()
        new = list(dict.fromkeys(point for point in asked if point not in self._places))
        most, answered = self.contents.most, len(self._places)
        if answered + len(new) > most:
            raise ValueError(
                f"at most {most:,.0f} points are ever answered, and {answered:,} were: ask for fewer"
                + self.contents.ADVICE
            )
        for start in range(0, len(new), BATCH):
            part = new[start : start + BATCH]
            self._draw_at(np.frombuffer(b"".join(part)).reshape(len(part), -1))
        self._find_places()
        self._persist()
        answers: Array = self.contents.draws.answers[[self._places[point] for point in asked]]
        return answers

    def _draw_at(self, points: Array) -> None:
        """Draw these new points. An interrupt leaves all of the draw or nothing of it."""
        # Nor does an interrupt leave an engine that was stopped halfway.
        engine, self._engine = self._engine or self.contents.engine(), None
        try:
            draws = self.contents.grow(engine, points)
        except ValueError:  # these points are refused, before anything was changed
            self._engine = engine
            raise
        self._take(draws)
        self._engine = engine

    def _take(self, draws: object) -> None:
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
            raise RuntimeError(OTHER_PROCESS)

    def __getstate__(self) -> NoReturn:
        raise TypeError(COPIED)


class StateCodec(Codec):
    """Refuses states of another kind and of earlier versions, with the reason."""

    def decode(self, members: Mapping[str, bytes]) -> Any:
        """The contents that these members hold.

        Raises
        ------
        DamagedFile
            They are of another kind, of an earlier version, or broken; the sentence says which.

        """
        require("private_paths.json" not in members, OLD_PATHS)
        function = members.get("private_state.json", b"")
        of_records = "weights.npy" in members
        require(not of_records or b'"RationalQuadratic"' not in function, OLD_RATIONAL)
        require(function == b"", OLD_FUNCTION)
        if self.name == "function":
            require("paths.json" not in members, "it holds sample paths, not a function")
        else:
            require("function.json" not in members, "it holds a function, not sample paths")
        return super().decode(members)
