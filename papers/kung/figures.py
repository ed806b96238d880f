"""Pictures of the report on the !Kung."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.gaussian_process.kernels import Kernel

from papers.shared.cloaking import Cloak, hall_delta, workload
from privgp.gp.kernels.evaluate import evaluate
from privgp.gp.smoothers import stable_cholesky
from privgp.pictures.style import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    SKY,
    VERMILION,
    budget_text,
    legend,
    new_figure,
    set_labels,
    set_title,
)
from privgp.types import Array

AGE, HEIGHT = "age (years)", "height (cm)"


def whole_functions(
    X: Array,
    y: Array,
    kernel: Kernel,
    noise_variance: float,
    centre: float,
    papers_scale: float,
    sound_scale: float,
) -> Figure:
    """The posterior mean with samples of both scales."""
    points = np.linspace(-10.0, 110.0, 150)[:, None]
    mean = workload(kernel, noise_variance, X, points).mean(np.clip(y, 75, 175), centre)
    root = stable_cholesky(evaluate(kernel, points)) / np.sqrt(float(kernel.k1.constant_value))
    rng = np.random.default_rng(1)
    figure = new_figure(4.0, 7.6)
    axes = figure.subplots(1, 2, sharey=True)
    set_title(
        figure,
        f"Whole functions of the heights of {len(X)} !Kung women by age\n"
        "Each height is to be protected with ε = 50, δ = 0.01",
        simulation=True,
    )
    true = hall_delta(50.0, 0.01)
    titles = (f"as published, true δ {true:.5f}", "exact, δ = 0.01")
    for ax, scale, title in zip(axes, (papers_scale, sound_scale), titles, strict=True):
        samples = [mean + scale * root @ rng.standard_normal(len(points)) for _ in range(8)]
        _samples(ax, points[:, 0], samples, mean, np.full(len(points), scale))
        _data_and_mean(ax, X, y, points, mean, "prediction without noise")
        set_title(ax, f"{title}\nstd of the noise {scale:.1f} cm")
        set_labels(ax, AGE, HEIGHT if ax is axes[0] else "")
    axes[0].set_ylim(40, 200)
    legend([axes[0]], below=True, columns=3)
    return figure


def cloaking(X: Array, y: Array, targets: Array, cloaked: Cloak, std: Array, model: Any) -> Figure:
    """The cloaked mean with samples and bands, and the default release beside it."""
    rng = np.random.default_rng(2)
    figure = new_figure(4.0, 7.6)
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    set_title(
        figure,
        f"Heights of {len(X)} !Kung women by age, by cloaking and by the default\n"
        "Each height is to be protected with ε = 1, δ = 0.01",
        simulation=True,
    )
    scale = float(std.max() / cloaked.noise_std(1.0).max())
    samples = [cloaked.release(scale, rng) for _ in range(8)]
    _samples(left, targets[:, 0], samples, cloaked.mean, std)
    _data_and_mean(left, X, y, targets, cloaked.mean, "prediction without noise")
    set_title(left, "the papers' cloaking")
    _data_and_mean(right, X, y, targets, model.predict(targets), "released mean", VERMILION)
    band = "90% interval of the function"
    right.fill_between(targets[:, 0], *model.interval(targets), color=SKY, alpha=0.4, label=band)
    set_title(right, "the default")
    for ax, name in ((left, HEIGHT), (right, "")):
        set_labels(ax, AGE, name)
    left.set_ylim(40, 200)
    left.set_xlim(-50, 200)
    legend([left, right], below=True, columns=3)
    return figure


def bins(counts: Sequence[int], errors: Mapping[str, Any]) -> Figure:
    """RMSE against the number of bins, with the published ranges."""
    figure = new_figure(3.4)
    ax = figure.subplots()
    ax.axhspan(23.4, 50.7, color=ORANGE, alpha=0.15, label="simple binning as published")
    ax.axhspan(14.2, 20.8, color=SKY, alpha=0.25, label="integral binning as published")
    for name, style, colour, label in (
        ("simple", "o-", ORANGE, "simple binning"),
        ("integral", "o-", BLUE, "integral binning"),
        ("integral_known", "x:", BLUE, "integral binning, noise known"),
    ):
        ax.plot(counts, errors[name], style, color=colour, markersize=3, label=label)
    ax.axhline(errors["papers"], color=GREY, label="cloaking")
    ax.axhline(errors["default"], color=BLACK, label="default")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xticks(counts, [str(k) for k in counts])
    ax.minorticks_off()
    ax.set_yticks([8, 10, 15, 20, 30, 50], ["8", "10", "15", "20", "30", "50"])
    set_title(
        figure,
        "Error on the heights of the !Kung by number of bins\nEach height is protected with ε = 1",
        simulation=True,
    )
    set_labels(ax, "number of bins", "root mean squared error (cm)")
    legend([ax], below=True)
    return figure


def inducing(X: Array, y: Array, whole: Any, few: Mapping[int, Any]) -> Figure:
    """One release of the whole function, and one through few inducing inputs."""
    points = np.linspace(0.0, 90.0, 120)[:, None]
    figure = new_figure(3.7, 7.6)
    left, right = figure.subplots(1, 2)
    promised = budget_text(whole.guarantee_.epsilon, whole.guarantee_.delta)
    set_title(
        figure,
        f"Heights of {len(X)} !Kung women by age, with inducing inputs and without\n"
        f"Each height is protected with {promised}",
        simulation=True,
    )
    left.plot(X[:, 0], y, ".", color=GREY, markersize=2, label="heights, private")
    left.plot(points[:, 0], whole.release(points), color=VERMILION, label="whole function")
    chosen = 10 if 10 in few else next(iter(few))
    left.plot(
        points[:, 0],
        few[chosen].release(points),
        "--",
        color=BLUE,
        label=f"{chosen} inducing inputs",
    )
    set_labels(left, AGE, HEIGHT)
    stds = [f.noise_std_ for f in few.values()]
    right.axhline(whole.noise_std_, color=VERMILION)
    right.plot(list(few), stds, "o--", color=BLUE, markersize=3)
    right.set_ylim(0, None)
    set_labels(right, "number of inducing inputs", "std of the noise (cm)")
    set_title(left, "one release of each")
    set_title(right, "how much noise")
    legend([left], below=True, columns=3)
    return figure


def _data_and_mean(
    ax: Axes, X: Array, y: Array, points: Array, mean: Array, name: str, colour: str = BLUE
) -> None:
    ax.plot(X[:, 0], y, ".", color=ORANGE, markersize=2, label="heights, private")
    ax.plot(points[:, 0], mean, color=colour, label=name)


def _samples(ax: Axes, x: Array, samples: Sequence[Array], mean: Array, std: Array) -> None:
    """Noisy releases, and how far they are from the mean."""
    lines = ax.plot(x, np.transpose(samples), color=GREY, linewidth=0.6)
    lines[0].set_label(f"{len(samples)} possible releases")
    for share, line, name in ((1.0, "--", "one std"), (0.25, ":", "a quarter std")):
        ends = np.transpose([mean - share * std, mean + share * std])
        ax.plot(x, ends, line, color=BLACK, linewidth=0.8)[0].set_label(f"± {name} of the noise")
