"""Choose a kernel for sample paths under a budget, from synthetic draws: no private data is read.
``min E loss(posterior, truth)`` over lengthscale, regularisation r and scale, subject to
``epsilon <= epsilon_0``: a coarse grid, then finer ones about its best cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr
from scipy.stats import qmc
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern

from privgp.gp.kernels.evaluate import evaluate, signal_and_noise
from privgp.gp.smoothers import stable_cholesky
from privgp.models.paths import PosteriorPaths
from privgp.plan.functions.paths import PathModel
from privgp.privacy.budget import check_budget
from privgp.question.rules import check_bounds, check_choice, domain_pairs
from privgp.types import Array, Bounds


class Posteriors(Protocol):
    """Posteriors of many datasets under one kernel of variance 1, for any ridge r^2."""

    def at(self, ridge: float) -> tuple[Array, Array]:
        """Mean and variance, each (draws, points)."""
        ...

    def effective_dimension(self, ridge: float) -> Array:
        """``tr K (K + r^2 I)^-1``, (draws,)."""
        ...


@dataclass(frozen=True)
class PriorDraws:
    """Synthetic datasets and the functions behind them.

    Attributes
    ----------
    inputs : (draws, records, columns)
    outputs : (draws, records), about the centre of their bounds
    points : (points, columns)
    truth : (draws, points), the functions there

    """

    inputs: Array = field(repr=False)
    outputs: Array = field(repr=False)
    points: Array = field(repr=False)
    truth: Array = field(repr=False)

    def __post_init__(self) -> None:
        for name in ("inputs", "outputs", "points", "truth"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        if self.inputs.ndim != 3 or self.points.ndim != 2 or self.truth.ndim != 2:
            raise ValueError(
                "prior draws need inputs (draws, records, columns) and truth (draws, points)."
            )
        (draws, records, columns), points = self.inputs.shape, len(self.points)
        shapes = self.outputs.shape, self.points.shape[1], self.truth.shape
        if shapes != ((draws, records), columns, (draws, points)) or 0 in (draws, records, points):
            raise ValueError("the parts of prior draws do not belong together.")
        if not all(np.all(np.isfinite(part)) for part in vars(self).values()):
            raise ValueError("prior draws contain NaN or infinity.")

    @property
    def records(self) -> int:
        """How many records each dataset has."""
        return int(self.inputs.shape[1])

    def posteriors(self, kernel: Kernel) -> Posteriors:
        """Their posteriors under a kernel of variance 1."""
        return ManyPosteriors(self, kernel)


class ManyPosteriors:
    """The posteriors of all draws under one unit kernel, for any ridge.

    Parameters
    ----------
    draws : synthetic
    kernel : one of variance 1

    """

    def __init__(self, draws: PriorDraws, kernel: Kernel) -> None:
        spectra, vectors = np.linalg.eigh([evaluate(kernel, X) for X in draws.inputs])
        self._spectra = np.maximum(spectra, 0.0)
        crosses = np.stack([evaluate(kernel, draws.points, X) for X in draws.inputs])
        self._crosses = crosses @ vectors
        self._outputs = np.einsum("jni,jn->ji", vectors, draws.outputs)
        self._squares = self._crosses**2

    def at(self, ridge: float) -> tuple[Array, Array]:
        """Mean and variance, each (draws, points), the kernel having variance 1.

        Parameters
        ----------
        ridge
            r^2, noise variance over kernel variance.

        """
        weights = 1.0 / (self._spectra + ridge)
        mean = np.einsum("jti,ji->jt", self._crosses, weights * self._outputs)
        variance = 1.0 - np.einsum("jti,ji->jt", self._squares, weights)
        return mean, np.maximum(variance, 1e-12)

    def effective_dimension(self, ridge: float) -> Array:
        """``tr K (K + r^2 I)^-1``, (draws,)."""
        return np.asarray((self._spectra / (self._spectra + ridge)).sum(axis=1))


LENGTHS, RIDGES = np.geomspace(0.1, 10.0, 7), np.geomspace(0.1, 300.0, 14)
SCALES = np.geomspace(5e-4, 8.0, 18)
ABOVE = np.array([1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0])  # times the least scale that is private
BEST, SPREAD = 3, 0.5
MOST_DRAWN = 5_000


class Task(Protocol):
    """What paths are for: the loss of posteriors N(mean, std^2), all (draws, points); (draws,)."""

    def loss(self, mean: Array, std: Array, truth: Array) -> Array: ...


@dataclass(frozen=True)
class ExcursionTask:
    """Where the function is at least a threshold. ``score="path"``: the expected share of points
    with a path on the wrong side; ``"cross-entropy"``: the paper's, of being above."""

    threshold: float = 0.0
    score: str = "path"

    def __post_init__(self) -> None:
        check_choice("score", self.score, ("path", "cross-entropy"))

    def loss(self, mean: Array, std: Array, truth: Array) -> Array:
        z = np.where(truth >= self.threshold, 1.0, -1.0) * (mean - self.threshold) / std
        wrong = ndtr(-z) if self.score == "path" else -log_ndtr(z)
        return np.asarray(wrong.mean(axis=1))


