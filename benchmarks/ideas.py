"""The three pictures of ``docs/ideas.md``: what noise hides, what a Gaussian process is, and how a
release is made. Everything in them is simulated or computed here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import laplace, norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern, WhiteKernel

from privgp import PrivateGPRegressor
from privgp.pictures import style
from privgp.pictures.style import BLUE, GREY, ORANGE, SKY


def plain(axes: Axes, title: str) -> None:
    """A title on the left that states the finding, and no box."""
    axes.set_title(title, loc="left", fontsize=style.TEXT)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=style.SMALL)


def save(figure: Figure, path: Path) -> None:
    path.write_bytes(style.figure_bytes(figure, path.suffix))


def noise(path: Path) -> None:
    """The noisy sum of ten waiting times, where one person waited 20 or 80 minutes."""
    figure = style.new_figure(2.6)
    others, width = 400.0, 60.0
    panels = figure.subplots(1, 2, sharex=True)
    for axes, epsilon in zip(panels, (3.0, 0.5), strict=True):
        at = np.linspace(0, 900, 901)
        for value, colour, line in ((20.0, BLUE, "-"), (80.0, style.VERMILION, "--")):
            shown = laplace.pdf(at, others + value, width / epsilon)
            axes.plot(at, shown, color=colour, ls=line, lw=1.5)
        right = 1.0 - laplace.cdf(-width / 2, 0.0, width / epsilon)
        plain(axes, f"ε = {epsilon:g}: a guess is right {right:.0%} of the time")
        axes.set_yticks([])
        axes.set_xlabel("released sum, minutes", fontsize=style.SMALL)
        peak = axes.get_ylim()[1]
        axes.text(405, peak * 0.92, "20 minutes", color=BLUE, ha="right", fontsize=style.SMALL)
        axes.text(497, peak * 0.92, "80 minutes", color=style.VERMILION, fontsize=style.SMALL)
    save(figure, path)


def process(path: Path) -> None:
    """Five curves before and after six observations."""
    rng = np.random.default_rng(3)
    at = np.linspace(0, 10, 200)[:, None]
    model = GaussianProcessRegressor(Matern(2.5, nu=2.5) + WhiteKernel(0.01), optimizer=None)
    figure = style.new_figure(2.6)
    panels = figure.subplots(1, 2, sharey=True)
    titles = "Before: any smooth curve", "After: curves that pass near the points"
    for axes, title in zip(panels, titles, strict=True):
        mean, covariance = model.predict(at, return_cov=True)
        draws = rng.multivariate_normal(mean, covariance - 0.01 * np.eye(len(at)), 5, method="eigh")
        reach = norm.ppf(0.95) * np.sqrt(np.diag(covariance))
        axes.fill_between(at[:, 0], mean - reach, mean + reach, color=SKY, alpha=0.35, lw=0)
        axes.plot(at[:, 0], draws.T, color=GREY, lw=0.8)
        axes.plot(at[:, 0], mean, color=BLUE, lw=1.8)
        plain(axes, title)
        axes.set_xlabel("input", fontsize=style.SMALL)
        points = np.array([[1.0], [2.2], [3.9], [5.1], [6.0], [9.2]])
        values = np.sin(points[:, 0]) + rng.normal(0, 0.1, 6)
        model.fit(points, values)
    panels[1].plot(points[:, 0], values, "o", color="black", ms=4)
    save(figure, path)


def release(path: Path) -> None:
    """The values, the noisy means of groups, and the curve that is released."""
    rng = np.random.default_rng(1)
    age = rng.uniform(20, 80, 400)
    true = 30 + 25 * np.sin((age - 20) / 18)
    wait = np.clip(true + rng.normal(0, 8, 400), 0, 100)
    model = PrivateGPRegressor(y_bounds=(0, 100), epsilon=1.0, delta=1e-5, random_state=4)
    model.fit(age[:, None], wait)
    at = np.linspace(20, 80, 120)
    low, high = model.interval(at[:, None])
    figure = style.new_figure(2.6)
    panels = figure.subplots(1, 3, sharey=True, sharex=True)
    groups = np.array_split(np.argsort(age), 10)
    panels[0].plot(age, wait, ".", color=GREY, ms=2.5)
    plain(panels[0], "1  Private values")
    for group in groups:
        noisy = (wait[group].sum() + laplace.rvs(scale=100.0, random_state=rng)) / len(group)
        panels[1].plot([age[group].min(), age[group].max()], [noisy, noisy], color=ORANGE, lw=3)
    plain(panels[1], "2  Noisy means of groups")
    panels[2].fill_between(at, low, high, color=SKY, alpha=0.35, lw=0)
    panels[2].plot(at, model.predict(at[:, None]), color=BLUE, lw=1.8)
    plain(panels[2], "3  Curve with 90% interval")
    panels[0].set_ylabel("waiting time, minutes", fontsize=style.SMALL)
    for axes in panels:
        axes.set_xlabel("age", fontsize=style.SMALL)
    save(figure, path)


PICTURES = {"ideas-noise": noise, "ideas-process": process, "ideas-release": release}
