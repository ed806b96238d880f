"""From the number of records, the bounds and a budget to a Plan for private inputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privgp.plan.bins.bins import Bins, centres
from privgp.plan.bins.counts import bin_functionals, counts_given
from privgp.plan.bins.grids import GRIDS, Aim, Domain, best_bins, best_pure_bins, design_models
from privgp.plan.bins.records import Records
from privgp.plan.build import Budget, Question
from privgp.plan.inputs.start import starting_priors
from privgp.plan.plan import Plan
from privgp.privacy.noise import LAPLACE, PURE


def make_records_plan(
    rows: int, x_bounds: Sequence[tuple[float, float]], question: Question, budget: Budget
) -> Plan:
    """Choose the measurement. Sees the number of records, never an input or an output."""
    low, high = np.array(x_bounds, dtype=float).T
    width = question.y_bounds[1] - question.y_bounds[0]
    # Two points with the mean and the spread of an even distribution over the domain.
    middle, spread = 0.5 * low + 0.5 * high, (high - low) / np.sqrt(12.0)
    even = np.vstack([middle - spread, middle + spread])
    priors = starting_priors(even, width, question.kernel, question.noise_variance, learned=False)
    targets = question.targets
    if targets is None:
        targets = centres(low, high, (GRIDS[len(low)][-1],) * len(low))
    aim = Aim(design_models(priors[0]), targets, 0.5 * width)
    bins, rival = _choose(Domain(low, high, rows), aim, question, budget)
    drawn = budget.noise_of(bins)
    start = priors[0].start
    return Plan(
        epsilon=budget.epsilon,
        delta=budget.delta,
        y_bounds=question.y_bounds,
        objective="posterior",
        reconstruct="posterior",
        targets=targets,
        target_weights=np.ones(len(targets)),
        strategy=bins,
        functionals=bin_functionals(
            bins, *counts_given(bins, bins.sum_std(drawn.std), None), start
        ),
        noise=drawn,
        priors=priors,
        kind=Records(tuple(zip(low.tolist(), high.tolist(), strict=True)), question.kernel is None),
        rival=rival,
    )


def _choose(
    domain: Domain, aim: Aim, question: Question, budget: Budget
) -> tuple[Bins, Bins | None]:
    """The measurement with the least error to expect, and the best with the other law of noise."""
    auto = question.mechanism == "auto"
    law = LAPLACE if auto else question.mechanism
    if law in PURE and (not auto or budget.delta == 0):
        return best_pure_bins(domain, aim, budget, law, energy=question.learned)[0], None
    gaussian, error = best_bins(domain, aim, budget.noise_for(1, 2.0, 0.0).std)
    if not auto:
        return gaussian, None
    pure, pure_error = best_pure_bins(domain, aim, budget, law, energy=question.learned)
    return (pure, gaussian) if pure_error < error else (gaussian, pure)