@dataclass(frozen=True)
class MeanTask:
    """The value of the function: the mean squared error of one path."""

    def loss(self, mean: Array, std: Array, truth: Array) -> Array:
        return np.asarray((np.square(mean - truth) + np.square(std)).mean(axis=1))


@dataclass(frozen=True)
class MaximumTask:
    """Where the function is highest: what is lost, on average, at the point where one path is highest,
    as one round of Thompson sampling takes it. Values of a path at the points are taken for independent,
    which overstates the loss of smooth paths. ``repeats``: paths per dataset, from a fixed seed."""

    repeats: int = 32

    def loss(self, mean: Array, std: Array, truth: Array) -> Array:
        normals = np.random.default_rng(0).standard_normal((self.repeats, mean.shape[1]))
        best = np.argmax(mean[:, None, :] + std[:, None, :] * normals, axis=2)
        return np.asarray(truth.max(axis=1) - np.take_along_axis(truth, best, axis=1).mean(axis=1))


@dataclass(frozen=True)
class ProbabilityTask:
    """The probability that the function is at least a threshold: its mean squared error (Brier score)
    as the posterior states it."""

    threshold: float = 0.0

    def loss(self, mean: Array, std: Array, truth: Array) -> Array:
        stated = ndtr((mean - self.threshold) / std)
        return np.asarray(np.square(stated - (truth >= self.threshold)).mean(axis=1))


@dataclass(frozen=True)
class Tuned:
    """The best setting found: ``paths``, not fitted, with what it guarantees and its mean loss."""

    paths: PosteriorPaths
    lengthscale: float
    regularisation: float
    scale: float
    loss: float
    epsilon: float


def draw_datasets(
    kernel: Kernel,
    noise_variance: float | None,
    *,
    rows: int,
    domain: Bounds,
    y_bounds: Sequence[float],
    draws: int = 20,
    points: int = 60,
    seed: int = 0,
) -> PriorDraws:
    """Simulated datasets for ``tune_for``, from a Gaussian process that the custodian believes in.

    Parameters
    ----------
    kernel, noise_variance
        Of the function, about the middle of the bounds, and of outputs about it; None: the kernel's
        WhiteKernel. Chosen without looking at the records.
    rows
        The number of records of each dataset.
    domain, y_bounds
        As ``PosteriorPaths`` has them. Inputs are uniform in the domain; functions and outputs are
        clipped to the bounds.
    draws, points
        How many datasets, and at how many points each function is known.
    seed
        Of public randomness.

    Returns
    -------
    PriorDraws
        Outputs and functions about the middle of the bounds.

    """
    low, high = np.array(domain_pairs("domain", domain)).T
    bottom, top = check_bounds("y_bounds", y_bounds)
    half, signal = 0.5 * top - 0.5 * bottom, signal_and_noise(kernel, noise_variance, len(low))
    for name, count in (("rows", rows), ("draws", draws), ("points", points)):
        if not 1 <= count <= MOST_DRAWN:
            raise ValueError(f"{name} must lie between 1 and {MOST_DRAWN:,}.")
    rng = np.random.default_rng(seed)
    places = low + (high - low) * qmc.Sobol(len(low), rng=rng).random(points)
    inputs = low + (high - low) * rng.random((draws, rows, len(low)))
    outputs, truth = [], []
    for X in inputs:
        L = stable_cholesky(evaluate(signal[0], np.vstack([places, X])))
        f = np.clip(L @ rng.standard_normal(len(L)), -half, half)
        truth.append(f[:points])
        y = f[points:] + np.sqrt(signal[1]) * rng.standard_normal(rows)
        outputs.append(np.clip(y, -half, half))
    return PriorDraws(inputs, np.array(outputs), places, np.array(truth))


def exponential(lengthscale: float) -> Kernel:
    return Matern(lengthscale, nu=0.5)


