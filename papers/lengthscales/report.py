"""Figure 4 of the first paper, and what its private choice of hyperparameters costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import numpy as np
from matplotlib.figure import Figure
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.model_selection import ShuffleSplit

from papers.lengthscales.experiment import (
    experiment_results,
    experiment_text,
    selection_experiment,
)
from papers.lengthscales.selection import (
    moved_and_bound,
    papers_probabilities,
    squared_errors,
)
from papers.shared.choices import permute_and_flip_probabilities
from papers.shared.data import kung
from papers.shared.report import Report, Request, Result, Section, judged
from privgp.gp.priors import Hyperparameters
from privgp.models.regressor import PrivateGPRegressor
from privgp.models.search.outputs import privacy_error
from privgp.pictures import style
from privgp.plan.search.folds import folds_of, public_splits
from privgp.privacy.noise import GaussianNoise
from privgp.privacy.selection import selection_scale
from privgp.types import Array
from privgp.vault.select import root_utilities

BOUNDS = (75.0, 175.0)
DELTA = 0.01
SIGNAL, NOISE = 25.0**2, 0.3 * 25.0**2  # the papers' program, where heights have variance 1
LENGTHSCALES = tuple(float(round(v, 1)) for v in np.geomspace(3.0, 81.0, 7))
EPSILONS = (math.inf, 5.0, 1.0, 0.5, 0.2)  # of the release; infinite: no privacy
SELECTION_EPSILON = 1.0


@dataclass(frozen=True)
class Probabilities:
    """Of choosing each lengthscale at each epsilon of the release, (epsilons, lengthscales)."""

    epsilons: tuple[float, ...]
    lengthscales: tuple[float, ...]
    papers: Array
    default: Array
    splits: int

    def most_probable(self, which: Array) -> list[float]:
        return [self.lengthscales[int(np.argmax(row))] for row in which]


def run(request: Request) -> Report:
    """The probabilities by the papers' method and by the root utility with permute-and-flip."""
    X, y = kung(request)
    found = lengthscale_probabilities(X, y, 5 if request.quick else 100, request)
    cost = selection_experiment(X, y, *((1, 5) if request.quick else (10, 100)), request)
    request.progress(1.0, "done")
    results = tuple(
        Result(f"most probable lengthscale in years, {_named(epsilon)}", None, papers, default)
        for epsilon, papers, default in zip(
            found.epsilons,
            found.most_probable(found.papers),
            found.most_probable(found.default),
            strict=True,
        )
    )
    moved, bound = moved_and_bound()
    excess = Result("true move of the papers' utility over its bound", 1.0, moved / bound, None)
    return Report(
        "lengthscales",
        "Figure 4: privacy and the choice of a lengthscale",
        (*results, excess, *experiment_results(cost)),
        (
            Section("Figure 4", figure_text(found, len(X)), _figure(found, len(X))),
            Section("What the choice costs", experiment_text(cost)),
            Section("Not private as published", _private()),
        ),
    )


def lengthscale_probabilities(
    X: Array,
    y: Array,
    splits: int = 5,
    request: Request | None = None,
    *,
    epsilons: tuple[float, ...] = EPSILONS,
    lengthscales: tuple[float, ...] = LENGTHSCALES,
    selection_epsilon: float = SELECTION_EPSILON,
) -> Probabilities:
    """Probabilities of the lengthscales over so many random splits (a tenth is tested).

    Papers: the sum of squared errors plus the variance of cloaking noise (log-determinant design,
    Hall's calibration), the exponential mechanism, their sensitivity: not private. Default: the
    root of squared errors plus what privacy does to the default release, permute-and-flip.
    """
    width, centre = BOUNDS[1] - BOUNDS[0], 0.5 * (BOUNDS[0] + BOUNDS[1])
    parts = public_splits(ShuffleSplit(splits, test_size=0.1, random_state=0), X)
    tested = sum(len(test) for _, test in parts)
    models = [Hyperparameters(ConstantKernel(SIGNAL) * RBF(each), NOISE) for each in lengthscales]
    clipped = np.clip(y, *BOUNDS) - centre
    both = [squared_errors(clipped, width, folds_of(m, X, parts)) for m in models]
    squares, bounds = (np.array(column) for column in zip(*both, strict=True))
    papers, default = [], []
    for done, epsilon in enumerate(epsilons):
        cloaking, released = [], []
        for place, model in enumerate(models):
            if request is not None:
                share = 0.5 * (done + place / len(models)) / len(epsilons)
                request.progress(share, f"lengthscales, {_named(epsilon)}")
            cloaking.append(_cloaking_variance(model, X, epsilon))
            released.append(_release_error(model, X, epsilon))
        papers.append(
            papers_probabilities(squares + tested * np.array(cloaking), bounds, selection_epsilon)
        )
        inside = np.sqrt(tested * np.array(released)) / (0.5 * width)
        candidates = (
            (folds_of(m, X, parts), float(v)) for m, v in zip(models, inside, strict=True)
        )
        utilities, sensitivity = root_utilities(y, BOUNDS, candidates)
        scale = selection_scale(sensitivity, selection_epsilon)
        default.append(permute_and_flip_probabilities(utilities, scale))
    return Probabilities(
        tuple(epsilons), tuple(lengthscales), np.array(papers), np.array(default), splits
    )


