"""Sample paths of a posterior, drawn where they are asked for: private records, lazy draws. With
``L L^T`` the posterior covariance at the points asked so far plus a nugget, a path is
``mean + L z`` plus lattice noise: one new row of L per new point, two new numbers per path, and
nothing that was drawn is ever computed again. Proof: docs/proofs/path_rounding.md."""

import math
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.arithmetic import rounding
from privgp.gp.growing import RUN, cholesky_by_blocks, multiply_by_blocks, solve_by_blocks
from privgp.gp.kernels.evaluate import variance
from privgp.gp.kernels.proved import values_by_differences
from privgp.gp.kernels.registry import KERNELS
from privgp.plan.functions.paths import PathModel, path_model
from privgp.privacy.noise import GaussianNoise
from privgp.privacy.path_rounding import LATTICE_DEPTH, NORMAL_DEPTH
from privgp.storage.archive import NO_ROWS, Triangle, require
from privgp.types import Array, Seed, UserData
from privgp.vault.measure import add_noise
from privgp.vault.states.kept import (
    NOT_DRAWN,
    NOT_TOGETHER,
    OTHER_PROMISE,
    TOO_MUCH,
    Contents,
    StateCodec,
)
from privgp.vault.validate import clip_inputs, clip_outputs

CHECKS = 40  # random sums that a forged factor must pass
MOST_STDS = 40.0  # of lattice noise, which no draw reaches


@dataclass(frozen=True)
class PathDraws:
    """The private records and what has been drawn of their paths.

    Attributes
    ----------
    inputs : (records, columns), in the domain; private
    outputs : (records,), about their centre; private
    factor : (records, records), R with ``R R^T = k(X, X) + noise variance``, computed once;
        private
    seed : seed of a simulation; None for the noise that protects
    points : (asked, columns)
    normals, answers : (asked, paths)
    lower : the rows of the points' factor, as they were used

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


def first_path_draws(X: UserData, y: UserData, model: PathModel, seed: int | None) -> PathDraws:
    """Nothing drawn yet: inputs projected onto the domain, outputs clipped.

    Parameters
    ----------
    X, y
        Private records.
    model
        The public part.
    seed
        Seed of a simulation.

    """
    inputs = clip_inputs(X, *np.array(model.domain).T) + 0.0
    outputs = model.half_width * clip_outputs(y, len(inputs), model.y_bounds)
    K = values_by_differences(model.kernel, inputs, inputs)
    K.flat[:: len(K) + 1] += model.noise_variance
    nothing = np.empty((0, model.paths))
    points = np.empty((0, len(model.domain)))
    return PathDraws(inputs, outputs, cholesky_by_blocks(K), seed, points, nothing, nothing)


def with_lattice_noise(values: Array, std: float, exponent: int) -> Array:
    """The values, rounded to a lattice far below the noise, plus lattice noise.

    Parameters
    ----------
    values
        Private numbers of any shape.
    std
        std of the noise.
    exponent
        The lattice has the spacing ``2**exponent``.

    """
    noise = GaussianNoise(values.size, std, exponent, math.inf, 0.0)
    return add_noise(values.ravel(), noise).reshape(values.shape)


def normals_of_streams(seed: int, paths: int, first: int, points: int) -> Array:
    """For simulations: (2, paths, points), one stream per point, whatever the batches and restarts."""
    streams = (np.random.default_rng([seed, i]) for i in range(first, first + points))
    return np.stack([stream.standard_normal((2, paths)) for stream in streams], axis=2)


class PathSampler:
    """The posterior given the records, as stored, and how far its paths were drawn.

    A sampler whose call did not return must not be used again.

    Parameters
    ----------
    inputs, outputs, factor : as in ``PathDraws``; private
    kernel : kernel of the posterior
    extra_share : the variance of the extra Gaussian-process noise over the kernel's
    nugget : the variance of the noise at every point over the kernel's

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
        self._weights = solve_by_blocks(factor, outputs[:, None])
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
        """Add new points, (new, columns); their rows of L, (new, old + new)."""
        old = self._asked
        self._make_room(old + len(points))
        for start in range(0, len(points), RUN):
            self._add(points[start : start + RUN])
        return self._lower[old : self._asked, : self._asked]

    def values(self, normals: Array, first: int) -> Array:
        """Values about the centre, (paths, points from the first on).

        Parameters
        ----------
        normals
            (paths, points), for all points.
        first
            The place of the first point that is wanted.

        """
        mean = multiply_by_blocks(self._weights.T, self._half[:, first : self._asked])
        return np.asarray(mean + normals @ self._lower[first : self._asked, : self._asked].T)

    def holds(self, noise_variance: float) -> bool:
        """Whether both factors are those of their matrices, except for rounding.

        Sums of their columns with random signs are compared: of others, one in 2^40 is not
        found.
        """
        rng, records, asked = np.random.default_rng(), len(self._inputs), self._asked
        signs, v = rng.choice((-1.0, 1.0), size=(records, CHECKS)), variance(self._kernel)
        wanted = values_by_differences(self._kernel, self._inputs, self._inputs) @ signs
        wanted += noise_variance * signs
        room = 4.0 * rounding(4 * records + 64) * records * (v + noise_variance)
        found = self._factor @ (self._factor.T @ signs)
        if not np.all(np.abs(found - wanted) <= room) or np.any(np.triu(self._factor, 1)):
            return False
        signs = rng.choice((-1.0, 1.0), size=(asked, CHECKS))
        points, half = self._points[:asked], self._half[:, :asked]
        wanted = self._total * (values_by_differences(self._kernel, points, points) @ signs)
        wanted += self._nugget * signs - half.T @ (half @ signs)
        lower = self._lower[:asked, :asked]
        return bool(np.all(np.abs(lower @ (lower.T @ signs) - wanted) <= self._nugget / 64.0))

    def _columns(self, points: Array) -> Array:
        """``R^-1 k(X, points)``."""
        return solve_by_blocks(
            self._factor, values_by_differences(self._kernel, self._inputs, points)
        )

    def _add(self, points: Array) -> None:
        """At most 64 points: ``(1 + extra) k - k_X (K + s^2)^-1 k_X`` and the nugget, factored."""
        old, new = self._asked, self._asked + len(points)
        half = self._columns(points)
        cross = self._total * values_by_differences(self._kernel, self._points[:old], points)
        cross -= multiply_by_blocks(self._half[:, :old].T, half)
        own = self._total * values_by_differences(self._kernel, points, points)
        own -= multiply_by_blocks(half.T, half)
        own.flat[:: len(points) + 1] += self._nugget
        side = solve_by_blocks(self._lower[:old, :old], cross).T
        own -= multiply_by_blocks(side, side.T)
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


