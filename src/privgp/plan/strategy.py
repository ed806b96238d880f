"""What will be measured: a public matrix on public inputs, and how far one person can move it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated, ClassVar, Protocol, Self

import numpy as np

from privgp.gp.arithmetic import UNIT_ROUNDOFF, rounding
from privgp.gp.measurement import Measurement
from privgp.plan.inputs.tally import Tally
from privgp.privacy.noise import GAUSSIAN, LAPLACE, NOT_PURE, PURE, Noise, noise_for
from privgp.privacy.sensitivity import (
    ENUMERATED_ROWS,
    LARGEST_FACTOR,
    MAX_ENERGY_WEIGHT,
    MAX_TOTAL_ENERGY_WEIGHT,
    WHOLE,
    absolute_sums,
    column_norms,
    many_row_sensitivity,
    person_norms,
    single_row_sensitivity,
    square_change,
    total_sensitivity,
)
from privgp.types import Array, Integers, Within, added_field

# With several rows per person the energy row costs budget; this weight costs 3% of the noise.
SHARED_ENERGY_WEIGHT = 0.5
# So it does where an output changes by less than its whole range; this share costs 2%.
CHANGED_ENERGY_SHARE = 0.2
CHANGED_TOTAL_SHARE = 0.02  # the same in the sum of absolute values
COUNTED_TOTAL_SHARE = 0.08  # of counts, whose squares alone tell how much they scatter
# For private inputs: how many records of one person are used, and how people are counted.
MOST_RECORDS = 1000
PEOPLE = "people, with any number of records each,"
NOT_TOGETHER = "the parts do not belong together."


class Measurable(Protocol):
    """What noise is computed for: numbers, and how far one person can move them."""

    @property
    def law(self) -> str: ...
    @property
    def size(self) -> int: ...
    def sensitivity(self) -> float: ...
    def float_error(self) -> float: ...


class Strategy(Measurable, Protocol):
    """A set of sums to measure. The vault computes them from private values.

    Attributes
    ----------
    law : distribution of the noise that will be added, which decides the norm of the two bounds
    people : (rows,), whose outputs are protected together, or None when every row is a person
    energy_weight : weight of the sum of squared outputs, 0 when it is not measured
    matrix : B, the weights of what is summed
    rows : how many outputs, records or people there are; public
    distinct_inputs : how many public ones; None if they are private or not counted
    size : how many numbers are measured
    change : by how much a person changes an output in [-1, 1] at most
    weighted : whether records count by private weights, of at most 1 each

    """

    @property
    def weighted(self) -> bool: ...
    @property
    def people(self) -> Integers | None: ...
    @property
    def energy_weight(self) -> float: ...
    @property
    def matrix(self) -> Array: ...
    @property
    def rows(self) -> int: ...
    @property
    def distinct_inputs(self) -> int | None: ...
    @property
    def change(self) -> float: ...
    def sensitivity(self) -> float:
        """How far one person, whose outputs lie in [-1, 1], can move the exact measurement.

        An upper bound in the norm of the noise: the sum of absolute values for pure noise,
        otherwise Euclidean.
        """

    def float_error(self) -> float:
        """Bound of the rounding error of the computed measurement, in the norm of the noise."""

    def worst_neighbours(self) -> tuple[Array, Array]:
        """Two exact measurements of neighbouring datasets, as far apart as any: for audits."""

    def sum_std(self, noise_std: float) -> float:
        """Std of the noise on a sum of outputs, for noise of this std on every measured number."""

    def read(self, numbers: Array, noise: Noise, half_width: float) -> Measurement:
        """The released numbers in units of y.

        Parameters
        ----------
        numbers
            (size,), with noise.
        noise
            That was added.
        half_width
            Half the width of the outputs' bounds.

        """


Change = Annotated[float, Within(np.finfo(float).tiny, WHOLE)]  # of an output in [-1, 1]


class Sums:
    """Sums, the energy last where it has a weight, under noise of one std: how they are read."""

    private_inputs: ClassVar[bool] = False
    energy_weight: float
    change: Change = WHOLE
    weighted: bool = False

    @property
    def centre(self) -> float | None:
        """About which outcomes are summed, where that is not the middle of their bounds."""
        return None

    @property
    def people_count(self) -> int | None:
        """How many people there are, where all rows of one are protected together."""
        people: Integers | None = getattr(self, "people", None)
        return None if people is None else int(people.max()) + 1

    def sum_std(self, noise_std: float) -> float:
        """Std of the noise on a sum of outputs, for noise of this std on every measured number."""
        return noise_std

    def read(self, numbers: Array, noise: Noise, half_width: float) -> Measurement:
        """The released numbers in units of y; see ``Strategy``."""
        energy: tuple[float | None, float] = None, 0.0
        if self.energy_weight > 0:
            unit = half_width**2 / self.energy_weight
            energy = float(numbers[-1] * unit), noise.std * unit
            numbers = numbers[:-1]
        sums, counts = self.sums_and_counts(numbers)
        std = self.sum_std(noise.std) * half_width
        laplace = counts is None and noise.law == LAPLACE  # others are sums of several numbers
        return Measurement(sums * half_width, std, *energy, counts, laplace, centre=self.centre)

    def reach(self) -> Array:
        """How far each person can move the sums: all alike where nothing tells people apart, (1,)."""
        return np.ones(1)

    def of_person(self, person: int) -> Self:
        """The same sums of one person's rows alone: any of them, where all are alike."""
        return self

    def sums_and_counts(self, numbers: Array) -> tuple[Array, Array | None]:
        """The sums of outputs, and the counts of records where these are measured too."""
        return numbers, None

    def with_energy(self, sums: Array, squares: float) -> Array:
        """Sums, and a sum of squared outputs where that is measured too."""
        return np.append(sums, self.energy_weight * squares) if self.energy_weight > 0 else sums


