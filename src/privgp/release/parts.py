"""What was released of every outcome: noisy sums, the models learned from them, and what predicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import singledispatch
from typing import Annotated, Any, ClassVar

import numpy as np

from privgp.gp.inference.linked import outcome_posterior
from privgp.gp.inference.noisy_counts import NoisyCounts, counts_posterior
from privgp.gp.inference.posterior import posterior
from privgp.gp.measurement import Functionals, Measurement, add, average
from privgp.gp.priors import Hyperparameters
from privgp.plan.choice import OfRecords
from privgp.plan.parameters import DensityParameters, LabelParameters, Parameters
from privgp.plan.strategy import NOT_TOGETHER
from privgp.privacy.guarantee import Guarantee, compose, in_parallel
from privgp.question.parameters import RECONSTRUCTIONS
from privgp.question.rules import check_bounds
from privgp.release.answers import Answer, AtTargets, Cloaked, Probabilities, outcomes_of
from privgp.release.rates import RatePosterior, rate_posterior
from privgp.storage.archive import require
from privgp.storage.codec import fingerprint
from privgp.types import Array, Count, NotNegative, Positive, Within, added_field

FROM_THEM = "; everything else is computed from them"
ONE_BATCH_EACH = (
    "nobody is in two of the batches, and who is in which was decided without looking at outputs"
)
SAME_OUTPUTS = (
    "the budgets of all measurements of the same rows were fixed before the first of them, and the "
    "outputs were the same in all of them"
)
ONE_BATCH_OF_RECORDS = "nobody is in two of the batches, and who is in which was decided without looking at the records"
SAME_RECORDS = (
    "the budgets of all measurements of the same records were fixed before the first of them, and the "
    "records were the same in all of them"
)

WEIGHTS, ANY_ORDER = ":", "~"  # before the further parts of a fingerprint, which older files lack


@dataclass(frozen=True)
class Spending:
    """One measurement.

    ``batch``: of the people whose rows were measured, 0 for the first; ``fingerprint``: of these rows'
    public part; ``rows``, ``people``: how many, the latter if they were distinguished
    ``row_weights``: (rows,), the factor of every output in its sum, of many rows one for each of their
    cells; None: 1 for all
    ``guarantee``: what this measurement alone guarantees
    The others are as in ``Measurement``; ``values`` of several functions stand one after the other.
    """

    one_batch_each: ClassVar[str] = ONE_BATCH_EACH
    same: ClassVar[str] = SAME_OUTPUTS
    only_again: ClassVar[bool] = False  # whether the same sums of the same rows alone can be added
    batch: Annotated[int, Within(0, 10**6)]
    fingerprint: str
    rows: Count
    people: Count | None
    row_weights: Annotated[Array, "*"] | None
    values: Annotated[Array, "*"]
    noise_std: Positive
    energy: float | None
    energy_noise_std: NotNegative
    is_laplace: bool
    guarantee: Guarantee

    @property
    def marks(self) -> tuple[str, str, str]:
        """Fingerprints of its rows, of their sample weights, and of the rows in any order."""
        given, _, any_order = self.fingerprint.partition(ANY_ORDER)
        rows, _, weights = given.partition(WEIGHTS)
        return rows, weights, any_order

    @property
    def measurement(self) -> Measurement:
        energy = self.energy, self.energy_noise_std
        return Measurement(self.values, self.noise_std, *energy, None, self.is_laplace)

    @property
    def size(self) -> int:
        """How many numbers were measured."""
        return len(self.values) + (self.energy is not None)

    @property
    def sums_fingerprint(self) -> str:
        """What must be the same in all measurements of one release, which here is nothing."""
        return ""

    def as_one(self, spendings: Sequence[Spending], functions: int) -> tuple[Measurement, ...]:
        """All measurements as one, of every function: their numbers below each other, in the order of
        the measurements, scaled so that the first one's noise std serves all."""
        std, (energy, energy_std) = self.noise_std, energy_of(spendings)
        pieces = [each.measurement.parts(functions) for each in spendings]
        flags = tuple(
            each.is_laplace
            for each, own in zip(spendings, pieces, strict=True)
            for _ in own[0].values
        )
        laplace = flags[0] if len({*flags}) == 1 else flags
        stacked = []
        for own in zip(*pieces, strict=True):
            values = np.concatenate([std / each.noise_std * each.values for each in own])
            stacked.append(Measurement(values, std, energy, energy_std, None, laplace))
        return tuple(stacked)

    def check(self) -> None:
        """Refuse weights that are not those of the rows, as only a file can have them."""
        weights = self.row_weights
        if weights is not None and not (weights.ndim == 1 and len(weights) <= self.rows):
            raise ValueError("row weights are broken.")
        if weights is not None and not np.all((weights >= 0.0) & (weights <= 1.0)):
            raise ValueError("row weights are broken.")


