"""A released model as a curve, a map, slices, or points at its targets.

Everything drawn is a prediction or a public input; no output exists here to be drawn.
"""

from __future__ import annotations

import warnings
from typing import Any, Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from sklearn.utils.validation import check_is_fitted

from privgp.gp.functionals import Functionals
from privgp.pictures import style as style
from privgp.pictures.maps import draw_map
from privgp.privacy.guarantee import Guarantee
from privgp.release.at_targets import AtTargets, Release
from privgp.types import Array

CURVE_POINTS = 300
PANEL_ROOM = 22  # characters of a label
TOTAL = "90% range of the function, in all"
PRIVACY = "90% range of the privacy noise alone"
OBSERVATION = "90% range of new outputs"


class FittedModel(Protocol):
    """What a picture needs of a model, fitted or loaded from a file."""

    release_: Release
    functionals_: Functionals
    guarantee_: Guarantee

    def predict(
        self, X: Array, return_std: bool = ..., return_cov: bool = ..., observation: bool = ...
    ) -> Any: ...


def plot_model(
    model: FittedModel,
    ax: Axes | None = None,
    *,
    figure: style.Canvas | None = None,
    output: str = "output",
    observation: bool = False,
) -> Figure:
    """Draw what a model released.

    One input: the mean with the 90% band of the latent function and, inside it, the band that the
    privacy noise alone makes; their variances add, their widths do not. Two inputs: the mean as
    colour, fading to white where it is uncertain. More: one slice per input, the others at their
    median. An unbiased release: points with error bars at its targets.

    ``ax``: where to draw, for one panel; ``figure``: for any number. ``output``: the name on the
    axis; ``observation``: also the band in which new outputs fall (not on a map).
    """
    check_is_fitted(model)
    nodes = np.asarray(model.functionals_.nodes)
    release, count = model.release_, nodes.shape[1]
    names = style.input_names(getattr(model, "feature_names_in_", None), count)
    text = style.budget_text(model.guarantee_.epsilon, model.guarantee_.delta)
    if ax is not None and count > 2:
        raise ValueError(f"{count} inputs are drawn in {count} panels: give figure, not ax.")
    columns = 1 if count <= 2 else 2 if count <= 4 else 3
    if ax is not None:
        axes = [ax]
    elif count <= 2:
        axes = style.panels(figure, 1, columns, 3.4)
    else:
        axes = style.panels(figure, count, columns, 2.0)
    if count == 2:
        draw_map(axes[0], release, nodes, output)
        style.set_labels(axes[0], names[0], names[1])
    else:
        for j, panel in enumerate(axes):
            if isinstance(release, AtTargets):
                _targets(panel, model, release.targets, j, observation)
            else:
                _slice(panel, model, nodes, j, observation)
            style.rug(panel, nodes[:, j])
            first = j % columns == 0
            style.set_labels(
                panel, names[j], output if first else "", room=40 if count == 1 else PANEL_ROOM
            )
            if count > 1:
                panel.xaxis.set_major_locator(MaxNLocator(5))
    if count <= 2:
        style.set_title(axes[0], text, simulation=model.guarantee_.is_simulation)
    else:
        what = "Each panel varies one input; the others are held at their median"
        if isinstance(release, AtTargets):
            what = "Each panel shows all targets against one input"
        simulation = model.guarantee_.is_simulation
        style.set_title(axes[0].figure, f"{text}\n{what}", simulation=simulation)
    style.legend(axes, below=ax is None and figure is None)
    return style.root_of(axes[0])


def bands(model: FittedModel, X: Array) -> tuple[Array, Array, Array]:
    """Mean at the rows of X and the half-widths of its 90% bands: of the privacy noise, in all."""
    mean, variance = model.release_.mean_and_variance(X)
    privacy = np.minimum(model.release_.privacy_variance(X), variance)
    return mean, style.REACH * np.sqrt(privacy), style.REACH * np.sqrt(variance)


def observed_band(model: FittedModel, X: Array) -> Array:
    """The half-width of the 90% band of new outputs at the rows of X."""
    with warnings.catch_warnings():  # of names that an array cannot have
        warnings.simplefilter("ignore", UserWarning)
        std = model.predict(X, return_std=True, observation=True)[1]
    return np.asarray(style.REACH * std)


def _slice(ax: Axes, model: FittedModel, nodes: Array, j: int, observation: bool) -> None:
    """The curve along input j, the others held at the median of the public inputs."""
    x = np.linspace(*style.limits(nodes[:, j], 0.0), CURVE_POINTS)
    X = np.tile(np.median(nodes, axis=0), (len(x), 1))
    X[:, j] = x
    mean, privacy, total = bands(model, X)
    ax.plot(x, mean, color=style.BLACK, lw=1.6, zorder=3, label="mean")
    ax.fill_between(x, mean - total, mean + total, color=style.SKY, alpha=0.35, lw=0, label=TOTAL)
    ax.fill_between(
        x, mean - privacy, mean + privacy, color=style.BLUE, alpha=0.45, lw=0, label=PRIVACY
    )
    # Edges keep the bands apart in a copy without colours.
    for side in (-1.0, 1.0):
        ax.plot(x, mean + side * total, color=style.BLUE, lw=0.6, ls="-")
        ax.plot(x, mean + side * privacy, color=style.BLUE, lw=0.6, ls="--")
    if observation:
        outputs = observed_band(model, X)
        ax.plot(x, mean - outputs, color=style.VERMILION, lw=1.0, ls=":", label=OBSERVATION)
        ax.plot(x, mean + outputs, color=style.VERMILION, lw=1.0, ls=":")
    ax.set_xlim(x[0], x[-1])


def _targets(ax: Axes, model: FittedModel, targets: Array, j: int, observation: bool) -> None:
    """Points at the targets against input j: bars with ends in all, thick ones privacy noise."""
    x = targets[:, j]
    mean, privacy, total = bands(model, targets)
    thick = float(np.clip(250.0 / len(x), 0.8, 3.0))  # many bars side by side stay apart
    ax.plot(x, mean, "o", color=style.BLACK, ms=1.0 + thick, zorder=4, label=style.AT_TARGETS)
    if observation:
        outputs = observed_band(model, targets)
        wide = ax.errorbar(
            x, mean, outputs, fmt="none", ecolor=style.VERMILION, elinewidth=0.7, label=OBSERVATION
        )
        wide[2][0].set_linestyle(":")
    ax.errorbar(
        x,
        mean,
        total,
        fmt="none",
        ecolor=style.BLACK,
        elinewidth=0.5,
        capsize=thick,
        capthick=0.5,
        label=TOTAL,
    )
    ax.errorbar(x, mean, privacy, fmt="none", ecolor=style.SKY, elinewidth=thick, label=PRIVACY)
    ax.set_xlim(*style.limits(x))
