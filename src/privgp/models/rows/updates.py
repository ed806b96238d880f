"""Rows of a further measurement: what is known of them, which batch they are, and what was measured
before.

Public inputs are recognised by their fingerprint, and what was measured is stacked.
Private records are recognised by nothing but their number: the same sums are measured every time,
those of different records are added and those of the same records are averaged.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from privgp.gp.inference.posterior import Posterior, posterior
from privgp.gp.measurement import Functionals, Measurement
from privgp.gp.priors import Hyperparameters, Prior, collapse
from privgp.gp.stacking import Stacked, sums_behind
from privgp.models.rows.fit import (
    Given,
    Tallied,
    plan_for_rows,
    private_count,
    private_inputs,
    public_rows,
    row_count,
    with_weights,
)
from privgp.models.rows.tables import rows_at
from privgp.plan.build import Question, initial_priors
from privgp.plan.designs.earlier import Earlier, EarlierRecords, SameRows
from privgp.plan.designs.noise_aware import design_models, several_scales
from privgp.plan.designs.stages import Stages, check_shares, information_share, share_out
from privgp.privacy.noise import GAUSSIAN, LAPLACE, PURE
from privgp.question.rules import Beside, Exposures, check_bounds
from privgp.release.learn import any_order_mark, fingerprints, sums_of, weights_mark
from privgp.release.parts import (
    Part,
    RecordsSpending,
    Spending,
    TargetsSpending,
    batches,
    noise_variance,
    places,
)
from privgp.release.release import Release
from privgp.types import Array, Column, Integers, Table, UserData
from privgp.vault.validate import count_people, person_ids
from privgp.vault.values import Sealed

if TYPE_CHECKING:
    from privgp.models.published import Published


MEASURED = (
    "these rows, by their X and groups, were measured already: for a second look at the same people "
    "use refine. Nothing was spent."
)
REORDERED = (
    "X has the same rows, in another order, as rows that were measured before. If they are the same people, "
    "this update spends their budget again, which the guarantee does not count: use refine, in the first order."
)
OTHER_ROWS = (
    "X and groups must be the rows of one earlier measurement, in the same order: for new people use "
    "update. Nothing was spent."
)
OTHER_WEIGHTS = (
    "sample_weight must be that of the earlier measurement of these rows, whose squares it weighs too. "
    "Nothing was spent."
)
OTHER_RECORDS = (
    "X must have as many records, or groups as many people, as one earlier measurement: for new people "
    "use update. Nothing was spent."
)
WHICH_RECORDS = (
    "several batches have this many records, and private inputs are not compared, so it is not known "
    "which of them X is: refine a batch before the next update. Nothing was spent."
)

MOST_SEEN = 2**17  # rows of all batches that show where rows are


@dataclass(frozen=True)
class PublicInputs:
    """Rows at public inputs. ``rows``: what a plan is made for."""

    rows: Given | Tallied

    @classmethod
    def of(cls, model: Published, X: UserData, groups: UserData, beside: Beside) -> Self:
        return cls(public_rows(model, rows_at(model, X), groups, beside, X))

    @cached_property
    def coordinates(self) -> Array:
        """The inputs of rows, of many rows those of their cells."""
        return cast(Any, self.rows.planned).X  # type: ignore[no-any-return]

    @property
    def people(self) -> Integers | None:
        """Whose rows they are."""
        return cast(Any, self.rows.planned).people  # type: ignore[no-any-return]

    @property
    def inputs(self) -> Array:
        return cast(Array, self.rows.inputs)

    @property
    def count(self) -> int:
        return len(self.coordinates)

    def to_plan(self, model: Published, groups: object) -> Given | Tallied:
        """The rows that a plan is made for."""
        return self.rows

    def _exposures(self, release: Release, place: int) -> Exposures | None:
        """With the unit of the rates that were released of one output, where these are counts."""
        if place not in self.rows.exposed:
            return None
        bounds = check_bounds("y_bounds", release.parameters.y_bounds)
        return Exposures.of(self.rows.exposed[place], bounds, release.parts[0].unit_rate)

    def batch(self, release: Release, place: int, *, again: bool) -> int:
        """The batch that these rows are, the next one for new people; refuses what it cannot be.
        ``release``: of one output, the one at this place."""
        counts = self._exposures(release, place)
        expected = None if counts is None else counts.expected
        rows = fingerprints(self.inputs, self.people, expected)
        known = [each for each in release.spent if each.marks[0] in rows]
        same = [each.batch for each in known]
        if bool(same) != again:
            raise ValueError(OTHER_ROWS if again else MEASURED)
        mark = weights_mark(self._weights)
        if any(each.marks[1] != mark[1:] for each in known):
            raise ValueError(OTHER_WEIGHTS)
        if not again and any_order_mark(self.inputs)[1:] in [
            each.marks[2] for each in release.spent
        ]:
            warnings.warn(REORDERED, UserWarning, stacklevel=2)
        return int(same[0]) if again else 1 + max(int(each.batch) for each in release.spent)

    def earlier(self, release: Release, place: int, batch: int, question: Question) -> Earlier:
        """What was measured of one output before, as a plan for these rows builds on it: with priors
        for the rows so far, as the nodes tell of them, and new ones."""
        (part,), (answer,) = release.parts, release.answers
        part = replace(part, functionals=replace(part.functionals, energy_centre=None))
        f, each = part.functionals, {one.batch: one for one in part.spent}
        total, new = sum(one.rows for one in each.values()), batch not in each
        total = min(total, MOST_SEEN)
        mass = np.maximum(f.energy_gram.sum(axis=1), 0.0)
        counts = np.maximum(1, np.rint(mass * (total / mass.sum()))).astype(int)
        exposures = self._exposures(release, place)
        question = replace(question, exposures=exposures)
        coming = self._seen() if new else self.coordinates[:0]
        seen = np.vstack([np.repeat(f.nodes, counts, axis=0), coming])
        priors = initial_priors(seen, question, learned=question.adapts)
        # All classes are measured alike and leave as much unknown: the first one represents all.
        about: Any = answer
        measured = replace(part.measurement, values=part.measurement.values - about.at_zero(f))
        told = about.without_link or _without_link(f, measured, question, priors)
        unit = None if exposures is None else exposures.unit
        known = Earlier(Stacked(f, measured), told, priors, unit=unit)
        sizes = np.ones(self.count) if exposures is None else exposures.expected
        return known if new else replace(known, again=self._again(known, part, batch, sizes))

    def _again(
        self, earlier: Earlier, part: Part, batch: int, sizes: Array
    ) -> tuple[SameRows, ...]:
        """How earlier measurements of these rows weighed them. ``sizes``: what every row holds."""
        inputs, index = collapse(self.coordinates)
        f, start = earlier.known.functionals, earlier.priors[0].start
        found, functions = [], len(part.functions)
        for each, place in zip(part.spent, places(part.spent, functions), strict=True):
            if each.batch == batch:
                weights = np.ones(self.count) if each.row_weights is None else each.row_weights
                held = weights * sizes * self._repeats()
                mass = np.bincount(index, held, minlength=len(inputs)).astype(float)
                sums = sums_behind(f.weights[place], f.nodes, inputs, mass, start)
                found.append(SameRows(place.start, sums, index, weights))
        return tuple(found)

    @property
    def _weights(self) -> Array | None:
        """The sample weights of the rows of ``coordinates``, over the largest."""
        tally = cast(Any, self.rows.planned).tally
        return self.rows.weights if tally is None else cast("Array | None", tally.row_weights)

    def _seen(self) -> Array:
        """Rows that show where they are, every one as often as it is there."""
        tally = cast(Any, self.rows.planned).tally
        return self.coordinates if tally is None else cast(Array, tally.sample(MOST_SEEN))

    def _repeats(self) -> Array:
        """How many rows each of ``coordinates`` stands for."""
        tally = cast(Any, self.rows.planned).tally
        return np.ones(self.count) if tally is None else np.asarray(tally.counts, dtype=float)

    def _private_data(self, model: Published, X: Table, y: Column, groups: Column | None) -> Sealed:
        """The outcomes, checked."""
        data: Sealed = model._data(y, row_count(X))
        return data


@dataclass(frozen=True)
class PrivateRecords:
    """Private records. ``planned``: their number; ``people``: how many, where these are protected;
    ``beside``: their weights."""

    inputs: ClassVar[None] = None
    planned: int
    people: int | None
    beside: Beside

    @classmethod
    def of(cls, model: Published, X: UserData, groups: UserData, beside: Beside) -> Self:
        rows = row_count(X)
        return cls(rows, None if groups is None else count_people(groups, rows), beside)

    def to_plan(self, model: Published, groups: object) -> Given:
        """The rows that a plan is made for."""
        return private_count(model, self.planned, groups)

    def batch(self, release: Release, place: int, *, again: bool) -> int:
        """Told by the number of records, or of people, which is public; nothing else is compared."""
        if not again:
            return 1 + max(int(each.batch) for each in release.spent)
        size = self.planned if self.people is None else self.people
        same = [batch[0].batch for batch in batches(release.spent) if batch[0].rows == size]
        if len(same) != 1:
            raise ValueError(WHICH_RECORDS if same else OTHER_RECORDS)
        return same[0]

    def earlier(
        self, release: Release, place: int, batch: int, question: Question
    ) -> EarlierRecords:
        """What was measured of one output before: the same sums, of other records or of these."""
        others = [each for each in release.spent if each.batch != batch]
        same = [each for each in release.spent if each.batch == batch]
        first: Any = release.spent[0]
        return EarlierRecords(
            strategy=first.strategy,
            rows=sum(each[0].rows for each in batches(others)),
            variance=noise_variance(others),
            precision=1.0 / noise_variance(same) if same else 0.0,
        )

    def _private_data(self, model: Published, X: Table, y: Column, groups: Column | None) -> Sealed:
        """Records, checked."""
        people = person_ids(groups, self.planned)
        data: Sealed = model._data(y, self.planned, private_inputs(model, X), people)
        return with_weights(model, data, self.beside)


def _without_link(
    functionals: Functionals, measured: Measurement, question: Question, priors: Sequence[Prior]
) -> Posterior:
    """What outcomes behind a link tell a plan, which has none: the posterior under the models that a
    first measurement is chosen for, none of which was learned."""
    models: list[Hyperparameters] = [priors[0].start]
    if question.adapts:
        models = several_scales(design_models(priors))
    return posterior(functionals, measured, models, 0.0)


Rows = PublicInputs | PrivateRecords
ROWS: dict[type[Spending], type[Rows]] = {
    Spending: PublicInputs,
    TargetsSpending: PublicInputs,
    RecordsSpending: PrivateRecords,
}


def rows_of(model: Published, X: UserData, groups: UserData, beside: Beside) -> Rows:
    """The rows to be measured further, of the kind that was measured first."""
    return ROWS[type(model._released.spent[0])].of(model, X, groups, beside)


KINDS = "only a release that was made with reconstruct='posterior' can be updated or refined; one with reconstruct='unbiased' can be refined. Nothing was spent."
SAME_SUMS = (
    "kernel, noise variance, targets and objective must be as they were when the release was made: the same "
    "sums are measured again. Nothing was spent."
)
ROW_NOISE_ONCE = (
    "a release with a noise_variance by row is measured once: fit anew. Nothing was spent."
)
OLD_FILE = (
    "the file was written by an earlier version of privgp, which did not keep what a further "
    "measurement needs. Nothing was spent."
)
ONCE = "a density of points cannot be updated. Nothing was spent."
OTHER_PARAMETERS = (
    "{} must be as it was when the release was made: set it back, or fit anew. Nothing was spent."
)
OTHER_UNIT = (
    "groups must be given if they were given at first, and otherwise not: the guarantee protects one "
    "kind of unit. Nothing was spent."
)
LOST = (
    "an earlier update or refinement failed after its noise was drawn: guarantee_ counts it, and nothing "
    "can be added to this release any more. Nothing was spent."
)
# What the released numbers rest on.
KEPT = (
    *("protect", "y_bounds", "x_bounds", "max_change", "max_weight", "likelihood", "reconstruct"),
    *("classes", "link", "prevalence"),
)


def check_updatable(model: Published) -> None:
    """Refuse a release of a kind that no further measurement can be added to."""
    check_is_fitted(model)
    if not hasattr(model, "update"):
        raise ValueError(ONCE)
    before: Any = model._released.parameters
    if not model._released.spent:
        loaded = not hasattr(model, "plan_")
        old = loaded and (before.reconstruct, before.inducing) == ("posterior", None)
        raise ValueError(OLD_FILE if old else KINDS)
    now = model._parameters(model._released.columns)
    for one, other in [(now, before), *zip(now.parts(), before.parts(), strict=False)]:
        for name in KEPT:
            if getattr(one, name, None) != getattr(other, name, None):
                raise ValueError(OTHER_PARAMETERS.format(name))


def is_updatable(model: Published) -> bool:
    """Whether a further measurement can be added to a release."""
    with suppress(ValueError):
        check_updatable(model)
        return True
    return False


def measure_further(
    model: Published,
    X: UserData,
    y: UserData,
    groups: UserData,
    beside: Beside,
    budget: tuple[float, float] | None = None,
) -> None:
    """Measure rows once more, and learn from all measurements together.

    Parameters
    ----------
    model : estimator
        A fitted one, which then holds the new release.
    X, y, groups : object
        The rows, their private outputs, and whose they are.
    beside : Beside
        The exposures and sample weights of rows.
    budget : (epsilon, delta), optional
        A further budget for rows that were measured before. None: the model's own, for rows of people
        who were in no batch before.

    """
    _check_further(model)
    rows = rows_of(model, X, groups, beside)
    measure_rows(model, rows, rows._private_data(model, X, y, groups), groups, budget)


def _check_further(model: Published) -> None:
    """Refuse a release that nothing can be added to."""
    check_updatable(model)
    if len(model._released.spent) > 1 and model.guarantee_ != model._released.guarantee:
        raise ValueError(LOST)


def measure_tally(
    model: Published, rows: Tallied, data: Sealed, budget: tuple[float, float] | None
) -> None:
    """The same for many rows, wherever they are."""
    _check_further(model)
    measure_rows(model, PublicInputs(rows), data, None, budget)


def measure_rows(
    model: Published, rows: Rows, data: Sealed, groups: object, budget: tuple[float, float] | None
) -> None:
    """The same for rows that are known, and outcomes that the vault holds."""
    if (rows.people is None) != (model._released.spent[0].people is None):
        raise ValueError(OTHER_UNIT)
    again = budget is not None
    each = [*enumerate(model._released.each)]
    batch = max(rows.batch(one, place, again=again) for place, one in each)
    questions = [one._question(model._released.columns) for one in model._alone()]
    if any(question.row_noise is not None for question in questions):
        raise ValueError(ROW_NOISE_ONCE)
    first, earlier = model._released.spent[0], tuple[Any, ...]()
    if not first.only_again:
        earlier = tuple(rows.earlier(one, place, batch, questions[place]) for place, one in each)
    asking: Any = model
    if budget is not None:
        asking = copy(model).set_params(epsilon=budget[0], delta=budget[1])
    given = rows.to_plan(asking, groups)
    plan = plan_for_rows(asking, given, earlier)
    plan = replace(plan, output_names=model._released.output_names)
    if first.only_again and (not again or sums_of(plan.parts[0]) != first.sums_fingerprint):
        raise ValueError(SAME_SUMS if again else KINDS)
    known, data = model._released.reach, given._sum_for(data, plan)
    model._publish_plan(plan, data, inputs=rows.inputs, batch=batch)
    model._released = model._released.with_reach(known, given.planned.outermost(model.inputs_))


def stages(
    model: Published, X: Table, shares: object, groups: Column | None, **given: object
) -> Stages:
    """The model's budget in parts, with the noise distribution that leaves less error in the end: of
    several outputs, in the mean of logarithms. ``given``: further arguments of ``plan``."""
    shares = check_shares(shares)
    if getattr(model, "reconstruct", "posterior") != "posterior":
        raise ValueError(KINDS)
    epsilon, delta = float(model.epsilon), float(model.delta)
    compared = (LAPLACE, GAUSSIAN) if model.mechanism == "auto" else (model.mechanism,)
    laws = [law for law in compared if delta > 0 or law in PURE]
    errors = {}
    never = {"residuals": "never"} if hasattr(model, "residuals") else {}
    for law in laws:
        together = epsilon * information_share(law, shares)
        asked = clone(model).set_params(mechanism=law, epsilon=together, **never)
        expected = asked.plan(X, groups=groups, **given).expected_error()
        errors[law] = float(np.exp(np.mean(np.log(expected))))
    if not errors:
        raise ValueError("delta must be positive for Gaussian noise.")
    best = min(errors, key=lambda law: errors[law])
    return Stages(best, share_out(best, epsilon, delta, shares), errors)
