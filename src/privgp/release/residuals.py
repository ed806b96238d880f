"""What two stages tell together: post-processing of a first measurement and of one of the residuals about
the curve learned from it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.optimize import brentq
from scipy.stats import norm

from privgp.gp.arithmetic import add_rows, one_thread
from privgp.gp.inference.learning import MANY, learn, learn_many
from privgp.gp.inference.posterior import Posterior, posterior
from privgp.gp.measurement import Functionals, Measurement
from privgp.gp.priors import Hyperparameters, spreads
from privgp.plan.cells import divide
from privgp.plan.designs.stages import Residuals
from privgp.plan.part import Part
from privgp.types import Array, Integers

MOST_CLIPPED = 0.7  # mean square of clipped residuals over the squared width: more tells no std
LEAST_SPREAD = 1e-6
TAILS = 0.1  # share of the variance that tails other than normal ones may have beyond the width
MOST_PLACES = 512  # at which the first curve's error is averaged
NODES_OF_A_SUM = 2  # of the first stage, where hyperparameters are learned from many
DIRECTIONS, PRODUCTS = 12, 8  # of what clipping may cut off; to find them
# Shares of the width that clipping may cut off, and how likely each is: 1.2% of exponential outputs' width.
CUT_OFF, LIKELY = np.array([0.001, 0.004, 0.012, 0.04]), np.array([0.4, 0.3, 0.2, 0.1])


@dataclass(frozen=True)
class LeftSquares:
    """The sum of squared residuals, which tells the scatter of outputs.

    Attributes
    ----------
    energy, noise_std : float
        In squared units of y, with noise, and the std of that.
    curve : array, (nodes,)
        What the residuals are about, less the middle of the bounds.
    cut_off : array, (measured, few)
        A factor of the covariance of what clipping may have cut off from the sums.

    """

    energy: float
    noise_std: float
    curve: Array
    cut_off: Array

    def put_into(self, f: Functionals, measured: Measurement) -> tuple[Functionals, Measurement]:
        """What is learned from, with this sum in place of that of squared outputs."""
        told = replace(measured, energy=self.energy, energy_noise_std=self.noise_std)
        return replace(f, energy_centre=self.curve, common=self.cut_off), told


@dataclass(frozen=True)
class FirstStage:
    """What the first stage tells.

    Attributes
    ----------
    plan : Part
        What both stages measure.
    residuals : Residuals
        How they divide the budget.
    measured : Measurement
        The first stage's numbers.
    learned : bool
        Whether hyperparameters are learned.

    """

    plan: Part
    residuals: Residuals
    measured: Measurement
    learned: bool

    @property
    def groups(self) -> Integers:
        """Which of the first stage's numbers every sum is a part of, (measured,)."""
        return self.residuals.groups_of(len(self.plan.strategy.matrix))

    @property
    def middle(self) -> float:
        return 0.5 * self.plan.y_bounds[0] + 0.5 * self.plan.y_bounds[1]

    @cached_property
    def posterior(self) -> Posterior:
        """The curve, as far as it is known."""
        f, priors = self.plan.functionals.add_up(self.groups), self.plan.priors
        if self.plan.asked is not None:
            priors = self.plan.asked.usual_priors(priors)
        with one_thread():
            models: tuple[Hyperparameters, ...] = (self.plan.start,)
            if self.learned and len(self.groups) > MANY:
                models = learn_many(f.join_nodes(self._neighbours), self.measured, priors)
            elif self.learned:
                models = learn(f, self.measured, priors)
            return posterior(f, self.measured, models, self.middle)

    @property
    def _neighbours(self) -> Integers:
        """Which nodes are close together, as far as the first stage's numbers tell, (nodes,)."""
        f = self.plan.functionals
        owners = self.groups[np.abs(f.weights).argmax(axis=0)]
        return divide(f.nodes / spreads(f.nodes), owners, NODES_OF_A_SUM)

    @property
    def clips(self) -> bool:
        """Whether residuals are clipped. Where outputs scatter over the whole range that would gain nothing:
        they are taken about the middle of the bounds then, as in the first stage."""
        return self.width < self.plan.half_width

    def curve_at(self, X: Array) -> Array:
        """What residuals are about at the rows of X: the mean of the curve, (rows,)."""
        with one_thread():
            return self.posterior.mean_at(X) if self.clips else np.full(len(X), self.middle)

    @cached_property
    def curve(self) -> Array:
        """The same at every distinct input, or part of a cell, (inputs,)."""
        return self.curve_at(self.plan.inputs)

    @cached_property
    def width(self) -> float:
        """Where residuals are clipped: at some stds of an output about the curve, whose own error counts."""
        nodes = self.plan.functionals.nodes
        with one_thread():
            some = nodes[:: -(-len(nodes) // MOST_PLACES)]
            unknown = self.posterior.mean_and_variance(some)[1]
        error = float(np.exp(np.mean(np.log(np.maximum(unknown, 1e-300)))))
        std = math.sqrt(self.posterior.noise_variance + error)
        return self.residuals.width(std, self.plan.half_width)

    @property
    def centre(self) -> tuple[Array, float]:
        """The curve at every row, and the width."""
        strategy = self.plan.strategy
        return self.curve[strategy.index], self.width  # type: ignore[union-attr]

    def together(self, second: Measurement) -> tuple[Measurement, LeftSquares | None]:
        """Both stages as one measurement of the same sums, and the sum of squared residuals.

        Clipping draws the mean of residuals towards 0, by the share of them that it leaves alone: they
        are divided by that share, for normal residuals of the std that their squares tell.
        """
        first, strategy, squares, kept = self.measured, self.plan.strategy, None, 1.0
        if second.energy is not None:
            total, steep = self.plan.functionals.energy_total, 1.0
            variance = clipped = second.energy / total
            if self.clips:
                variance = variance_before(clipped, self.width)
                kept = 1.0 - 2.0 * float(norm.sf(self.width / math.sqrt(variance)))
                steep = max(1.0, variance / clipped) if clipped > 0.0 else 1.0
        weights: Array = strategy.row_weights  # type: ignore[union-attr]
        moved = strategy.per_input(weights * (self.centre[0] - self.middle))  # type: ignore[union-attr]
        values, std = strategy.matrix @ moved + second.values / kept, second.noise_std / kept
        joined = join(first.values, first.noise_std, values, std, self._cut_off, self.groups)
        laplace = bool(first.laplace.all() and std < first.noise_std)  # what the larger share has
        both = replace(first, values=joined.values, noise_std=joined.std, is_laplace=laplace)
        if second.energy is not None:
            curve = self.curve_at(self.plan.functionals.nodes) - self.middle
            with one_thread():
                known = self._squares_about(curve, both, joined.common)
            tails = TAILS * total * variance * self.clips
            told = total * variance, math.hypot(steep * second.energy_noise_std, tails)
            squares = LeftSquares(*weigh(known, told), curve, joined.common)
        return both, squares

    def _squares_about(self, curve: Array, both: Measurement, common: Array) -> tuple[float, float]:
        """The sum of squared residuals about the first curve that the first stage's sum of squared outputs
        tells, whose tails are not cut off, and its std. ``both``: what both stages tell of the sums."""
        f, (best, *_) = replace(self.plan.functionals, common=common), self.posterior.components
        c = posterior(f, replace(both, is_laplace=False), (best.model,), 0.0).components[0]
        pulled = f.energy_of(curve[None, :])[0]
        moved = best.model.covariance(f.nodes) @ pulled
        product = float(moved @ c.mean_weights)  # the curve times the function
        unknown = float(pulled @ moved) - float(np.sum(np.square(c.half @ moved)))
        energy = (self.measured.energy or 0.0) - 2.0 * product + float(pulled @ curve)
        apart = 2.0 * math.sqrt(max(unknown, 0.0))
        return energy, math.hypot(self.measured.energy_noise_std, apart)

    @property
    def _cut_off(self) -> Array:
        """The covariance of what clipping cuts off from the sums if it is the width everywhere: half of it
        one number for all places, half of it a curve as smooth as the first one."""
        f, (best, *_) = self.plan.functionals, self.posterior.components
        with one_thread():
            K = best.model.smooth(f.nodes)
            K = 0.5 + 0.5 * K / float(np.mean(np.diag(K)))
            return np.asarray(self.clips * self.width**2 * f.carry(f.carry(K).T))


@dataclass(frozen=True)
class Joined:
    """Two measurements of the same sums as one.

    Attributes
    ----------
    values : array, (measured,)
        Of the sums.
    std : float
        Of independent noise.
    common : array, (measured, few)
        A factor of the covariance of what else is unknown of them.

    """

    values: Array
    std: float
    common: Array


def join(
    first: Array, first_std: float, second: Array, second_std: float, unit: Array, groups: Integers
) -> Joined:
    """The best estimate of sums s from ``first = G s + noise`` and ``second = s + b + noise``, where b is unknown.

    b is what clipping cut off, of which skewed outputs lose some: its covariance is a share of ``unit``, as large
    as the difference of both measurements makes it plausible. Where sums were added up, what the first
    stage tells of a total counts as if it had told as much of each: a little less than it does.

    Parameters
    ----------
    first : array, (groups,)
        The first measurement, of the sums of every group together.
    second : array, (measured,)
        The second measurement.
    first_std, second_std : float
        Of their noise.
    unit : array, (measured, measured)
        The covariance of b, up to its share.
    groups : array, (measured,)
        The group of every sum.

    """
    with one_thread():
        values, V = _main_directions(unit)
        values, added = np.maximum(values, 0.0), add_rows(V, groups)
        apart = first - add_rows(second, groups)
        noise = first_std**2 + second_std**2 * np.bincount(groups)
        # In units of the noise a share adds little rank: S = L (I + A D A^T) L.
        root = np.sqrt(noise)
        A, told = added / root[:, None], apart / root
        gram, line = A.T @ A, A.T @ told
        logs = np.array([_log_share(gram, line, c * c * values) for c in CUT_OFF])
        shares = LIKELY * np.exp(logs - logs.max())
        D = float(shares @ np.square(CUT_OFF) / shares.sum()) * values
        inner = cho_factor(np.eye(len(D)) + np.sqrt(D)[:, None] * gram * np.sqrt(D))
        half = cho_solve(inner, np.sqrt(D) * line)
        solved = (told - A @ (np.sqrt(D) * half)) / root  # cov(apart)^-1 apart
        found = second + second_std**2 * solved[groups] + V @ (D * (added.T @ solved))
        # What is left of b's directions beyond independent noise.
        least = 1.0 / (first_std**-2.0 + second_std**-2.0)
        R = (second_std**2 * added.T + D[:, None] * added.T) / root  # cov(V^T second, apart) L^-1
        shrunk = R @ A * np.sqrt(D)
        told_of = R @ R.T - shrunk @ cho_solve(inner, shrunk.T)
        left, W = eigh(np.diag(second_std**2 - least + D) - told_of)
    return Joined(found, math.sqrt(least), V @ (W * np.sqrt(np.maximum(left, 0.0))))


def _main_directions(unit: Array) -> tuple[Array, Array]:
    """The largest eigenvalues of a covariance and their directions, (few,) and (measured, few), about as well as
    a few products tell: those of thousands of numbers take long."""
    Q = np.random.default_rng(0).standard_normal((len(unit), min(2 * DIRECTIONS, len(unit))))
    for _ in range(PRODUCTS):
        Q = np.linalg.qr(unit @ Q)[0]
    values, W = eigh(Q.T @ unit @ Q)
    return values[-DIRECTIONS:], (Q @ W)[:, -DIRECTIONS:]


def _log_share(gram: Array, line: Array, variances: Array) -> float:
    """The log density of a difference, up to a constant, if directions have these variances besides noise."""
    root = np.sqrt(variances)
    factor, lower = cho_factor(np.eye(len(root)) + root[:, None] * gram * root)
    pulled = root * line
    fits = float(pulled @ cho_solve((factor, lower), pulled))
    return 0.5 * fits - float(np.log(np.diag(factor)).sum())


def weigh(*estimates: tuple[float, float]) -> tuple[float, float]:
    """The mean of independent estimates, weighted by one over their variances, and its std."""
    values, stds = np.transpose(estimates)
    precisions = np.maximum(stds, 1e-300) ** -2.0
    return float(precisions @ values / precisions.sum()), float(precisions.sum() ** -0.5)


def variance_after(std: float, width: float) -> float:
    """The mean square of a normal number of this std once it is clipped to +-width."""
    z = width / std
    inside = 1.0 - 2.0 * (z * float(norm.pdf(z)) + float(norm.sf(z)))
    return std * std * inside + width * width * 2.0 * float(norm.sf(z))


def variance_before(clipped: float, width: float) -> float:
    """The variance of a normal number whose mean square is ``clipped`` once it is clipped to +-width."""
    share = float(np.clip(clipped / width**2, LEAST_SPREAD, MOST_CLIPPED))
    std = brentq(lambda s: variance_after(s, 1.0) - share, 1e-4, 10.0)
    return float((std * width) ** 2)
