"""From the number of records, the bounds and a budget to a Plan for many private inputs.

Candidates are features of several lengthscales, several numbers of them, and several weights of their
Gram matrix. Taken is what leaves the least error to expect for records spread evenly over the domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from privgp.gp.features import principal_features, spread_points
from privgp.gp.inference.posterior import posterior
from privgp.gp.kernels.evaluate import evaluate
from privgp.gp.measurement import Measurement
from privgp.gp.priors import Hyperparameters
from privgp.plan.bins.bins import design_models
from privgp.plan.build import Budget, Question
from privgp.plan.features.features import Features
from privgp.plan.features.masses import (
    SUPPORT,
    FeatureRecords,
    even_functionals,
    even_masses,
    even_points,
    feature_functionals,
)
from privgp.plan.inputs.start import initial_priors
from privgp.plan.outcomes.links import outcome_model
from privgp.plan.part import Part
from privgp.privacy.noise import PURE
from privgp.types import Array

LENGTHSCALES = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0)  # shares of the sides of the domain
NUMBERS = (8, 15, 30, 60, 100)
FIRST_NUMBER = 60
GRAM_WEIGHTS = (float(np.sqrt(0.5)), 1.0, float(np.sqrt(2.0)))
AS_GOOD = 1.003  # fewer features are taken if their error is larger by no more than this
CLEARLY = 1.1  # worse by this much: what follows is worse still
TARGETS = 256


@dataclass(frozen=True)
class Aim:
    """What features are chosen for.

    ``low``, ``high``: (inputs,), the domain; ``rows``: the number of records; ``models``: of f;
    ``half_width``: of the bounds of the outputs; ``classes``, ``energy``: as strategies have them;
    ``unit``: of rates, where outputs are counts; ``most``: at most this many features.
    """

    low: Array
    high: Array
    rows: int
    models: Sequence[Hyperparameters]
    targets: Array
    half_width: float
    budget: Budget
    classes: int = 1
    energy: bool = True
    unit: float | None = None
    most: int | None = None

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
        return made if self.energy else replace(made, energy_weight=0.0)

    def error(self, features: Features) -> float:
        """Expected root mean square at the targets over the models."""
        noise_std = self.budget.noise_of(features).std
        points, masses, covariance = even_masses(features, noise_std)
        std = features.sum_std(noise_std) * self.half_width
        nothing = Measurement(np.zeros(len(features.matrix)), std, None, 0.0)
        variances = []
        for model, squares in zip(self.models, self.squares, strict=True):
            measured = feature_functionals(features, points, masses, covariance, squares, self.unit)
            left = posterior(measured, nothing, [model], 0.0)
            variances.append(left.mean_and_variance(self.targets)[1])
        return float(np.sqrt(np.mean(variances)))


def make_features_part(
    rows: int,
    x_bounds: Sequence[tuple[float, float]],
    question: Question,
    budget: Budget,
    *,
    people: bool = False,
) -> Part:
    """Choose the measurement. Sees the number of records, never an input or an output."""
    if question.mechanism in PURE or budget.delta == 0.0:
        raise ValueError(
            f"{len(x_bounds)} private inputs need Gaussian noise: give delta > 0 and mechanism='auto' "
            "or mechanism='gaussian'."
        )
    low, high = np.array(x_bounds, dtype=float).T
    # Two points with the mean and the spread of an even distribution over the domain.
    middle, spread = 0.5 * low + 0.5 * high, (high - low) / np.sqrt(12.0)
    priors = initial_priors(np.vstack([middle - spread, middle + spread]), question, learned=False)
    everywhere = spread_points(low, high, SUPPORT, 3)
    goal = question.goal(everywhere, np.ones(SUPPORT))
    models = design_models(priors[0]) if question.learned else [priors[0].start]
    some = goal[0][:: -(-len(goal[0]) // TARGETS)]
    asked = question.of_records
    aim = Aim(low, high, rows, models, some, question.half_width, budget, **asked)
    features = best_features(aim)
    if people:
        features = features.of_people()
    noise_std = budget.noise_of(features).std
    measured = even_functionals(features, noise_std, priors[0].start, aim.unit)
    domain = tuple(zip(low.tolist(), high.tolist(), strict=True))
    kind = FeatureRecords(domain, question.kernel is None, aim.unit)
    return question.part(budget, features, measured, priors, goal, kind)


def best_features(aim: Aim) -> Features:
    """First the lengthscale, then the number, then the weight of the Gram matrix."""
    first = [aim.features(share, FIRST_NUMBER, 1.0) for share in LENGTHSCALES]
    best = _best(first, aim)
    best = _best([aim.features(best.lengthscale, number, 1.0) for number in NUMBERS], aim)
    return _best([replace(best, gram_weight=weight) for weight in GRAM_WEIGHTS], aim)


def _best(ladder: Sequence[Features], aim: Aim) -> Features:
    best, least = ladder[0], np.inf
    for features in ladder:
        error = aim.error(features)
        if error * AS_GOOD < least:
            best, least = features, error
        elif error > CLEARLY * least:
            break
    return best
