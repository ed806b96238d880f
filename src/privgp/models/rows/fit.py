"""Planning and fitting of whatever was declared, for rows in memory at public inputs or private records.

Many rows at public inputs are reduced to a tally, and planned and measured by it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from inspect import Parameter, signature
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import numpy as np
from sklearn.utils.validation import _num_samples

from privgp.engine.workers import Engine, Watch, engine_of
from privgp.models.published import names_of
from privgp.models.rows.tables import any_column, domain_of, records_to_plan, remember, rows_to_fit
from privgp.plan.bins.build import PrivateInputs
from privgp.plan.build import PublicInputs
from privgp.plan.inputs.blocks import STREAMED, ArrayInputs, Blocks
from privgp.plan.inputs.tally import People, Source, Tally, is_in_parts, tally_of, tally_rows
from privgp.plan.parameters import MadeFor, Parameters, bounds_advice
from privgp.plan.part import unit_of
from privgp.plan.plan import Plan, budget_advice, default_names, make_plan
from privgp.plan.together import PlannedRows
from privgp.question.outcomes import has_private_inputs
from privgp.question.parameters import MOST_ROWS
from privgp.question.rules import (
    ONE,
    Beside,
    Exposures,
    check_output_shares,
    check_rules,
    domain_pairs,
    whole_number,
)
from privgp.storage.codec import fingerprint
from privgp.types import Array, Integers, Table, UserData, added_field
from privgp.vault.grouped.totals import Encoding, sum_outcomes
from privgp.vault.table import seal_rows
from privgp.vault.validate import (
    check_roles,
    column_names,
    count_people,
    person_codes,
    person_ids,
    seal_inputs,
    seal_weights,
)
from privgp.vault.values import Sealed

if TYPE_CHECKING:
    from privgp.models.published import Published


BY_NAME = Parameter.KEYWORD_ONLY
Method = TypeVar("Method", bound=Callable[..., Any])
OTHER = (
    "plan was made for other inputs, groups, bounds or parameters, or was changed since: plan again "
    "with the same rows and options. Nothing was spent."
)


@dataclass(frozen=True)
class PublicRows:
    """What is public of the rows: their number, and inputs, people, exposures and weights where these
    are."""

    count: int
    columns: int
    inputs: Array | None = None
    people: Integers | None = None
    exposure: Array | None = added_field(None)
    weights: Array | None = added_field(None)

    @classmethod
    def of(
        cls,
        X: Array,
        people: Integers | None,
        exposure: Array | None = None,
        weights: Array | None = None,
    ) -> Self:
        return cls(X.shape[0], X.shape[1], X, people, exposure, weights)


def from_inputs_alone(method: Method) -> Method:
    """Refuse a caller who gives y, or anything else by its place, to a method that takes X alone and names."""
    by_name = [each.name for each in signature(method).parameters.values() if each.kind is BY_NAME]

    @wraps(method)
    def check_call(model: object, X: Table, *others: object, **given: object) -> Any:
        if others:
            raise TypeError(
                f"{method.__name__} takes the inputs alone by their place: it needs no y, and the rest is "
                f"given by name: {', '.join(by_name)}."
            )
        return method(model, X, **given)

    return cast(Method, check_call)


def bind_plan(model: Published, plan: Plan, rows: PublicRows) -> Plan:
    """The plan with what it was made for, and the fingerprint of that."""
    asked = model._parameters(rows.columns)
    made = plan.with_question(MadeFor(asked), _of(asked, plan, rows))
    for sentence in [*budget_advice(made), *bounds_advice(asked)]:
        warnings.warn(sentence, UserWarning, stacklevel=3)
    unit_of(made.parts[0])  # refuses rows that have no such unit
    return with_column_names(made, names_of(model))


def with_column_names(
    plan: Plan, names: tuple[str, ...] | None, groups: str | None = None, **others: str | None
) -> Plan:
    """The plan with the names of its columns; ``others``: further fields of ``MadeFor``."""
    assert plan.made_for is not None
    made = replace(plan.made_for, names=names, groups=groups, **others)  # type: ignore[arg-type]
    return replace(plan, made_for=made)


def verify_plan(model: Published, plan: object, rows: PublicRows) -> Plan:
    """The plan, if it was made for this model and these rows, with the noise that it needs at the
    model's budget. Fixed hyperparameters also go with a plan that measures for learning."""
    made_for = getattr(plan, "made_for", None)
    if made_for is None or not isinstance(plan, Plan):
        raise ValueError("plan must be what plan(X, groups=groups) of such a model returned.")
    for one in model._alone():
        one._question(rows.columns)  # refuses parameters that no plan was made with
    asked = model._parameters(rows.columns)
    learned = replace(asked, hyperparameters="learned")
    # Anyone who writes a file can write its fingerprint too: what the promise rests on is compared.
    same = (
        plan.fingerprint in (_of(asked, plan, rows), _of(learned, plan, rows))
        and fingerprint(made_for.parameters) in (fingerprint(asked), fingerprint(learned))
        and (plan.epsilon, plan.delta) == (asked.epsilon, asked.delta)
        and [part.y_bounds for part in plan.parts] == [own.y_bounds for own in asked.parts()]
        and [part.strategy.change for part in plan.parts] == [own.change for own in asked.parts()]
        and plan.rows == rows.count
        and {part.kind.private_inputs for part in plan.parts} == {asked.private_inputs}
        and fingerprint(plan.strategy.people) == fingerprint(rows.people)
    )
    if not same:
        raise ValueError(OTHER)
    return plan.with_noise_for(asked.epsilon, asked.delta)


