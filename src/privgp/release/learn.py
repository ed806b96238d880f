"""From a measurement to a release: all of it post-processing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any, cast

import numpy as np

from privgp.gp.arithmetic import lay_out, one_thread
from privgp.gp.inference.learning import learn
from privgp.gp.inference.linked import Squares, learn_outcomes
from privgp.gp.inference.noisy_counts import learn_counts
from privgp.gp.measurement import Functionals, Measurement
from privgp.gp.priors import Hyperparameters, Prior, rougher
from privgp.plan.bins.bins import Bins
from privgp.plan.features import Features
from privgp.plan.inputs.inputs import Inputs
from privgp.plan.labels import LABEL_VARIANCE, latent_prior
from privgp.plan.parameters import DensityParameters, LabelParameters, Parameters
from privgp.plan.part import Part as PlanPart
from privgp.plan.plan import Plan, split_numbers
from privgp.plan.strategy import OutputSums
from privgp.privacy.guarantee import Guarantee
from privgp.release.answers import AtTargets, outcomes_of
from privgp.release.parts import (
    ANY_ORDER,
    WEIGHTS,
    Function,
    Part,
    RecordsSpending,
    Spending,
    TargetsSpending,
    answer_of,
    as_one,
    bin_counts,
    combine_guarantees,
)
from privgp.release.rates import learn_rates
from privgp.release.records import RecordsAtPoints, RecordsInBins
from privgp.release.release import Planned, Release
from privgp.release.residuals import LeftSquares
from privgp.storage.codec import fingerprint
from privgp.types import Array, Integers

Models = tuple[Hyperparameters, ...]


@dataclass(frozen=True)
class Task:
    """What the models of one outcome are learned from.

    Attributes
    ----------
    plan : Part
        What was measured.
    functionals, measured : sequence
        What was measured of every function, earlier measurements included, and the noisy numbers.
    priors : tuple of Prior
        The priors of the hyperparameters.
    spent : tuple of Spending
        Every measurement separately.
    before : Part or None
        What was released of the outcome before.
    models : tuple of Hyperparameters
        Models that are given, not learned.

    """

    plan: PlanPart
    functionals: Sequence[Functionals]
    measured: Sequence[Measurement]
    priors: tuple[Prior, ...]
    spent: tuple[Spending, ...]
    before: Part | None
    models: Models


def zeros_of(plan: Plan) -> Any:
    """What would be measured of zeros without noise, to rehearse with."""
    low, high = np.transpose(plan.y_bounds)
    half_width = (0.5 * high - 0.5 * low).tolist()
    return plan.strategy.read(np.zeros(plan.strategy.size), plan.noise, half_width)


def learn_release(
    plan: Plan,
    measured: object,
    asked: Parameters,
    guarantee: Guarantee,
    facts: Planned,
    note: Callable[[Guarantee], None],
    *,
    names: tuple[str, ...] | None = None,
    before: Release | None = None,
    batch: int = 0,
    models: Models = (),
    inputs: Array | None = None,
    squares: LeftSquares | None = None,
) -> Release:
    """The release that follows from the measurement of a plan.

    Parameters
    ----------
    plan : Plan
        What was measured.
    measured : Measurement, or one of each outcome
        The noisy numbers.
    asked : Parameters
        What was declared.
    guarantee : Guarantee
        What this measurement guarantees.
    facts : Planned
        What is stated besides.
    note : callable
        Takes what all measurements guarantee before anything is learned, should that fail.
    names : tuple of str, optional
        The names of the input columns.
    before : Release, optional
        What was released before, if this measurement is added to it.
    batch : int
        The batch of people that was measured.
    models : tuple of Hyperparameters
        Models that are given, not learned.
    inputs : array (rows, columns), optional
        The public inputs, by which rows are recognised if they are measured again.
    squares : LeftSquares, optional
        The sum of squared residuals, where there were two stages.

    """
    drawn = []
    each_part = zip(plan.parts, split_numbers(plan, measured), asked.parts(), strict=True)
    for place, (part, numbers, own) in enumerate(each_part):
        numbers = part.kind.read_measurement(part, numbers)
        known = None if before is None else before.parts[place]
        so_far = () if before is None else before.parts[place].so_far(before.guarantee)
        spent = (*so_far, measurement_record(part, numbers, guarantee, batch, inputs))
        functions = own.outcome().functions
        each = as_one(spent, functions)
        drawn.append((part, own, each, spent, known))
    total = guarantee if before is None else combine_guarantees(drawn[0][3])
    note(total)
    found = []
    with one_thread():  # the nodes' matrices are small
        for part, own, each, spent, known in drawn:
            functionals, priors = collect_functionals(part, each, own.columns)
            if squares is not None:  # of the one function that residuals are about
                about, numbers = squares.put_into(functionals[0], each[0])
                functionals, each = [about], (numbers,)
            task = Task(part, functionals, each, priors, spent, known, models)
            found.append(learn_models(own, task))
    parts, answers = zip(*found, strict=True)
    release = Release(
        parameters=asked,
        columns=plan.targets.shape[1],
        names=names,
        output_names=plan.output_names,
        guarantee=total,
        parts=parts,
        facts=cast(Any, facts),
    )
    vars(release)["answers"] = answers
    return release


@singledispatch
def learn_models(asked: Any, task: Task) -> tuple[Part, object]:
    """The part of a release that a number or a count is, and what predicts it."""
    plan, (f,), (numbers,) = task.plan, task.functionals, task.measured
    centre = 0.5 * plan.y_bounds[0] + 0.5 * plan.y_bounds[1]
    if plan.unbiased is not None:
        found = lay_out(AtTargets.of(plan, numbers, centre))
        variance = found.noise_variance
        part = Part(numbers, f, (plan.start,), variance, found, spent=task.spent)
        return part, answer_of(asked, part)
    models = task.models
    if asked.hyperparameters == "fixed" and task.before is not None:
        models = task.before.models
    elif asked.hyperparameters == "learned" and not models:
        models = _learn(task, asked)
    models = models or (plan.start,)
    part = Part(numbers, f, models, 1.0, unit_rate=plan.unit, spent=task.spent)
    answer: Any = answer_of(asked, part)
    return replace(part, noise_variance=answer.noise_variance), answer


def _learn(task: Task, asked: Parameters) -> Models:
    """Models of a number, or of the logarithm of a rate."""
    plan, (f,), (numbers,) = task.plan, task.functionals, task.measured
    if plan.unit is None:
        priors = asked.usual_priors(task.priors)
        rough = asked.kernel is None and plan.x_bounds is None
        return learn(f, numbers, priors, rougher(priors[0]) if rough else ())
    squares = _squares(plan, numbers) if len(task.spent) == 1 else None
    return learn_rates(f, numbers, task.priors, squares)


def _squares(plan: PlanPart, measurement: Measurement) -> Squares | None:
    """What the sum of squares is of; None where it was not measured."""
    strategy = cast(OutputSums, plan.strategy)
    expected = getattr(strategy, "expected", None)
    if measurement.energy is None or expected is None:
        return None
    rows = plan.inputs, strategy.index, expected, strategy.energy_shares
    middle = 0.5 * plan.y_bounds[0] + 0.5 * plan.y_bounds[1]
    energy = measurement.energy, measurement.energy_noise_std
    sums, std = (strategy.matrix, strategy.row_weights), measurement.noise_std
    return Squares(*rows, middle, *energy, *sums, measurement.values, std, strategy.repeats)


@learn_models.register
def _(asked: DensityParameters, task: Task) -> tuple[Part, object]:
    plan, (f,), (numbers,) = task.plan, task.functionals, task.measured
    models: Models = (plan.start,)
    if asked.hyperparameters == "learned":
        given = () if asked.kernel is None else task.priors
        models = learn_counts(bin_counts(asked, f, numbers), given)
    part = Part(numbers, f, models, 1.0, unit_rate=plan.unit, spent=task.spent)
    return part, answer_of(asked, part)


@learn_models.register
def _(asked: LabelParameters, task: Task) -> tuple[Part, object]:
    link, default = asked.probability, asked.kernel is None
    latent = tuple(latent_prior(link, each, default=default) for each in task.priors)
    held = None if task.before is None else task.before.functions
    found = []
    for place, (f, numbers) in enumerate(zip(task.functionals, task.measured, strict=True)):
        if asked.hyperparameters == "learned":
            models = learn_outcomes(outcomes_of(f, numbers, link), latent)
        else:
            models = (latent[0].start,) if held is None else held[place].models
        found.append(Function(numbers, models, f.fixed_gram))
    first, *further = found
    known = first.measurement, task.functionals[0], first.models, LABEL_VARIANCE
    part = Part(*known, further=tuple(further), spent=task.spent)
    return part, answer_of(asked, part)


def collect_functionals(
    plan: PlanPart, parts: Sequence[Measurement], inputs: Inputs | None
) -> tuple[list[Functionals], tuple[Prior, ...]]:
    """What was measured of every function, earlier measurements included, and the priors of their
    hyperparameters.

    ``parts``: the measurement of each function. Where inputs are private, it shows first where records
    are. ``inputs``: what the columns are, where they are not all numbers.
    """
    whole = plan.as_one
    if whole.x_bounds is None:
        return [lay_out(whole.functionals)] * len(parts), whole.priors
    where = locate(whole.strategy, parts[0], whole.noise.std)
    each = [lay_out(where.functionals(part, whole.start, whole.unit)) for part in parts]
    ranked = where.priors(whole.priors[0], inputs)
    return each, ranked if whole.kind.default_kernel else whole.priors


@singledispatch
def locate(
    strategy: object, measurement: Measurement, noise_std: float
) -> RecordsInBins | RecordsAtPoints:
    """Where records are, as far as the measurement tells."""
    raise TypeError("this strategy does not tell where records are.")


@locate.register
def _(strategy: Bins, measurement: Measurement, noise_std: float) -> RecordsInBins:
    return RecordsInBins.of(strategy, measurement, noise_std)


@locate.register
def _(strategy: Features, measurement: Measurement, noise_std: float) -> RecordsAtPoints:
    return RecordsAtPoints.of(strategy, measurement, noise_std)


def measurement_record(
    plan: PlanPart, measured: Measurement, guarantee: Guarantee, batch: int, inputs: Array | None
) -> Spending:
    """A measurement as later ones need it. ``inputs``: rows as they are, where they were gathered in
    cells."""
    strategy: Any = plan.strategy
    known: dict[str, Any] = {
        "batch": batch,
        "rows": strategy.rows,
        "people": strategy.people_count,
        "values": measured.values,
        "noise_std": measured.noise_std,
        "energy": measured.energy,
        "energy_noise_std": measured.energy_noise_std,
        "is_laplace": bool(measured.laplace.all()),
        "guarantee": guarantee,
    }
    if plan.kind.private_inputs:
        found = {name: getattr(measured, name) for name in ("counts", "gram", "centre")}
        known |= {"fingerprint": "", "row_weights": None}
        return RecordsSpending(**known, **found, strategy=strategy)
    rows = plan.inputs[strategy.index] if inputs is None else inputs
    row_weights, weights = strategy.row_weights, weights_mark(strategy.sample_weights)
    marks = fingerprints(rows, strategy.people, strategy.expected)[0], weights, any_order_mark(rows)
    known |= {
        "fingerprint": "{}{}{}".format(*marks),
        "row_weights": None if np.all(row_weights == 1.0) else row_weights,
    }
    if plan.unbiased is not None:
        return TargetsSpending(**known, sums=sums_of(plan))
    return Spending(**known)


def sums_of(plan: PlanPart) -> str:
    """The fingerprint of what is measured for values at targets, and of how it is read."""
    assert plan.unbiased is not None
    return fingerprint(plan.strategy.matrix, plan.targets, plan.unbiased.reconstruction)


def weights_mark(weights: Array | None) -> str:
    """What tells sample weights apart, behind the fingerprint of their rows; nothing where all are equal."""
    if weights is None or np.all(np.abs(weights - 1.0) < 1e-9):
        return ""
    return f"{WEIGHTS}{fingerprint(np.round(weights, 6))}"


def any_order_mark(X: Array) -> str:
    """What tells rows apart whatever their order, behind their fingerprint."""
    return f"{ANY_ORDER}{fingerprint((X + 0.0)[np.lexsort(X.T)])}"


def fingerprints(
    X: Array, people: Integers | None, expected: Array | None = None
) -> tuple[str, str]:
    """A fingerprint of the rows with people numbered as they come, whatever identifiers are written as, and 0 for -0;
    and as earlier versions have it in their files. ``expected``: of counts, at the unit rate."""
    more = () if expected is None else (expected,)
    if people is None:
        return fingerprint(X + 0.0, None, *more), fingerprint(X, None, *more)
    firsts, places = np.unique(people, return_index=True, return_inverse=True)[1:]
    numbered = np.argsort(np.argsort(firsts))[places]
    return fingerprint(X + 0.0, numbered, *more), fingerprint(X, people, *more)