@dataclass(frozen=True)
class OutputSums(Sums):
    """The measurement ``(B s, w sum e_i u_i^2)`` with ``s`` the weighted sums of outputs per input.

    Attributes
    ----------
    matrix : B, (measured, inputs)
    index : (rows,), the distinct input of every row
    row_weights : (rows,), the factor of every output in its sum, between 0 and 1
    people : (rows,), whose outputs are protected together, or None when every row is a person
    energy_weight : w, 0 when energies are not measured
    energy_shares : (rows,), the factors e_i, between 0 and 1
    law : distribution of the noise
    change : by how much a person changes each of their scaled outputs at most
    expected : (rows,), for counts, what each would be at the unit rate; None for other outputs
    tally : of many rows, those of one fine cell instead of a row above; None: each row is there
    scatter : (rows,), the noise variance of every output over the model's; None: the same for all

    """

    matrix: Array
    index: Integers
    row_weights: Array
    people: Integers | None
    energy_weight: float
    energy_shares: Array
    law: Annotated[str, NOT_PURE] = GAUSSIAN
    change: Change = added_field(WHOLE)
    expected: Array | None = added_field(None)
    tally: Tally | None = added_field(None)
    scatter: Array | None = added_field(None)

    @property
    def sizes(self) -> Array:
        """How much of the function, and of its scatter, every output holds, (rows,)."""
        return np.ones(len(self.index)) if self.expected is None else self.expected

    @property
    def rows(self) -> int:
        """How many outputs there are."""
        return len(self.index) if self.tally is None else self.tally.rows

    @property
    def units(self) -> int:
        """How many people there are; how many rows, where each is a person."""
        return self.rows if self.people_count is None else self.people_count

    @property
    def repeats(self) -> Array:
        """How many rows every entry of ``index`` stands for, (rows,)."""
        if self.tally is None:
            return np.ones(len(self.index))
        return np.asarray(self.tally.counts, dtype=np.float64)

    def add_up(self, values: Array) -> float:
        """The sum of a public value per row."""
        return float((values * self.repeats).sum())

    def per_person(self, values: Array) -> Array:
        """At least the sum of a positive value over the rows of every person, (people,)."""
        if self.tally is not None:  # as if all of a person's rows were in one cell
            return values * self.tally.each * (1.0 + 4.0 * UNIT_ROUNDOFF)
        if self.people is None:
            return values
        return np.bincount(self.people, values).astype(float) * (1.0 + rounding(self.rows))

    @property
    def size(self) -> int:
        """How many numbers are measured."""
        return len(self.matrix) + int(self.energy_weight > 0)

    @property
    def distinct_inputs(self) -> int:
        """How many distinct inputs there are."""
        return int(self.matrix.shape[1])

    def per_input(self, values: Array) -> Array:
        """Sums of a public value per row at every distinct input, (inputs,)."""
        values = values * self.repeats
        return np.bincount(self.index, values, minlength=self.distinct_inputs).astype(float)

    def masses(self) -> tuple[Array, Array]:
        """Sums of the row weights, and of their squares, at every distinct input, (inputs,) each.

        Every row counts as often as what it holds: for counts, what would be expected of it. With sample
        weights, squares are multiplied by ``spread``.
        """
        g, sizes = self.row_weights, self.sizes
        return self.per_input(g * sizes), self.per_input(g * g * self.spread * sizes)

    def check(self) -> None:
        """Refuse what the bounds of the sensitivity do not cover, as only a file can hold it.

        Raises
        ------
        ValueError
            Shapes or weights do not belong together.

        """
        rows, index, people, shares = self.index.size, self.index, self.people, self.energy_shares
        each = None if self.tally is not None else people
        given = [part for part in (each, self.expected, self.scatter) if part is not None]
        per_row = (index, self.row_weights, shares, *given)
        fits = (
            self.matrix.ndim == 2
            and rows >= 1
            and all(each.shape == (rows,) for each in per_row)
            and index.min() >= 0
            and index.max() < self.distinct_inputs
            and np.abs(self.matrix).max(initial=0.0) <= LARGEST_FACTOR
            and 0.0 <= self.energy_weight <= LARGEST_FACTOR
            and np.min([self.row_weights.min(), shares.min()]) >= 0.0
            and np.max([self.row_weights.max(), shares.max()]) <= 1.0
        )
        if fits and self.tally is not None:  # all rows of a person weigh at most 1 together
            self.tally.check()
            least = min(self.tally.each.shape == (rows,), self.tally.people == _count(people))
            fits = least and np.all(self.row_weights * self.tally.each <= 1.0 + 2.0**-40)
            fits = fits and np.all(shares * self.tally.each <= 1.0 + 2.0**-40)
        elif fits and people is not None:
            fits = people.min() >= 0 and people.max() < rows
        for positive in (self.expected, self.scatter):
            fits = fits and (positive is None or positive.min() > 0.0)
        if not fits:
            raise ValueError(NOT_TOGETHER)

    def sensitivity(self) -> float:
        """How far one person can move the exact measurement, in the Euclidean norm."""
        norms, w = self.reach(), self.energy_weight
        shares, alone = self.per_person(self.energy_shares), self._alone()
        moved, change = [], self.change
        if alone.any():
            moved.append(single_row_sensitivity(float(norms[alone].max()), w, change))
        if not alone.all():
            share = float(shares[~alone].max())
            moved.append(many_row_sensitivity(float(norms[~alone].max()), w, share, change))
        return max(moved)

    def _alone(self) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Which people have a single row, (people,)."""
        if self.tally is not None:
            return np.asarray(self.tally.each == 1)
        people = np.arange(self.rows) if self.people is None else self.people
        return np.asarray(np.bincount(people) == 1)

    @property
    def sample_weights(self) -> Array:
        """Those of the rows, over the largest, (rows,); 1 where all rows count alike."""
        each: Array = np.ones(len(self.index))
        if self.tally is not None:
            each = np.asarray(self.tally.each, dtype=np.float64)
        elif self.people is not None:
            each = np.bincount(self.people)[self.people].astype(float)
        return self.energy_shares * each

    @property
    def effective_rows(self) -> float:
        """How many rows of one sample weight would tell as much of a mean: ``(sum w)^2 / sum w^2``."""
        return effective_count(self.sample_weights, self.repeats)

    @property
    def spread(self) -> Array:
        """The variance of every row about the function over the model's, as it is taken for, (rows,).

        A model weighs rows by one over their variances, and would undo sample weights wherever rows of
        different weights are in different sums. With variances proportional to one over the weights it
        weighs rows by these. The factor ``sum w^2 / sum w`` leaves the variance of the weighted sum of
        all rows as it is.
        """
        own = self.sample_weights
        common = self.add_up(own * own) / self.add_up(own)
        found = common / np.maximum(own, np.finfo(float).tiny)
        return found if self.scatter is None else found * self.scatter

    def float_error(self) -> float:
        """A bound in the norm of the noise, for sums of outputs and then of products.

        Outputs of a tally are rounded down to whole multiples of a power of two, before they are added up
        exactly.
        """
        rows = len(self.index)
        gamma = rounding(rows + self.distinct_inputs + 8)
        sums = gamma * (np.abs(self.matrix) @ self.per_input(self.row_weights))
        energy = rounding(rows + 8) * self.energy_weight * self.add_up(self.energy_shares)
        order = 1 if self.law in PURE else 2
        total = float(np.linalg.norm(np.append(sums, energy), order))
        if self.tally is not None:
            reached = self.per_person(absolute_sums(self.matrix)[self.index] * self.row_weights)
            unit = 2.0**-self.tally.bits
            total += unit * (float(reached.max(initial=0.0)) + 4.0 * self.energy_weight)
        return total * (1.0 + 1e-9)

    def reach(self) -> Array:
        """How far each person can move the sums, up to a factor that all of them share, (people,)."""
        if self.tally is not None:
            return self.per_person(column_norms(self.matrix)[self.index] * self.row_weights)
        people = np.arange(self.rows) if self.people is None else self.people
        return person_norms(self.matrix, self.index, people, self.row_weights)

    def of_person(self, person: int) -> Self:
        """The same sums of one person's rows alone; of a tally, of somebody with rows in one cell."""
        if self.tally is not None:
            rows = np.repeat(person, int(self.tally.each[person]))
        else:
            people = np.arange(self.rows) if self.people is None else self.people
            rows = np.flatnonzero(people == person)
        return replace(
            self,
            tally=None,
            index=self.index[rows],
            row_weights=self.row_weights[rows],
            people=np.zeros(len(rows), dtype=np.int64),
            energy_shares=self.energy_shares[rows],
            expected=None if self.expected is None else self.expected[rows],
            scatter=None if self.scatter is None else self.scatter[rows],
        )

    def worst_neighbours(self) -> tuple[Array, Array]:
        """Equal outputs except for the person who can move the measurement most."""
        if self.tally is not None:
            return OutputSums.worst_neighbours(self.of_person(int(np.argmax(self.reach()))))
        people = np.arange(self.rows) if self.people is None else self.people
        rows = np.flatnonzero(people == int(np.argmax(self.reach())))
        signs = np.zeros(self.rows)
        signs[rows] = self._worst_signs(rows)
        moved = self.matrix @ self.per_input(self.row_weights * signs)
        squares, other = float(self.energy_shares[rows].sum()), self.change - 1.0
        return self.with_energy(-moved, squares), self.with_energy(
            other * moved, other**2 * squares
        )

    def _worst_signs(self, rows: Integers) -> Array:
        """The signs of one person's outputs that move the measurement most (all +1 for many rows)."""
        if len(rows) > ENUMERATED_ROWS:
            return np.ones(len(rows))
        signs = np.array(list(product((1.0, -1.0), repeat=len(rows))))
        moved = self.matrix[:, self.index[rows]] @ signs.T
        return np.asarray(signs[int(np.argmax(np.square(moved).sum(axis=0)))])


