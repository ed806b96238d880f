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
from privgp.gp.kernels.proved import careful_values
from privgp.privacy.noise import GaussianNoise
from privgp.privacy.path_rounding import LATTICE_DEPTH, NORMAL_DEPTH
from privgp.types import Array
from privgp.vault.noise import add_noise
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
    K = careful_values(kernel, records.inputs, records.inputs)
    K.flat[:: len(K) + 1] += noise_variance
    return blocked_cholesky(K)


class PathSampler:
    """The posterior given the records, and how far its paths were drawn.

    ``factor``: of the records, as stored; extra noise is a Gaussian process with the same kernel and
    ``extra_share`` times its variance. A call that does not return leaves a sampler of no more use.
    """

    def __init__(
        self, records: PathRecords, factor: Array, kernel: Kernel, extra_share: float, nugget: float
    ) -> None:
        self._inputs, self._factor, self._kernel = records.inputs, factor, kernel
        self._total, self._nugget = 1.0 + extra_share, nugget * variance(kernel)
        self._weights = blocked_solve(factor, records.outputs[:, None])
        self._asked = 0  # of the rows and columns below, which have room for more
        self._points = np.empty((0, records.inputs.shape[1]))
        self._half = np.empty((len(factor), 0))
        self._lower = np.zeros((0, 0))

    def catch_up(self, points: Array, rows: tuple[Array, ...]) -> None:
        """Hold exactly these points, whose rows of L are those that were stored."""
        if not np.array_equal(self._points[: self._asked], points[: self._asked]):
            self._asked = 0
        have = self._asked
        if have == len(points):
            return
        self._make_room(len(points))
        self._half[:, have : len(points)] = self._columns(points[have:])
        self._points[have : len(points)] = points[have:]
        for place, row in enumerate(rows[have:], start=have):
            self._lower[place, : place + 1] = row
        self._asked = len(points)

    def extend(self, points: Array) -> tuple[Array, ...]:
        """Add new points; their rows of L, the first of length old + 1."""
        old = self._asked
        self._make_room(old + len(points))
        for start in range(0, len(points), RUN):
            self._add(points[start : start + RUN])
        return tuple(self._lower[i, : i + 1].copy() for i in range(old, self._asked))

    def values(self, normals: Array, first: int) -> Array:
        """Values about the centre, (paths, points from the first on).

        ``normals``: (paths, all points so far).
        """
        mean = blocked_product(self._weights.T, self._half[:, first : self._asked])
        return np.asarray(mean + normals @ self._lower[first : self._asked, : self._asked].T)

    def _columns(self, points: Array) -> Array:
        """``R^-1 k(X, points)``."""
        return blocked_solve(self._factor, careful_values(self._kernel, self._inputs, points))

    def _add(self, points: Array) -> None:
        """At most 64 points: ``(1 + extra) k - k_X (K + s^2)^-1 k_X`` and the nugget, factored."""
        old, new = self._asked, self._asked + len(points)
        half = self._columns(points)
        cross = self._total * careful_values(self._kernel, self._points[:old], points)
        cross -= blocked_product(self._half[:, :old].T, half)
        own = self._total * careful_values(self._kernel, points, points)
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
        """Room for so many points in all, and some more: single questions do not copy everything."""
        if points <= len(self._points):
            return
        asked, room = self._asked, points + points // 8 + RUN
        had = self._points[:asked], self._half[:, :asked], self._lower[:asked, :asked]
        self._points = np.empty((room, self._inputs.shape[1]))
        self._half = np.empty((len(self._factor), room))
        self._lower = np.zeros((room, room))
        self._points[:asked], self._half[:, :asked], self._lower[:asked, :asked] = had


def drawn_normals(paths: int, points: int) -> Array:
    """Standard normal numbers on a lattice, (paths, points), from cryptographic randomness."""
    size = paths * points
    noise = GaussianNoise(size, 1.0, -NORMAL_DEPTH, math.inf, 0.0)
    return add_noise(np.zeros(size), noise).reshape(paths, points)


def with_lattice_noise(values: Array, std: float) -> Array:
    """The values, rounded to a lattice far below the noise, plus lattice noise."""
    exponent = math.floor(math.log2(std)) - LATTICE_DEPTH
    noise = GaussianNoise(values.size, std, exponent, math.inf, 0.0)
    return add_noise(values.ravel(), noise).reshape(values.shape)


def seeded_normals(seed: int, paths: int, first: int, points: int) -> Array:
    """For simulations: (2, paths, points), one stream per point, whatever the batches and restarts."""
    streams = (np.random.default_rng([seed, i]) for i in range(first, first + points))
    return np.stack([stream.standard_normal((2, paths)) for stream in streams], axis=2)
