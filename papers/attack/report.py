"""Figures 1, 2, 3, 5 and 6 of Maciazek 2026: bounds, and membership attacks on posterior sample paths.

The paper prints settings and curves, no numbers: n = 10, delta = 0.05, a step of responses, the
record (1/2, 1). It leaves out the lengthscale and the scales of its curves; here they are 1, and 1,
5, 25 and infinity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq

from papers.attack.bounds import bounds
from papers.attack.figures import by_paths, by_ridge, epsilon_by_ridge, histograms
from papers.attack.runs import FAILURE, Attacks, Setting, attack, attacks_on, shadow_sides
from papers.shared.report import Report, Request, Result, Section
from privgp.audit.result import Membership
from privgp.types import Array

SIGMAS = (1.0, 5.0, 25.0, math.inf)
RIDGES = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)
PATHS = (1, 2, 3, 10, 30, 100, 300, 1000, math.inf)
COLUMNS = (Setting(0.2, 1.0, 3), Setting(0.2, 25.0, 3), Setting(2.0, 1.0, 3))
Excesses = dict[Setting, Array]


def run(request: Request) -> Report:
    """All five figures; a short run has fewer seeds, datasets and points."""
    quick = request.quick
    seeds, shadows = (2, 2_000) if quick else (10, 10_000)
    ridges = RIDGES[::2] if quick else RIDGES
    paths = PATHS[::2] if quick else PATHS
    over_ridges = [Setting(r, sigma) for sigma in SIGMAS for r in ridges]
    over_paths = [Setting(1.0, 5.0, count) for count in paths]
    tell = request.progress
    single = attacks_on(
        over_ridges, seeds, shadows, lambda done: tell(0.65 * done, "attacking single paths")
    )
    many = attacks_on(
        over_paths, seeds, shadows, lambda done: tell(0.65 + 0.3 * done, "attacking many paths")
    )
    by_r, by_l = ({s: each.excess for s, each in found.items()} for found in (single, many))
    tell(0.95, "drawing histograms")
    columns = [(s, _one(s, shadows)) for s in COLUMNS]
    tell(0.97, "drawing bounds")
    numbers, first = bounds()
    tell(1.0, "done")
    return Report(
        name="attack",
        title="Membership attacks on posterior sample paths (Maciazek 2026, figures 1, 2, 3, 5 and 6)",
        results=(*numbers, *_results(by_r, by_l, columns)),
        sections=(
            first,
            Section("How much was run", (_effort(seeds, shadows),)),
            *_sections(by_r, by_l, columns),
            Section("Private as published?", verdict([*single.items(), *many.items()])),
        ),
    )


def _effort(seeds: int, shadows: int) -> str:
    """How many attacks the curves are the means of, beside the paper's number."""
    return (
        f"Every point of a curve is the mean of {seeds} attacks with other seeds (the paper: 10). Each "
        f"attack learns from {shadows:,} simulated datasets with the record and as many without, and is "
        "tested on as many others. The paper does not print its number."
    )


def ridge_for(sigma: float, epsilon: float, *, paper: bool) -> float:
    """The ridge r at which one path reaches this epsilon."""
    root = brentq(
        lambda t: Setting(math.exp(t), sigma).epsilon(paper=paper) - epsilon,
        math.log(0.05),
        math.log(20.0),
        xtol=1e-6,
    )
    return math.exp(root)


def _one(setting: Setting, shadows: int) -> Membership:
    rng = np.random.default_rng(0)
    return attack(setting, shadow_sides(setting.r, shadows, rng), rng)


def _results(
    by_r: Excesses, by_l: Excesses, columns: list[tuple[Setting, Membership]]
) -> tuple[Result, ...]:
    """Epsilons by the printed bounds and by the sharper ones; an attack's success has no other method."""
    out = [
        Result(
            f"ridge r at which one path reaches epsilon 10, sigma {sigma:g}",
            None,
            ridge_for(sigma, 10.0, paper=True),
            ridge_for(sigma, 10.0, paper=False),
        )
        for sigma in SIGMAS
    ]
    for k, rate in enumerate(("1%", "10%")):
        for s, found in by_r.items():
            name = f"excess TPR at FPR {rate}, one path, sigma {s.sigma:g}, r {s.r:g}"
            out.append(Result(name, None, float(found[:, k].mean()), None))
        for s, found in by_l.items():
            name = f"excess TPR at FPR {rate}, r 1, sigma 5, paths {s.paths:g}"
            out.append(Result(name, None, float(found[:, k].mean()), None))
    for s in by_l:
        if s.paths != math.inf:
            both = s.epsilon(paper=True), s.epsilon(paper=False)
            out.append(Result(f"epsilon, r 1, sigma 5, paths {s.paths:g}", None, *both))
    for s, result in columns:
        name = f"area under the curve, r {s.r:g}, sigma {s.sigma:g}, paths {s.paths:g}"
        out.append(Result(name, None, result.auc, None))
    return tuple(out)


