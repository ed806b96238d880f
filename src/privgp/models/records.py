"""Planning and fitting where inputs are private too."""

from __future__ import annotations

import operator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import validate_data

from privgp.gp.learning import learn
from privgp.gp.posterior import posterior
from privgp.gp.threads import laid_out, one_thread
from privgp.models.planned import OTHER, PublicRows, accepted, bound
from privgp.models.promise import records_guarantee, simulation
from privgp.plan.bins.build import make_records_plan
from privgp.plan.build import Budget, Question
from privgp.plan.inputs.arguments import check_bounds, domain_pairs, target_points
from privgp.plan.plan import Plan
from privgp.release.certificate import utc
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


def plan_records(model: PrivateGPRegressor, X: Any, groups: Any) -> Plan:
    """A plan from the number of records alone: ``X`` is that number, or a table of which only the
    length is used."""
    bounds = check_bounds("y_bounds", model.y_bounds)
    pairs = domain(model.x_bounds)
    if groups is not None:
        raise ValueError("groups are not available with protect='records': leave groups=None.")
    if model.reconstruct != "posterior" or model.objective != "posterior":
        raise ValueError(
            "protect='records' has objective='posterior' and reconstruct='posterior' only."
        )
    question = Question(
        y_bounds=bounds,
        kernel=model.kernel,
        noise_variance=model.noise_variance,
        targets=target_points(model.targets, len(pairs)),
        learned=model.hyperparameters == "learned",
        mechanism=model.mechanism,
    )
    budget = Budget(float(model.epsilon), float(model.delta))
    with one_thread():
        plan = make_records_plan(_rows(X), pairs, question, budget)
    return bound(model, plan, PublicRows(plan.rows, len(pairs)))


def fit_records(
    model: PrivateGPRegressor, X: Any, y: Any, groups: Any, plan: Plan | None = None
) -> None:
    """Measure once, with noise, and learn from the measurement. Inputs and outputs go to the vault."""
    pairs = domain(model.x_bounds)
    inputs = checked_inputs(X, len(pairs))
    y = checked_outputs(y, len(inputs))
    validate_data(model, X, skip_check_array=True)  # remembers names and number of columns
    model._question(1)
    if plan is None:
        plan = plan_records(model, len(inputs), groups)
    else:
        if groups is not None:
            raise ValueError("groups are not available with protect='records': leave groups=None.")
        plan = accepted(model, plan, PublicRows(len(inputs), len(pairs)))
        if plan.x_bounds is None:  # forged: made for outputs
            raise ValueError(OTHER)
    rng = simulation(model)
    measurement = measure((inputs, y), plan.y_bounds, plan.strategy, plan.noise, rng)
    del inputs, X, y
    model.guarantee_ = records_guarantee(plan, simulated=rng is not None)
    model.plan_ = plan
    model.measurements_ = (measurement,)
    model.released_at_ = utc(datetime.now(UTC))
    model.__dict__.pop("loaded_", None)
    learned = model.hyperparameters == "learned"
    bins: Any = plan.strategy
    spread = bins.sum_std(plan.noise.std)
    with one_thread():
        found, counts = functionals_of(bins, measurement, spread, plan.start)
        model.functionals_ = laid_out(found)
        models: tuple[Any, ...] = (plan.start,)
        if learned:
            priors = plan.priors
            if plan.kind.default_kernel:
                priors = part_ranked_by_counts(bins, counts, priors[0])
            models = learn(model.functionals_, measurement, priors)
        centre = 0.5 * plan.y_bounds[0] + 0.5 * plan.y_bounds[1]
        model.release_ = posterior(model.functionals_, measurement, models, centre)
    model.kernel_ = models[0].kernel
    model.input_map_ = models[0].input_map
    model.noise_variance_ = model.release_.noise_variance


def _rows(X: Any) -> int:
    """The number of records: given, or the length of a table."""
    try:
        rows = operator.index(X)
    except TypeError:
        try:
            rows = X.shape[0] if hasattr(X, "shape") else len(X)
        except (TypeError, IndexError):
            raise ValueError("X must be a table of records or their number.") from None
    if rows < 1:
        raise ValueError("X must hold at least one record.")
    return int(rows)
