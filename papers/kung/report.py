"""Figures 1 and 2, the errors on the heights of the !Kung, and the slides' inducing inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from papers.kung import errors as kung_errors
from papers.kung import figures
from papers.kung.errors import (
    BOUNDS,
    CENTRE,
    DELTA,
    KERNEL,
    NOISE,
    SIGNAL,
    WIDTH,
    all_errors,
    error_results,
    errors_text,
)
from papers.kung.two_points import figure_2, figure_2_results, figure_2_text, two_points
from papers.shared.cloaking import cloak, hall_delta, hall_multiplier, hall_text
from papers.shared.data import kung
from papers.shared.report import Report, Request, Result, Section, judged
from privgp.models.function.estimator import PrivateFunction
from privgp.models.regressor import PrivateGPRegressor
from privgp.privacy.budget import gaussian_multiplier
from privgp.types import Array

INDUCING = (4, 6, 10, 20, 40)
RELEASES, QUICK_RELEASES = 100, 5


def run(request: Request) -> Report:
    """All of the !Kung: some seconds, or half a minute for as many releases as the papers' figures."""
    X, y = kung(request)
    request.progress(0.0, "whole functions")
    function, text = whole_function(X, y)
    request.progress(0.1, "cloaking")
    cloaking, cloaking_results, cloaking_text = figure_1b(X, y)
    request.progress(0.2, "releases")
    errors = all_errors(X, y, QUICK_RELEASES if request.quick else RELEASES, request)
    inducing, inducing_results, inducing_text = inducing_inputs(X, y)
    points = two_points()
    request.progress(1.0, "done")
    return Report(
        "kung",
        "Heights of the !Kung: whole functions, cloaking, bins",
        (
            *function.results,
            *cloaking_results,
            *figure_2_results(points),
            *error_results(errors),
            *inducing_results,
        ),
        (
            Section("Figure 1A: the whole function", text, function.figure),
            Section("Figure 1B: cloaking", cloaking_text, cloaking),
            Section(
                "Figure 2, A to H: the shape of the noise", figure_2_text(points), figure_2(points)
            ),
            Section("Errors", errors_text(errors), figures.bins(kung_errors.BINS, errors.__dict__)),
            Section("Inducing inputs (slides)", inducing_text, inducing),
        ),
        summary=_summary(len(X), errors),
    )


def _summary(women: int, errors: kung_errors.Errors) -> tuple[str, ...]:
    return (
        f"Heights of {women} women by age, with epsilon = 1 and delta = {DELTA:g}. Root mean squared "
        f"errors: {errors.default:.1f} cm by the default, {errors.papers:.1f} cm by cloaking as printed, "
        f"{errors.simple.min():.1f} cm by simple and {errors.integral_known.min():.1f} cm by integral binning "
        f"with the best number of bins, {errors.without:.1f} cm without privacy.",
        f"Figure 1A at epsilon = 50: {hall_text((50.0,), DELTA)} Figure 1B shows two numbers that were "
        "never protected.",
    )


@dataclass(frozen=True)
class WholeFunction:
    results: tuple[Result, ...]
    figure: Figure


def whole_function(X: Array, y: Array) -> tuple[WholeFunction, tuple[str, ...]]:
    """The scale that the paper prints, and what is needed for what it guarantees."""
    common: dict[str, Any] = {
        "y_bounds": BOUNDS,
        "epsilon": 50.0,
        "delta": DELTA,
        "random_state": 0,
    }
    loose = PrivateFunction(KERNEL, NOISE, sensitivity="nonnegative", **common).fit(X, y)
    exact = PrivateFunction(KERNEL, NOISE, **common).fit(X, y)
    root = float(np.sqrt(SIGNAL))
    scale = loose.sensitivity_ * root * hall_multiplier(50.0, DELTA)
    at_1 = exact.sensitivity_ * root * gaussian_multiplier(1.0, DELTA)
    papers_at_1 = loose.sensitivity_ * root * hall_multiplier(1.0, DELTA)
    true = hall_delta(50.0, DELTA)
    results = (
        Result(
            "figure 1A: scale of the samples at epsilon 50 (cm)", 28.53, scale, exact.noise_std_
        ),
        Result("figure 1A: true delta at epsilon 50", 0.01, true, DELTA),
        Result("whole function: noise std at epsilon 1 (cm)", None, papers_at_1, at_1),
    )
    text = (
        f"The paper's scale 28.53 is d b(K^-1) sqrt(2 log(2/delta))/epsilon; here {scale:.2f}.",
        f"{hall_text((50.0, 100.0), DELTA)} (The second paper has epsilon = 100.) At epsilon = 50 the "
        f"same bound b needs {loose.noise_std_:.1f} cm.",
        f"The exact sensitivity with the exact calibration needs {exact.noise_std_:.2f} cm at "
        f"epsilon = 50, and {at_1:.0f} cm at epsilon = 1, where the paper's way needs "
        f"{papers_at_1:.0f} cm, {papers_at_1 / at_1:.3g} times as much.",
        "The papers also scale heights by their own mean and standard deviation, which nobody "
        "protects; here bounds of 75 to 175 cm are declared. A kernel of variance v would need a "
        "factor of its root, which their formula leaves out; their program has v = 1.",
    )
    figure = figures.whole_functions(X, y, KERNEL, NOISE, CENTRE, scale, exact.noise_std_)
    return WholeFunction(results, figure), text