@dataclass(frozen=True)
class GroupSums(OutputSums):
    """Sums over groups of inputs, every input in one of them; protected by pure noise."""

    law: Annotated[str, PURE] = LAPLACE

    def sensitivity(self) -> float:
        """How far one person can move the exact measurement, in the sum of absolute values."""
        sums = absolute_sums(self.matrix)[self.index] * self.row_weights
        moved = total_sensitivity(sums, self.energy_weight * self.energy_shares, self.change)
        return float(self.per_person(moved).max(initial=0.0))


@dataclass(frozen=True)
class EqualRows:
    """Rows that are not distinguished: all that a design needs to know of them.

    Attributes
    ----------
    counts : (inputs,), how many there are at every input, or the sums of their weights
    spread : (inputs,), the sums of their squared weights, times their noise variances over the model's;
        None: as many as there are

    """

    counts: Array
    spread: Array | None = None

    def masses(self) -> tuple[Array, Array]:
        """Sums of the row weights, and of their squares, at every input."""
        return self.counts, self.counts if self.spread is None else self.spread


def noise_of(strategy: Measurable, epsilon: float, delta: float) -> Noise:
    """The least noise that hides one person in this measurement.

    Parameters
    ----------
    strategy
        The sums to measure, with their sensitivity and float error.
    epsilon, delta
        The budget.

    """
    size = strategy.size, strategy.sensitivity(), strategy.float_error()
    return noise_for(strategy.law, epsilon, delta, *size)