def _of(asked: Parameters, plan: Plan, rows: PublicRows) -> str:
    budget = plan.epsilon, plan.delta, plan.y_bounds, plan.strategy.law
    stages = () if plan.residuals is None else (plan.residuals,)
    return fingerprint(asked, rows, budget, plan.strategy, *stages)


MOST_INPUTS = 20
Exposed = Mapping[int, Array]  # the exposure of every row, by the place of the outcome


@dataclass(frozen=True)
class Aside:
    """What is given for every row beside X, y and groups: None where it is not."""

    exposure: UserData = None
    weights: UserData = None

    @property
    def roles(self) -> dict[str, UserData]:
        """The columns by the names of arguments."""
        return {"exposure": self.exposure, "sample_weight": self.weights}


NOTHING = Aside()


def domain(x_bounds: object) -> tuple[tuple[float, float], ...]:
    """The declared domain of the private inputs, one (low, high) each."""
    pairs = domain_pairs("x_bounds", x_bounds)
    if len(pairs) > MOST_INPUTS:
        raise ValueError(
            f"protect='records' takes at most {MOST_INPUTS} inputs, got x_bounds of {len(pairs)}: use "
            "fewer inputs, protect='outputs' if the inputs are public, or PosteriorPaths, which "
            "releases whole sample functions over any number of private inputs."
        )
    return pairs


def private_inputs(model: Published, X: Table) -> Sealed:
    """Where the kernel has private inputs: for the vault alone."""
    if model.inputs_ is None:
        return seal_inputs(X, len(domain(domain_of(model))))
    return seal_rows(X, model.inputs_)


def row_count(X: UserData) -> int:
    """The number of records: given, or the length of a table."""
    try:
        rows = int(X) if isinstance(X, Integral) else int(_num_samples(any_column(X)))
    except TypeError:
        raise ValueError("X must be a table of records or their number.") from None
    if rows < 1:
        raise ValueError("X must hold at least one record.")
    return rows


def uses_tally(model: Published, rows: int) -> bool:
    """Whether this many rows are reduced to a tally: past some number, or where ``most_rows`` of a person
    are used."""
    each = (getattr(model, name, "posterior") for name in ("objective", "reconstruct"))
    usual = set(each) == {"posterior"} or getattr(model, "inducing", None) is not None
    public = not has_private_inputs(model.protect)
    return usual and public and (rows > STREAMED or _most(model) is not None)


def _most(model: Published) -> Any:
    return getattr(model, "most_rows", None)


def most_rows(model: Published, groups: UserData) -> int | None:
    """The most rows of one person that are used; None: all."""
    if _most(model) is None:
        return None
    check_rules({"most_rows": model.most_rows, "groups": groups}, ONE)
    return whole_number("most_rows", model.most_rows, MOST_ROWS)


def rows_in_memory(model: Published, numbers: Array, groups: UserData, beside: Beside) -> Blocks:
    """Rows in memory, as numbers of their columns.

    Parameters
    ----------
    model : estimator
        What is declared.
    numbers : array, (rows, names)
        Public.
    groups : column, optional
        Whose rows they are.
    beside : Beside
        The exposures and sample weights of rows.

    """
    most, people = most_rows(model, groups), None
    if groups is not None:
        people = People.of(person_codes(groups, len(numbers)), most)
    return Blocks.of(ArrayInputs(numbers, model.inputs_), people, beside)


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
        """On their own grid, or on that of a plan."""
        engine, known = engine_of(getattr(model, "engine", None)), tally_of_plan(plan)
        if known is None or known.inputs != source.kinds:
            return cls(tally_rows(source, engine), counts, source, engine)
        exact = not is_in_parts(known)
        return cls(tally_of(source, known.grid, engine, exact=exact), counts, source, engine)

    @property
    def planned(self) -> PublicInputs:
        """What the plan is made from."""
        return PublicInputs.of_tally(self.tally)

    @property
    def public(self) -> PublicRows:
        """What the plan is bound to."""
        planned, tally = self.planned, self.tally
        held = self.inputs, planned.people, tally.exposures, tally.row_weights
        return PublicRows(tally.rows, int(planned.X.shape[1]), *held)

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

    @property
    def weights(self) -> None:
        """The tally has them."""
        return None

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


