"""Plans and fits of whatever was declared, for rows in memory at public inputs or private records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from privgp.models.kinds.records import domain, private_inputs, row_count
from privgp.models.kinds.tallied import Tallied, is_tallied, rows_in_memory
from privgp.models.planned import OTHER, PublicRows, bind_plan, verify_plan
from privgp.models.tables import domain_of, records_to_plan, remember, rows_to_fit
from privgp.plan.counts.exposures import Exposures
from privgp.plan.inputs.arguments import check_output_shares
from privgp.plan.part import unit_of
from privgp.plan.plan import Plan, default_names, make_plan
from privgp.plan.together import PlannedRows, PrivateInputs, PublicInputs
from privgp.types import Array
from privgp.vault.checks.roles import check_roles
from privgp.vault.masked import Sealed
from privgp.vault.people import count_people
from privgp.vault.validate import column_names, person_ids

if TYPE_CHECKING:
    from privgp.models.published import Published

Exposed = Mapping[int, Array]  # the exposure of every row, by the place of the outcome


@dataclass(frozen=True)
class Given:
    """The rows that a plan is made for.

    Attributes
    ----------
    planned : PlannedRows
        What the plan is made from.
    public : PublicRows
        What the plan is bound to.
    exposed : mapping
        The exposures of counts.

    """

    planned: PlannedRows
    public: PublicRows
    exposed: Exposed

    @property
    def inputs(self) -> Array | None:
        """By which rows are recognised; None where inputs are private."""
        return self.public.inputs

    def serves(self, plan: Plan) -> bool:
        """Whether a plan is for such rows, as far as its fingerprint does not tell."""
        if self.public.inputs is not None:
            return getattr(plan.strategy, "tally", None) is None
        return unit_of(plan.parts[0]).several_rows == getattr(self.planned, "people", None)

    def _sum_for(self, data: Sealed, plan: Plan) -> Sealed:
        """What the vault measures of a plan."""
        return data


def public_rows(
    model: Published, X: Array, groups: Any, exposed: Exposed, table: Any, plan: Plan | None = None
) -> Given | Tallied:
    """Rows whose inputs are public, where the kernel has them; many as a tally.

    Parameters
    ----------
    model : estimator
        What is declared.
    X : array, (rows, columns)
        Where the kernel has the rows.
    groups : column, optional
        Whose rows they are.
    exposed : mapping
        The exposures of counts.
    table : table
        What X was made of.
    plan : Plan, optional
        Whose cells are used.

    """
    if is_tallied(model, len(X)):
        numbers = X if model.inputs_ is None else model.inputs_.numbers(table)
        rows = rows_in_memory(model, numbers, groups, dict(exposed))
        return Tallied.of(model, rows, tuple(exposed), plan)
    people = person_ids(groups, len(X))
    each = [*exposed.values()]
    exposures = np.column_stack(each) if len(each) > 1 else next(iter(each), None)
    return Given(PublicInputs(X, people), PublicRows.of(X, people, exposures), exposed)


def private_count(model: Published, X: Any, groups: Any) -> Given:
    """Private records: their number, or that of their people, and the declared domain."""
    check_roles(groups, called="groups", X=X)
    pairs = domain(domain_of(records_to_plan(model)))
    count, people = row_count(X), groups is not None
    count = count_people(groups, count) if people else count
    return Given(PrivateInputs(count, pairs, people), PublicRows(count, len(pairs)), {})


def plan_given(model: Published, rows: Given | Tallied, earlier: Sequence[Any] = ()) -> Plan:
    """What a fit on these rows would measure.

    Parameters
    ----------
    model : estimator
        What is declared.
    rows : Given
        The rows, as far as they are public.
    earlier : sequence
        What was measured of every outcome before, if anything.

    """
    if model.protect == "records":
        model = records_to_plan(model)
    questions = [one._question(rows.public.columns) for one in model._alone()]
    for place, exposure in rows.exposed.items():
        unit = earlier[place].unit if earlier else None
        counts = Exposures.of(exposure, questions[place].y_bounds, unit)
        questions[place] = replace(questions[place], exposures=counts)
    shares = check_output_shares(getattr(model, "shares", None), len(questions))
    made = make_plan(rows.planned, questions, model._budget(), shares, earlier)
    return bind_plan(model, made, rows.public)


def fit_columns(
    model: Published,
    X: Any,
    y: Any,
    groups: Any,
    plan: Plan | None,
    exposed: Callable[[int], Exposed],
    names: tuple[str, ...] | None = None,
) -> None:
    """Measure all outcomes once, with noise, and learn each from its part of the measurement.

    Parameters
    ----------
    model : estimator
        What is declared; it then holds the release.
    X, y, groups : object
        The inputs, the private outputs as the model reads them, and whose rows they are.
    plan : Plan or None
        What is measured; None: it is made here.
    exposed : callable
        Returns the exposures of counts for a number of rows.
    names : tuple of str, optional
        The names of several outcomes, if known.

    """
    inputs = people = None
    rows: Given | Tallied
    if model.protect == "records":
        check_roles(groups, called="groups", X=X)
        inputs = _private_inputs(model, X)
        people, count = person_ids(groups, len(inputs)), len(inputs)
        rows = private_count(model, count, groups)
    else:
        table, X = X, rows_to_fit(model, X)
        count = len(X)
        if model._streams(count):
            model._fit_in_blocks(X, y, groups, plan)
            return
        rows = public_rows(model, X, groups, exposed(count), table, plan)
    fit_given(model, rows, model._data(y, count, inputs, people), plan, names)


def fit_given(
    model: Published,
    rows: Given | Tallied,
    data: Sealed,
    plan: Plan | None,
    names: tuple[str, ...] | None = None,
) -> None:
    """The same for rows that are known, and outcomes that the vault holds."""
    made = _with_names(plan_for(model, rows, plan), names)
    data = rows._sum_for(data, made)
    model._publish_plan(made, data, inputs=rows.inputs, rows=rows.public.count)


def _private_inputs(model: Published, X: Any) -> Any:
    """Where the kernel has private inputs: for the vault alone. The model remembers their columns."""
    model.inputs_ = None
    model.inputs_ = kinds = records_to_plan(model).inputs_
    inputs = private_inputs(model, X)
    columns = len(domain(domain_of(model)))
    remember(model, column_names(X) if kinds is None else kinds.names, columns)
    return inputs


def plan_for(model: Published, rows: Given | Tallied, plan: Plan | None) -> Plan:
    """A new plan for these rows, or the given one if it was made for them."""
    if plan is None:
        return plan_given(model, rows)
    made = verify_plan(model, plan, rows.public)
    if not rows.serves(made):
        raise ValueError(OTHER)
    return made


def _with_names(plan: Plan, names: tuple[str, ...] | None) -> Plan:
    """A plan under the names that outcomes have in the table; several always have some."""
    if names is None and len(plan.parts) == 1:
        return plan
    if names is not None and plan.output_names not in (None, names):
        raise ValueError(
            f"plan was made for the outputs {', '.join(plan.names)}: give y with these columns, in "
            "this order. Nothing was spent."
        )
    return replace(plan, output_names=names or plan.names)


def check_names(model: Published, names: tuple[str, ...] | None) -> None:
    """Refuse outcomes of a further measurement under other names than they were released by."""
    known = model.output_names_
    if names is not None and known not in (names, default_names(len(known))):
        raise ValueError(
            f"y must have the columns {', '.join(known)}, in this order. Nothing was spent."
        )
