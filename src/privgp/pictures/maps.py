"""A released function of two inputs as colour, which pales where the function is uncertain."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from privgp.pictures import style
from privgp.pictures.released import TOTAL, Released
from privgp.types import Array

FADED = 0.9  # how far towards white the least certain colour goes


@dataclass(frozen=True)
class _Scale:
    """Mean to colour, std to its fading: white is where the 90% interval spans all colours."""

    low: float
    high: float

    @classmethod
    def of(cls, mean: Array, std: Array, share: float = 1.0) -> Self:
        """Colours for this middle share of the means; those beyond get the colour of the end."""
        low, high = np.quantile(mean, [0.5 - 0.5 * share, 0.5 + 0.5 * share]).tolist()
        # A flat map has no range of its own, so the least uncertainty lends it one.
        pad = max(0.0, 2.0 * float(std.min()) - (high - low)) / 2.0 or (0.5 if low == high else 0.0)
        return cls(low - pad, high + pad)

    @property
    def most(self) -> float:
        return (self.high - self.low) / (2.0 * style.REACH)

    def colours(self, mean: Array, std: Array) -> Array:
        base = colormaps[style.SEQUENTIAL]((mean - self.low) / (self.high - self.low))[..., :3]
        fade = FADED * np.clip(std / self.most, 0.0, 1.0)[..., None]
        return np.asarray((1.0 - fade) * base + fade)


def draw_map(ax: Axes, released: Released) -> None:
    """The function as colour, fading where its std in all is known, or its values at targets."""
    if released.targets is not None:
        _targets(ax, released, released.targets)
        return
    x, y = (np.linspace(low, high, released.points) for low, high in released.extent)
    grid = np.stack(np.meshgrid(x, y), axis=-1)
    values, stds = released.values(grid.reshape(-1, 2))
    values = values.reshape(grid.shape[:2])
    if TOTAL in stds:
        _fading(ax, x, y, values, stds[TOTAL].reshape(values.shape), released.output)
    else:
        bar = style.root_of(ax).colorbar(style.image(ax, values, x, y), ax=ax)
        style.set_labels(bar.ax, "", released.output)
    if released.public_inputs is not None:
        rows = released.public_inputs.T
        ax.plot(*rows, ".", color=style.BLACK, ms=1.6, clip_on=False, label=style.PUBLIC_INPUTS)
    if released.answered is not None:
        low, high = released.extent.T
        points = released.answered[0]
        inside = np.all((points >= low) & (points <= high), axis=1)
        style.answered(ax, *points[inside].T, mec="white")
    ax.set(xlim=released.extent[0], ylim=released.extent[1])


def _targets(ax: Axes, released: Released, targets: Array) -> None:
    mean, stds = released.values(targets)
    # Without smoothing a few lonely targets are far off and would leave one colour for the rest.
    scale = _Scale.of(mean, stds[TOTAL], share=0.9)
    x, y, colours = *targets.T, scale.colours(mean, stds[TOTAL])
    ax.scatter(x, y, 28, colours, edgecolors=style.BLACK, linewidths=0.4, label=style.AT_TARGETS)
    _key(ax, scale, released.output)


def _fading(ax: Axes, x: Array, y: Array, mean: Array, std: Array, output: str) -> None:
    """The mean as colour, fading with its std, and contours of the std."""
    scale = _Scale.of(mean, std)
    style.image(ax, scale.colours(mean, std), x, y)
    if np.ptp(std) > 0.02 * std.max():
        lines = ax.contour(x, y, std, levels=4, colors=style.BLACK, linewidths=0.6)
        for text in ax.clabel(lines, fontsize=style.SMALL, fmt=style.number, zorder=4):
            text.set_path_effects([withStroke(linewidth=2.0, foreground="white")])
        ax.plot([], [], color=style.BLACK, lw=0.6, label="standard deviation")
    _key(ax, scale, output)


def _key(ax: Axes, scale: _Scale, output: str) -> None:
    """A colour bar with a width: mean upwards, std to the right."""
    key = ax.inset_axes((1.04, 0.0, 0.14, 1.0))
    x, y = np.linspace(0.0, scale.most, 40), np.linspace(scale.low, scale.high, 200)
    std, mean = np.meshgrid(x, y)
    style.image(key, scale.colours(mean, std), x, y)
    key.yaxis.tick_right()
    key.yaxis.set_label_position("right")
    style.set_labels(key, "", f"mean of {output}")
    key.set_xlabel("std: the paler,\nthe less certain", fontsize=style.SMALL)
    key.set_xticks([0.0, scale.most], ["0", f"≥{scale.most:.2g}"])
