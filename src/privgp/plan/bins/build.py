"""From the number of records, the bounds and a budget to a Plan for private inputs.

Up to three inputs have bins, more have features. Candidates for bins are regular grids with as many bins per input: for pure noise plain; for Gaussian noise
plain and, where they are somewhat finer than the best plain ones, with the noise-aware design on
them. Candidates for features are several lengthscales, several numbers of them, and several weights of
their Gram matrix. Taken is the one with the least error to expect at the targets, for records spread
evenly over the domain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from privgp.gp.features import principal_features, spread_points
from privgp.gp.inference.posterior import posterior
from privgp.gp.kernels.evaluate import evaluate
from privgp.gp.measurement import Functionals, Measurement
from privgp.gp.priors import Hyperparameters, Prior
from privgp.plan.bins.bins import Bins, Grid, HalvedBins, design_models
from privgp.plan.bins.counts import Records, bin_functionals, counts_after_noise, even_hypotheses
from privgp.plan.build import Budget, Planner, Question, initial_priors
from privgp.plan.designs.noise_aware import aware_design
from privgp.plan.features import (
    SUPPORT,
    FeatureRecords,
    Features,
    even_functionals,
    even_masses,
    even_points,
    feature_functionals,
)
from privgp.plan.inputs.inputs import Inputs
from privgp.plan.labels import outcome_model
from privgp.plan.part import Part
from privgp.privacy.noise import GAUSSIAN, LAPLACE, PURE
from privgp.types import Array, Pair

WEIGHTS = np.geomspace(0.01, 0.3, 80)
STEPS = (-1.0, 0.0, 1.0)  # standard deviations of the prior
# A 90% interval whose std is wrong by a small share d has an interval score worse by the share
# z^2 d^2 / 2, z = 1.645; of a variance wrong by the share r that is z^2 r^2 / 8.
SCORE_LOSS = 1.645**2 / 8.0


@dataclass(frozen=True)
class Scatter:
    """The prior of the variance of outputs about f, in squared half-widths.

    Attributes
    ----------
    variances : low, middle and high ones, (3,)
    log_std : the prior std of their logarithm

    """

    variances: Array
    log_std: float

    @classmethod
    def of(cls, prior: Prior, half_width: float) -> Scatter:
        """From the prior of the hyperparameters; bounded outputs have no variance above 1."""
        log_std = float(prior.root[-1, -1]) if prior.noise_free else 0.0
        middle = prior.start.noise_variance / half_width**2
        return cls(np.minimum(1.0, middle * np.exp(log_std * np.array(STEPS))), log_std)


def energy_weight(
    epsilon: float, rows: int, scatter: Scatter, lightest: float, heaviest: float
) -> float:
    """The best weight of the energy for this many rows.

    Parameters
    ----------
    epsilon
        epsilon of the measurement.
    rows
        How many records there are.
    scatter
        The prior of the scatter.
    lightest, heaviest
        The variance of f to expect without an energy and with one of the largest
        weight, in squared half-widths.

    """
    growth = np.log1p(WEIGHTS / 2.0)
    power = np.log(heaviest / lightest) / growth[-1]
    error = lightest * np.exp(power * growth)
    lost = 0.5 * np.log(error) + score_lost(WEIGHTS, epsilon, rows, scatter, error)
    return float(WEIGHTS[np.argmin(lost)])


def score_lost(weights: Array, epsilon: float, rows: int, scatter: Scatter, error: Array) -> Array:
    """The share by which intervals of new outputs score worse for an uncertain scatter.

    A new output has variance ``s^2 + error``. Two things tell it: the prior, and the noisy mean
    square of the outputs, whose noise has the std ``sqrt(2) (2 + w) / (epsilon w rows)``.

    Parameters
    ----------
    weights
        w, (weights,).
    epsilon, rows, scatter
        As in ``energy_weight``.
    error
        (weights,), the variance of f for each of them.

    """
    noise = np.sqrt(2.0) * (2.0 + weights) / (epsilon * weights * rows)
    total = scatter.variances[:, None] + error
    measured = np.square(noise / total)
    before = np.square(scatter.log_std * scatter.variances[:, None] / total)
    return np.asarray(SCORE_LOSS * np.mean(measured * before / (measured + before), axis=0))


GRIDS = {1: (1, 2, 4, 8, 16, 32, 64), 2: (1, 2, 4, 7, 10, 14, 20), 3: (1, 2, 3, 5, 8)}
MOST_MEASURED = {1: 64, 2: 100, 3: 120}
PURE_GRIDS = {
    1: (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64),
    2: (1, 2, 3, 4, 5, 7, 8, 10, 12, 14, 17, 20),
    3: (1, 2, 3, 4, 5, 6, 8),
}
AS_GOOD = 1.003  # coarser bins or fewer features are taken if their error is larger by no more
CLEARLY = 1.1  # worse by this much: what follows is worse still


@dataclass(frozen=True)
class Domain:
    """Where private inputs lie, ``low`` and ``high``, (inputs,) each; ``rows``: the number of records, or
    of ``people`` whose records are protected together."""

    low: Array
    high: Array
    rows: int
    people: bool

    @property
    def pairs(self) -> tuple[Pair, ...]:
        return tuple(zip(self.low.tolist(), self.high.tolist(), strict=True))

    def priors(self, question: Question) -> tuple[Prior, ...]:
        """From two points with the mean and the spread of an even distribution over the domain."""
        middle, spread = 0.5 * self.low + 0.5 * self.high, (self.high - self.low) / np.sqrt(12.0)
        return initial_priors(
            np.vstack([middle - spread, middle + spread]), question, learned=False
        )

    def protect(self, strategy: Any) -> Any:
        """The sums of records as they are, or of the records of one person together."""
        return strategy.of_people() if self.people and strategy is not None else strategy


@dataclass(frozen=True)
class Aim:
    """What a measurement is chosen for, all that a plan may know of the records among it.

    ``low``, ``high``: (inputs,), the domain; ``rows``: the number of records; ``models``: of f;
    ``half_width``: of the bounds of the outputs; ``classes``, ``energy``: as strategies have them;
    ``unit``: of rates, where outputs are counts; ``most``: at most this many bins or features, None: as
    many as are best; ``weighted``: whether records have weights.
    """

    low: Array
    high: Array
    rows: int
    models: Sequence[Hyperparameters]
    targets: Array
    half_width: float
    classes: int = 1
    energy: bool = True
    unit: float | None = None
    most: int | None = None
    weighted: bool = False

    def error_of(
        self, strategy: Any, noise_std: float, each: Iterable[tuple[Hyperparameters, Functionals]]
    ) -> float:
        """Expected root mean square at the targets over models, given what is measured under each."""
        std = strategy.sum_std(noise_std) * self.half_width
        nothing = Measurement(np.zeros(len(strategy.matrix)), std, None, 0.0)
        variances = [
            posterior(measured, nothing, [model], 0.0).mean_and_variance(self.targets)[1]
            for model, measured in each
        ]
        return float(np.sqrt(np.mean(variances)))


Candidate = TypeVar("Candidate")


def least_error(
    ladder: Sequence[Candidate], error_of: Callable[[Candidate], float]
) -> tuple[Candidate, float]:
    """The first of the (nearly) best candidates, and its error; what follows a clearly worse one is
    worse still."""
    best, least = ladder[0], np.inf
    for each in ladder:
        error = error_of(each)
        if error * AS_GOOD < least:
            best, least = each, error
        elif error > CLEARLY * least:
            break
    return best, float(least)


@dataclass(frozen=True, kw_only=True)
class BinAim(Aim):
    """What bins are chosen for; ``scatter``: of outputs about f."""

    scatter: Scatter

    def grids(self, ladder: Sequence[int]) -> tuple[int, ...]:
        """The numbers of bins per input to try, of those in ``ladder`` and the largest allowed."""
        if self.most is None:
            return tuple(ladder)
        # A whole number of bins per input: rounding of the root must not lose one.
        finest = min(int(self.most ** (1.0 / len(self.low)) + 1e-9), ladder[-1])
        return (*(parts for parts in ladder if parts < finest), finest)

    def bins(self, parts: int, kind: type[Bins] = Bins, **energy_and_law: Any) -> Bins:
        """Plain bins, as many per input."""
        shape = (parts,) * len(self.low)
        B, asked = np.eye(parts ** len(shape)), {**energy_and_law, "classes": self.classes}
        asked["weighted"] = self.weighted
        if not self.energy:
            asked["energy_weight"] = 0.0
        return kind(self.low, self.high, shape, self.rows, B, **asked)

    def error(self, bins: Bins, noise_std: float) -> float:
        """Expected root mean square at the targets over the models, with this noise on every number."""
        counts = counts_after_noise(bins, bins.count_std(noise_std), None)
        measured = [(m, bin_functionals(bins, *counts, m, unit=self.unit)) for m in self.models]
        return self.error_of(bins, noise_std, measured)

    def best_of(self, ladder: Sequence[Bins], noise_std: float) -> tuple[Bins, float]:
        """The coarsest of the best bins, and their error."""
        return least_error(ladder, lambda bins: self.error(bins, noise_std))


def make_records_part(
    rows: int,
    x_bounds: Sequence[tuple[float, float]],
    question: Question,
    budget: Budget,
    *,
    people: bool = False,
) -> Part:
    """Choose the measurement. Sees the number of records, never an input or an output.

    ``people``: all records of one person are to be protected together; ``rows`` is of people then.
    """
    low, high = np.array(x_bounds, dtype=float).T
    domain = Domain(low, high, rows, people)
    if len(low) not in GRIDS:  # bins over many inputs would be nearly all empty
        return _features_part(domain, question, budget)
    priors, finest = domain.priors(question), Grid(low, high, (GRIDS[len(low)][-1],) * len(low))
    goal = question.goal(finest.centres(), np.ones(finest.count))
    half, models = question.half_width, design_models(priors[0])
    asked = {**question.of_records, "scatter": Scatter.of(priors[0], half)}
    aim = BinAim(low, high, rows, models, goal[0], half, **asked)
    bins, rival = map(domain.protect, _choose(aim, question, budget))
    counts = counts_after_noise(bins, bins.count_std(budget.noise_of(bins).std), None)
    measured = bin_functionals(bins, *counts, priors[0].start, unit=aim.unit)
    kind = Records(domain.pairs, question.kernel is None, aim.unit)
    return question.part(budget, bins, measured, priors, goal, kind, rival)


def _choose(aim: BinAim, question: Question, budget: Budget) -> tuple[Bins, Bins | None]:
    """The measurement with the least error to expect, and the best with the other law of noise."""
    auto = question.mechanism == "auto"
    law = LAPLACE if auto else question.mechanism
    energy = question.learned and aim.energy
    if law in PURE and (not auto or budget.delta == 0):
        return best_pure_bins(aim, budget, law, energy=energy)[0], None
    gaussian, error = best_bins(aim, budget.std_for(aim.bins(1).move))
    if not auto:
        return gaussian, None
    pure, pure_error = best_pure_bins(aim, budget, law, energy=energy)
    return (pure, gaussian) if pure_error < error else (gaussian, pure)


def best_bins(aim: BinAim, noise_std: float) -> tuple[Bins, float]:
    """The bins and sums of (nearly) the least error with this noise on every number, and that error."""
    grids = aim.grids(GRIDS[len(aim.low)])
    best, least = aim.best_of([aim.bins(parts) for parts in grids], noise_std)
    # The noise-aware design wants bins finer than the best plain ones, but not much.
    place = grids.index(best.shape[0])
    for parts in grids[place + 1 : place + 3] or grids[-1:]:
        bins = aware_bins(parts, aim, noise_std)
        error = aim.error(bins, noise_std)
        if error * AS_GOOD < least:
            best, least = bins, error
    return best, least


def best_pure_bins(
    aim: BinAim, budget: Budget, law: str = LAPLACE, *, energy: bool = True
) -> tuple[Bins, float]:
    """The same for pure noise, which wants plain bins: a mix would put a record in several."""
    kind: dict[str, Any] = {"kind": HalvedBins, "energy_weight": 0.0, "law": law}
    ladder = [aim.bins(parts, **kind) for parts in aim.grids(PURE_GRIDS[len(aim.low)])]
    best, least = aim.best_of(ladder, budget.noise_of(ladder[0]).std)
    if not energy:
        return best, least
    heavy = replace(best, energy_weight=float(WEIGHTS[-1]))
    each = (least, aim.error(heavy, budget.noise_of(heavy).std))
    lightest, heaviest = (float((error / aim.half_width) ** 2) for error in each)
    weight = energy_weight(budget.epsilon, aim.rows, aim.scatter, lightest, heaviest)
    ladder = [replace(bins, energy_weight=weight) for bins in ladder]
    return aim.best_of(ladder, budget.noise_of(ladder[0]).std)


def aware_bins(parts: int, aim: BinAim, noise_std: float) -> Bins:
    """The noise-aware design for even records, made safe for private inputs.

    Its columns b get norm at most 1; if their least inner product is -rho < 0, a row of sqrt(rho)
    lifts it to 0, and all is scaled down by sqrt(1 + rho).
    """
    bins = aim.bins(parts)
    variance = (bins.sum_std(noise_std) * aim.half_width) ** 2
    hypotheses = even_hypotheses(bins, aim.models, aim.targets, aim.unit)
    B = aware_design(hypotheses, variance, min(MOST_MEASURED[len(bins.shape)], bins.count))
    B = B / max(1.0, float(np.linalg.norm(B, axis=0).max()) * (1.0 + 1e-12))
    rho = max(0.0, -float((B.T @ B).min())) + 1e-12
    lifted = np.vstack([B, np.full((1, bins.count), np.sqrt(rho))])
    return replace(bins, matrix=np.asarray(lifted / (np.sqrt(1.0 + rho) * (1.0 + 1e-12))))


LENGTHSCALES = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0)  # shares of the sides of the domain
NUMBERS = (8, 15, 30, 60, 100)
FIRST_NUMBER = 60
GRAM_WEIGHTS = (float(np.sqrt(0.5)), 1.0, float(np.sqrt(2.0)))
TARGETS = 256


@dataclass(frozen=True, kw_only=True)
class FeatureAim(Aim):
    """What features are chosen for, within this budget; ``most``: at most this many of them."""

    budget: Budget

    @cached_property
    def squares(self) -> list[Array]:
        """The covariances of what is summed at the points that stand for even records, under every
        model."""
        points = even_points(self.low, self.high)
        each = (outcome_model(model, self.unit) for model in self.models)
        return [evaluate(model.kernel, points) for model in each]

    def features(self, lengthscale: float, number: int, gram_weight: float) -> Features:
        number = number if self.most is None else min(number, self.most)
        of = principal_features(self.low, self.high, lengthscale, number)
        made = Features(**vars(of), rows=self.rows, gram_weight=gram_weight, classes=self.classes)
        made = replace(made, weighted=self.weighted)
        return made if self.energy else replace(made, energy_weight=0.0)

    def error(self, features: Features) -> float:
        """Expected root mean square at the targets over the models."""
        noise_std = self.budget.noise_of(features).std
        known = features, *even_masses(features, noise_std)
        each = zip(self.models, self.squares, strict=True)
        measured = [(model, feature_functionals(*known, own, self.unit)) for model, own in each]
        return self.error_of(features, noise_std, measured)


def _features_part(domain: Domain, question: Question, budget: Budget) -> Part:
    """The part of a plan for more private inputs than bins can be over."""
    if question.mechanism in PURE or budget.delta == 0.0:
        raise ValueError(
            f"{len(domain.low)} private inputs need Gaussian noise: give delta > 0 and "
            "mechanism='auto' or mechanism='gaussian'."
        )
    priors, everywhere = domain.priors(question), spread_points(domain.low, domain.high, SUPPORT, 3)
    goal = question.goal(everywhere, np.ones(SUPPORT))
    models = design_models(priors[0]) if question.learned else [priors[0].start]
    some = goal[0][:: -(-len(goal[0]) // TARGETS)]
    asked = {**question.of_records, "budget": budget}
    own = domain.low, domain.high, domain.rows
    aim = FeatureAim(*own, models, some, question.half_width, **asked)
    features = domain.protect(best_features(aim))
    measured = even_functionals(features, budget.noise_of(features).std, priors[0].start, aim.unit)
    kind = FeatureRecords(domain.pairs, question.kernel is None, aim.unit)
    return question.part(budget, features, measured, priors, goal, kind)


def best_features(aim: FeatureAim) -> Features:
    """First the lengthscale, then the number, then the weight of the Gram matrix."""
    first = [aim.features(share, FIRST_NUMBER, 1.0) for share in LENGTHSCALES]
    best, _ = least_error(first, aim.error)
    numbers = [aim.features(best.lengthscale, number, 1.0) for number in NUMBERS]
    best, _ = least_error(numbers, aim.error)
    weights = [replace(best, gram_weight=weight) for weight in GRAM_WEIGHTS]
    return least_error(weights, aim.error)[0]


@dataclass(frozen=True)
class PrivateInputs:
    """Private records on a declared domain. ``people``: whether all records of one person are
    protected together; ``count`` is then of people."""

    count: int
    x_bounds: tuple[Pair, ...]
    people: bool

    def outermost(self, inputs: Inputs | None) -> None:
        return None

    def distributions(self, mechanism: str, delta: float) -> tuple[str, ...]:
        if mechanism != "auto":
            return (mechanism,)
        if len(self.x_bounds) not in GRIDS:  # features are measured with Gaussian noise alone
            return (GAUSSIAN,)
        return (LAPLACE,) if delta == 0 else (GAUSSIAN, LAPLACE)

    def plan(self, question: Question, budget: Budget, earlier: Any = None) -> Part:
        made = make_records_part(self.count, self.x_bounds, question, budget, people=self.people)
        again: Part = made if earlier is None else earlier.repeat_measurement(made)
        return again

    def planner(self, question: Question, budget: Budget, earlier: object = None) -> Planner:
        def plan(law: str) -> tuple[Part, float]:
            made = self.plan(replace(question, mechanism=law), budget, earlier)
            return made, float(np.log(made.starting_error))

        return plan
