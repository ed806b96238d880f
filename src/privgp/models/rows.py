"""What models of rows X and their private outputs y have in common: plan, fit, and further measurements."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

from privgp.gp.threads import one_thread, threads_for
from privgp.models.files import (
    columns_to_fit,
    columns_to_plan,
    fit_table,
    is_streamed,
    plan_table,
)
from privgp.models.kept import names_of
from privgp.models.kinds.inducing import array_rows, fit_rows, plan_rows
from privgp.models.kinds.records import fit_records, plan_records, row_count
from privgp.models.kinds.updates import measure_further
from privgp.models.planned import PublicRows, accepted, bound, named
from privgp.models.published import Published
from privgp.models.tables import located, rows_to_fit, rows_to_plan
from privgp.plan.build import make_plan
from privgp.plan.counts.exposures import Exposures
from privgp.plan.parameters import Parameters
from privgp.plan.plan import Plan
from privgp.types import Array
from privgp.vault.checks.roles import check_order
from privgp.vault.stream import ArrayOutputs
from privgp.vault.validate import person_ids


class RowsModel(Published):
    """A model of private outputs y at rows X, one function of the inputs or several."""

    _declares: ClassVar[type[Parameters]] = Parameters
    _question: Any
    _checked: Any
    _sketch: Any
    _made_up: Any
    fit: Any
    get_params: Any
    set_params: Any
    mechanism: str
    output_names_: tuple[str, ...]
    x_bounds: Any
    y_bounds: Any
    columns: Any
    inducing: Any
    most_rows: Any
    objective: str
    reconstruct: str
    likelihood: str
    engine: Any

    def _plan_table(self, X: Any, groups: Any, exposure: Any = None) -> Plan:
        """What a ``fit`` on this table would measure."""
        check_order(X=X, groups=groups, exposure=exposure)
        if is_streamed(X, self):
            return plan_table(self, X, groups)
        names, asked = names_of(X), self
        X, groups, exposure = columns_to_plan(self, X, groups, exposure)
        if self.protect != "records":
            asked, X = rows_to_plan(self, X)
        return named(asked._plan(X, groups, exposure=exposure), names)

    def _plan(
        self,
        X: Any,
        groups: Any,
        ranked: bool = False,
        exposure: Any = None,
        earlier: Any = None,
    ) -> Plan:
        """A plan for rows as the kernel has them; ``earlier``: what was measured before, if anything."""
        if self.protect == "records":
            return plan_records(self, X, groups, earlier)
        if self._streams(len(X)) and not ranked and earlier is None:
            return plan_rows(self, array_rows(self, X, groups))
        question = replace(self._question(X.shape[1]), ranked=ranked)
        people, exposure = person_ids(groups, len(X)), self._exposure(exposure, len(X))
        if exposure is not None:
            unit = None if earlier is None else earlier.unit
            question = replace(question, exposures=Exposures.of(exposure, question.y_bounds, unit))
        # Only the other objectives have matrices so large that threads do more than wait.
        with one_thread() if question.objective == "posterior" else threads_for(len(X)):
            plan = make_plan(X, question, self._budget(), people, earlier)
        return plan if ranked else bound(self, plan, PublicRows.of(X, people, exposure))

    def _plan_for(self, rows: PublicRows, groups: Any, plan: Any) -> Plan:
        """A new plan for these rows, or the given one if it was made for them."""
        if plan is None:
            inputs = rows.count if rows.inputs is None else rows.inputs
            return self._plan(inputs, groups, exposure=rows.exposure)
        self._question(rows.columns)
        return accepted(self, plan, rows)

    def _fit(self, X: Any, y: Any, groups: Any, plan: Any, exposure: Any = None) -> Self:
        """Measure once, with noise, and learn from the measurement."""
        self._check_given(X, y, groups, exposure)
        if is_streamed(X, self):
            fit_table(self, X, y, groups, plan)
            return self
        X, y, groups, exposure = columns_to_fit(self, X, y, groups, exposure)
        self._fit_columns(X, y, groups, exposure, plan)
        return self

    def _fit_columns(self, X: Any, y: Any, groups: Any, exposure: Any, plan: Any) -> None:
        """The same for columns in memory."""
        if self.protect == "records":
            fit_records(self, X, y, groups, plan)
            return
        X = rows_to_fit(self, X)
        y = self._checked(y, len(X))
        if self._streams(len(X)):
            rows = array_rows(self, X, groups)
            fit_rows(self, rows, ArrayOutputs.of(y, rows), plan)
            return
        public = PublicRows.of(X, person_ids(groups, len(X)), self._exposure(exposure, len(X)))
        plan = self._plan_for(public, groups, plan)
        self._publish_plan(plan, y, inputs=public.inputs, rows=len(X))

    def _fit_further(
        self,
        X: Any,
        y: Any,
        groups: Any,
        budget: tuple[float, float] | None,
        exposure: Any = None,
    ) -> Self:
        """Measure rows of new people; with a ``budget`` of its own, the same rows again."""
        self._check_given(X, y, groups, exposure)
        X, y, groups, exposure = columns_to_fit(self, X, y, groups, exposure)
        measure_further(self, X, y, groups, self._exposed_by(exposure, row_count(X)), budget)
        return self

    def _alone(self) -> tuple[Any, ...]:
        """An unfitted model of every output alone, with the whole budget."""
        return (self,)

    def _exposure(self, exposure: Any, rows: int) -> Array | None:
        """The exposure of every row where outputs are counts."""
        return None

    def _parameters(self, columns: int) -> Any:
        """What was declared, as a plan and a file hold it."""
        return self._declares.of(self.get_params(deep=False) | located(self), columns)