@dataclass(frozen=True)
class RecordsSpending(Spending):
    """One measurement of private records, of which there is no fingerprint: the same sums every time.

    ``strategy``: what was measured; ``counts``, ``gram``, ``centre``: as in ``Measurement``.
    """

    one_batch_each: ClassVar[str] = ONE_BATCH_OF_RECORDS
    same: ClassVar[str] = SAME_RECORDS
    strategy: OfRecords
    counts: Annotated[Array, "*"] | None = added_field(None)
    gram: Annotated[Array, "* *"] | None = added_field(None)
    centre: float | None = added_field(None)

    @property
    def measurement(self) -> Measurement:
        one = replace(super().measurement, counts=self.counts, gram=self.gram)
        return replace(one, centre=self.centre)

    @property
    def size(self) -> int:
        return self.strategy.size

    @property
    def sums_fingerprint(self) -> str:
        """The sums, whatever the number of records."""
        return fingerprint(type(self.strategy).__name__, replace(self.strategy, rows=1))

    def check(self) -> None:
        """Refuse another number of records than was measured, as only a file can have it."""
        super().check()
        if (self.strategy.rows, self.strategy.people_count) != (self.rows, self.people):
            raise ValueError(NOT_TOGETHER)

    def as_one(self, spendings: Sequence[Spending], functions: int) -> tuple[Measurement, ...]:
        """The sums over all records: those of one batch are averaged, and then added up."""
        found = [average([each.measurement for each in batch]) for batch in batches(spendings)]
        energy, std = energy_of(spendings)
        return replace(add(found), energy=energy, energy_noise_std=std).parts(functions)


@dataclass(frozen=True)
class TargetsSpending(Spending):
    """One measurement behind values at targets: the same sums of the same rows every time.

    ``sums``: the fingerprint of what was measured.
    """

    only_again: ClassVar[bool] = True
    sums: str

    @property
    def sums_fingerprint(self) -> str:
        return self.sums

    def as_one(self, spendings: Sequence[Spending], functions: int) -> tuple[Measurement, ...]:
        """Their mean, weighted by precisions."""
        return average([each.measurement for each in spendings]).parts(functions)


AnySpending = Spending | RecordsSpending | TargetsSpending


def as_one(spendings: Sequence[Spending], functions: int = 1) -> tuple[Measurement, ...]:
    """All measurements as one, of each of the functions that the values are of."""
    return spendings[0].as_one(spendings, functions)


def noise_variance(spendings: Sequence[Spending]) -> float:
    """The variance of the noise in sums of records over all batches; 0 if there are none."""
    each = ([one.noise_std**-2.0 for one in batch] for batch in batches(spendings))
    return math.fsum(1.0 / math.fsum(precisions) for precisions in each)