@dataclass(frozen=True)
class Given:
    """The rows that a plan is made for.

    Attributes
    ----------
    planned : PlannedRows
        What the plan is made from.
    public : PublicRows
        What the plan is bound to.
    beside : Beside
        The exposures and sample weights of rows.

    """

    planned: PlannedRows
    public: PublicRows
    beside: Beside = field(default_factory=Beside)

    @property
    def exposed(self) -> Exposed:
        """The exposures of counts, by the place of the outcome."""
        return self.beside.exposures

    @property
    def weights(self) -> Array | None:
        """The sample weights over the largest of them, (rows,)."""
        return self.beside.shares

    @property
    def inputs(self) -> Array | None:
        """By which rows are recognised; None where inputs are private."""
        return self.public.inputs

    def serves(self, plan: Plan) -> bool:
        """Whether a plan is for such rows, as far as its fingerprint does not tell."""
        if self.public.inputs is not None:
            return getattr(plan.strategy, "tally", None) is None
        return unit_of(plan.parts[0]).several_rows == getattr(self.planned, "people", None)

    def _sum_for(self, data: Sealed, plan: Plan, watch: Watch | None = None) -> Sealed:
        """What the vault measures of a plan."""
        return data


def public_rows(
    model: Published,
    X: Array,
    groups: UserData,
    beside: Beside,
    table: UserData,
    plan: Plan | None = None,
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
    beside : Beside
        The exposures and sample weights of rows.
    table : table
        What X was made of.
    plan : Plan, optional
        Whose cells are used.

    """
    if uses_tally(model, len(X)):
        numbers = X if model.inputs_ is None else model.inputs_.numbers(table)
        rows = rows_in_memory(model, numbers, groups, beside)
        return Tallied.of(model, rows, tuple(beside.exposures), plan)
    people = person_ids(groups, len(X))
    each = [*beside.exposures.values()]
    exposures = np.column_stack(each) if len(each) > 1 else next(iter(each), None)
    public = PublicRows.of(X, people, exposures, beside.shares)
    return Given(PublicInputs(X, people), public, beside)


def private_count(model: Published, X: UserData, groups: UserData) -> Given:
    """Private records: their number, or that of their people, and the declared domain."""
    check_roles(groups, called="groups", X=X)
    pairs = domain(domain_of(records_to_plan(model)))
    count, people = row_count(X), groups is not None
    count = count_people(groups, count) if people else count
    return Given(PrivateInputs(count, pairs, people), PublicRows(count, len(pairs)))


def plan_for_rows(model: Published, rows: Given | Tallied, earlier: Sequence[Any] = ()) -> Plan:
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
    if has_private_inputs(model.protect):
        model = records_to_plan(model)
    own = rows.weights
    questions = [replace(one._question(rows.public.columns), weights=own) for one in model._alone()]
    for place, exposure in rows.exposed.items():
        unit = earlier[place].unit if earlier else None
        counts = Exposures.of(exposure, questions[place].y_bounds, unit)
        questions[place] = replace(questions[place], exposures=counts)
    shares = check_output_shares(getattr(model, "shares", None), len(questions))
    made = make_plan(rows.planned, questions, model._budget(), shares, earlier)
    return bind_plan(model, made, rows.public)


def fit_columns(
    model: Published,
    X: UserData,
    y: UserData,
    groups: UserData,
    plan: Plan | None,
    beside: Callable[[int], Beside],
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
    beside : callable
        Returns the exposures and sample weights of this many rows.
    names : tuple of str, optional
        The names of several outcomes, if known.

    """
    rows: Given | Tallied
    if has_private_inputs(model.protect):
        check_roles(groups, called="groups", X=X)
        inputs = _private_inputs(model, X)
        people, count = person_ids(groups, len(inputs)), len(inputs)
        rows = private_count(model, count, groups)
        data = with_weights(model, model._data(y, count, inputs, people), beside(count))
    else:
        table, X = X, rows_to_fit(model, X)
        count = len(X)
        rows = public_rows(model, X, groups, beside(count), table, plan)
        data = model._data(y, count)
    fit_for_rows(model, rows, data, plan, names)


def with_weights(model: Published, data: Sealed, beside: Beside) -> Sealed:
    """Private records with the weights that the model declares a bound of."""
    most = getattr(model, "max_weight", None)
    if most is None:
        return data
    if beside.of_records is None:
        raise ValueError("sample_weight must be given, as max_weight is declared.")
    return seal_weights(data, beside.of_records, float(most))


def fit_for_rows(
    model: Published,
    rows: Given | Tallied,
    data: Sealed,
    plan: Plan | None,
    names: tuple[str, ...] | None = None,
    watch: Watch | None = None,
) -> None:
    """The same for rows that are known, and outcomes that the vault holds."""
    made = _with_names(plan_for(model, rows, plan), names)
    data = rows._sum_for(data, made, watch)
    model._publish_plan(made, data, inputs=rows.inputs, rows=rows.public.count)
    model._released = model._released.with_reach(rows.planned.outermost(model.inputs_))


def _private_inputs(model: Published, X: Table) -> Any:
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
        return plan_for_rows(model, rows)
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
