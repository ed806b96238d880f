"""Sample paths of a posterior, drawn where they are asked for: private records, lazy draws.

With ``L L^T`` the posterior covariance at the points asked so far plus a nugget, a path is
``mean + L z`` plus lattice noise: one new row of L per new point, two new numbers per path, and
nothing that was drawn is ever computed again. Proof: docs/proofs/path_rounding.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from privgp.gp.blocked import blocked_cholesky
from privgp.gp.kernels.evaluate import variance
from privgp.gp.kernels.proved import values_by_differences
from privgp.plan.functions.paths import PathModel, path_model
from privgp.privacy.noise import GaussianNoise
from privgp.privacy.path_rounding import LATTICE_DEPTH, NORMAL_DEPTH
from privgp.storage.archive import DamagedFile
from privgp.storage.triangles import NO_ROWS, Triangle
from privgp.types import Array, Seed
from privgp.vault.noise import add_noise
from privgp.vault.states.kept import NOT_TOGETHER, OTHER_PROMISE, TOO_MUCH, Contents
from privgp.vault.states.path_sampler import PathSampler
from privgp.vault.validate import clipped_inputs, clipped_outputs


@dataclass(frozen=True)
class PathDraws:
    """The private records and what has been drawn of their paths.

    Private: ``inputs`` (records, columns) in the domain, ``outputs`` (records,) about their centre,
    ``factor`` (records, records): R with ``R R^T = k(X, X) + noise variance``, computed once. ``seed``:
    for simulations. ``points`` (asked, columns), ``normals``, ``answers`` (asked, paths); ``lower``: the
    rows of the factor of the points, as they were used.
    """

    inputs: Annotated[Array, "records columns"] = field(repr=False)
    outputs: Annotated[Array, "records"] = field(repr=False)
    factor: Annotated[Array, "records records"] = field(repr=False)
    seed: Seed | None
    points: Annotated[Array, "points columns"]
    normals: Annotated[Array, "points paths"] = field(repr=False)
    answers: Annotated[Array, "points paths"]
    lower: Triangle = NO_ROWS

    GROWS: ClassVar[tuple[str, ...]] = ("points", "normals", "answers", "lower")
    CHANGES: ClassVar[tuple[str, ...]] = ()


def first_path_draws(X: Any, y: Any, model: PathModel, seed: int | None) -> PathDraws:
    """Nothing drawn yet: inputs projected onto the domain, outputs clipped."""
    inputs = clipped_inputs(X, *np.array(model.domain).T) + 0.0
    half = 0.5 * model.y_bounds[1] - 0.5 * model.y_bounds[0]
    outputs = half * clipped_outputs(y, len(inputs), model.y_bounds)
    K = values_by_differences(model.kernel, inputs, inputs)
    K.flat[:: len(K) + 1] += model.noise_variance
    nothing = np.empty((0, model.paths))
    points = np.empty((0, len(model.domain)))
    return PathDraws(inputs, outputs, blocked_cholesky(K), seed, points, nothing, nothing)


def with_lattice_noise(values: Array, std: float, exponent: int) -> Array:
    """The values, rounded to a lattice far below the noise, plus lattice noise."""
    noise = GaussianNoise(values.size, std, exponent, math.inf, 0.0)
    return add_noise(values.ravel(), noise).reshape(values.shape)


def seeded_normals(seed: int, paths: int, first: int, points: int) -> Array:
    """For simulations: (2, paths, points), one stream per point, whatever the batches and restarts."""
    streams = (np.random.default_rng([seed, i]) for i in range(first, first + points))
    return np.stack([stream.standard_normal((2, paths)) for stream in streams], axis=2)


@dataclass(frozen=True)
class PathContents(Contents):
    """All there is to some paths."""

    model: PathModel
    draws: PathDraws

    ADVICE = ", or fit with another max_points, which spends another budget."

    @property
    def most(self) -> float:
        return self.model.max_points

    def parameters(self) -> dict[str, Any]:
        return {**self.model.parameters(), "random_state": self.draws.seed}

    def engine(self) -> PathSampler:
        model, draws = self.model, self.draws
        extra = model.extra_noise**2 / variance(model.kernel)
        nugget = model.precision(len(draws.factor)).nugget
        return PathSampler(draws.inputs, draws.outputs, draws.factor, model.kernel, extra, nugget)

    def extended(self, engine: PathSampler, points: Array) -> PathDraws:
        model, draws = self.model, self.draws
        first, count = len(draws.points), len(points)
        std = math.sqrt(model.precision(len(draws.factor)).lattice_nugget * variance(model.kernel))
        engine.catch_up(draws.points, draws.lower)
        rows = engine.extend(points)
        if draws.seed is None:
            drawn = with_lattice_noise(np.zeros((model.paths, count)), 1.0, -NORMAL_DEPTH)
        else:
            drawn, added = seeded_normals(draws.seed, model.paths, first, count)
        normals = np.vstack([draws.normals, drawn.T])
        values = engine.values(normals.T, first)
        if draws.seed is None:
            values = with_lattice_noise(values, std, math.floor(math.log2(std)) - LATTICE_DEPTH)
        else:
            values = values + std * added
        middle = 0.5 * model.y_bounds[0] + 0.5 * model.y_bounds[1]
        return replace(
            draws,
            points=np.vstack([draws.points, points]),
            normals=normals,
            answers=np.vstack([draws.answers, (middle + values).T]),
            lower=draws.lower.extended(rows),
        )

    def check(self) -> None:
        super().check()
        model, draws = path_model(**self.model.parameters()), self.draws
        records, points = len(draws.inputs), len(draws.points)
        if records == 0 or (draws.normals.shape[1], draws.lower.size) != (model.paths, points):
            raise DamagedFile(NOT_TOGETHER)
        if points > model.max_points:
            raise DamagedFile(TOO_MUCH)
        half = 0.5 * model.y_bounds[1] - 0.5 * model.y_bounds[0]
        if not (self.holds_inputs(draws.inputs) and np.all(np.abs(draws.outputs) <= half)):
            raise DamagedFile("its records leave their bounds")
        promised = self.guarantee
        if (promised.delta, promised.path_curves) != (model.delta, (model.curve(records),)):
            raise DamagedFile(OTHER_PROMISE)
