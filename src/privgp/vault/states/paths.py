"""Sample paths of a posterior, drawn where they are asked for: private records, lazy draws.

With ``L L^T`` the posterior covariance at the points asked so far plus a nugget, a path is
``mean + L z`` plus lattice noise: one new row of L per new point, two new numbers per path, and
nothing that was drawn is ever computed again. Proof: docs/proofs/path_rounding.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.blocked import RUN, blocked_cholesky, blocked_product, blocked_solve
from privgp.gp.kernels.evaluate import variance
from privgp.gp.kernels.proved import careful_values
from privgp.plan.functions.paths import PathModel
from privgp.privacy.lattice import LatticeNoise
from privgp.privacy.path_rounding import LATTICE_DEPTH, NORMAL_DEPTH
from privgp.storage.triangles import NO_ROWS, Triangle
from privgp.types import Array, Matrix, Seed, Vector
from privgp.vault.noise import add_lattice_noise
from privgp.vault.validate import checked_inputs, clipped_outputs


@dataclass(frozen=True)
class PathDraws:
    """The private records and what has been drawn of their paths.

    Private: ``inputs`` (records, columns) in the domain, ``outputs`` (records,) about their centre,
    ``factor`` (records, records): R with ``R R^T = k(X, X) + noise variance``, computed once. ``seed``:
    for simulations. ``points`` (asked, columns), ``normals``, ``answers`` (asked, paths); ``lower``: the
    rows of the factor of the points, as they were used.
    """

    inputs: Matrix = field(repr=False)
    outputs: Vector = field(repr=False)
    factor: Matrix = field(repr=False)
    seed: Seed | None
    points: Matrix
    normals: Matrix = field(repr=False)
    answers: Matrix
    lower: Triangle = NO_ROWS

    GROWS: ClassVar[tuple[str, ...]] = ("points", "normals", "answers", "lower")
    CHANGES: ClassVar[tuple[str, ...]] = ()


def first_path_draws(X: Any, y: Any, model: PathModel, seed: int | None) -> PathDraws:
    """Nothing drawn yet: inputs projected onto the domain, outputs clipped."""
    low, high = np.array(model.domain).T
    inputs = np.clip(checked_inputs(X, len(model.domain)), low, high) + 0.0
    half = 0.5 * model.y_bounds[1] - 0.5 * model.y_bounds[0]
    outputs = half * clipped_outputs(y, len(inputs), model.y_bounds)
    K = careful_values(model.kernel, inputs, inputs)
    K.flat[:: len(K) + 1] += model.noise_variance
    nothing = np.empty((0, model.paths))
    points = np.empty((0, len(model.domain)))
    return PathDraws(inputs, outputs, blocked_cholesky(K), seed, points, nothing, nothing)


def extended_paths(
    draws: PathDraws, model: PathModel, sampler: PathSampler, points: Array
) -> PathDraws:
    """The same paths at further points, (points, columns)."""
    first, count = len(draws.points), len(points)
    precision = model.precision(len(draws.factor))
    std = math.sqrt(precision.lattice_nugget * variance(model.kernel))
    sampler.catch_up(draws.points, draws.lower)
    rows = sampler.extend(points)
    if draws.seed is None:
        normals = np.vstack([draws.normals, drawn_normals(model.paths, count).T])
        values = with_lattice_noise(sampler.values(normals.T, first), std)
    else:
        drawn, added = seeded_normals(draws.seed, model.paths, first, count)
        normals = np.vstack([draws.normals, drawn.T])
        values = sampler.values(normals.T, first) + std * added
    middle = 0.5 * model.y_bounds[0] + 0.5 * model.y_bounds[1]
    return replace(
        draws,
        points=np.vstack([draws.points, points]),
        normals=normals,
        answers=np.vstack([draws.answers, (middle + values).T]),
        lower=Triangle((*draws.lower.rows, *rows)),
    )


class PathSampler:
    """The posterior given the records, and how far its paths were drawn.

    Extra noise is a Gaussian process with the same kernel and ``extra_share`` times its variance.
    A call that does not return leaves a sampler of no more use.
    """

    def __init__(self, draws: PathDraws, kernel: Kernel, extra_share: float, nugget: float) -> None:
        self._inputs, self._factor, self._kernel = draws.inputs, draws.factor, kernel
        self._total, self._nugget = 1.0 + extra_share, nugget * variance(kernel)
        self._weights = blocked_solve(draws.factor, draws.outputs[:, None])
        self._asked = 0
        self._points = np.empty((0, draws.inputs.shape[1]))
        self._half = np.empty((len(draws.factor), 0))
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
        """Room for this many points, and some more: single questions do not copy everything."""
        if points <= len(self._points):
            return
        asked, room = self._asked, points + points // 8 + RUN
        old = self._points, self._half, self._lower
        self._points = np.empty((room, self._inputs.shape[1]))
        self._half = np.empty((len(self._factor), room))
        self._lower = np.zeros((room, room))
        self._points[:asked], self._half[:, :asked] = old[0][:asked], old[1][:, :asked]
        self._lower[:asked, :asked] = old[2][:asked, :asked]


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
