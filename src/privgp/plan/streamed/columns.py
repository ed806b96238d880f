"""What is measured of a row as a function of its inputs alone, and the sums that a plan needs of
it. With inducing inputs Z the column of a row at x is ``b(x) = S k(Z, x)``, possibly divided by its
norm; or one 1 among zeros, for the group of the inducing input that is nearest to x. A matrix B of all
columns is never formed: one pass over chunks of rows adds up what it takes to calibrate the noise and
to describe the measurement. Proof: docs/proofs/inducing.md."""

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from operator import add
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from sklearn.gaussian_process.kernels import Kernel

from privgp.engine.local import MOST_TERMS, Engine, Lattice, Threads
from privgp.gp.kernels.evaluate import check_kernel, evaluate, variance
from privgp.gp.measurement import Functionals
from privgp.gp.rounding import UNIT_ROUNDOFF, rounding
from privgp.gp.smoothers import stable_cholesky
from privgp.plan.inputs.rows import LARGEST, Chunk, Rows, block_number, mark_text, sum_blocks
from privgp.plan.strategy import NOT_TOGETHER, SHARED_ENERGY_WEIGHT
from privgp.privacy.noise import GAUSSIAN, LAPLACE
from privgp.privacy.sensitivity import (
    ENUMERATED_ROWS,
    LARGEST_FACTOR,
    absolute_sums,
    column_norms,
    person_norms,
    square_change,
)
from privgp.types import Array, Integers

# Columns of unit norm, except for rows so far from all inducing inputs that they say little of them.
LEAST_NORM = 0.1
RESIDUAL_ROWS = 2048  # sampled, for what the inducing inputs leave out


@dataclass(frozen=True)
class Totals:
    """Sums over rows. ``largest``: an upper bound of how far a person's columns reach together,
    ``worst``: where that of one reaches; ``longest``: the rows of the largest chunk;
    ``mark``: of the rows, by which they are told from others;
    ``absolute``: sum of |b|, (measured,); ``gram``: of b b^T; ``cross``: of b k(Z, x)^T, (measured,
    nodes); ``kernel_gram``: of k(Z, x) k(Z, x)^T; and the last three with every row counted by its share
    in a person's rows, which are the same where every row is a person."""

    rows: int
    persons: int
    mark: str
    longest: int
    largest: float
    worst: Array
    absolute: Array
    gram: Array
    cross: Array
    kernel_gram: Array
    shared_gram: Array
    shared_cross: Array


@dataclass
class Adding:
    """Totals on their way: ``sums`` as integers on lattices, by name; ``place``: of the worst."""

    rows: int
    persons: int
    chunks: int
    mark: int
    longest: int
    largest: float
    place: int
    worst: Array
    sums: dict[str, Integers]

    def __add__(self, other: "Adding") -> "Adding":
        """Whichever way round: equal norms are told apart by their place. Takes over the sums."""
        for name, added in other.sums.items():
            self.sums[name] += added
        mine, theirs = (-self.largest, self.place), (-other.largest, other.place)
        first = self if mine < theirs else other
        return Adding(
            self.rows + other.rows,
            self.persons + other.persons,
            self.chunks + other.chunks,
            self.mark + other.mark,
            max(self.longest, other.longest),
            first.largest,
            first.place,
            first.worst,
            self.sums,
        )


class RowColumns:
    """What is measured of a row as a function of its inputs, whatever that is."""

    law: ClassVar[str]

    @property
    def sum_count(self) -> int:
        """How many sums are measured."""
        raise NotImplementedError

    def check(self) -> None:
        """Refuse parts that do not belong together, as only a file can have them."""
        raise NotImplementedError

    @property
    def at_nodes(self) -> Array:
        """The columns of rows at the places that carry the function, (measured, places)."""
        raise NotImplementedError

    def lattice(self, name: str) -> Lattice:
        """The lattice on which a sum over rows is added up."""
        raise NotImplementedError

    def chunk(self, chunk: Chunk, *, whole: bool, change: float) -> tuple[Any, Array, Adding]:
        """The columns of a chunk's rows, their shares in the energy, and what they add to the totals:
        to all of them, or to those alone that a strategy is made of."""
        raise NotImplementedError

    def functionals(self, totals: Totals, seen: Array) -> Functionals:
        """What the sums over all rows tell of the function; ``seen``: a public sample of the rows."""
        raise NotImplementedError

    def totals(
        self, rows: Rows, engine: Engine | None = None, *, change: float = 2.0, watch: object = None
    ) -> Totals:
        """One pass over all rows."""
        engine = engine or Threads()
        blocks = rows.parts(block_number(rows.count, engine))
        return self.join_totals(sum_blocks(_Pass(self, change), add, blocks, engine, watch))

    def join_totals(self, added: Adding) -> Totals:
        """The sums as numbers; those that were not added up are empty."""
        if added.chunks > MOST_TERMS:
            raise ValueError("there are too many rows to add up.")
        found = {name: self.lattice(name).join(part) for name, part in added.sums.items()}
        empty = np.zeros((0, 0))
        gram, cross = found.get("gram", empty), found.get("cross", empty)
        return Totals(
            added.rows,
            added.persons,
            mark_text(added.mark),
            added.longest,
            added.largest,
            added.worst,
            found["absolute"],
            gram,
            cross,
            found.get("kernel_gram", empty),
            found.get("shared_gram", gram),
            found.get("shared_cross", cross),
        )


