"""A growing factor L of a noise kernel at public points, with its own error beside it.

Privacy of records rests on ``L L^T >= k(points, points)``: with the nugget j^2 on the diagonal that
is so if ``L L^T - k - j^2 I`` is smaller than j^2. It is computed from the rows as they are stored,
and no point is answered that would make it too large. Proof: docs/proofs/function_records.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.growing import GrowingFactor
from privgp.gp.kernels.evaluate import variance
from privgp.gp.kernels.proved import rounding_error, values_by_differences
from privgp.gp.rounding import rounding
from privgp.types import Array

NUGGET = 1e-8  # of the variance
MOST_POINTS = 4000
TOO_FAR = "these points are too far away for the kernel to be computed."


def residual_room(kernel: Kernel, widths: Array) -> float:
    """How large the computed residual may be, so that the true one is at most half the nugget.

    For points of a box with sides ``widths`` (inputs,).
    Computing it errs by at most ``gamma |l_a| |l_b|`` an entry, the kernel by its own error; both
    add up to at most the number of points times that.
    """
    unseen = MOST_POINTS * (1.01 * rounding(MOST_POINTS + 4) + rounding_error(kernel, widths))
    room = (0.5 * NUGGET - unseen) * variance(kernel)
    if not room > NUGGET / 16.0 * variance(kernel):
        raise ValueError("kernel has too many parts for its values to be exact enough.")
    return room


@dataclass(frozen=True)
class Rows:
    """Further rows of L, (new, old + new), and the squared residual of all rows up to these."""

    points: Array
    lower: Array
    residual: float


class CheckedFactor:
    """L at the points asked so far, which lie in a box with sides ``widths``; all of it is public."""

    def __init__(self, kernel: Kernel, widths: Array) -> None:
        self.kernel, self.points = kernel, np.empty((0, len(widths)))
        self._factor, self._residual = GrowingFactor(), 0.0
        self._room = residual_room(kernel, widths)

    def propose(self, points: Array) -> Rows:
        """What further points add; refuses any that leave too large a residual. Changes nothing."""
        nugget = NUGGET * variance(self.kernel)
        above = values_by_differences(self.kernel, self.points, points)
        own = values_by_differences(self.kernel, points, points)
        own.flat[:: len(own) + 1] += nugget
        side = self._factor.solve(above).T
        try:
            corner = cholesky(own - side @ side.T, lower=True)
        except (np.linalg.LinAlgError, ValueError):
            raise ValueError(TOO_FAR) from None
        beside = self._factor.times(side.T) - above
        within = side @ side.T + corner @ corner.T - own
        residual = self._residual + 2.0 * float(np.sum(beside**2)) + float(np.sum(within**2))
        if not np.sqrt(residual) <= self._room:
            raise ValueError(TOO_FAR)
        return Rows(points, np.hstack([side, corner]), residual)

    def accept(self, rows: Rows) -> None:
        """Make further rows part of the factor."""
        self.catch_up(np.vstack([self.points, rows.points]), list(rows.lower), rows.residual)

    def catch_up(self, points: Array, rows: Sequence[Array], residual: float) -> None:
        """Take these rows as they were stored, the last of which belong to the last points."""
        missing = len(points) - self._factor.size
        if missing:
            lower = np.zeros((missing, len(points)))
            for place, row in enumerate(rows[len(rows) - missing :]):
                lower[place, : len(row)] = row
            self._factor.append(lower)
        self.points, self._residual = points, residual