def places(spendings: Sequence[Spending], functions: int = 1) -> list[slice]:
    """Where each measurement's values of one function stand when all are below each other."""
    ends = np.cumsum([len(each.values) // functions for each in spendings]).tolist()
    return [slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)]


def batches(spendings: Sequence[Spending]) -> list[list[Spending]]:
    """The measurements of each batch of people."""
    found: dict[int, list[Spending]] = {}
    for each in spendings:
        found.setdefault(each.batch, []).append(each)
    return list(found.values())


def totals(spendings: Sequence[Spending]) -> dict[str, int | None]:
    """What a certificate says of the data, where there are several measurements."""
    if len(spendings) < 2:
        return {}
    each = [batch[0] for batch in batches(spendings)]
    people = [one.people for one in each if one.people is not None]
    return {
        "rows": sum(one.rows for one in each),
        "people": sum(people) if people else None,
        "distinct_inputs": None,  # batches may share some
        "measured_numbers": sum(one.size for one in spendings),
    }


def describe_spendings(spendings: Sequence[Spending]) -> list[str]:
    """How often was measured, in words, if more than once."""
    if len(spendings) < 2:
        return []
    found = batches(spendings)
    again = sum(len(batch) - 1 for batch in found)
    people = f"{len(found)} batches of people" if len(found) > 1 else "the same rows"
    more = f"; {again} of them measured rows again" if again and len(found) > 1 else ""
    return [f"Measurements: {len(spendings)}, of {people}{more}."]


def energy_of(spendings: Sequence[Spending]) -> tuple[float | None, float]:
    """The energy of all rows and the std of its noise.

    Measured twice, that of one batch is the mean of both, weighted by their precisions: the rows'
    shares in it are the same. Those of different batches add up.
    """
    total, variance = 0.0, 0.0
    if len(spendings) == 1:  # as it is, to the last bit
        return spendings[0].energy, spendings[0].energy_noise_std
    for batch in batches(spendings):
        if any(each.energy is None for each in batch):
            return None, 0.0
        precisions = np.array([each.energy_noise_std**-2.0 for each in batch])
        energies = np.array([each.energy for each in batch], dtype=float)
        total += float(precisions @ energies / precisions.sum())
        variance += float(1.0 / precisions.sum())
    return total, math.sqrt(variance)


def combine_guarantees(spendings: Sequence[Spending]) -> Guarantee:
    """What all measurements together guarantee: those of one batch add up, and each person is in one
    batch."""
    found = [_of_batch(batch) for batch in batches(spendings)]
    if len(found) == 1:
        return found[0]
    whole = in_parallel(found)
    return replace(
        whole,
        assumptions=(*whole.assumptions, spendings[0].one_batch_each),
        mechanism=f"{len(found)} batches of different people, each measured separately; of one of "
        f"them: {whole.mechanism}",
    )


def _of_batch(batch: Sequence[Spending]) -> Guarantee:
    guarantees = [each.guarantee for each in batch]
    if len(guarantees) == 1:
        return guarantees[0]
    whole = compose(guarantees, math.fsum(each.delta for each in guarantees))
    each = "; then ".join(one.mechanism.removesuffix(FROM_THEM) for one in guarantees)
    return replace(
        whole,
        assumptions=(*whole.assumptions, batch[0].same),
        mechanism=f"{len(guarantees)} measurements of the same rows: {each}{FROM_THEM}",
    )


def utc(date: datetime) -> str:
    if date.tzinfo is None:
        raise ValueError("date must have a time zone.")
    return date.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


MOST_MODELS = 256
SAME_EPSILON = 1e-9  # composed elsewhere, its last digits may differ


def check_models(models: Sequence[Hyperparameters], columns: int) -> None:
    """Refuse models that are not for this many columns, or whose weights are broken."""
    for model in models:
        model.check_for(columns)
    total = sum(model.weight for model in models)
    several = 1 <= len(models) <= MOST_MODELS
    fits = several and abs(total - 1.0) <= 1e-9
    require(fits, "its models do not have weights that sum to one")


def check_spent(spent: Sequence[Spending], measured: tuple[Measurement, ...]) -> None:
    """Refuse measurements that do not make up those that the release is computed from, one of every
    function."""
    if not spent:
        return
    problem, functions = "its measurements are broken", len(measured)
    require(len({type(each) for each in spent}) == 1, problem)
    require(all(len(each.values) % functions == 0 for each in spent), problem)
    require(len({each.sums_fingerprint for each in spent}) == 1, problem)
    for whole, held in zip(as_one(spent, functions), measured, strict=True):
        same = [
            np.array_equal(getattr(whole, name), getattr(held, name))
            for name in ("values", "counts", "gram", "laplace")
        ]
        require(all(same), problem)


def check_total(spent: Sequence[Spending], stated: Guarantee) -> None:
    """Refuse a guarantee that is not the one that follows from several measurements. One alone may have
    spent more, on a choice of hyperparameters."""
    if len(spent) < 2:
        return
    whole, told = combine_guarantees(spent), stated.epsilon
    near = abs(told - whole.epsilon) <= SAME_EPSILON * whole.epsilon
    same = near and stated == replace(whole, epsilon=told)
    require(same, "its guarantee is not that of its parts")


@dataclass(frozen=True)
class Function:
    """One released function of the inputs.

    Attributes
    ----------
    measurement : Measurement
        All measurements of it as one.
    models : tuple of Hyperparameters
        The weighted models that were learned, the most plausible first.
    fixed_gram : array (measured, measured), optional
        Where inputs are private: the effect of uncertain counts on this function's sums.

    """

    measurement: Measurement
    models: tuple[Hyperparameters, ...]
    fixed_gram: Annotated[Array, "measured measured"] | None = added_field(None)


@dataclass(frozen=True)
class Part:
    """One released outcome: a number or a count has one function, a label of several classes one each.

    Attributes
    ----------
    measurement, models
        Of the first function, as in ``Function``.
    functionals : Functionals
        What was measured of the functions.
    noise_variance : float
        The expected variance of an output about the function.
    at_targets : AtTargets, optional
        The values at the targets, where these were released.
    unit_rate : float, optional
        The rate that rates are multiples of, where outputs are counts.
    further : tuple of Function
        The functions after the first.
    spent : tuple of Spending
        Each measurement separately, where more may follow.

    """

    _own_axes: ClassVar[bool] = True
    measurement: Measurement
    functionals: Functionals
    models: tuple[Hyperparameters, ...]
    noise_variance: Positive
    at_targets: AtTargets | None = added_field(None)
    unit_rate: Positive | None = added_field(None)
    further: tuple[Function, ...] = added_field(())
    spent: tuple[AnySpending, ...] = added_field(())

    @property
    def functions(self) -> tuple[Function, ...]:
        """All functions of the outcome."""
        first = Function(self.measurement, self.models, self.functionals.fixed_gram)
        return first, *self.further

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """Every measurement of every function, those of one function together."""
        whole = tuple(each.measurement for each in self.functions)
        each = [one.measurement.parts(len(whole)) for one in self.spent] or [whole]
        return tuple(one for function in zip(*each, strict=True) for one in function)

    def so_far(self, guarantee: Guarantee) -> tuple[Spending, ...]:
        """The measurements so far. That of a single one may include a choice of hyperparameters, as the
        ``guarantee`` of the release does."""
        if len(self.spent) != 1:
            return self.spent
        return (replace(self.spent[0], guarantee=guarantee),)

    def check_for(self, columns: int, asked: Parameters) -> None:
        """Refuse what does not belong together, as only a file can have it."""
        require(self.functionals.nodes.shape[1] == columns, "its number of columns is broken")
        _check_bins(self.functionals, self.measurement, records=asked.private_inputs)
        outcome = asked.outcome()
        require((self.unit_rate is not None) == outcome.has_rate, "its unit of rates is broken")
        made, wanted = self.at_targets, RECONSTRUCTIONS[asked.reconstruct].at_targets
        require((made is not None) == wanted, "its parameters are not those of its release")
        if made is not None:
            require(made.noise_variance == self.noise_variance, "its noise variance is broken")
            require(bool(np.all(made.model_variance >= 0.0)), "its variance is broken")
        require(len(self.functions) == outcome.functions, "its classes are broken")
        private = self.functionals.fixed_gram is not None
        for each in self.functions:
            check_models(each.models, columns)
            require((each.fixed_gram is not None) == private, "its classes are broken")
        check_spent(self.spent, tuple(each.measurement for each in self.functions))


def _check_bins(f: Functionals, measurement: Measurement, *, records: bool) -> None:
    """Refuse what goes with private inputs where these are public, and the other way round."""
    counted = measurement.counts is not None or measurement.gram is not None
    extra = (f.fixed_gram is not None, f.scatter is not None, f.shares is not None)
    require(all(part == records for part in (counted, *extra)), "its bins are broken")
    if f.scatter is not None and f.shares is not None:
        require(f.scatter.shape[1] * len(f.shares) == len(f.nodes), "its bins are broken")
        whole = abs(float(f.shares.sum()) - 1.0) <= 1e-9
        require(whole and bool(np.all(f.shares >= 0.0)), "its bins are broken")


@singledispatch
def answer_of(asked: Any, part: Part) -> Answer | Probabilities:
    """What predicts an outcome: the function itself, a rate, or the values at the targets.

    Parameters
    ----------
    asked : Parameters
        What was declared of the outcome.
    part : Part
        What was released of it.

    """
    if part.unit_rate is not None:
        return rate_posterior(part.functionals, part.measurement, part.models, part.unit_rate)
    low, high = check_bounds("bounds", asked.y_bounds)
    centre = 0.5 * low + 0.5 * high
    if part.at_targets is not None:
        measured = part.functionals, part.measurement
        return Cloaked(part.at_targets, *measured, part.models[0], centre)
    return posterior(part.functionals, part.measurement, part.models, centre)


def bin_counts(asked: DensityParameters, f: Functionals, measured: Measurement) -> NoisyCounts:
    """What was measured of the bins of a density."""
    noise, grid = (measured.noise_std, bool(measured.laplace.all())), asked.grid
    box = grid.widths, grid.low, grid.high
    return NoisyCounts(measured.values, np.diag(f.weights), *noise, f.nodes, *box)


@answer_of.register
def _(asked: DensityParameters, part: Part) -> Answer:
    """The intensity of points."""
    require(part.unit_rate is not None, "its unit of rates is broken")
    counts = bin_counts(asked, part.functionals, part.measurement)
    return RatePosterior(counts_posterior(counts, part.models), float(part.unit_rate or 1.0))


@answer_of.register
def _(asked: LabelParameters, part: Part) -> Probabilities:
    """The probability of every class."""
    link = asked.probability
    functions = (
        outcome_posterior(
            outcomes_of(
                replace(part.functionals, fixed_gram=each.fixed_gram), each.measurement, link
            ),
            each.models,
        )
        for each in part.functions
    )
    return Probabilities(tuple(functions), link)
