"""Kusner et al. (2015), algorithms 1 and 2, beside search without privacy and the measured search.

The paper prints no experiment, so the task is the one of its introduction: tuning a classifier on
private validation records. A support-vector machine on scikit-learn's digits, 898 private images,
epsilon 1, delta 1e-5 in total, 25 steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from papers.optimisation.surfaces import VALIDATION, Surface, digits_surface
from papers.shared.report import Report, Request, Result, Section
from privgp.models.search.bayes import PrivateBayesSearchCV
from privgp.pictures.style import (
    BLACK,
    BLUE,
    ORANGE,
    REACH,
    SEQUENTIAL,
    VERMILION,
    budget_text,
    legend,
    new_figure,
    set_labels,
    set_title,
)
from privgp.plan.search.plan import SearchPlan
from privgp.types import Array

EPSILON, DELTA, STEPS = 1.0, 1e-5, 25
FREITAS = {"A": 1.0, "tau": 1.0}  # assumed: nobody knows them
COLOURS = {"measured": BLUE, "kusner": VERMILION, "kusner-noise-free": ORANGE}
LINES = {"measured": "-", "kusner": "--", "kusner-noise-free": "-."}
PROMISED = f"{VALIDATION} private images of digits, {budget_text(EPSILON, DELTA)} for each search"
LABELS = {
    "measured": "measured (default)",
    "kusner": "algorithm 1",
    "kusner-noise-free": "algorithm 2",
}


@dataclass(frozen=True)
class Searches:
    """Repeated searches by one method: (searches,) each. ``covered``: whether the reported score's
    90% interval holds the chosen setting's accuracy."""

    places: Array
    accuracy: Array
    reported: Array
    covered: Array


def run(request: Request) -> Report:
    """Everything in one report; 15 searches a method on a small surface if quick, else 200."""
    side, training, repeats = (12, 300, 15) if request.quick else (20, 899, 200)
    share = 0.4
    surface = digits_surface(
        side, training, lambda done: request.progress(share * done, "training machines")
    )
    open_ = repeated(surface, "measured", 1, epsilon=1e4, delta=0.5)
    found = {}
    for place, method in enumerate(LABELS):
        request.progress(share + (1.0 - share) * place / len(LABELS), f"searching: {method}")
        found[method] = repeated(surface, method, repeats)
    request.progress(1.0, "done")
    plans = {method: _search(surface, method).plan(VALIDATION) for method in LABELS}
    return Report(
        name="optimisation",
        title="Private Bayesian optimisation (Kusner et al., 2015)",
        results=_results(surface, open_, found, plans),
        sections=(
            Section("The task", _task(surface, open_, repeats), _map(surface, found)),
            Section("What is found", words(surface, open_, found, plans), _spread(open_, found)),
            Section("What the theorems guarantee", _theorems(plans)),
            Section("Not private as published", _PRIVACY),
        ),
    )


def repeated(surface: Surface, method: str, repeats: int, **settings: float) -> Searches:
    """Simulated searches over a surface, each method with seeds of its own."""
    truth, rows = surface.accuracy.ravel(), []
    first = 1000 * list(LABELS).index(method)
    for seed in range(first, first + repeats):
        search = _search(surface, method).set_params(random_state=seed, **settings)
        search.fit(None, None, X_val=surface.predictions, y_val=surface.labels)
        error = search.best_score_ - truth[search.best_index_]
        inside = abs(error) <= REACH * search.best_score_std_
        rows.append((search.best_index_, truth[search.best_index_], search.best_score_, inside))
    places, accuracy, reported, covered = np.array(rows, dtype=float).T
    return Searches(places.astype(np.int64), accuracy, reported, covered)


def _search(surface: Surface, method: str) -> PrivateBayesSearchCV:
    return PrivateBayesSearchCV(
        surface.estimator(),
        surface.space(),
        epsilon=EPSILON,
        delta=DELTA,
        n_iter=STEPS,
        method=method,
        assume=FREITAS if method == "kusner-noise-free" else None,
        random_state=0,
    )


def _results(
    surface: Surface, open_: Searches, found: dict[str, Searches], plans: dict[str, SearchPlan]
) -> tuple[Result, ...]:
    measured, first, second = (found[method] for method in LABELS)
    one, two = plans["kusner"].theorem_bounds(), plans["kusner-noise-free"].theorem_bounds()
    stds = {method: plan.score_std for method, plan in plans.items()}
    mean = float(measured.accuracy.mean())
    return (
        Result("largest accuracy on the grid", None, None, float(surface.accuracy.max())),
        Result("accuracy chosen without privacy", None, None, float(open_.accuracy[0])),
        Result("accuracy chosen, mean (algorithm 1)", None, float(first.accuracy.mean()), mean),
        Result("accuracy chosen, mean (algorithm 2)", None, float(second.accuracy.mean()), mean),
        Result("std of the noise of the score (1)", None, stds["kusner"], stds["measured"]),
        Result(
            "std of the noise of the score (2)", None, stds["kusner-noise-free"], stds["measured"]
        ),
        Result("coverage of the score's 90% interval", None, None, float(measured.covered.mean())),
        Result("theorem 2: setting short of the best by", None, one["setting"], None),
        Result("theorem 4: score off by (algorithm 1)", None, one["value"], None),
        Result("theorem 6: score off by (algorithm 2)", None, two["value"], None),
    )


