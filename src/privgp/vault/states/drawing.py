"""Drawing a function at new points: public coordinates beside the vault's draws."""

from __future__ import annotations

from typing import Protocol

from privgp.gp.growing import Coordinates, Extension
from privgp.plan.functions.checked_factor import CheckedFactor, Rows
from privgp.plan.functions.outputs import FunctionModel
from privgp.plan.functions.records import RecordsModel
from privgp.types import Array
from privgp.vault.states.function_file import Contents
from privgp.vault.states.outputs import Draws, extended
from privgp.vault.states.records import RecordDraws, extended_records


class Drawer(Protocol):
    """Draws one coordinate for each new point. ``accept`` makes the last draw part of its factor."""

    def draw(self, contents: Contents, points: Array) -> tuple[Draws | RecordDraws, Array]:
        """The draws after these points, and the rows of L that turn numbers into answers."""

    def accept(self) -> None: ...


def drawer_for(model: FunctionModel | RecordsModel) -> Drawer:
    return OfRecords(model) if isinstance(model, RecordsModel) else OfOutputs(model)


class OfOutputs:
    """Inputs are public: the rows that measure a point are computed first, then multiplied."""

    def __init__(self, model: FunctionModel) -> None:
        self._coordinates = Coordinates(model.kernel, model.inputs, model.coefficients)
        self._last: Extension | None = None

    def draw(self, contents: Contents, points: Array) -> tuple[Draws, Array]:
        assert isinstance(contents.draws, Draws)
        self._coordinates.catch_up(contents.points)
        self._last = self._coordinates.propose(points)
        return extended(contents.draws, self._last.rows), self._last.lower

    def accept(self) -> None:
        assert self._last is not None
        self._coordinates.accept(self._last)


class OfRecords:
    """Inputs are private: only the factor at the points asked is public."""

    def __init__(self, model: RecordsModel) -> None:
        self._kernel = model.kernel
        self._factor = CheckedFactor(model.kernel, model.widths)
        self._last: Rows | None = None

    def draw(self, contents: Contents, points: Array) -> tuple[RecordDraws, Array]:
        draws = contents.draws
        assert isinstance(draws, RecordDraws)
        self._factor.catch_up(contents.points, draws.lower, draws.residual)
        rows = self._last = self._factor.propose(points)
        drawn = extended_records(draws, self._kernel, points, rows.lower, rows.residual)
        return drawn, rows.lower

    def accept(self) -> None:
        assert self._last is not None
        self._factor.accept(self._last)
