"""Planning and fitting where inputs are private too."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from numbers import Integral
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import _num_samples

from privgp.gp.functionals import Functionals
from privgp.gp.measurement import Measurement
from privgp.gp.priors import Prior
from privgp.gp.threads import laid_out, one_thread
from privgp.models.planned import OTHER, PublicRows, bound
from privgp.models.promise import simulation
from privgp.models.spending import charge
from privgp.models.tables import any_column, domain_of, records_to_plan, remember
from privgp.plan.bins.bins import Bins
from privgp.plan.bins.build import make_records_plan
from privgp.plan.designs.earlier import EarlierRecords
from privgp.plan.features.features import Features
from privgp.plan.inputs.arguments import domain_pairs
from privgp.plan.inputs.inputs import Inputs
from privgp.plan.plan import Plan
from privgp.release.features import RecordsAtPoints
from privgp.release.records import RecordsInBins
from privgp.vault.checks.roles import check_roles
from privgp.vault.measure import measure
from privgp.vault.people import count_people
from privgp.vault.tables import private_rows
from privgp.vault.validate import checked_inputs, checked_outputs, column_names, person_ids

if TYPE_CHECKING:
    from privgp.models.regressor import PrivateGPRegressor

MOST_INPUTS = 20


def domain(x_bounds: Any) -> tuple[tuple[float, float], ...]:
    """The declared domain of the private inputs, one (low, high) each."""
    pairs = domain_pairs("x_bounds", x_bounds)
    if len(pairs) > MOST_INPUTS:
        raise ValueError(
            f"protect='records' takes at most {MOST_INPUTS} inputs, got x_bounds of {len(pairs)}: use "
            "fewer inputs, protect='outputs' if the inputs are public, or PosteriorPaths, which "
            "releases whole sample functions over any number of private inputs."
        )
    return pairs


def plan_records(
    model: PrivateGPRegressor, X: Any, groups: Any, earlier: EarlierRecords | None = None
) -> Plan:
    """A plan from the number of records alone: ``X`` is that number, or a table of that length.

    With ``groups``, one identifier per record, from the number of people alone. ``earlier``: what was
    measured before, whose sums are measured again.
    """
    model = records_to_plan(model)
    pairs = domain(domain_of(model))
    question = model._question(len(pairs))
    people = groups is not None
    check_roles(groups, called="groups", X=X)
    rows = count_people(groups, row_count(X)) if people else row_count(X)
    with one_thread():
        plan = make_records_plan(rows, pairs, question, model._budget(), people=people)
        if earlier is not None:
            plan = earlier.repeated_by(plan)
    return bound(model, plan, PublicRows(plan.rows, len(pairs)))


def fit_records(
    model: PrivateGPRegressor, X: Any, y: Any, groups: Any, plan: Plan | None = None
) -> None:
    """Measure once, with noise, and learn from the measurement. Inputs and outputs go to the vault."""
    check_roles(groups, called="groups", X=X)
    model.inputs_ = None
    model.inputs_ = records_to_plan(model).inputs_
    columns = len(domain(domain_of(model)))
    data = private_data(model, X, y, groups)
    if model.inputs_ is None:
        remember(model, column_names(X), columns)
    else:
        remember(model, model.inputs_.names, columns)
    rows, people = row_count(X), groups is not None
    count = count_people(groups, rows) if people else rows
    plan = plan_records(model, rows, groups) if plan is None else plan
    plan = model._plan_for(PublicRows(count, columns), groups, plan)
    strategy: Any = plan.strategy
    if strategy.whole_people != people:
        raise ValueError(OTHER)
    charge(model, model._promised(plan), rows=plan.rows)
    measurement = measure(data, plan.y_bounds, strategy, plan.noise, simulation(model))
    del data, X, y, groups
    model._release(plan, measurement)


def private_inputs(model: Any, X: Any) -> Any:
    """Where the kernel has private inputs: for the vault alone."""
    if model.inputs_ is None:
        return checked_inputs(X, len(domain(domain_of(model))))
    return private_rows(X, model.inputs_)


def private_data(model: PrivateGPRegressor, X: Any, y: Any, groups: Any) -> Any:
    """What the vault measures of records: inputs, outputs, and whose they are where all records of a
    person are protected together."""
    inputs = private_inputs(model, X)
    y = checked_outputs(y, len(inputs))
    people = person_ids(groups, len(inputs))
    return (inputs, y) if people is None else (inputs, y, people)


def measured_functions(
    plan: Plan, parts: Sequence[Measurement]
) -> tuple[list[Functionals], tuple[Prior, ...]]:
    """What was measured of every function, earlier measurements included, and the priors of their
    hyperparameters.

    ``parts``: the measurement of each function. Where inputs are private, it tells first where records
    are.
    """
    whole = plan.as_one
    if whole.x_bounds is None:
        return [laid_out(whole.functionals)] * len(parts), whole.priors
    where = locate(whole.strategy, parts[0], whole.noise.std)
    each = [laid_out(where.functionals(part, whole.start, whole.unit)) for part in parts]
    ranked = where.priors(whole.priors[0], _inputs(whole))
    return each, ranked if whole.kind.default_kernel else whole.priors


@singledispatch
def locate(
    strategy: Any, measurement: Measurement, noise_std: float
) -> RecordsInBins | RecordsAtPoints:
    """Where records are, as far as the measurement tells."""
    raise TypeError("this strategy does not tell where records are.")


@locate.register
def _(strategy: Bins, measurement: Measurement, noise_std: float) -> RecordsInBins:
    return RecordsInBins.of(strategy, measurement, noise_std)


@locate.register
def _(strategy: Features, measurement: Measurement, noise_std: float) -> RecordsAtPoints:
    return RecordsAtPoints.of(strategy, measurement, noise_std)


def _inputs(plan: Plan) -> Inputs | None:
    return None if plan.made_for is None else plan.made_for.parameters.columns


def row_count(X: Any) -> int:
    """The number of records: given, or the length of a table."""
    try:
        rows = int(X) if isinstance(X, Integral) else int(_num_samples(any_column(X)))
    except TypeError:
        raise ValueError("X must be a table of records or their number.") from None
    if rows < 1:
        raise ValueError("X must hold at least one record.")
    return rows