def energy_weight(change: float) -> float:
    """The weight of the energy beside columns of norm 1: free if outputs change as far as they can.

    Parameters
    ----------
    change
        By how much a person changes an output in [-1, 1] at most.

    """
    if change >= WHOLE:
        return MAX_ENERGY_WEIGHT
    return min(0.5 * MAX_ENERGY_WEIGHT * max(change, 1.0), CHANGED_ENERGY_SHARE / (WHOLE - change))


def strategy_for_rows(
    B: Array,
    index: Integers,
    people: Integers | None,
    *,
    energy: bool,
    equal_weights: bool = False,
    change: float = WHOLE,
    expected: Array | None = None,
    tally: Tally | None = None,
    weights: Array | None = None,
    scatter: Array | None = None,
) -> OutputSums:
    """Scale a design so that every person moves the measurement by at most about ``change``.

    Parameters
    ----------
    B
        (measured, inputs), a design with unit columns.
    index
        (rows,), the distinct input of every row.
    people
        (rows,), whose rows they are; None: every row is a person.
    energy
        Whether the sum of squared outputs is measured too.
    equal_weights
        One weight for all rows, as an unbiased release of ``C y`` needs; otherwise each
        person's rows get one common weight.
    change
        By how much a person changes an output in [-1, 1] at most.
    expected
        (rows,), for counts, what each would be at the unit rate.
    tally
        What every entry of ``index`` stands for, where rows were tallied.
    weights
        (rows,), public sample weights over the largest of them; None: 1 each. A tally has its own.
    scatter
        (rows,), the noise variance of every output over the model's; None: the same for all.

    """
    B = B / max(1.0, float(column_norms(B).max(initial=0.0)))
    ones, weight = np.ones(len(index)), energy_weight(change) if energy else 0.0
    own = ones if weights is None else weights
    if tally is not None:
        several, more = people is not None, {"change": change, "expected": expected, "tally": tally}
        weight = _common_weight(change) if several and energy else weight
        allowed = np.sqrt(1.0 - (weight * square_change(change) / change) ** 2) if several else 1.0
        scale = tally.weights * np.where(tally.each > 1, allowed, 1.0)
        return OutputSums(B, index, scale, people, weight, tally.weights, **more)  # type: ignore[arg-type]
    if people is None:
        known = {"change": change, "expected": expected, "scatter": scatter}
        return OutputSums(B, index, own, None, weight, own, **known)  # type: ignore[arg-type]
    counts = np.bincount(people)
    allowed = np.ones(len(counts))
    if np.any(counts > 1):
        moved = square_change(change) / change
        weight = _common_weight(change) if energy else 0.0
        allowed[counts > 1] = np.sqrt(1.0 - (weight * moved) ** 2)
    scale = np.minimum(1.0, allowed / np.maximum(person_norms(B, index, people, own), 1e-300))
    if equal_weights:
        B = B * float(scale.min())
        scale = np.ones(len(counts))
    factors = scale[people] * own, people, weight, own / counts[people]
    return OutputSums(B, index, *factors, change=change, expected=expected, scatter=scatter)


