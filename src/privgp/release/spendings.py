"""The measurements behind a release, one for every time that budget was spent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, ClassVar

import numpy as np

from privgp.gp.measurement import Measurement, add, average
from privgp.plan.choice import OfRecords
from privgp.plan.strategy import NOT_TOGETHER
from privgp.privacy.guarantee import Guarantee, compose, in_parallel
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
