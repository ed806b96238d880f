"""Sample paths of a posterior, drawn where they are asked for: private records, lazy draws.

With L the growing Cholesky factor of the posterior covariance at the points asked so far, a path is
``mean + L z``: one new number z per path and new point, earlier ones stay. All answers together are
values of one realisation. Float arithmetic, not hardened: see docs/proofs/paths.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.special import ndtri
from sklearn.gaussian_process.kernels import Kernel

from privgp.plan.kernels import evaluate, variance
from privgp.types import Array
from privgp.vault.validate import checked_inputs, clipped_outputs

BLOCK = 1024
NUGGET = 1e-8  # times the variance: independent noise that keeps the factor from breaking
FLOAT_SAMPLER = "float64, not hardened: normal numbers from the system's randomness, values rounded"


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


class PathSampler:
    """The posterior given the records, and how far its paths were drawn.

    ``kernel`` and ``noise_variance`` in squared units of y; extra noise is a GP with the same kernel
    and ``extra_share`` times its variance.
    """

    def __init__(
        self, records: PathRecords, kernel: Kernel, noise_variance: float, extra_share: float
    ) -> None:
        self._records, self._kernel = records, kernel
        self._extra = extra_share
        K = evaluate(kernel, records.inputs)
        K[np.diag_indices_from(K)] += noise_variance
        self._root = cholesky(K, lower=True, overwrite_a=True, check_finite=False)
        self._weights = solve_triangular(self._root, records.outputs, lower=True)
        self._points = np.empty((0, records.inputs.shape[1]))
        self._half = np.empty((len(records.outputs), 0))
        self._lower = np.empty((0, 0))

    def catch_up(self, points: Array) -> None:
        """Have exactly these points in the factor, of which the first may be there already."""
        have = len(self._points)
        if have > len(points) or not np.array_equal(self._points, points[:have]):
            self._points, self._half = points[:0], self._half[:, :0]
            self._lower = np.empty((0, 0))
            have = 0
        for start in range(have, len(points), BLOCK):
            self.extend(points[start : start + BLOCK])

    def extend(self, points: Array) -> None:
        """Add new points to the factor: covariance ``(1 + extra) k - k_X (K + s^2)^-1 k_X``."""
        half = solve_triangular(
            self._root, evaluate(self._kernel, self._records.inputs, points), lower=True
        )
        own = (1.0 + self._extra) * evaluate(self._kernel, points) - half.T @ half
        own[np.diag_indices_from(own)] += NUGGET * (1.0 + self._extra) * variance(self._kernel)
        if len(self._points):
            cross = (1.0 + self._extra) * evaluate(self._kernel, self._points, points)
            cross -= self._half.T @ half
            side = solve_triangular(self._lower, cross, lower=True).T
            own -= side @ side.T
        else:
            side = np.empty((len(points), 0))
        old, new = len(self._points), len(points)
        lower = np.zeros((old + new, old + new))
        lower[:old, :old] = self._lower
        lower[old:, :old] = side
        lower[old:, old:] = _root_of(own, NUGGET * variance(self._kernel))
        self._points = np.vstack([self._points, points])
        self._half = np.hstack([self._half, half])
        self._lower = lower

    def values(self, normals: Array, first: int) -> Array:
        """Values about the centre, (paths, points), from the first point on.

        ``normals``: (paths, all points so far).
        """
        mean = self._weights @ self._half[:, first:]
        return np.asarray(mean + normals @ self._lower[first:].T)


def system_normals(randomness: bytes, paths: int, points: int) -> Array:
    """Standard normal numbers (paths, points), 53 bits each, from 8 bytes each."""
    whole = np.frombuffer(randomness, dtype=np.uint64)[: paths * points] >> np.uint64(11)
    return np.asarray(ndtri((whole + 0.5) * 2.0**-53), dtype=float).reshape(paths, points)


def seeded_normals(seed: int, paths: int, first: int, points: int) -> Array:
    """For simulations: one stream per point, whatever the batches and restarts."""
    streams = (np.random.default_rng([seed, i]) for i in range(first, first + points))
    return np.stack([stream.standard_normal(paths) for stream in streams], axis=1)


def _root_of(covariance: Array, least: float) -> Array:
    """A Cholesky factor, of the nearest matrix with no eigenvalue below ``least`` if need be."""
    try:
        return np.asarray(cholesky(covariance, lower=True, check_finite=False))
    except LinAlgError:
        values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
        scaled = np.sqrt(np.maximum(values, least)) * vectors
        return np.asarray(np.linalg.qr(scaled.T)[1].T)  # lower, signs of columns do not matter