def effective_count(weights: Array, repeats: Array | float = 1.0) -> float:
    """How many rows of equal weight tell as much of a mean as rows with these weights.

    Parameters
    ----------
    weights
        (rows,), positive.
    repeats
        (rows,), how often each is there.

    """
    return float((weights * repeats).sum() ** 2 / (weights * weights * repeats).sum())


def _common_weight(change: float) -> float:
    """The weight of the energy beside people with several rows."""
    return 0.5 * SHARED_ENERGY_WEIGHT * change / square_change(change)


def _count(people: Integers | None) -> int | None:
    """How many people there are, where these are distinguished by a number each."""
    return None if people is None else len(people)


def strategy_of_groups(
    B: Array,
    index: Integers,
    people: Integers | None,
    *,
    energy: bool,
    law: str = LAPLACE,
    change: float = WHOLE,
    expected: Array | None = None,
    tally: Tally | None = None,
    weights: Array | None = None,
    scatter: Array | None = None,
) -> GroupSums:
    """Sums for pure noise that every person moves by at most about ``change`` in total.

    Each of the k rows of a person counts 1/k.

    Parameters
    ----------
    B
        (groups, inputs), every input in one group.
    index, people, energy, change, expected, tally, weights, scatter
        As in ``strategy_for_rows``.
    law
        The pure noise.

    """
    if tally is not None:
        shares = tally.weights
    else:
        shares = np.ones(len(index)) if weights is None else weights
        shares = shares if people is None else shares / np.bincount(people)[people]
    weight = MAX_TOTAL_ENERGY_WEIGHT if energy else 0.0  # costs nothing
    if change < WHOLE:
        share = CHANGED_TOTAL_SHARE if expected is None else COUNTED_TOTAL_SHARE
        weight = min(weight, share / (WHOLE - change)) if energy else 0.0
    known = law, change, expected, tally, scatter
    return GroupSums(B, index, shares, people, weight, shares, *known)