def _release_error(model: Hyperparameters, X: Array, epsilon: float) -> float:
    if epsilon == math.inf:
        return 0.0
    return privacy_error(_regressor(model, epsilon).plan(X), model)


def _cloaking_variance(model: Hyperparameters, X: Array, epsilon: float) -> float:
    """Mean variance of the papers' noise at the rows, with their calibration."""
    if epsilon == math.inf:
        return 0.0
    plan = _regressor(model, epsilon, objective="logdet", reconstruct="unbiased", targets=X).plan(X)
    hall = math.sqrt(2.0 * math.log(2.0 / DELTA)) / epsilon
    scale = hall / cast(GaussianNoise, plan.noise).multiplier
    return float(np.mean(plan.noise_std**2)) * scale**2


def _regressor(model: Hyperparameters, epsilon: float, **options: Any) -> PrivateGPRegressor:
    return PrivateGPRegressor(
        model.kernel,
        model.noise_variance,
        y_bounds=BOUNDS,
        epsilon=epsilon,
        delta=DELTA,
        hyperparameters="fixed",
        **options,
    )


def _named(epsilon: float) -> str:
    return "no privacy" if epsilon == math.inf else f"epsilon = {epsilon:g}"


def _figure(found: Probabilities, women: int) -> Figure:
    figure = style.new_figure(3.6, 7.6)
    panels = figure.subplots(1, 2, sharey=True)
    style.set_title(
        figure,
        f"Chance in percent that each lengthscale is chosen for the heights of {women} !Kung women\n"
        "The choice itself is to protect each height with ε = 1",
    )
    most = float(max(found.papers.max(), found.default.max()))
    names = [_named(epsilon).removeprefix("epsilon = ") for epsilon in found.epsilons]
    for panel, which, title in zip(
        panels,
        (found.papers, found.default),
        ("the papers' choice", "the default choice"),
        strict=True,
    ):
        panel.imshow(which.T, style.SEQUENTIAL, origin="lower", aspect="auto", vmin=0.0, vmax=most)
        panel.set_xticks(range(len(names)), names)
        panel.set_yticks(range(len(found.lengthscales)), [f"{v:g}" for v in found.lengthscales])
        for (column, row), share in np.ndenumerate(which):
            ink = "white" if share < 0.5 * most else style.BLACK
            panel.text(column, row, f"{100 * share:.0f}", ha="center", va="center", color=ink,
                fontsize=style.SMALL)  # fmt: skip
        years = "lengthscale (years)" if panel is panels[0] else ""
        style.set_labels(panel, "ε of the release", years)
        style.set_title(panel, title)
    return figure


def _private() -> tuple[str, ...]:
    moved, bound = moved_and_bound()
    return (
        "Their bound of how far one output moves the sum of squared errors "
        f"{'holds' if moved <= bound else 'does not hold'} in the example of docs/proofs/select.md: one "
        f"output moves it by {moved:.2f} where they say {bound:.2f}, so the epsilon that they claim is "
        f"there {moved / bound:.2f} times as large. How much it is on the heights of the !Kung is not known. "
        "Heights are also centred and scaled by their own mean and spread, which no budget covers.",
    )


def figure_text(found: Probabilities, women: int) -> tuple[str, ...]:
    """What the probabilities show: how lengthscales grow with privacy, and how sharp the choices are."""
    chosen = found.most_probable(found.papers)
    named = ", ".join(
        f"{value:g} years with {_named(epsilon)}"
        for epsilon, value in zip(found.epsilons, chosen, strict=True)
    )
    longer = all(a <= b for a, b in pairwise(chosen))
    worth = float(found.default.max()) > 2.0 / len(found.lengthscales)
    return (
        "Each column is one level of privacy of the release, each tile the probability that a "
        f"lengthscale is chosen with epsilon = {SELECTION_EPSILON:g} for the choice. "
        + judged(
            "with more privacy longer lengthscales are chosen, which average over more people "
            f"(the papers' most probable ones: {named})",
            longer,
        ),
        f"With a sensitivity that is proved (docs/proofs/select.md), {women} people and epsilon = "
        f"{SELECTION_EPSILON:g}, the probabilities lie between {100 * found.default.min():.0f}% and "
        f"{100 * found.default.max():.0f}% where an equal choice has {100 / len(found.lengthscales):.0f}%; "
        f"those of the papers go up to {100 * found.papers.max():.0f}%. Choosing by cross-validation is "
        f"{'' if worth else 'NOT '}worth its budget here, if that takes a choice twice as probable as an "
        "equal one; a choice by the measurement itself costs nothing.",
        f"Squared errors are summed over {found.splits} random splits, of which each tests a tenth of the "
        "people (the paper: 100). The paper prints neither its grid nor the probabilities, so there is no "
        "number to compare.",
    )
