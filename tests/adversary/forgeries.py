"""Forged values of files, and how far one person really moves what a forged strategy measures.

A forgery changes some numbers of a frozen value as somebody would who wants the stated bound to be
untrue: pairs whose product is ordinary while each is extreme, subnormal and huge numbers, numbers
beside a limit, other maps of rows to inputs and people, missing and doubled rows.

Distances are found without the code under test: products are formed as fractions, divided by one
power of two, and searched over the neighbours that reach furthest.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import singledispatch
from itertools import product
from typing import Any

import mpmath
import numpy as np

from privgp.gp.features import unit_features
from privgp.plan.bins.bins import Bins, HalvedBins
from privgp.plan.features import Features
from privgp.plan.labels import OfEveryClass
from privgp.plan.strategy import OutputSums
from privgp.plan.together import JointSums
from privgp.privacy.noise import PURE

Path = tuple[Any, ...]
ROUNDING = 1e-9  # by which a distance may exceed the stated one
POWERS = (1, 3, 6, 12, 40, 100, 140, 155, 165, 170, 250, 300)  # of ten, by which a pair is forged
EXTREMES = (
    *(0.0, 5e-324, 2.2e-308, 1e-170, 1e-155, 1e-131, 1e-9, 0.999, 1.0, 1.0 + 1e-9, 2.0, 1e9),
    *(1e99, 1e101, 1e131, 1e155, 1e176, 1.7e308, -1.0, -1e-170, math.nan, math.inf),
)
MOST_WAYS = 2000
MOST_LOG = 400.0  # of noise over a distance, to the base 2: more hides no less
COUNTS = (-1, 0, 1, 2, 7, 1000, 2**31, 2**53, 10**17, 2**63 - 1)


# ----- forging -----


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """All numbers and arrays of numbers in a frozen value, with the way to them."""
    if dataclasses.is_dataclass(value):
        for each in dataclasses.fields(value):
            yield from leaves(getattr(value, each.name), (*path, each.name))
    elif isinstance(value, tuple):
        for place, each in enumerate(value):
            yield from leaves(each, (*path, place))
    elif isinstance(value, int | float | np.ndarray) and not isinstance(value, bool):
        yield path, value


def put(value: Any, path: Path, new: Any) -> Any:
    """The same value with another one at the end of the way."""
    if not path:
        return new
    name, *rest = path
    if isinstance(value, tuple):
        return tuple(put(v, tuple(rest), new) if i == name else v for i, v in enumerate(value))
    inner = put(getattr(value, name), tuple(rest), new)
    return dataclasses.replace(value, **{name: inner})


def forge(value: Any, rng: np.random.Generator, skip: tuple[str, ...] = ()) -> Any:
    """The value with a pair of its numbers forged, or one, or several of them."""
    found = [each for each in leaves(value) if not {*each[0]} & {*skip}]
    real = [each for each in found if not _is_whole(each[1])]
    kind = rng.integers(5)
    if kind <= 2 and len(real) >= 2:
        one, two = (real[i] for i in rng.choice(len(real), 2, replace=False))
        power = int(rng.choice(POWERS))
        other = power + int(rng.integers(-3, 9))
        if rng.integers(2):
            power, other = -other, -power
        value = put(value, one[0], _scaled(one[1], -power, rng))
        return put(value, two[0], _scaled(two[1], other, rng))
    for _ in range(1 if kind == 3 else int(rng.integers(2, 4))):
        path, old = found[rng.integers(len(found))]
        value = put(value, path, _other(old, rng))
    return value


def _is_whole(value: Any) -> bool:
    return np.asarray(value).dtype.kind in "iu"


def _scaled(value: Any, power: int, rng: np.random.Generator) -> Any:
    """A number times a power of ten, or a part of an array of them."""
    with np.errstate(all="ignore"):
        factor = np.float64(10.0) ** power
        if not isinstance(value, np.ndarray):
            return float(value * factor)
        new = value.copy()
        new[_part(new, rng)] *= factor
    return new


def _part(values: np.ndarray, rng: np.random.Generator) -> Any:
    """An entry, a row or a column, or all."""
    places = tuple(int(rng.integers(n)) if n else slice(None) for n in values.shape)
    held = [place if rng.integers(3) else slice(None) for place in places]
    return tuple(held) if rng.integers(4) else ...


def _other(value: Any, rng: np.random.Generator) -> Any:
    if not isinstance(value, np.ndarray):
        if isinstance(value, int):
            return int(rng.choice(COUNTS)) if rng.integers(2) else value + int(rng.integers(-2, 3))
        return float(rng.choice(EXTREMES))
    new = value.copy()
    if (
        rng.integers(4) == 0 and new.ndim and len(new)
    ):  # rows that are missing, doubled, or in another order
        places = np.arange(len(new))
        ways = (places[:-1], np.append(places, 0), rng.permutation(places), np.zeros_like(places))
        return new[ways[rng.integers(len(ways))]]
    if _is_whole(new):
        new[_part(new, rng)] = rng.integers(-1, int(new.max(initial=0)) + 3)
    else:
        new[_part(new, rng)] = float(rng.choice(EXTREMES))
    return new


# ----- distances -----


@dataclasses.dataclass(frozen=True)
class Exact:
    """Numbers times ``2**exponent``: a distance, or an array."""

    values: Any
    exponent: int

    @property
    def log(self) -> float:
        """The logarithm to the base 2 of a distance."""
        return math.log2(self.values) + self.exponent if self.values > 0.0 else -math.inf


def together(*arrays: Any) -> tuple[list[np.ndarray], int]:
    """Arrays of fractions as floats near 1, all divided by one power of two."""
    largest = max((abs(each) for array in arrays for each in np.ravel(array)), default=Fraction(0))
    exponent = 0
    if largest:
        exponent = largest.numerator.bit_length() - largest.denominator.bit_length()
    power = Fraction(2) ** exponent
    return [
        np.array(np.vectorize(lambda f: float(f / power), otypes=[float])(a)) for a in arrays
    ], (exponent)


def fractions(values: Any) -> np.ndarray:
    return np.vectorize(Fraction, otypes=[object])(np.asarray(values, dtype=float))


def moves(change: float) -> tuple[np.ndarray, np.ndarray]:
    """How far an output that was at an end may go, and its square with it, (moves,) each: as far as
    it may, less, or not at all."""
    steps = np.array([change, change / 2, 0.0, *(d for d in (5**0.5 - 1.0, 1.0) if d <= change)])
    squares = steps * (2.0 - steps)
    return np.append(steps, -steps), np.append(squares, squares)


def distance(strategy: Any) -> Exact:
    """How far one person moves the exact numbers."""
    found = reach(strategy)
    return Exact(float(np.max(found.values)), found.exponent)


@singledispatch
def reach(strategy: Any) -> Exact:
    """The same of each person, (people,), or (1,) where all are alike: found by search."""
    raise TypeError(type(strategy))


def order_of(strategy: Any) -> int:
    return 1 if strategy.law in PURE else 2


MOST_ROWS = 12  # of one person that are moved


def rows_of(strategy: Any) -> list[np.ndarray]:
    """The rows of every person; of a tally, of people with all of their rows in one cell."""
    if strategy.tally is not None:
        each = np.minimum(strategy.tally.each, MOST_ROWS)
        return [np.repeat(cell, count) for cell, count in enumerate(each.tolist())]
    people = np.arange(strategy.rows) if strategy.people is None else strategy.people
    return [np.flatnonzero(people == who) for who in np.unique(people)]


def columns_of(strategy: Any) -> np.ndarray:
    """What every output is multiplied by, as fractions, (measured, rows)."""
    return fractions(strategy.matrix)[:, strategy.index] * fractions(strategy.row_weights)


@reach.register
def _(strategy: OutputSums) -> Exact:
    E = fractions(strategy.energy_shares) * Fraction(strategy.energy_weight)
    (V, E), exponent = together(columns_of(strategy), E)
    return Exact(_reached(strategy, V, E, rows_of(strategy)), exponent)


def _reached(strategy: Any, V: Any, E: Any, people: list[np.ndarray]) -> list[float]:
    """How far each person reaches whose outputs are multiplied by V, and their squares by E."""
    far, energy = moves(strategy.change)
    reached = []
    for rows in people:
        ways = _ways(len(far), len(rows))
        numbers = np.vstack([V[:, rows] @ far[ways].T, E[rows] @ energy[ways].T])
        reached.append(float(np.linalg.norm(numbers, order_of(strategy), axis=0).max()))
    return reached


def distance_of_points(strategy: OutputSums) -> Exact:
    """How far one point moves the numbers when it leaves one bin for another: both counts change, each by
    half of the stated change, from wherever they are."""
    E = fractions(strategy.energy_shares) * Fraction(strategy.energy_weight)
    (V, E), exponent = together(columns_of(strategy), E)
    far = strategy.change / 2.0
    squares = [far * (far + 2.0 * u) for u in (-1.0, far / -2.0, 1.0 - far)]
    most = 0.0
    for one, other in product(range(V.shape[1]), repeat=2):
        sums = far * (V[:, one] - V[:, other])
        for rise, fall in product(squares, repeat=2):
            numbers = np.append(sums, E[one] * rise - E[other] * fall)
            most = (
                max(most, float(np.linalg.norm(numbers, order_of(strategy))))
                if one != other
                else most
            )
    return Exact(most, exponent)


def _ways(choices: int, rows: int) -> np.ndarray:
    """The choices of several rows, (ways, rows): all of them, or some of very many."""
    if choices**rows <= MOST_WAYS:
        return np.array(list(product(range(choices), repeat=rows)))
    some = np.random.default_rng(0).integers(choices, size=(MOST_WAYS, rows))
    return np.vstack([some, np.repeat(np.arange(choices)[:, None], rows, axis=1)])


@reach.register
def _(strategy: OfEveryClass) -> Exact:
    """Every label may become any other, or one that was not declared."""
    (V,), exponent = together(columns_of(strategy))
    shown = np.vstack([2.0 * np.eye(3) - 1.0, -np.ones(3)])  # further classes are like these
    changes = np.array([shown[a] - shown[b] for a in range(4) for b in range(4) if a != b])
    reached = []
    for rows in rows_of(strategy):
        ways = changes[_ways(len(changes), len(rows))]
        numbers = np.einsum("mr,wrc->wmc", V[:, rows], ways).reshape(len(ways), -1)
        reached.append(float(np.linalg.norm(numbers, order_of(strategy), axis=1).max()))
    return Exact(reached, exponent)


@reach.register
def _(strategy: JointSums) -> Exact:
    """All outcomes of a person change, each in the way that moves it furthest."""
    parts, factors = [reach(part) for part in strategy.parts], map(math.frexp, strategy.factors)
    own = [
        (a * np.array(r.values), e + r.exponent) for r, (a, e) in zip(parts, factors, strict=True)
    ]
    top = max(exponent for _, exponent in own)
    reached = [np.ldexp(values, exponent - top) for values, exponent in own]
    return Exact(np.linalg.norm(reached, order_of(strategy), axis=0), top)


def _labels(classes: int) -> np.ndarray:
    """What some labels add, each a row: further classes are like these. The last is of no class."""
    return np.vstack([np.eye(classes)[:3], np.full(classes, 1.0 / classes)])


def _bins(strategy: Bins, parts: Any) -> Exact:
    """A record in any bin with any output becomes another."""
    B = fractions(strategy.matrix)
    (B, w), exponent = together(B, fractions([strategy.energy_weight]))
    outputs = [(parts(u), u) for u in (-1.0, -0.5, 0.0, 0.6, 1.0)]
    if strategy.classes > 1:
        outputs = [(v, place) for place, v in enumerate(_labels(strategy.classes))]
    added = [[*(B[:, j] * f for f in v), w * u * u] for j in range(B.shape[1]) for v, u in outputs]
    flat = np.array([np.concatenate(list(each)) for each in added], dtype=float)
    apart = flat[:, None, :] - flat[None, :, :]
    return Exact([float(np.linalg.norm(apart, order_of(strategy), axis=2).max())], exponent)


@reach.register
def _(strategy: Bins) -> Exact:
    return _bins(strategy, lambda u: (1.0, u))


@reach.register
def _(strategy: HalvedBins) -> Exact:
    return _bins(strategy, lambda u: (0.5 + 0.5 * u, 0.5 - 0.5 * u))


@reach.register
def _(strategy: Features) -> Exact:
    """The features as the vault computes them, of places all over the box and at its corners."""
    inputs = len(strategy.low)
    places = np.random.default_rng(0).uniform(size=(12, inputs))
    places = np.vstack([places, np.zeros(inputs), np.ones(inputs)])
    with np.errstate(all="ignore"):
        phi = unit_features(places, strategy.lengthscale, strategy.inducing, strategy.matrix)
    assert np.all(np.isfinite(phi))
    exponent = max(0, math.frexp(strategy.gram_weight)[1])
    scale = math.ldexp(1.0, -exponent)
    pairs = np.triu_indices(phi.shape[1])
    twice = np.where(pairs[0] == pairs[1], 1.0, math.sqrt(2.0))
    gram = strategy.gram_weight * scale * twice * phi[:, pairs[0]] * phi[:, pairs[1]]
    outcomes, k = np.array([[-1.0], [0.0], [1.0]]), strategy.classes
    if k > 1:
        outcomes = (_labels(k) - 1.0 / k) / math.sqrt(1.0 - 1.0 / k)
    flat = np.array([
        np.concatenate([g, scale * np.kron(v, f), [scale * strategy.energy_weight * v[0] ** 2]])
        for g, f in zip(gram, phi, strict=True)
        for v in outcomes
    ])  # fmt: skip
    apart = flat[:, None, :] - flat[None, :, :]
    return Exact([float(np.linalg.norm(apart, axis=2).max())], exponent)


def in_stages(noises: Any) -> Any:
    """One noise that hides as much as noise in several stages, each of which may depend on those before."""
    if noises[0].pure:
        return dataclasses.replace(noises[0], scale=1.0 / sum(1.0 / each.scale for each in noises))
    return dataclasses.replace(
        noises[0], std=1.0 / math.hypot(*(1.0 / each.std for each in noises))
    )


def keeps(noise: Any, moved: Exact, epsilon: float, delta: float) -> bool:
    """Whether the noise that will be drawn hides this distance, by the law's own theorem."""
    log = min(math.log2(noise.scale) - moved.log, MOST_LOG)
    if noise.pure:
        return log >= -math.log2(epsilon) - ROUNDING
    with mpmath.workdps(30):
        c, e = mpmath.mpf(2) ** log, mpmath.mpf(epsilon)
        spent = mpmath.ncdf(0.5 / c - e * c) - mpmath.exp(e) * mpmath.ncdf(-0.5 / c - e * c)
        return bool(spent <= delta * (1.0 + 1e-6))