@dataclass(frozen=True)
class Columns(RowColumns):
    """``b(x) = S k(Z, x)``, divided by ``max(|b|, LEAST_NORM)`` if ``unit``; ``matrix``: S."""

    law: ClassVar[str] = GAUSSIAN
    kernel: Kernel
    nodes: Array
    matrix: Array
    unit: bool

    @property
    def sum_count(self) -> int:
        return len(self.matrix)

    def check(self) -> None:
        if not self.fits():
            raise ValueError(NOT_TOGETHER)
        check_kernel(self.kernel, self.nodes.shape[1])

    def fits(self) -> bool:
        """Whether its parts belong together; only a file can have others."""
        return self.nodes.ndim == 2 and self.matrix.shape == (self.sum_count, len(self.nodes))

    @property
    def at_nodes(self) -> Array:
        """The columns of rows at the inducing inputs, (measured, nodes)."""
        return self.at(self.nodes)[0]

    def at(self, X: Array) -> tuple[Array, Array]:
        """Columns (measured, rows) and kernel values k(Z, X), (nodes, rows)."""
        K = evaluate(self.kernel, self.nodes, X)
        B = self.matrix @ K
        if self.unit:
            B /= np.maximum(np.sqrt(np.einsum("ij,ij->j", B, B)), LEAST_NORM)
        return B, K

    @cached_property
    def most(self) -> float:
        """More than any entry of a column."""
        if self.unit:
            return 2.0
        return 2.0 * variance(self.kernel) * float(np.abs(self.matrix).sum(axis=1).max())

    def reach(self, B: Array) -> Array:
        """Upper bounds of how far each column reaches, in the norm of the noise."""
        return column_norms(B)

    def weigh(self, B: Array, people: Integers, change: float) -> tuple[Array, Array]:
        """The weight of every person's columns, so that they reach to about 1 together, and how far
        they then reach, (people,)."""
        norms = person_norms(B, np.arange(B.shape[1]), people)
        weights = np.minimum(1.0, column_reach(change) / np.maximum(norms, 1e-300))
        alone = np.bincount(people, column_norms(B))
        # what is multiplied are rounded products
        return weights, weights * (norms + 4.0 * UNIT_ROUNDOFF * alone) * (1 + 4.0 * UNIT_ROUNDOFF)

    def lattice(self, name: str) -> Lattice:
        """The lattice on which a sum over rows is added up."""
        b, k = self.most, 2.0 * variance(self.kernel)
        each = {"absolute": b, "gram": b * b, "cross": b * k, "kernel_gram": k * k}
        return Lattice.for_size(LARGEST * each[name.removeprefix("shared_")])

    def functionals(self, totals: Totals, seen: Array) -> Functionals:
        return functionals_of_columns(self, totals, residual_gram(self, seen, totals))

    def chunk(self, chunk: Chunk, *, whole: bool, change: float) -> tuple[Array, Array, Adding]:
        """The columns of a chunk's rows, their shares in the energy, and what they add to the totals:
        to all of them, or to those alone that a strategy is made of."""
        B, K = self.at(chunk.inputs)
        reached, shares, persons = self.reach(B), np.ones(B.shape[1]), B.shape[1]
        if not np.all(reached <= LARGEST_FACTOR):
            raise ValueError("the measurement of some rows is not finite: choose other units.")
        worst = int(np.argmax(reached))
        furthest = B[:, worst].copy()
        if chunk.people is not None:
            people = np.unique(chunk.people, return_inverse=True)[1]
            weights, reached = self.weigh(B, people, change)
            B *= weights[people]
            persons = len(weights)
            shares = 1.0 / np.bincount(people)[people]
            worst = int(np.argmax(reached))
            furthest = furthest_signs(B[:, people == worst])
        parts = {"absolute": np.abs(B).sum(axis=1)}
        if whole:
            parts |= {"gram": B @ B.T, "cross": B @ K.T}
            if chunk.people is None:
                parts |= {"kernel_gram": K @ K.T}
            else:
                parts |= {"kernel_gram": (K * shares) @ K.T}
                parts |= {"shared_gram": (B * shares) @ B.T, "shared_cross": (B * shares) @ K.T}
        return (
            B,
            shares,
            Adding(
                rows=B.shape[1],
                persons=persons,
                chunks=1,
                mark=chunk.mark,
                longest=B.shape[1],
                largest=float(reached[worst]),
                place=chunk.place,
                worst=furthest,
                sums={name: self.lattice(name).split(part) for name, part in parts.items()},
            ),
        )


