"""The measurements behind a release, one for every time that budget was spent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from privgp.gp.measurement import Measurement
from privgp.privacy.guarantee import Guarantee, compose, in_parallel
from privgp.types import Array, Count, NotNegative, Positive, Within

FROM_THEM = "; everything else is computed from them"
ONE_BATCH_EACH = (
    "nobody is in two of the batches, and who is in which was decided without looking at outputs"
)
SAME_OUTPUTS = (
    "the budgets of all measurements of the same rows were fixed before the first of them, and the "
    "outputs were the same in all"
)


@dataclass(frozen=True)
class Spending:
    """One measurement.

    ``batch``: of the people whose rows were measured, 0 for the first; ``fingerprint``: of these rows'
    public part; ``rows``, ``people``: how many, the latter if they were told apart
    ``row_weights``: (rows,), the factor of every output in its sum; None: 1 for all
    ``guarantee``: what this measurement alone promises
    The others are as in ``Measurement``.
    """

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
    def measurement(self) -> Measurement:
        energy = self.energy, self.energy_noise_std
        return Measurement(self.values, self.noise_std, *energy, None, self.is_laplace)

    @property
    def size(self) -> int:
        """How many numbers were measured."""
        return len(self.values) + (self.energy is not None)

    def check(self) -> None:
        """Refuse weights that are not those of the rows, as only a file can have them."""
        weights = self.row_weights
        if weights is not None and weights.shape != (self.rows,):
            raise ValueError("row weights are broken.")
        if weights is not None and not np.all((weights >= 0.0) & (weights <= 1.0)):
            raise ValueError("row weights are broken.")


def places(spendings: Sequence[Spending]) -> list[slice]:
    """Where each measurement's values stand when all are below each other."""
    ends = np.cumsum([len(each.values) for each in spendings]).tolist()
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


def described(spendings: Sequence[Spending]) -> list[str]:
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
    for batch in batches(spendings):
        if any(each.energy is None for each in batch):
            return None, 0.0
        precisions = np.array([each.energy_noise_std**-2.0 for each in batch])
        energies = np.array([each.energy for each in batch], dtype=float)
        total += float(precisions @ energies / precisions.sum())
        variance += float(1.0 / precisions.sum())
    return total, math.sqrt(variance)


def promised(spendings: Sequence[Spending]) -> Guarantee:
    """What all measurements together promise: those of one batch add up, and each person is in one
    batch."""
    found = [_of_batch([each.guarantee for each in batch]) for batch in batches(spendings)]
    if len(found) == 1:
        return found[0]
    whole = in_parallel(found)
    return replace(
        whole,
        assumptions=(*whole.assumptions, ONE_BATCH_EACH),
        mechanism=f"{len(found)} batches of different people, each measured by itself; of one of "
        f"them: {whole.mechanism}",
    )


def _of_batch(guarantees: Sequence[Guarantee]) -> Guarantee:
    if len(guarantees) == 1:
        return guarantees[0]
    whole = compose(guarantees, math.fsum(each.delta for each in guarantees))
    each = "; then ".join(one.mechanism.removesuffix(FROM_THEM) for one in guarantees)
    return replace(
        whole,
        assumptions=(*whole.assumptions, SAME_OUTPUTS),
        mechanism=f"{len(guarantees)} measurements of the same rows: {each}{FROM_THEM}",
    )
