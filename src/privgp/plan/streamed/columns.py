"""What is measured of a row as a function of its inputs alone, and the sums that a plan needs of
it. With inducing inputs Z the column of a row at x is ``b(x) = S k(Z, x)``, possibly divided by its
norm: a matrix B of all columns is never formed, one pass over blocks of rows adds up what it takes
to calibrate the noise and to describe the measurement. Proof: docs/proofs/inducing.md."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from scipy.linalg import cho_solve
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.functionals import Functionals
from privgp.gp.kernels.evaluate import check_kernel, evaluate
from privgp.gp.rounding import rounding
from privgp.gp.smoothers import stable_cholesky
from privgp.plan.inputs.rows import in_blocks
from privgp.plan.strategy import NOT_TOGETHER, Change, Sums, energy_weight
from privgp.privacy.noise import GAUSSIAN
from privgp.privacy.sensitivity import WHOLE, column_norms, single_row_sensitivity
from privgp.types import Array, later

# Columns of unit norm, but for rows so far from all inducing inputs that they say little of them.
LEAST_NORM = 0.1


@dataclass(frozen=True)
class Totals:
    """Sums over rows. ``largest``: an upper bound of all columns' norms, ``worst``: the column that
    has it; ``absolute``: sum of |b|, (measured,); ``gram``: of b b^T; ``cross``: of b k(Z, x)^T,
    (measured, nodes); ``kernel_gram``: of k(Z, x) k(Z, x)^T."""

    rows: int
    largest: float
    worst: Array
    absolute: Array
    gram: Array
    cross: Array
    kernel_gram: Array

    def __add__(self, other: Self) -> Self:
        return replace(
            self if self.largest >= other.largest else other,
            rows=self.rows + other.rows,
            absolute=self.absolute + other.absolute,
            gram=self.gram + other.gram,
            cross=self.cross + other.cross,
            kernel_gram=self.kernel_gram + other.kernel_gram,
        )


@dataclass(frozen=True)
class Columns:
    """``b(x) = S k(Z, x)``, divided by ``max(|b|, LEAST_NORM)`` if ``unit``; ``matrix``: S."""

    kernel: Kernel
    nodes: Array
    matrix: Array
    unit: bool

    def at(self, X: Array) -> tuple[Array, Array]:
        """Columns (measured, rows) and kernel values k(Z, X), (nodes, rows)."""
        K = evaluate(self.kernel, self.nodes, X)
        B = self.matrix @ K
        if self.unit:
            B /= np.maximum(np.sqrt(np.einsum("ij,ij->j", B, B)), LEAST_NORM)
        return B, K

    def block(self, X: Array) -> tuple[Array, Totals]:
        """The columns of a block of rows, and what they add to the totals."""
        B, K = self.at(X)
        norms = column_norms(B)
        if not np.all(np.isfinite(norms)):
            raise ValueError("the measurement of some rows is not finite: choose other units.")
        worst = int(np.argmax(norms))
        return B, Totals(
            rows=X.shape[0],
            largest=float(norms[worst]),
            worst=B[:, worst].copy(),
            absolute=np.abs(B).sum(axis=1),
            gram=B @ B.T,
            cross=B @ K.T,
            kernel_gram=K @ K.T,
        )

    def totals(self, blocks: Iterable[Array]) -> Totals:
        return total(in_blocks(lambda X: self.block(X)[1], blocks))


def total(parts: Iterable[Totals]) -> Totals:
    coming = iter(parts)
    first = next(coming, None)
    if first is None:
        raise ValueError("there are no rows.")
    return sum(coming, first)


@dataclass(frozen=True)
class StreamedSums(Sums):
    """``(sum b(x_i) u_i, w sum u_i^2)`` over rows never held together, each a person; see Totals."""

    law: ClassVar[str] = GAUSSIAN
    people: ClassVar[None] = None
    distinct_inputs: ClassVar[None] = None
    columns: Columns
    rows: int
    largest: float
    worst: Array
    absolute: Array
    energy_weight: float
    change: Change = later(WHOLE)

    def check(self) -> None:
        """Refuse parts that do not belong together, as only a file can have them."""
        columns, measured = self.columns, self.absolute.shape
        shape = (*measured, len(columns.nodes))
        fits = (
            columns.nodes.ndim == 2
            and (self.worst.shape, columns.matrix.shape) == (measured, shape)
            and self.rows >= 1
            and self.largest > 0.0
            and self.energy_weight >= 0.0
            and np.all(self.absolute >= 0.0)
        )
        if not fits:
            raise ValueError(NOT_TOGETHER)
        check_kernel(columns.kernel, columns.nodes.shape[1])

    @property
    def size(self) -> int:
        return len(self.absolute) + int(self.energy_weight > 0)

    @property
    def matrix(self) -> Array:
        """The columns of rows at the inducing inputs, (measured, nodes)."""
        return self.columns.at(self.columns.nodes)[0]

    def sensitivity(self) -> float:
        """How far one output in [-1, 1] can move the exact measurement."""
        return single_row_sensitivity(self.largest, self.energy_weight, self.change)

    def float_error(self) -> float:
        """Bound of the rounding error of the computed measurement: sums of ``rows`` products."""
        error = rounding(self.rows + 4)
        per_number = error * (1.0 + rounding(self.rows)) * self.absolute
        energy = error * self.energy_weight * self.rows
        return float(np.hypot(np.linalg.norm(per_number), energy)) * (1.0 + 1e-9)

    def furthest(self) -> tuple[Array, Array]:
        """Equal outputs but for the row with the largest column."""
        other = self.change - 1.0
        return self.with_energy(-self.worst, 1.0), self.with_energy(other * self.worst, other**2)


def streamed_strategy(
    columns: Columns, totals: Totals, *, energy: bool, change: float = WHOLE
) -> StreamedSums:
    """The energy is measured as far as it costs nothing, or little, beside columns of the largest
    norm."""
    weight = energy_weight(change) * totals.largest * (1.0 - 2.0**-50) if energy else 0.0
    of_rows = totals.rows, totals.largest, totals.worst, totals.absolute
    return StreamedSums(columns, *of_rows, weight, change)


def streamed_functionals(columns: Columns, totals: Totals, residual_gram: Array) -> Functionals:
    """The measured numbers in terms of the function at Z: rows by ``J(x) = k(Z, Z)^-1 k(Z, x)``.
    ``residual_gram``: the covariance of the measured sums that J leaves out, per k(x, x)."""
    L = stable_cholesky(evaluate(columns.kernel, columns.nodes))
    weights = cho_solve((L, True), totals.cross.T, check_finite=False).T
    half = cho_solve((L, True), totals.kernel_gram, check_finite=False)
    energy_gram = cho_solve((L, True), half.T, check_finite=False)
    return Functionals(
        nodes=columns.nodes,
        weights=weights,
        noise_gram=totals.gram,
        residual_gram=residual_gram,
        energy_total=float(totals.rows),
        energy_gram=0.5 * (energy_gram + energy_gram.T),
        energy_cross=weights.T,
        energy_noise_gram=totals.gram,
    )