@dataclass(frozen=True)
class GroupColumns(Columns):
    """1 for the group of the inducing input with the largest kernel value at x, 0 for all others:
    ``matrix``, (groups, nodes), has a single 1 in every column."""

    law: ClassVar[str] = LAPLACE

    def fits(self) -> bool:
        ones = np.isin(self.matrix, (0.0, 1.0)).all() and np.all(self.matrix.sum(axis=0) == 1.0)
        return super().fits() and bool(ones)

    def at(self, X: Array) -> tuple[Array, Array]:
        K = evaluate(self.kernel, self.nodes, X)
        return np.ascontiguousarray(self.matrix[:, np.argmax(K, axis=0)]), K

    @property
    def most(self) -> float:
        return 2.0

    def reach(self, B: Array) -> Array:
        return absolute_sums(B)

    def weigh(self, B: Array, people: Integers, change: float) -> tuple[Array, Array]:
        """K rows of a person count 1/k each."""
        weights = 1.0 / np.bincount(people)
        reached = np.bincount(people, absolute_sums(B)) * weights
        return weights, reached * (1.0 + rounding(B.shape[1] + 4))


@dataclass(frozen=True, repr=False)
class _Pass:
    """What a chunk adds to the totals."""

    columns: RowColumns
    change: float

    def __call__(self, chunk: Chunk) -> Adding:
        return self.columns.chunk(chunk, whole=True, change=self.change)[2]


def person_weight(change: float) -> float:
    """The weight of the energy beside the columns of people with several rows."""
    return 0.5 * SHARED_ENERGY_WEIGHT * change / square_change(change)


def column_reach(change: float) -> float:
    """How far a person's columns may reach together, so that with the energy it is 1."""
    return float(np.sqrt(1.0 - (person_weight(change) * square_change(change) / change) ** 2))


def furthest_signs(B: Array) -> Array:
    """Where one person's columns reach with the best signs, or with good ones for many, (measured,)."""
    if B.shape[1] <= ENUMERATED_ROWS:
        signs = np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=B.shape[1] - 1)])
        reached = B @ signs.T
        return np.asarray(reached[:, int(np.argmax(np.square(reached).sum(axis=0)))])
    reached = B[:, 0].copy()
    for column in B.T[1:]:
        reached += column if reached @ column >= 0.0 else -column
    return np.asarray(reached)


def functionals_of_columns(columns: Columns, totals: Totals, residual_gram: Array) -> Functionals:
    """The measured numbers in terms of the function at Z: rows by ``J(x) = k(Z, Z)^-1 k(Z, x)``.
    ``residual_gram``: the covariance of the measured sums that J leaves out, per k(x, x)."""
    L = stable_cholesky(evaluate(columns.kernel, columns.nodes))
    weights = cho_solve((L, True), totals.cross.T, check_finite=False).T
    shared = cho_solve((L, True), totals.shared_cross.T, check_finite=False)
    half = cho_solve((L, True), totals.kernel_gram, check_finite=False)
    energy_gram = cho_solve((L, True), half.T, check_finite=False)
    return Functionals(
        nodes=columns.nodes,
        weights=weights,
        noise_gram=totals.gram,
        residual_gram=residual_gram,
        energy_total=float(totals.persons),
        energy_gram=0.5 * (energy_gram + energy_gram.T),
        energy_cross=shared,
        energy_noise_gram=totals.shared_gram,
    )


def residual_gram(columns: Columns, seen: Array, totals: Totals) -> Array:
    """``B (k(X, X) - q(X, X)) B^T / k(x, x)``: what sums over the rows hold beyond the function at
    Z, estimated from sampled rows, pairs of different rows and rows with themselves apart."""
    prior, X, rows = variance(columns.kernel), spread_out(seen, RESIDUAL_ROWS), totals.rows
    B, K = columns.at(X)
    if totals.persons < rows:  # people's rows weigh less, on average by this much
        squares = np.square(B).sum() * (rows / len(X))
        B *= np.sqrt(min(1.0, float(np.trace(totals.gram)) / max(squares, 1e-300)))
    L = stable_cholesky(evaluate(columns.kernel, columns.nodes))
    half = solve_triangular(L, K, lower=True, check_finite=False)
    own = np.maximum(prior - np.square(half).sum(axis=0), 0.0)
    alone = (B * (own * rows / len(X))) @ B.T / prior
    if len(X) < 2:
        return np.asarray(alone)
    left = evaluate(columns.kernel, X) - half.T @ half
    np.fill_diagonal(left, 0.0)
    pairs = (rows / len(X)) * ((rows - 1) / (len(X) - 1)) / prior
    gram = alone + pairs * (B @ left @ B.T)
    values, vectors = np.linalg.eigh(0.5 * (gram + gram.T))
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def spread_out(seen: Array, most: int) -> Array:
    """At most ``most`` of the sampled rows, evenly spread over the sample."""
    places = np.linspace(0, len(seen) - 1, most).astype(np.int64)
    return seen if len(seen) <= most else seen[places]
