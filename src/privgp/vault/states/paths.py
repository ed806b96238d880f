"""Sample paths of a posterior, drawn where they are asked for: private records, lazy draws.

With ``L L^T`` the posterior covariance at the points asked so far plus a nugget, a path is
``mean + L z`` plus lattice noise: one new row of L per new point, two new numbers per path, and
nothing that was drawn is ever computed again. Proof: docs/proofs/path_rounding.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.blocked import RUN, blocked_cholesky, blocked_product, blocked_solve
from privgp.gp.kernels.evaluate import variance
from privgp.gp.kernels.proved import values_by_differences
from privgp.privacy.lattice import LatticeNoise
from privgp.privacy.path_rounding import LATTICE_DEPTH, NORMAL_DEPTH
from privgp.types import Array
from privgp.vault.noise import add_lattice_noise
from privgp.vault.validate import checked_inputs, clipped_outputs


@dataclass(frozen=True)
class PathRecords:
    """The private records: inputs in the domain (records, columns), outputs about their centre."""

    inputs: Array = field(repr=False)
    outputs: Array = field(repr=False)


def taken_records(
    X: Any, y: Any, box: tuple[tuple[float, float], ...], bounds: tuple[float, float]
) -> PathRecords:
    """Refuse what is not finite; project inputs onto the domain, clip outputs."""
    inputs = checked_inputs(X, len(box))
    low, high = np.array(box).T
    half = 0.5 * bounds[1] - 0.5 * bounds[0]
    outputs = half * clipped_outputs(y, len(inputs), bounds)
    return PathRecords(np.clip(inputs, low, high) + 0.0, outputs)


def within(
    records: PathRecords, box: tuple[tuple[float, float], ...], bounds: tuple[float, float]
) -> bool:
    """Whether all records keep to the domain and the bounds, as those that were taken do."""
    low, high = np.array(box).T
    half = 0.5 * bounds[1] - 0.5 * bounds[0]
    inside = np.all((records.inputs >= low) & (records.inputs <= high))
    return bool(inside and np.all(np.abs(records.outputs) <= half))


def record_factor(records: PathRecords, kernel: Kernel, noise_variance: float) -> Array:
    """R with ``R R^T = k(X, X) + noise variance``, (records, records): computed once and stored."""
    K = values_by_differences(kernel, records.inputs, records.inputs)
    K.flat[:: len(K) + 1] += noise_variance
    return blocked_cholesky(K)


class PathSampler:
    """The posterior given the records, and how far its paths were drawn.

    ``factor``: of the records, as stored; extra noise is a Gaussian process with the same kernel and
    ``extra_share`` times its variance.
    """

    def __init__(
        self, records: PathRecords, factor: Array, kernel: Kernel, extra_share: float, nugget: float
    ) -> None:
        self._inputs, self._factor, self._kernel = records.inputs, factor, kernel
        self._total, self._nugget = 1.0 + extra_share, nugget * variance(kernel)
        self._weights = blocked_solve(factor, records.outputs[:, None])
        self._points = np.empty((0, records.inputs.shape[1]))
        self._half = np.empty((len(factor), 0))
        self._lower = np.empty((0, 0))

    def catch_up(self, points: Array, rows: tuple[Array, ...]) -> None:
        """Hold exactly these points, whose rows of L are those that were stored."""
        have = len(self._points)
        if have > len(points) or not np.array_equal(self._points, points[:have]):
            self._points, self._half = points[:0], self._half[:, :0]
            self._lower, have = np.empty((0, 0)), 0
        if have == len(points):
            return
        self._half = np.hstack([self._half, self._columns(points[have:])])
        self._points = points
        self._lower = np.zeros((len(points), len(points)))
        for place, row in enumerate(rows):
            self._lower[place, : place + 1] = row

    def extend(self, points: Array) -> tuple[Array, ...]:
        """Add new points; their rows of L, the first of length old + 1."""
        old = len(self._points)
        for start in range(0, len(points), RUN):
            self._add(points[start : start + RUN])
        return tuple(self._lower[i, : i + 1].copy() for i in range(old, len(self._points)))

    def values(self, normals: Array, first: int) -> Array:
        """Values about the centre, (paths, points from the first on).

        ``normals``: (paths, all points so far).
        """
        mean = blocked_product(self._weights.T, self._half[:, first:])
        return np.asarray(mean + normals @ self._lower[first:].T)

    def _columns(self, points: Array) -> Array:
        """``R^-1 k(X, points)``."""
        return blocked_solve(
            self._factor, values_by_differences(self._kernel, self._inputs, points)
        )

    def _add(self, points: Array) -> None:
        """At most 64 points: ``(1 + extra) k - k_X (K + s^2)^-1 k_X`` and the nugget, factored."""
        old, new = len(self._points), len(points)
        half = self._columns(points)
        cross = self._total * values_by_differences(self._kernel, self._points, points)
        cross -= blocked_product(self._half.T, half)
        own = self._total * values_by_differences(self._kernel, points, points)
        own -= blocked_product(half.T, half)
        own.flat[:: new + 1] += self._nugget
        side = blocked_solve(self._lower, cross).T
        own -= blocked_product(side, side.T)
        lower = np.zeros((old + new, old + new))
        lower[:old, :old] = self._lower
        lower[old:, :old] = side
        try:
            lower[old:, old:] = cholesky(own, lower=True, check_finite=False)
        except LinAlgError:  # ruled out by the proof wherever arithmetic is that of IEEE 754
            raise RuntimeError("the factor of the paths broke down; nothing was drawn.") from None
        self._points = np.vstack([self._points, points])
        self._half = np.hstack([self._half, half])
        self._lower = lower


def drawn_normals(paths: int, points: int) -> Array:
    """Standard normal numbers on a lattice, (paths, points), from cryptographic randomness."""
    size = paths * points
    noise = LatticeNoise(size, 1.0, -NORMAL_DEPTH, math.inf, 0.0)
    return add_lattice_noise(np.zeros(size), noise).reshape(paths, points)


def with_lattice_noise(values: Array, std: float) -> Array:
    """The values, rounded to a lattice far below the noise, plus lattice noise."""
    exponent = math.floor(math.log2(std)) - LATTICE_DEPTH
    noise = LatticeNoise(values.size, std, exponent, math.inf, 0.0)
    return add_lattice_noise(values.ravel(), noise).reshape(values.shape)


def seeded_normals(seed: int, paths: int, first: int, points: int) -> Array:
    """For simulations: (2, paths, points), one stream per point, whatever the batches and restarts."""
    streams = (np.random.default_rng([seed, i]) for i in range(first, first + points))
    return np.stack([stream.standard_normal((2, paths)) for stream in streams], axis=2)
