"""Many rows at public inputs, wherever they are: reduced to a tally, planned and measured by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privgp.engine.cluster import engine_of
from privgp.engine.local import Engine, Watch
from privgp.models.planned import PublicRows
from privgp.plan.fingerprint import fingerprint
from privgp.plan.inputs.arguments import whole_number
from privgp.plan.inputs.blocks import ArrayInputs, Blocks
from privgp.plan.inputs.rows import LARGEST, STREAMED
from privgp.plan.inputs.tally import People, Source, Tally, tally_of, tally_rows
from privgp.plan.plan import Plan
from privgp.plan.together import PublicInputs
from privgp.question.rules import ONE, check_rules
from privgp.types import Array
from privgp.vault.grouped.totals import Encoding, sum_outcomes
from privgp.vault.masked import Sealed
from privgp.vault.people import person_codes

if TYPE_CHECKING:
    from privgp.models.published import Published

Exposed = dict[int, Array]


def is_tallied(model: Published, rows: int) -> bool:
    """Whether so many rows are reduced to a tally: past some number, or where ``most_rows`` of a person
    are used."""
    usual = all(
        getattr(model, name, "posterior") == "posterior" for name in ("objective", "reconstruct")
    )
    asked = getattr(model, "inducing", None) is None and model.protect != "records"
    return usual and asked and (rows > STREAMED or _most(model) is not None)


def _most(model: Published) -> Any:
    return getattr(model, "most_rows", None)


def most_rows(model: Published, groups: Any) -> int | None:
    """The most rows of one person that are used; None: all."""
    if _most(model) is None:
        return None
    check_rules({"most_rows": model.most_rows, "groups": groups}, ONE)
    return whole_number("most_rows", model.most_rows, LARGEST)


def rows_in_memory(model: Published, numbers: Array, groups: Any, exposed: Exposed) -> Blocks:
    """Rows in memory, as numbers of their columns.

    Parameters
    ----------
    model : estimator
        What is declared.
    numbers : array, (rows, names)
        Public.
    groups : column, optional
        Whose rows they are.
    exposed : mapping
        The exposure of every row, by the place of the count.

    """
    most, people = most_rows(model, groups), None
    if groups is not None:
        people = People.of(person_codes(groups, len(numbers)), most)
    over = np.column_stack([*exposed.values()]) if exposed else None
    return Blocks.of(ArrayInputs(numbers, model.inputs_), people, over)


@dataclass(frozen=True)
class Tallied:
    """The rows that a plan is made for, reduced to a tally; see ``Given``.

    Attributes
    ----------
    tally : Tally
        Of the rows.
    counts : tuple of int
        The places of the outcomes that are counts.
    source : Source
        Where they are.
    engine : Engine
        Who reads them.

    """

    tally: Tally
    counts: tuple[int, ...]
    source: Source
    engine: Engine

    @classmethod
    def of(
        cls, model: Published, source: Source, counts: tuple[int, ...], plan: Plan | None = None
    ) -> Tallied:
        """On a grid of their own, or on that of a plan."""
        engine, known = engine_of(getattr(model, "engine", None)), tally_of_plan(plan)
        if known is None or known.inputs != source.kinds:
            return cls(tally_rows(source, engine), counts, source, engine)
        return cls(tally_of(source, known.grid, engine), counts, source, engine)

    @property
    def planned(self) -> PublicInputs:
        """What the plan is made from."""
        return PublicInputs.tallied(self.tally)

    @property
    def public(self) -> PublicRows:
        """What the plan is bound to."""
        planned, tally = self.planned, self.tally
        columns = int(planned.X.shape[1])
        return PublicRows(tally.rows, columns, self.inputs, planned.people, tally.exposures)

    @property
    def inputs(self) -> Array:
        """Where rows are and how many, by which they are recognised, (cells, names + 1)."""
        return np.column_stack([self.tally.numbers, self.tally.counts])

    @property
    def exposed(self) -> Exposed:
        """The mean exposure of every cell, by the place of the count."""
        if self.tally.exposures is None:
            return {}
        return dict(zip(self.counts, self.tally.exposures.T, strict=True))

    def serves(self, plan: Plan) -> bool:
        """Whether a plan is for this very tally, which its sensitivity rests on."""
        own = fingerprint(self.tally)
        parts = plan.parts
        return all(fingerprint(getattr(p.strategy, "tally", None)) == own for p in parts)

    def _sum_for(self, data: Sealed, plan: Plan, watch: Watch | None = None) -> Sealed:
        """What the vault measures of a plan, by one pass over rows and outcomes."""
        parts = plan.parts
        each = [Encoding(p.y_bounds, getattr(p.strategy, "classes", 2)) for p in parts]
        of_tally: Any = self.source, self.tally, each, self.engine
        return sum_outcomes(data, *of_tally, alone=len(parts) == 1, watch=watch)


def tally_of_plan(plan: Plan | None) -> Tally | None:
    """The tally that a plan was made for; None where it was made for other rows, or is no plan."""
    found: Tally | None = getattr(getattr(plan, "strategy", None), "tally", None)
    return found
