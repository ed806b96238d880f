"""One private function, of outputs or of records: what is kept of it, and how it goes on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import numpy as np

from privgp.gp.growing import Coordinates
from privgp.gp.kernels.evaluate import check_kernel
from privgp.plan.functions.checked_factor import MOST_POINTS, CheckedFactor
from privgp.plan.functions.outputs import MAX_POINTS, SENSITIVITIES, FunctionModel
from privgp.plan.functions.records import RECORD_SENSITIVITIES, RecordsModel
from privgp.plan.inputs.arguments import check_bounds, check_choice
from privgp.privacy.budget import check_budget
from privgp.privacy.guarantee import Guarantee
from privgp.storage.archive import DamagedFile
from privgp.types import Array, Pair, Positive, Share
from privgp.vault.states.kept import Kept
from privgp.vault.states.outputs import Draws, extended
from privgp.vault.states.records import RecordDraws, extended_records

D = TypeVar("D", Draws, RecordDraws)

NOT_TOGETHER = "its parts do not belong together"
TOO_MUCH = "it has drawn more than it may"


@dataclass(frozen=True)
class FunctionContents:
    """All there is to a function: what was asked for, the public model, the private draws."""

    y_bounds: Pair
    epsilon: Positive
    delta: Share
    sensitivity: str
    dominance: Positive | None
    norm: Positive
    guarantee: Guarantee
    names: tuple[str, ...] | None
    model: FunctionModel | RecordsModel
    draws: Draws | RecordDraws

    protect: ClassVar[str]
    SENSITIVITIES: ClassVar[tuple[str, ...]]

    def in_units(self, scaled: Array) -> Array:
        """From outputs scaled to [-1, 1] to units of y."""
        low, high = self.y_bounds
        return (0.5 * high + 0.5 * low) + (0.5 * high - 0.5 * low) * scaled

    def check(self) -> None:
        """Refuse parts that do not belong together, as only a file can have them."""
        columns, points, draws = self.model.columns, len(self.draws.points), self.draws
        check_bounds("bounds", self.y_bounds)
        check_budget(self.epsilon, self.delta)
        check_choice("sensitivity", self.sensitivity, self.SENSITIVITIES)
        check_kernel(self.model.kernel, columns)
        shapes = (draws.points.shape[1:], len(draws.answers), len(self.names or (0,) * columns))
        if shapes != ((columns,), points, columns):
            raise DamagedFile(NOT_TOGETHER)


@dataclass(frozen=True)
class OutputsContents(FunctionContents):
    """A function of private outputs."""

    model: FunctionModel
    draws: Draws

    protect: ClassVar[str] = "outputs"
    SENSITIVITIES: ClassVar[tuple[str, ...]] = SENSITIVITIES

    def check(self) -> None:
        super().check()
        model, draws = self.model, self.draws
        rows, numbers, points = len(model.inputs), len(draws.numbers), len(draws.points)
        if model.nodes is None:
            aligned = numbers == points <= draws.noise.size <= MAX_POINTS
        else:
            aligned = points == 0 and numbers in (0, len(model.nodes))
            aligned = aligned and draws.noise.size == len(model.nodes)
            aligned = aligned and model.nodes.shape[1] == model.columns
        same = {rows, len(model.counts), len(draws.sums), len(draws.squares)} == {rows}
        if rows == 0 or not (aligned and same and np.all(model.counts >= 1)):
            raise DamagedFile(NOT_TOGETHER)
        if not np.all((draws.squares >= 0) & (draws.squares <= draws.limit * (1.0 + 1e-9))):
            raise DamagedFile(TOO_MUCH)


@dataclass(frozen=True)
class RecordsContents(FunctionContents):
    """A function of private records."""

    model: RecordsModel
    draws: RecordDraws

    protect: ClassVar[str] = "records"
    SENSITIVITIES: ClassVar[tuple[str, ...]] = RECORD_SENSITIVITIES

    def check(self) -> None:
        super().check()
        model, draws = self.model, self.draws
        for pair in model.domain:
            check_bounds("domain", pair)
        low, high = np.array(model.domain).T
        shapes = (draws.inputs.shape, len(draws.weights))
        if shapes != ((model.rows, model.columns), model.rows):
            raise DamagedFile(NOT_TOGETHER)
        sizes = {len(draws.points), len(draws.numbers), len(draws.exact), draws.lower.size}
        inside = np.all((draws.inputs >= low) & (draws.inputs <= high))
        if len(sizes) != 1 or not inside or draws.noise.size != MOST_POINTS:
            raise DamagedFile(NOT_TOGETHER)
        if len(draws.points) > MOST_POINTS:
            raise DamagedFile(TOO_MUCH)


class KeptFunction(Kept):
    """A function, asked point by point."""

    COPIED = (
        "a fitted PrivateFunction cannot be copied or pickled: two copies would draw different noise "
        "for one function. Use save_state and load_state."
    )
    OTHER_PROCESS = (
        "this function belongs to another process, which would draw it otherwise: give it a state "
        "file and load that with load_state."
    )
    ADVICE: ClassVar[str] = "."

    contents: FunctionContents

    @property
    def most(self) -> int:
        return self.contents.draws.noise.size

    def _with_answers(self, draws: D, points: Array, lower: Array) -> D:
        """Draws whose last numbers are those of new points, of which ``lower`` are the rows of L."""
        answers = self.contents.in_units(lower @ draws.numbers)
        return replace(
            draws,
            points=np.vstack([draws.points, points]),
            answers=np.concatenate([draws.answers, answers]),
        )

    def _too_many(self, most: int, answered: int) -> str:
        return (
            f"a function answers at most {most:,} points, and this one has answered {answered:,}: "
            "ask for fewer" + self.ADVICE
        )

    def _second_file(self, path: str) -> str:
        return f"this function is kept in {path!r}: a second file would fall behind."


class KeptOutputs(KeptFunction):
    """Inputs are public: the rows that measure a point are computed first, then multiplied."""

    ADVICE = ", or give inducing= for any number."

    contents: OutputsContents

    def _answers(self, X: Array) -> Array:
        model = self.contents.model
        if model.nodes is None:
            return super()._answers(X)
        if len(self.contents.draws.numbers) == 0:
            self._take(extended(self.contents.draws, model.node_rows))
        self._persist()
        return self.contents.in_units(model.node_values(X, self.contents.draws.numbers))

    def _new_engine(self) -> Coordinates:
        model = self.contents.model
        return Coordinates(model.kernel, model.inputs, model.coefficients)

    def _further(self, engine: Coordinates, points: Array) -> Draws:
        draws = self.contents.draws
        engine.catch_up(draws.points)
        extension = engine.propose(points)
        drawn = self._with_answers(extended(draws, extension.rows), points, extension.lower)
        engine.accept(extension)
        return drawn


class KeptRecords(KeptFunction):
    """Inputs are private: only the factor at the points asked is public."""

    contents: RecordsContents

    def _new_engine(self) -> CheckedFactor:
        return CheckedFactor(self.contents.model.kernel, self.contents.model.widths)

    def _further(self, engine: CheckedFactor, points: Array) -> RecordDraws:
        draws = self.contents.draws
        engine.catch_up(draws.points, draws.lower.rows, draws.residual)
        rows = engine.propose(points)
        drawn = extended_records(draws, engine.kernel, points, rows.lower, rows.residual)
        engine.accept(rows)
        return self._with_answers(drawn, points, rows.lower)