def _sections(
    by_r: Excesses, by_l: Excesses, columns: list[tuple[Setting, Membership]]
) -> tuple[Section, ...]:
    ridges = sorted({s.r for s in by_r})
    small, large = ridges[0], ridges[-1]
    alive = by_r[Setting(small, math.inf)][:, 1].mean()
    gone = max(abs(by_r[Setting(large, sigma)][:, 1].mean()) for sigma in SIGMAS)
    first, last = (by_l[Setting(1.0, 5.0, count)][:, 1].mean() for count in (1, math.inf))
    longest = max(s.paths for s in by_l if s.paths != math.inf)
    growth = Setting(1.0, 5.0, longest).epsilon(paper=True) / Setting(1.0, 5.0).epsilon(paper=True)
    return (
        Section(
            "Figure 2: one path, false-positive rate 10%",
            (
                f"At r = {large:g} the attack is within {gone:.3f} of guessing for every sigma. At "
                f"r = {small:g} paths about zero, the limit of large sigma, give {alive:.3f} above "
                "guessing, from the covariance alone.",
            ),
            by_ridge(by_r, 1),
        ),
        Section(
            "Figure 2, right: what a ridge guarantees",
            ("Solid: the paper's bounds. Dashed: the sharper ones of this project.",),
            epsilon_by_ridge(SIGMAS),
        ),
        Section(
            "Figure 3: many paths, false-positive rate 10%",
            (
                f"With more paths the attack goes from {first:.3f} above guessing to {last:.3f}, that "
                f"of the exact posterior. {longest:g} times the paths cost {growth:.0f} times the "
                "epsilon.",
            ),
            by_paths(by_l, 1),
        ),
        Section("Figure 5, left: one path, false-positive rate 1%", (), by_ridge(by_r, 0)),
        Section("Figure 5, right: many paths, false-positive rate 1%", (), by_paths(by_l, 0)),
        Section(
            "Figure 6: what three paths show of the record",
            (
                "Upper row: the mean of the released values at the record's place; lower row: the "
                "logarithm of their variance. The area under the attack's curve (guessing: 0.5) is "
                + ", ".join(
                    f"{found.auc:.3f} at r {s.r:g}, sigma {s.sigma:g}" for s, found in columns
                )
                + ".",
            ),
            histograms(columns),
        ),
    )


def verdict(attacks: Sequence[tuple[Setting, Attacks]]) -> tuple[str, ...]:
    """Whether the printed epsilons withstood these attacks, and how far they are from sharper ones."""
    judged = [each.within for setting, each in attacks if setting.paths != math.inf]
    printed, sharper = np.concatenate(judged).T
    one, many = Setting(1.0, 5.0), Setting(1.0, 5.0, 100)
    apart = " and ".join(
        f"{s.epsilon(paper=True):.3g} where {s.epsilon(paper=False):.3g} can be proved for "
        f"{s.paths:g} path{'s' if s.paths > 1 else ''}"
        for s in (one, many)
    )
    return (
        f"{_tally(printed)} the printed epsilon allows, and {_tally(sharper).lower()} the sharper one "
        f"of docs/proofs/rdp.md allows. A bound of an attack's rates is wrong with probability "
        f"{FAILURE:g}. At r = 1, sigma = 5 the printed epsilon is {apart}.",
        "The bounds are about one replaced record, bounded outputs, and settings chosen without the "
        "data; and about real numbers, where computers draw floating-point ones.",
    )


def _tally(within: Array) -> str:
    if np.all(within):
        return f"None of {len(within)} attacks did better than"
    return f"NO: {len(within) - np.count_nonzero(within)} of {len(within)} attacks did better than"
