"""Figure 1 of Maciazek 2026: epsilon against the ridge r, before any data.

n = 1000, delta = 5e-4, inf k^2 = 0.1, outputs within 1. Left: lemma B.1. Middle: outputs of one
function of norm 3, lemma B.8. Right: the middle with GP noise of std eta = sigma added, equation 5.
The scales sigma of the curves are not printed; here they are those of figure 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from papers.attack.figures import BOUNDS, COLOURS, MARKS, explain_bounds, scale_name
from papers.shared.report import Result, Section
from privgp.pictures.style import legend, new_figure, set_labels, set_title
from privgp.privacy.posterior_mean import (
    PosteriorShape,
    generic_paper,
    mean_sensitivity,
    sensitivity_for_norm,
)
from privgp.privacy.rdp import PathCurve, epsilon_for, influence_and_shift

RECORDS, DELTA, LEAST, NORM = 1000, 5e-4, math.sqrt(0.1), 3.0
SIGMAS = (1.0, 5.0, 25.0, math.inf)
RIDGES = np.geomspace(0.1, 10.0, 21)
CAPTION = 10.0  # the caption: extra noise divides epsilon by 1 to 10
GENERIC, FUNCTION = "any outputs", "one function"


@dataclass(frozen=True)
class Bound:
    """One curve of the figure: which model of outputs, whether GP noise of std sigma is added."""

    sigma: float
    model: str = GENERIC
    noisy: bool = False

    def epsilon(self, r: float, *, paper: bool) -> float:
        """What one path guarantees at this ridge, as printed or by the sharper bounds."""
        shape = PosteriorShape(r * r, RECORDS, LEAST)
        if self.model == GENERIC:
            moved = (generic_paper(shape) if paper else mean_sensitivity(shape)).value
        else:
            printed = sensitivity_for_norm(shape, NORM).value
            moved = printed if paper else one_function(shape, NORM)
        centred = self.sigma == math.inf
        scale = 1.0 if centred else self.sigma**2
        terms = influence_and_shift(
            sensitivity=0.0 if centred else moved, influence=shape.influence,
            kernel_variance=scale, extra_variance=scale if self.noisy else 0.0,
        )  # fmt: skip
        curve = PathCurve(*terms, covariance="paper" if paper else "sharp")
        return epsilon_for([curve], DELTA, "paper" if paper else "sharp")


def one_function(shape: PosteriorShape, norm: float) -> float:
    """``|f| V / (V + r^2)``: half of lemma B.8, used here only.

    With A = (f - mu)(x, x'), C the 2 x 2 matrix of the posterior covariance of the common records
    and W = diag(1 / (v + r^2), -1 / (v' + r^2)), the mean moves by ``sqrt(A' W C W A)``. The residuals
    are inner products of f with k_(x), k_(x'), whose Gram matrix in the space of k is at most C, so
    ``A = |f| C^(1/2) z`` with |z| <= 1 and the move is at most |f| times the largest |eigenvalue| of
    ``C^(1/2) W C^(1/2)``: a difference of two positive matrices of norms v / (v + r^2), which is no
    larger than the larger of them. The lemma adds the two instead.
    """
    return norm * shape.influence * (1.0 + 1e-12)


def factors(model: str, *, paper: bool) -> dict[float, list[float]]:
    """By how much GP noise of std sigma divides epsilon, for every sigma, along RIDGES.

    1 where both are 0.
    """

    def factor(sigma: float, r: float) -> float:
        plain, noisy = (
            Bound(sigma, model, added).epsilon(r, paper=paper) for added in (False, True)
        )
        return plain / noisy if noisy > 0 else 1.0

    return {sigma: [factor(sigma, r) for r in RIDGES.tolist()] for sigma in SIGMAS}


def bounds() -> tuple[list[Result], Section]:
    """The figure, and its caption as numbers."""
    results = []
    for r in (0.1, 1.0, 10.0):
        for name, model, noisy in _PANELS:
            bound = Bound(5.0, model, noisy)
            both = (bound.epsilon(r, paper=True), bound.epsilon(r, paper=False))
            results.append(Result(f"figure 1: epsilon, {name}, sigma 5, r {r:g}", None, *both))
    printed, ours = (np.array([*factors(FUNCTION, paper=p).values()]) for p in (True, False))
    for word, pick, caption in (("least", np.min, 1.0), ("most", np.max, CAPTION)):
        name = f"figure 1: {word} that GP noise eta = sigma divides epsilon by, r 0.1 to 10"
        results.append(Result(name, caption, float(pick(printed)), float(pick(ours))))
    within = float(RIDGES[(printed <= CAPTION).all(axis=0)][0])
    name = "figure 1: least r at which it divides by at most 10"
    results.append(Result(name, None, within, float(RIDGES[(ours <= CAPTION).all(axis=0)][0])))
    shape = PosteriorShape(1.0, RECORDS, LEAST)
    loose = sensitivity_for_norm(shape, NORM).value / one_function(shape, NORM)
    first = bool((printed.argmax(axis=1) == 0).all())
    words = (
        f"Solid: the paper's bounds. Dashed: sharper ones. Lemma B.8 allows moves {loose:.3g} times as large "
        "as the sharper bound: it adds two terms of which the larger is enough.",
        f"The caption says that extra noise divides epsilon by 1 to {CAPTION:g}, most where r is small. Here it "
        f"divides by {printed.min():.1f} to {printed.max():.0f} for r from {RIDGES[0]:g} to {RIDGES[-1]:g}, by "
        f"at most {CAPTION:g} from r = {within:.2f} on; it does {'' if first else 'NOT '}divide most at the least r. Without it "
        "epsilon grows 1/r^2 times faster as r falls, so the factor has no bound.",
    )
    return results, Section("Figure 1: what a ridge guarantees, n = 1000", words, _picture())


_PANELS = (
    ("any outputs (lemma B.1)", GENERIC, False),
    ("one function (lemma B.8)", FUNCTION, False),
    ("one function, noise of std σ added", FUNCTION, True),
)


def _picture() -> Figure:
    figure = new_figure(3.6, 9.0)
    set_title(
        figure,
        f"What one released path guarantees to each of {RECORDS:,} private records, by its ridge r\n"
        "σ: scale of the prior; smaller ε is more private",
    )
    axes = figure.subplots(1, 3, sharey=True)
    for ax, (name, model, noisy) in zip(axes, _PANELS, strict=True):
        for place, (sigma, colour) in enumerate(zip(SIGMAS, COLOURS, strict=True)):
            for paper, line, _ in BOUNDS:
                values = [Bound(sigma, model, noisy).epsilon(r, paper=paper) for r in RIDGES]
                ax.plot(
                    RIDGES,
                    values,
                    line,
                    color=colour,
                    linewidth=1.2,
                    marker=MARKS[place],
                    markevery=(place, 6),
                    markersize=3.5,
                    label=scale_name(sigma) if paper else None,
                )
        explain_bounds(ax)
        ax.set(xscale="log", yscale="log")
        set_title(ax, name)
        set_labels(ax, "ridge r", f"ε at δ = {DELTA:g}" if ax is axes[0] else "")
    legend([axes[0]], below=True, columns=4)
    return figure
