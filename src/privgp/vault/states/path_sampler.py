"""The posterior of private records at the points asked so far.

With ``L L^T`` the posterior covariance there plus a nugget, a path is ``mean + L z`` plus lattice
noise: one new row of L per new point. Proof: docs/proofs/path_rounding.md.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.blocked import RUN, blocked_product, blocked_solve
from privgp.gp.kernels.evaluate import variance
from privgp.gp.kernels.proved import values_by_differences
from privgp.storage.triangles import Triangle
from privgp.types import Array


class PathSampler:
    """The posterior given the records, and how far its paths were drawn.

    ``inputs``, ``outputs``, ``factor``: of the records, as stored
    ``extra_share``: variance of the extra Gaussian-process noise over the kernel's variance
    ``nugget``: variance of the independent noise at every point over the kernel's variance

    A sampler whose call did not return must not be used again.
    """

    def __init__(
        self,
        inputs: Array,
        outputs: Array,
        factor: Array,
        kernel: Kernel,
        extra_share: float,
        nugget: float,
    ) -> None:
        self._inputs, self._factor, self._kernel = inputs, factor, kernel
        self._total, self._nugget = 1.0 + extra_share, nugget * variance(kernel)
        self._weights = blocked_solve(factor, outputs[:, None])
        self._asked = 0
        self._points = np.empty((0, inputs.shape[1]))
        self._half = np.empty((len(factor), 0))
        self._lower = np.empty((0, 0))

    def catch_up(self, points: Array, lower: Triangle) -> None:
        """Hold exactly these points, whose rows of L are those that were stored."""
        if not np.array_equal(self._points[: self._asked], points[: self._asked]):
            self._asked = 0
        have = self._asked
        if have == len(points):
            return
        self._make_room(len(points))
        self._half[:, have : len(points)] = self._columns(points[have:])
        self._points[have : len(points)] = points[have:]
        for place, row in enumerate(lower.rows[have:], start=have):
            self._lower[place, : place + 1] = row
        self._asked = len(points)

    def extend(self, points: Array) -> Array:
        """Add new points; their rows of L, (new, old + new)."""
        old = self._asked
        self._make_room(old + len(points))
        for start in range(0, len(points), RUN):
            self._add(points[start : start + RUN])
        return self._lower[old : self._asked, : self._asked]

    def values(self, normals: Array, first: int) -> Array:
        """Values about the centre, (paths, points from the first on).

        ``normals``: (paths, all points so far).
        """
        mean = blocked_product(self._weights.T, self._half[:, first : self._asked])
        return np.asarray(mean + normals @ self._lower[first : self._asked, : self._asked].T)

    def _columns(self, points: Array) -> Array:
        """``R^-1 k(X, points)``."""
        return blocked_solve(
            self._factor, values_by_differences(self._kernel, self._inputs, points)
        )

    def _add(self, points: Array) -> None:
        """At most 64 points: ``(1 + extra) k - k_X (K + s^2)^-1 k_X`` and the nugget, factored."""
        old, new = self._asked, self._asked + len(points)
        half = self._columns(points)
        cross = self._total * values_by_differences(self._kernel, self._points[:old], points)
        cross -= blocked_product(self._half[:, :old].T, half)
        own = self._total * values_by_differences(self._kernel, points, points)
        own -= blocked_product(half.T, half)
        own.flat[:: len(points) + 1] += self._nugget
        side = blocked_solve(self._lower[:old, :old], cross).T
        own -= blocked_product(side, side.T)
        try:
            corner = cholesky(own, lower=True, check_finite=False)
        except LinAlgError:  # ruled out by the proof wherever arithmetic is that of IEEE 754
            raise RuntimeError("the factor of the paths broke down; nothing was drawn.") from None
        self._lower[old:new, :old], self._lower[old:new, old:new] = side, corner
        self._half[:, old:new], self._points[old:new] = half, points
        self._asked = new

    def _make_room(self, points: int) -> None:
        """Room for this many points, and some more: single questions do not copy everything."""
        if points <= len(self._points):
            return
        more = points + points // 8 + RUN - len(self._points)
        self._points = np.pad(self._points, ((0, more), (0, 0)))
        self._half = np.pad(self._half, ((0, 0), (0, more)))
        self._lower = np.pad(self._lower, (0, more))