def tune_for(
    task: Task,
    prior_draws: PriorDraws,
    epsilon: float | None,
    *,
    domain: Bounds,
    y_bounds: Sequence[float],
    delta: float,
    n_paths: int = 1,
    family: Callable[[float], Kernel] = exponential,
    sensitivity: str | float = "auto",
    max_points: int = 2000,
    rounds: int = 2,
    lengthscales: Sequence[float] | None = None,
    regularisations: Sequence[float] | None = None,
) -> Tuned:
    """Find the setting of posterior paths with the least mean loss over simulated data, within the budget.

    Parameters
    ----------
    task : Task
        What the paths are for, with its loss.
    prior_draws : PriorDraws
        Simulated datasets with as many records as the data will have.
    epsilon : float or None
        The budget.
    delta : float
        The budget of the paths; without ``epsilon`` there is no limit.
    domain : bounds
        Public bounds of the inputs.
    y_bounds : (low, high)
        Public bounds of the outputs.
    n_paths : int, default 1
        The number of paths.
    family : callable, default exponential
        From a lengthscale to a kernel of variance 1.
    sensitivity : str or float, default "auto"
        As ``PosteriorPaths`` takes it.
    max_points : int, default 2000
        As ``PosteriorPaths`` takes them.
    rounds : int, default 2
        How often the best settings are searched more finely.
    lengthscales, regularisations : sequence of float, optional
        The coarse grid, two or more of each.

    Returns
    -------
    Tuned

    """
    if epsilon is not None:
        check_budget(epsilon, delta)
    paths = PosteriorPaths(
        family(1.0), 1.0, domain=domain, y_bounds=y_bounds, n_paths=n_paths, delta=delta,
        sensitivity=sensitivity, max_points=max_points,
    )  # fmt: skip
    search = _Search(task, prior_draws, epsilon, paths._model(), family)
    width = float(np.mean(search.model.widths))
    lengths = LENGTHS * width if lengthscales is None else _grid("lengthscales", lengthscales)
    ridges = RIDGES if regularisations is None else _grid("regularisations", regularisations)
    for length in lengths:
        search.look(float(length), ridges)
    for spread in (SPREAD**k for k in range(1, rounds + 1)):
        step_l, step_r = (float((a[1] / a[0]) ** spread) for a in (lengths, ridges))
        cells: dict[float, set[float]] = {}
        for _, length, r, _ in search.best[:BEST]:
            for factor in (1.0 / step_l, 1.0, step_l):
                near = cells.setdefault(float(f"{length * factor:.9g}"), set())
                near.update(float(f"{r * step:.9g}") for step in (1.0 / step_r, 1.0, step_r))
        for length, near in cells.items():
            search.look(length, np.array(sorted(near)))
    if not search.best:
        raise ValueError("no setting of the grid keeps to the budget: ask for a larger epsilon.")
    loss, length, r, scale = search.best[0]
    model = search.model_at(length, r, scale)
    paths.set_params(kernel=model.kernel, noise_variance=model.noise_variance)
    return Tuned(paths, length, r, scale, loss, model.epsilon(prior_draws.records))


def _grid(name: str, values: object) -> Array:
    """Positive numbers in rising order, as given by the caller."""
    try:
        grid = np.unique(np.asarray(values, dtype=np.float64).ravel())
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers.") from None
    if len(grid) < 2 or not (np.all(np.isfinite(grid)) and grid[0] > 0):
        raise ValueError(f"{name} must be two or more positive, finite numbers.")
    return grid


@dataclass
class _Search:
    """The settings tried so far, and those of least loss: (loss, lengthscale, r, scale)."""

    task: Task
    draws: PriorDraws
    epsilon: float | None
    model: PathModel
    family: Callable[[float], Kernel]
    tried: set[tuple[float, float]] = field(default_factory=set)
    best: list[tuple[float, float, float, float]] = field(default_factory=list)

    def look(self, length: float, regularisations: Array) -> None:
        """Try these r with all scales that keep to the budget."""
        new = [r for r in regularisations.tolist() if (length, r) not in self.tried]
        self.tried.update((length, r) for r in new)
        feasible = {r: scales for r in new if len(scales := self._feasible(length, r))}
        if not feasible:
            return
        posteriors = self.draws.posteriors(self.family(length))
        for r, scales in feasible.items():
            mean, variance = posteriors.at(r * r)
            stds = np.sqrt(variance) * scales[:, None, None]
            losses = [float(self.task.loss(mean, std, self.draws.truth).mean()) for std in stds]
            loss, scale = min(zip(losses, scales.tolist(), strict=True))
            self.best.append((loss, length, r, scale))
        self.best.sort()

    def model_at(self, length: float, r: float, scale: float) -> PathModel:
        kernel = ConstantKernel(scale**2) * self.family(length)
        return replace(self.model, kernel=kernel, noise_variance=(r * scale) ** 2)

    def _feasible(self, length: float, r: float) -> Array:
        """The scales to try: from the least one that keeps to the budget."""
        scales, limit = SCALES * self.model.half_width, self.epsilon
        if limit is None:
            return scales

        def excess(log_scale: float) -> float:
            model = self.model_at(length, r, math.exp(log_scale))
            return model.epsilon(self.draws.records) - limit

        least, most = math.log(scales[0]), math.log(scales[-1])
        if excess(most) > 0:
            return np.empty(0)
        if excess(least) <= 0:
            return scales
        t = float(brentq(excess, least, most, xtol=3e-3))
        while excess(t) > 0:
            t += 1e-3
        return math.exp(t) * ABOVE
