"""Everything that is measured of private values, plus noise: the only place where they meet a
release. ``exact`` knows every kind of strategy; a new one registers how it is computed."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, singledispatch
from typing import Any

import numpy as np
from opendp import measurements
from opendp.domains import atom_domain, vector_domain
from opendp.metrics import l1_distance, l2_distance
from opendp.mod import enable_features

from privgp.gp.arithmetic import one_thread
from privgp.gp.features import pack_symmetric, unit_features
from privgp.gp.measurement import Measurement
from privgp.plan.bins.bins import Bins, BinSums, HalvedBins
from privgp.plan.features import Features
from privgp.plan.labels import ClassGroupSums, ClassSums
from privgp.plan.strategy import OutputSums, Strategy
from privgp.plan.together import JointSums
from privgp.privacy.noise import GAUSSIAN, LAPLACE, Noise
from privgp.types import Array, Column, Integers, Pair, Random, Table, UserData
from privgp.vault.grouped.totals import AllTotals, Totals
from privgp.vault.labels import shares_about_even, shares_of_each, values_of
from privgp.vault.validate import (
    check_output_columns,
    check_outputs,
    check_private_weights,
    clip_inputs,
    clip_outputs,
    person_ids,
    shares,
)
from privgp.vault.values import Sealed, unseal

enable_features("contrib")


def add_noise(values: Array, noise: Noise, rng: Random = None) -> Array:
    """Round to the lattice and add the noise that protects; with a generator, simulate it.

    OpenDP's samplers are exact. They take NaN for 0, infinity for the largest number, and a
    wrong length without a word, so all three are refused here first. A simulation is ordinary
    floating-point noise of the same scale: reproducible, and not for release.

    Parameters
    ----------
    values
        (size,), private.
    noise
        How much, and on which lattice.
    rng
        Generator of a simulation; None for cryptographic randomness.

    Raises
    ------
    ValueError
        The values have a wrong size or are not finite; nothing was drawn.
    RuntimeError
        The sampler failed after noise was drawn: the budget counts as spent.

    """
    if values.shape != (noise.size,) or not np.all(np.isfinite(values)):
        raise ValueError("the measurement has a wrong size or is not finite; nothing was released.")
    if rng is not None:
        return np.asarray(values + SIMULATED[noise.law](rng, 0.0, noise.scale, noise.size))
    sampler = _sampler(noise.law, noise.size, noise.scale, noise.exponent)
    released = np.array(sampler(values.tolist()), dtype=float)
    if released.shape != (noise.size,) or not np.all(np.isfinite(released)):
        raise RuntimeError("the sampler failed after noise was drawn: count the budget as spent.")
    return released


@lru_cache(maxsize=16)
def _sampler(law: str, size: int, scale: float, exponent: int) -> Any:
    """Rounds numbers and adds noise. It holds no randomness itself: every call draws anew."""
    make, distance = PROTECTING[law]
    numbers = vector_domain(atom_domain(T=float, nan=False), size=size)
    return make(numbers, distance(T=float), scale=scale, k=exponent)


PROTECTING: dict[str, Any] = {
    GAUSSIAN: (measurements.make_gaussian, l2_distance),
    LAPLACE: (measurements.make_laplace, l1_distance),
}
SIMULATED: dict[str, Any] = {
    GAUSSIAN: np.random.Generator.normal,
    LAPLACE: np.random.Generator.laplace,
}


# a public curve at every row, and the width that residuals are clipped to
Centre = tuple[Array, float]


def measure(
    data: object, bounds: Pair, strategy: Strategy, noise: Noise, random_state: Random = None
) -> Measurement:
    """Spend the budget once: validate, clip, compute, add noise.

    Parameters
    ----------
    data
        Private: y, or (X, y), or (X, y, whose records they are) if people are protected.
    bounds
        Bounds of the output; with several outputs a pair for each.
    strategy
        The sums to measure; it computed the sensitivity that the noise is for.
    noise
        Drawn once for all numbers.
    random_state
        a generator simulates the noise; None draws the noise that protects.

    Returns
    -------
    Measurement
        In units of y; with several outputs one of each.

    """
    numbers = add_noise(exact(strategy, unseal(data), bounds), noise, random_state)
    low, high = np.transpose(bounds)
    return strategy.read(numbers, noise, (0.5 * high - 0.5 * low).tolist())


def seal_residuals(data: UserData, rows: int, bounds: Pair, curve: Array, width: float) -> Sealed:
    """What outputs within their bounds are above or below a public curve, clipped to +-width.

    Parameters
    ----------
    data
        Private: y.
    rows
        How many there are, or cells of many rows.
    bounds
        Declared, (low, high).
    curve
        (rows,), public.
    width
        Positive, public.

    """
    if curve.shape != (rows,) or not np.all(np.isfinite(curve)) or not 0.0 < width < np.inf:
        raise ValueError("the curve and the width must be finite numbers, one curve value per row.")
    held = unseal(data)
    if isinstance(held, Totals):
        return held.residuals(curve, width)
    y = np.clip(check_outputs(held, rows), *bounds)
    return Sealed(np.clip(y - curve, -width, width), rows)


def measure_twice(
    data: object,
    bounds: Pair,
    strategies: tuple[OutputSums, OutputSums],
    noises: tuple[Noise, ...],
    learn_centre: Callable[[Measurement], Centre],
    random_state: Random = None,
) -> tuple[Measurement, Measurement]:
    """Spend both shares of a budget: sums of outputs, then sums of clipped residuals.

    Parameters
    ----------
    data, bounds, random_state
        As in ``measure``.
    strategies, noises
        Of both stages.
    learn_centre
        From the first stage's released numbers to the curve at every row and the width of residuals; it
        sees no private value.

    Returns
    -------
    first, second : Measurement
        In units of y; the second one of residuals.

    """
    first = measure(data, bounds, strategies[0], noises[0], random_state)
    curve, width = learn_centre(first)
    left = seal_residuals(data, len(strategies[1].index), bounds, curve, width)
    return first, measure(left, (-width, width), strategies[1], noises[1], random_state)


@singledispatch
def exact(strategy: object, data: UserData, bounds: Pair) -> Array:
    """The measurement without noise: private.

    A new strategy registers how it is computed (``exact.register``).
    """
    raise TypeError("the vault does not know this strategy.")


@exact.register
def _(strategy: OutputSums, data: UserData, bounds: Pair) -> Array:
    """``(B s, w sum e_i u_i^2)``."""
    if isinstance(data, Totals):  # of many rows, summed where they are
        u, squares = data.check(strategy.tally, bounds, 2).T
    else:
        u = clip_outputs(data, len(strategy.index), bounds)
        squares = u * u
    sums = _through_matrix(strategy, u)
    if strategy.energy_weight == 0:
        return sums
    energy = strategy.energy_weight * float(np.dot(strategy.energy_shares, squares))
    return np.append(sums, energy)


@exact.register(ClassSums)
@exact.register(ClassGroupSums)
def _(strategy: ClassSums | ClassGroupSums, data: UserData, bounds: Pair) -> Array:
    """``B s`` of every class. ``data``: places of labels among the classes, or other numbers."""
    if isinstance(data, Totals):
        each = [*data.check(strategy.tally, bounds, strategy.classes).T]
    else:
        codes = check_outputs(data, strategy.rows)
        each = [np.where(codes == place, 1.0, -1.0) for place in range(strategy.classes)]
    return np.concatenate([_through_matrix(strategy, u) for u in each])


def _through_matrix(strategy: OutputSums, sums: Array) -> Array:
    """``B s``, from what every row of ``index`` holds, or all rows that it stands for."""
    inputs = strategy.matrix.shape[1]
    with one_thread():  # the same bits, whatever the number of threads
        each = np.bincount(strategy.index, strategy.row_weights * sums, minlength=inputs)
        return np.asarray(strategy.matrix @ each)


@exact.register
def _(strategy: JointSums, data: UserData, bounds: tuple[Pair, ...]) -> Array:
    """What every part measures of its outcome, times its factor. ``data``: one column per outcome; with
    private inputs (X, columns), and whose records they are where people are protected."""
    each = zip(strategy.factors, strategy.parts, _per_outcome(data, strategy), bounds, strict=True)
    return np.concatenate([a * exact(part, own, pair) for a, part, own, pair in each])


def _per_outcome(data: UserData, strategy: JointSums) -> list[object]:
    """What each part is measured from."""
    if isinstance(data, AllTotals):
        return [*data.each]
    if not isinstance(data, tuple):
        return [*check_output_columns(data, strategy.rows, len(strategy.parts)).T]
    inputs, outcomes, *whose = data
    columns = check_output_columns(outcomes, len(inputs), len(strategy.parts))
    return [(inputs, column, *whose) for column in columns.T]


@exact.register
def _(strategy: BinSums, data: UserData, bounds: Pair) -> Array:
    """The sum of the outputs over every bin."""
    u = clip_outputs(data, strategy.rows, bounds)
    return np.bincount(strategy.index, u, minlength=strategy.size).astype(float)


@exact.register
def _(strategy: Bins, data: UserData, bounds: Pair) -> Array:
    """``(B counts, B sums of u, w sum u^2)``, or B counts of every class."""
    return _over_bins(strategy, data, bounds, lambda u: (np.ones(len(u)), u))


@exact.register
def _(strategy: HalvedBins, data: UserData, bounds: Pair) -> Array:
    """``(B sums of (1 + u) / 2, B sums of (1 - u) / 2, w sum u^2)``, or B counts of every class."""
    return _over_bins(strategy, data, bounds, lambda u: (0.5 + 0.5 * u, 0.5 - 0.5 * u))


@exact.register
def _(strategy: Features, data: UserData, bounds: Pair) -> Array:
    """The Gram matrix of the features, their sums times u, or of every class, and ``w sum u^2``."""
    inputs, u, weights = _records(strategy, data, bounds)
    places = (inputs - strategy.low) / (strategy.high - strategy.low)
    phi = unit_features(places, strategy.lengthscale, strategy.inducing, strategy.matrix)
    counted = phi if weights is None else phi * weights[:, None]
    values = _values(strategy, u, lambda u: (u,), shares_about_even)
    sums = [counted.T @ each for each in values]
    parts = [strategy.gram_weight * pack_symmetric(phi.T @ counted), *sums]
    return _with_energy(strategy, parts, u, weights)


def _over_bins(
    bins: Bins, data: UserData, bounds: Pair, number: Callable[[Array], tuple[Array, Array]]
) -> Array:
    """Sums over bins of what a record's output adds; inputs are projected onto the domain.
    ``number``: what that is of a number."""
    inputs, u, weights = _records(bins, data, bounds)
    index = bins.of(inputs)
    values = _values(bins, u, number, shares_of_each)
    counted = values if weights is None else (each * weights for each in values)
    parts = [bins.matrix @ np.bincount(index, each, minlength=bins.count) for each in counted]
    return _with_energy(bins, parts, u, weights)


def _records(
    strategy: Bins | Features, data: UserData, bounds: Pair
) -> tuple[Array, Array, Array | None]:
    """Inputs within the domain, outputs in [-1, 1] or places of labels among the classes, and what records
    count by: their own weights, and one over the number of records of their person."""
    X, y, *more = data
    inputs = clip_inputs(X, strategy.low, strategy.high)
    whose = more[: int(strategy.whole_people)]
    if len(more) != int(strategy.whole_people) + int(strategy.weighted):
        raise ValueError("groups and weights go with a measurement of them, and with no other.")
    own = check_private_weights(more[-1], len(inputs)) if strategy.weighted else None
    if not whose:
        u = _outcomes(strategy, y, strategy.rows, bounds)
        if len(inputs) != len(u):
            raise ValueError("X and y must have one row for each record.")
        return inputs, u, own
    u = _outcomes(strategy, y, len(inputs), bounds)
    people = person_ids(whose[0], len(inputs))
    if people is None or int(people.max(initial=-1)) + 1 != strategy.rows:
        raise ValueError("groups must name as many people as were planned for.")
    kept, weights = shares(people, strategy.most_records)
    return inputs[kept], u[kept], weights if own is None else weights * own[kept]


def _outcomes(strategy: Bins | Features, y: Column, rows: int, bounds: Pair) -> Array:
    if strategy.classes > 1:
        return check_outputs(y, rows)
    return clip_outputs(y, rows, bounds)


def _values(
    strategy: Bins | Features,
    outcomes: Array,
    number: Callable[[Array], Iterable[Array]],
    label: Callable[[Array, int], Iterable[Array]],
) -> Iterable[Array]:
    """What every record adds to each block of sums, of a number or of a label of several classes."""
    return number(outcomes) if strategy.classes == 1 else label(outcomes, strategy.classes)


def _with_energy(
    strategy: Bins | Features, parts: list[Array], u: Array, weights: Array | None
) -> Array:
    """The numbers so far, and the sum of squared outputs where that is measured too."""
    if strategy.energy_weight > 0:
        squares = float(np.dot(u, u if weights is None else u * weights))
        parts.append(np.array([strategy.energy_weight * squares]))
    return np.concatenate(parts)


def seal_outcome(
    y: Any,
    classes: Sequence[Any] | None,
    rows: int,
    inputs: Any = None,
    people: Integers | None = None,
) -> Sealed:
    """What ``measure`` takes of one outcome: its column, or (inputs, column), or these with whose
    records they are.

    Parameters
    ----------
    y : column
        The private values.
    classes : sequence or None
        The declared classes; None where the outcome is a number.
    rows : int
        How many rows the column must have.
    inputs : Sealed, optional
        The private inputs, where inputs are private too.
    people : array, optional
        (rows,), whose records they are, where people's records are protected.

    """
    return _seal(_check_outcome(y, classes, rows), rows, inputs, people)


def seal_outcomes(
    outcomes: Sequence[Any],
    classes: Sequence[Sequence[Any] | None],
    rows: int,
    inputs: UserData = None,
    people: Integers | None = None,
) -> Sealed:
    """The same of one or several outcomes, one private column each, every one read separately."""
    if len(classes) == 1:
        return seal_outcome(outcomes[0], classes[0], rows, inputs, people)
    pairs = zip(outcomes, classes, strict=True)
    columns = np.column_stack([_check_outcome(y, own, rows) for y, own in pairs])
    return _seal(columns, rows, inputs, people)


def seal_columns(
    y: Any, count: int, rows: int, inputs: Any = None, people: Integers | None = None
) -> Sealed:
    """The same of a table of several private numbers."""
    return _seal(check_output_columns(y, rows, count), rows, inputs, people)


def _check_outcome(y: UserData, classes: Sequence[Any] | None, rows: int) -> Array:
    return check_outputs(y, rows) if classes is None else values_of(y, classes, rows)


def _seal(values: Array, rows: int, inputs: Table, people: Integers | None) -> Sealed:
    if inputs is None:
        return Sealed(values, rows)
    whose = () if people is None else (people,)
    return Sealed((unseal(inputs), values, *whose), rows)