@dataclass(frozen=True)
class PathContents(Contents):
    """Posterior sample paths: what is public of them, and their draws."""

    model: PathModel
    draws: PathDraws

    ADVICE = ", or fit with another max_points, which spends another budget."

    @property
    def most(self) -> float:
        return self.model.max_points

    def parameters(self) -> dict[str, object]:
        return {**self.model.parameters(), "random_state": self.draws.seed}

    def engine(self) -> PathSampler:
        model, draws = self.model, self.draws
        extra = model.extra_noise**2 / variance(model.kernel)
        nugget = model.precision(len(draws.factor)).nugget
        return PathSampler(draws.inputs, draws.outputs, draws.factor, model.kernel, extra, nugget)

    @property
    def _lattice_std(self) -> float:
        """The std of the lattice noise that is added to every answer."""
        precision = self.model.precision(len(self.draws.factor))
        return math.sqrt(precision.lattice_nugget * variance(self.model.kernel))

    @property
    def _middle(self) -> float:
        return 0.5 * self.model.y_bounds[0] + 0.5 * self.model.y_bounds[1]

    def verify_draws(self) -> PathSampler:
        """An engine, if the factors are those of the records, and the answers those of the factors
        and of the normal numbers: what is drawn next is drawn given them."""
        engine, draws = self.engine(), self.draws
        engine.catch_up(draws.points, draws.lower)
        require(engine.holds(self.model.noise_variance), NOT_DRAWN)
        exact = self._middle + engine.values(draws.normals.T, 0)
        apart = np.abs(draws.answers.T - exact).max(initial=0.0)
        require(bool(apart <= MOST_STDS * self._lattice_std), NOT_DRAWN)
        return engine

    def grow(self, engine: PathSampler, points: Array) -> PathDraws:
        """The draws with these new points among them; see ``Contents``."""
        model, draws = self.model, self.draws
        first, count = len(draws.points), len(points)
        std = self._lattice_std
        engine.catch_up(draws.points, draws.lower)
        rows = engine.extend(points)
        if draws.seed is None:
            drawn = with_lattice_noise(np.zeros((model.paths, count)), 1.0, -NORMAL_DEPTH)
        else:
            drawn, added = normals_of_streams(draws.seed, model.paths, first, count)
        normals = np.vstack([draws.normals, drawn.T])
        values = engine.values(normals.T, first)
        if draws.seed is None:
            values = with_lattice_noise(values, std, math.floor(math.log2(std)) - LATTICE_DEPTH)
        else:
            values = values + std * added
        return replace(
            draws,
            points=np.vstack([draws.points, points]),
            normals=normals,
            answers=np.vstack([draws.answers, (self._middle + values).T]),
            lower=draws.lower.grow(rows),
        )

    def check(self) -> None:
        """Refuse records outside their bounds, too many points and a guarantee of something else."""
        super().check()
        model, draws = path_model(self.model.parameters()), self.draws
        records, points = len(draws.inputs), len(draws.points)
        aligned = (draws.normals.shape[1], draws.lower.size) == (model.paths, points)
        require(records > 0 and aligned, NOT_TOGETHER)
        require(points <= model.max_points, TOO_MUCH)
        bounded = np.all(np.abs(draws.outputs) <= model.half_width)
        require(self.holds_inputs(draws.inputs) and bool(bounded), "its records leave their bounds")
        promised = (self.guarantee.delta, self.guarantee.path_curves)
        require(promised == (model.delta, (model.curve(records),)), OTHER_PROMISE)


PATHS = StateCodec(PathContents, "paths", KERNELS)
