"""Planning and fitting where inputs are private too."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import _num_samples, validate_data

from privgp.gp.functionals import Functionals
from privgp.gp.measurement import Measurement
from privgp.gp.priors import Prior
from privgp.gp.threads import laid_out, one_thread
from privgp.models.planned import PublicRows, bound
from privgp.models.promise import simulation
from privgp.models.spending import charge
from privgp.plan.bins.build import make_records_plan
from privgp.plan.inputs.arguments import domain_pairs
from privgp.plan.plan import Plan
from privgp.release.records import functionals_of, part_ranked_by_counts
from privgp.vault.measure import measure
from privgp.vault.validate import checked_inputs, checked_outputs

if TYPE_CHECKING:
    from privgp.models.regressor import PrivateGPRegressor

MOST_INPUTS = 3


def domain(x_bounds: Any) -> tuple[tuple[float, float], ...]:
    """The declared domain of at most three private inputs, one (low, high) each."""
    pairs = domain_pairs("x_bounds", x_bounds)
    if len(pairs) > MOST_INPUTS:
        raise ValueError(
            f"protect='records' takes at most {MOST_INPUTS} inputs, got x_bounds of {len(pairs)}: use "
            "fewer inputs, protect='outputs' if the inputs are public, or PosteriorPaths, which "
            "releases whole sample functions over any number of private inputs."
        )
    return pairs


def check_records(model: PrivateGPRegressor, groups: Any) -> None:
    if model.inducing is not None:
        raise ValueError("protect='records' measures bins, however many rows: leave inducing=None.")
    if groups is not None:
        raise ValueError("groups are not available with protect='records': leave groups=None.")
    if model.reconstruct != "posterior" or model.objective != "posterior":
        raise ValueError("protect='records' has objective and reconstruct 'posterior' only.")


def plan_records(model: PrivateGPRegressor, X: Any, groups: Any) -> Plan:
    """A plan from the number of records alone: ``X`` is that number, or a table of that length."""
    pairs = domain(model.x_bounds)
    question = model._question(len(pairs), groups)
    with one_thread():
        plan = make_records_plan(_rows(X), pairs, question, model._budget())
    return bound(model, plan, PublicRows(plan.rows, len(pairs)))


def fit_records(
    model: PrivateGPRegressor, X: Any, y: Any, groups: Any, plan: Plan | None = None
) -> None:
    """Measure once, with noise, and learn from the measurement. Inputs and outputs go to the vault."""
    columns = len(domain(model.x_bounds))
    inputs = checked_inputs(X, columns)
    y = checked_outputs(y, len(inputs))
    validate_data(model, X, skip_check_array=True)  # remembers names and number of columns
    plan = model._plan_for(PublicRows(len(inputs), columns), groups, plan)
    charge(model, model._promised(plan))
    rng = simulation(model)
    measurement = measure((inputs, y), plan.y_bounds, plan.strategy, plan.noise, rng)
    del inputs, X, y
    model._release(plan, measurement)


def given_counts(plan: Plan, measurement: Measurement) -> tuple[Functionals, tuple[Prior, ...]]:
    """What was measured of f, and the priors of its hyperparameters, once counts are known."""
    bins: Any = plan.strategy
    noise_std = bins.sum_std(plan.noise.std)
    functionals, counts = functionals_of(bins, measurement, noise_std, plan.start)
    priors = plan.priors
    if plan.kind.default_kernel:
        priors = part_ranked_by_counts(bins, counts, priors[0])
    return laid_out(functionals), priors


def _rows(X: Any) -> int:
    """The number of records: given, or the length of a table."""
    try:
        rows = int(X) if isinstance(X, Integral) else int(_num_samples(X))
    except TypeError:
        raise ValueError("X must be a table of records or their number.") from None
    if rows < 1:
        raise ValueError("X must hold at least one record.")
    return rows