def figure_1b(X: Array, y: Array) -> tuple[Figure, tuple[Result, ...], tuple[str, ...]]:
    """Cloaking over an extended domain, and the three things that the paper says about its noise."""
    targets = np.linspace(-50.0, 200.0, 200)[:, None]
    heights = np.clip(y, *BOUNDS)
    cloaked = cloak(KERNEL, NOISE, X, heights, targets, CENTRE)
    std = cloaked.noise_std(WIDTH * hall_multiplier(1.0, DELTA))
    at = targets[:, 0]
    dense = float(std[(at > 20) & (at < 50)].max())
    most, where = float(std.max()), float(at[std.argmax()])
    results = (
        Result("figure 1B: age of the most noise (years)", 110.0, where, None),
        Result("figure 1B: noise std where data are dense, 20-50 years (cm)", None, dense, None),
        Result("figure 1B: noise std at 200 years over its largest", 0.0, std[-1] / most, None),
    )
    text = (
        *noise_statements(dense, most, where, float(std[-1]), (float(X.min()), float(X.max()))),
        f"{hall_text((1.0,), DELTA)} The papers' program centres heights at the middle of their "
        "range and scales them by their standard deviation: what is drawn is not private as published, by two numbers that were never protected.",
    )
    model = PrivateGPRegressor(y_bounds=BOUNDS, delta=DELTA, random_state=0).fit(X, y)
    return figures.cloaking(X, y, targets, cloaked, std, model), results, text


def noise_statements(
    dense: float, most: float, where: float, far: float, ages: tuple[float, float]
) -> tuple[str, ...]:
    """What the paper says of the noise of figure 1B, and whether it holds of these numbers.

    ``dense``: the largest std where data are dense; ``most``: the largest, at age ``where``; ``far``:
    at the end of the domain; ``ages``: of the youngest and of the oldest woman.
    """
    return (
        judged(
            f"little noise where the women are ({dense:.1f} cm at most between 20 and 50 years)",
            dense < 0.5 * most,
        ),
        judged(
            f"the most noise beyond them ({most:.0f} cm at {where:.0f} years; the paper says about 110)",
            not ages[0] <= where <= ages[1],
        ),
        judged(
            f"the noise vanishes far away ({100 * far / most:.1f}% of the most at 200 years)",
            far < 0.05 * most,
        ),
    )


def inducing_inputs(X: Array, y: Array) -> tuple[Figure, tuple[Result, ...], tuple[str, ...]]:
    """Noise of the whole function through few inducing inputs, at the slides' epsilon of 100."""
    common: dict[str, Any] = {
        "y_bounds": BOUNDS,
        "epsilon": 100.0,
        "delta": DELTA,
        "random_state": 0,
    }
    whole = PrivateFunction(KERNEL, NOISE, **common).fit(X, y)
    few = [PrivateFunction(KERNEL, NOISE, inducing=k, **common).fit(X, y) for k in INDUCING]
    results = (
        Result("slides: noise std of the whole function (cm)", None, None, whole.noise_std_),
        *(
            Result(f"slides: the same through {k} inducing inputs (cm)", None, None, f.noise_std_)
            for k, f in zip(INDUCING, few, strict=True)
        ),
    )
    stds = ", ".join(
        f"{f.noise_std_:.2f} cm through {k}" for k, f in zip(INDUCING, few, strict=True)
    )
    text = (
        "The slides show that passing through inducing inputs lowers the sensitivity a little, and say "
        f"no more. Here, with exact sensitivity and calibration, the std of the noise is "
        f"{whole.noise_std_:.2f} cm for the whole function and {stds} inducing inputs. Through inducing "
        "inputs any number of points is free.",
        f"The picture is at the slides' epsilon of {common['epsilon']:g}, which protects nobody: even an exact "
        "guarantee of that size says next to nothing.",
    )
    return figures.inducing(X, y, whole, dict(zip(INDUCING, few, strict=True))), results, text