def _task(surface: Surface, open_: Searches, repeats: int) -> tuple[str, ...]:
    return (
        f"A support-vector machine is tuned on the digits of scikit-learn: cost C and kernel width "
        f"gamma on a grid of {surface.accuracy.size} settings, {VALIDATION} private validation images, "
        f"epsilon {EPSILON:g} and delta {DELTA:g} in total, {STEPS} steps, {repeats} searches a method.",
        f"The best setting has accuracy {surface.accuracy.max():.4f}; search without noise finds "
        f"{open_.accuracy[0]:.4f}. Searches are simulated over scores that were computed once.",
    )


def words(
    surface: Surface, open_: Searches, found: dict[str, Searches], plans: dict[str, SearchPlan]
) -> tuple[str, ...]:
    """How good the choices are, beside no privacy and beside settings taken at random."""
    measured = found["measured"]
    loss = float(open_.accuracy[0] - measured.accuracy.mean())
    lines = [
        f"The measured search {'loses' if loss >= 0 else 'gains'} {100 * abs(loss):.2f} points of "
        "accuracy beside the search without privacy "
        f"on average. Its score has a std of {plans['measured'].score_std:.4f}, and its 90% interval "
        f"holds the chosen setting's accuracy in {100 * measured.covered.mean():.1f}% of searches."
    ]
    for method in ("kusner", "kusner-noise-free"):
        lines.append(
            f"{LABELS[method].capitalize()} chooses settings of accuracy "
            f"{found[method].accuracy.mean():.4f} on average; settings taken at random have "
            f"{surface.accuracy.mean():.4f}. Its score has noise of std {plans[method].score_std:.3g}."
        )
    lines.append(
        "Both algorithms hold only if the scores of all datasets are draws from one known Gaussian "
        "process; the measured search assumes nothing about them."
    )
    return tuple(lines)


def _theorems(plans: dict[str, SearchPlan]) -> tuple[str, ...]:
    return tuple(plan.describe().replace("\n", " ") for plan in plans.values())


def _map(surface: Surface, found: dict[str, Searches]) -> Figure:
    """Accuracy over the grid, with the settings that were chosen."""
    figure = new_figure(3.2)
    axes = figure.subplots()
    logs = np.log10(surface.gammas), np.log10(surface.costs)
    mesh = axes.pcolormesh(*logs, surface.accuracy, cmap=SEQUENTIAL, shading="nearest")
    figure.colorbar(mesh, ax=axes, label="accuracy")
    jitter = np.random.default_rng(0)
    steps = [float(axis[1] - axis[0]) for axis in logs]
    for method in ("kusner", "measured"):
        row, column = np.divmod(found[method].places, len(surface.gammas))
        x, y = logs[0][column], logs[1][row]
        x = x + steps[0] * jitter.uniform(-0.35, 0.35, len(x))
        y = y + steps[1] * jitter.uniform(-0.35, 0.35, len(y))
        axes.scatter(
            x,
            y,
            s=14,
            color=COLOURS[method],
            edgecolor="white",
            linewidth=0.4,
            label=LABELS[method],
        )
    set_labels(axes, "kernel width γ (log10)", "cost C (log10)")
    set_title(figure, f"Settings that were chosen, on their accuracy\n{PROMISED}")
    legend([axes], below=True)
    return figure


def _spread(open_: Searches, found: dict[str, Searches]) -> Figure:
    """How accurate the chosen settings are, from the worst search to the best."""
    figure = new_figure(3.4)
    axes = figure.subplots()
    count = len(next(iter(found.values())).accuracy)
    for method, searches in found.items():
        values = np.sort(searches.accuracy)
        ranks = (np.arange(len(values)) + 0.5) / len(values)
        axes.plot(ranks, values, color=COLOURS[method], label=LABELS[method],
            ls=LINES[method], drawstyle="steps-mid")  # fmt: skip
    axes.axhline(
        open_.accuracy[0], color=BLACK, linewidth=0.8, linestyle=":", label="without privacy"
    )
    axes.set_ylim(0.0, 1.05)
    place = "place among the searches of a method: 0 is the worst, 1 the best"
    set_labels(axes, place, "accuracy of the chosen setting", room=70)
    set_title(figure, f"How good the settings are that {count} private searches find\n{PROMISED}")
    legend([axes], below=True)
    return figure


_PRIVACY = (
    "The theorems hide a record with probability 1 - delta over the draw of the objectives from a "
    "Gaussian process that is known beforehand. For the data at hand they hold or they do not: where "
    "objectives are no such draws, and accuracies over settings are not, no epsilon is guaranteed at all, "
    "so by how much it fails cannot be said.",
    "Setting and value cost epsilon and delta each, so an algorithm that releases both costs twice what "
    "one theorem states; here the total is epsilon, half for each. Equation 2 is printed with the root "
    "over beta times sigma; the proofs rest on root beta times sigma, which is used here. Theorem 4 lacks "
    "a factor sigma, which makes its bound too large, not too small. docs/proofs/bayes.md has the rest.",
)
