"""A Cholesky factor that grows at its end, and the noise of a function in its coordinates."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.blas import dtrsm, dtrsv
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.arithmetic import rounding
from privgp.gp.kernels.evaluate import diagonal, mean_variance
from privgp.gp.kernels.proved import values_by_differences
from privgp.types import Array

RUN = 64


def sum_error(length: int) -> float:
    """gamma: the relative error of a blocked sum of products of this length, with a few to spare."""
    return rounding(RUN + math.ceil(length / RUN) + 4)


def multiply_by_blocks(A: Array, B: Array) -> Array:
    """A B, (rows of A, columns of B), run by run.

    The relative error of an entry is at most ``sum_error`` of the inner length, times ``|A|
    |B|``.
    """
    out = np.zeros((A.shape[0], B.shape[1]))
    for start in range(0, A.shape[1], RUN):
        out += A[:, start : start + RUN] @ B[start : start + RUN]
    return out


def solve_by_blocks(lower: Array, right: Array) -> Array:
    """The solution X of ``lower X = right``, (rows, columns), by blocked forward substitution.

    Parameters
    ----------
    lower
        (rows, rows), lower triangular; what lies above the diagonal is not read.
    right
        (rows, columns).

    """
    out = np.array(right, dtype=np.float64)
    for start in range(0, len(lower), RUN):
        stop = min(start + RUN, len(lower))
        triangle = lower[start:stop, start:stop]
        out[start:stop] = solve_triangular(
            triangle, out[start:stop], lower=True, check_finite=False
        )
        out[stop:] -= lower[stop:, start:stop] @ out[start:stop]
    return out


def cholesky_by_blocks(matrix: Array) -> Array:
    """L with ``L L^T = matrix``, lower triangular, every sum blocked.

    Parameters
    ----------
    matrix
        (rows, rows), symmetric and positive definite.

    Raises
    ------
    numpy.linalg.LinAlgError
        It is not positive definite.

    """
    out = np.array(matrix, dtype=np.float64)
    for start in range(0, len(out), RUN):
        stop = min(start + RUN, len(out))
        corner = cholesky(out[start:stop, start:stop], lower=True, check_finite=False)
        out[start:stop, start:stop] = corner
        below = solve_triangular(corner, out[stop:, start:stop].T, lower=True, check_finite=False).T
        out[stop:, start:stop] = below
        out[stop:, stop:] -= below @ below.T
        out[start:stop, stop:] = 0.0
    return out


PANEL = 256
TOO_CLOSE = "these points cannot be distinguished in floating-point numbers: ask for fewer of them."
NUGGET = 1e-8  # of the variance, on the noise kernel's diagonal: near-duplicates do not break it


class GrowingFactor:
    """Lower triangular L in panels of 256 rows: appending moves no existing row.

    A panel is what stands left of its triangle, (256, rows above), and the triangle, in Fortran's
    order and with ones where nothing stands yet. One solve for one column reads L once, at the
    speed of the memory.
    """

    def __init__(self) -> None:
        self.size = 0
        self._panels: list[tuple[Array, Array]] = []

    def solve(self, right: Array) -> Array:
        """L^-1 right, (size, columns), by panels."""
        padded = np.zeros((len(self._panels) * PANEL, right.shape[1]))
        padded[: self.size] = right
        for number, (left, triangle) in enumerate(self._panels):
            at = number * PANEL
            part = padded[at : at + PANEL]
            part -= left @ padded[:at]
            if part.shape[1] == 1:
                part[:, 0] = dtrsv(triangle, part[:, 0], lower=1)
            else:  # as part^T = X^T triangle^T, whose order in memory is Fortran's
                part.T[...] = dtrsm(1.0, triangle, part.T, side=1, lower=1, trans_a=1)
        return padded[: self.size]

    def times(self, right: Array) -> Array:
        """L right, (size, columns), by panels."""
        padded = np.zeros((len(self._panels) * PANEL, right.shape[1]))
        padded[: self.size] = right
        parts = [
            left @ padded[: number * PANEL]
            + triangle @ padded[number * PANEL : (number + 1) * PANEL]
            for number, (left, triangle) in enumerate(self._panels)
        ]
        return np.vstack([*parts, padded[:0]])[: self.size]

    def append(self, rows: Array) -> None:
        """Add rows at the end. If it is cut short, L stays as it was.

        Parameters
        ----------
        rows
            (new, size + new), lower triangular in its last columns.

        """
        end = self.size + len(rows)
        for at in range(self.size, end):
            number, place = divmod(at, PANEL)
            above = number * PANEL
            if number == len(self._panels):
                self._panels.append((np.zeros((PANEL, above)), np.eye(PANEL, order="F")))
            left, triangle = self._panels[number]
            left[place] = rows[at - self.size, :above]
            triangle[place, : place + 1] = rows[at - self.size, above : at + 1]
        self.size = end


@dataclass(frozen=True)
class Extension:
    """New points in the coordinates of a function; nothing has been drawn for them yet.

    Attributes
    ----------
    points : (new, columns)
    lower : (new, old + new), rows of L
    rows : (new, inputs) of L^-1 k_* A, which measure the function there

    """

    points: Array
    lower: Array
    rows: Array


class Coordinates:
    """The coordinates ``L^-1 f(points)`` of a function ``f = k(., inputs) A s``.

    L L^T is the noise kernel at the points asked so far. Everything here is public.

    Parameters
    ----------
    kernel : kernel of the function and of the noise
    inputs : (inputs, columns), where the sums s of outputs are taken
    coefficients : A, (inputs, inputs)

    """

    def __init__(self, kernel: Kernel, inputs: Array, coefficients: Array) -> None:
        self.kernel, self.inputs, self.coefficients = kernel, inputs, coefficients
        self.factor = GrowingFactor()
        self.points = np.empty((0, inputs.shape[1]))
        self._rows = np.empty((0, coefficients.shape[1]))

    def propose(self, points: Array) -> Extension:
        """The rows that further points add. Changes nothing.

        Parameters
        ----------
        points
            (new, columns), none of them answered before.

        Raises
        ------
        ValueError
            Points are too close to each other or too far away for float64.

        """
        size = self.factor.size
        cross = np.empty((len(points), 0))
        if size:
            cross = self.factor.solve(values_by_differences(self.kernel, self.points, points)).T
        within = values_by_differences(self.kernel, points, points) - cross @ cross.T
        # not 0 even where the function is known to be
        floor = mean_variance(self.kernel, self.inputs)
        within.flat[:: len(points) + 1] += NUGGET * np.maximum(diagonal(self.kernel, points), floor)
        try:
            corner = np.asarray(cholesky(within, lower=True, check_finite=False))
        except np.linalg.LinAlgError:
            raise ValueError(TOO_CLOSE) from None
        at_points = values_by_differences(self.kernel, self.inputs, points).T @ self.coefficients
        rest = at_points - cross @ self._rows[:size]
        rows = solve_triangular(corner, rest, lower=True, check_finite=False)
        lower = np.hstack([cross, corner])
        if not (np.all(np.isfinite(lower)) and np.all(np.isfinite(rows))):
            raise ValueError("these points are too far away for the kernel to be computed.")
        return Extension(points, lower, rows)

    def accept(self, extension: Extension) -> None:
        """Make an extension, as ``propose`` returned it, part of the factor."""
        size = self.factor.size
        end = size + len(extension.points)
        if end > len(self._rows):
            grown = np.zeros((max(end, 2 * size), self._rows.shape[1]))
            grown[:size] = self._rows[:size]
            self._rows = grown
        self._rows[size:end] = extension.rows
        self.points = np.vstack([self.points[:size], extension.points])
        self.factor.append(extension.lower)

    def catch_up(self, points: Array, block: int = 512) -> None:
        """Extend the factor to these points, of which it already holds the first.

        Parameters
        ----------
        points
            (points, columns), all points answered so far, in order.
        block
            How many are added at a time.

        """
        for start in range(self.factor.size, len(points), block):
            self.accept(self.propose(points[start : start + block]))
