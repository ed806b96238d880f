"""A released function of two inputs as colour, which pales where the function is uncertain."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from privgp.pictures import style
from privgp.pictures.released import TOTAL, Band, Released
from privgp.types import Array

FADED = 0.9  # how far towards white the least certain colour goes
HALF = "half the width of the 90% range of the function"


@dataclass(frozen=True)
class _Scale:
    """Mean to colour, half the 90% range to its fading: white is where that spans all colours."""

    low: float
    high: float

    @classmethod
    def of(cls, mean: Array, half: Array, share: float = 1.0) -> Self:
        """Colours for this middle share of the means; those beyond get the colour of the end."""
        low, high = np.quantile(mean, [0.5 - 0.5 * share, 0.5 + 0.5 * share]).tolist()
        # A flat map has no range of its own, so the least uncertainty lends it one.
        pad = max(0.0, 2.0 * float(half.min()) - (high - low)) / 2.0 or (
            0.5 if low == high else 0.0
        )
        return cls(low - pad, high + pad)

    @property
    def most(self) -> float:
        return 0.5 * (self.high - self.low)

    def colours(self, mean: Array, half: Array) -> Array:
        base = colormaps[style.SEQUENTIAL]((mean - self.low) / (self.high - self.low))[..., :3]
        fade = FADED * np.clip(half / self.most, 0.0, 1.0)[..., None]
        return np.asarray((1.0 - fade) * base + fade)


def half_width(band: Band) -> Array:
    return 0.5 * (band[1] - band[0])


def draw_map(ax: Axes, released: Released) -> None:
    """The function as colour, fading where its range in all is known, or its values at targets."""
    if released.targets is not None:
        _targets(ax, released, released.targets)
        return
    x, y = (np.linspace(low, high, released.points) for low, high in released.extent)
    grid = np.stack(np.meshgrid(x, y), axis=-1)
    values, bands = released.values(grid.reshape(-1, 2))
    values = values.reshape(grid.shape[:2])
    if TOTAL in bands:
        half = half_width(bands[TOTAL]).reshape(values.shape)
        _fading(ax, x, y, values, half, _shown(released))
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
    for axis, ticks in zip((ax.xaxis, ax.yaxis), released.ticks, strict=False):
        style.set_ticks(axis, ticks)


def _targets(ax: Axes, released: Released, targets: Array) -> None:
    """The values at the targets as discs."""
    mean, bands = released.values(targets)
    half = half_width(bands[TOTAL])
    # Without smoothing a few lonely targets are far off and would leave one colour for the rest.
    scale = _Scale.of(mean, half, share=0.9)
    x, y, colours = *targets.T, scale.colours(mean, half)
    ax.scatter(x, y, 28, colours, edgecolors=style.BLACK, linewidths=0.4, label=style.AT_TARGETS)
    _key(ax, scale, _shown(released))


def _fading(ax: Axes, x: Array, y: Array, mean: Array, half: Array, output: str) -> None:
    """The mean as colour, fading with half the width of its range, and contours of that."""
    scale = _Scale.of(mean, half)
    style.image(ax, scale.colours(mean, half), x, y)
    if np.ptp(half) > 0.02 * half.max():
        lines = ax.contour(x, y, half, levels=4, colors=style.BLACK, linewidths=0.6)
        for text in ax.clabel(lines, fontsize=style.SMALL, fmt=style.number, zorder=4):
            text.set_path_effects([withStroke(linewidth=2.0, foreground="white")])
        ax.plot([], [], color=style.BLACK, lw=0.6, label=HALF)
    _key(ax, scale, output)


def _shown(released: Released) -> str:
    """What a colour stands for."""
    return f"mean of {released.output}" if released.curve == "mean" else released.output


def _key(ax: Axes, scale: _Scale, output: str) -> None:
    """A colour bar with a width: mean upwards, half the width of the range to the right."""
    key = ax.inset_axes((1.04, 0.0, 0.14, 1.0))
    x, y = np.linspace(0.0, scale.most, 40), np.linspace(scale.low, scale.high, 200)
    half, mean = np.meshgrid(x, y)
    style.image(key, scale.colours(mean, half), x, y)
    key.yaxis.tick_right()
    key.yaxis.set_label_position("right")
    style.set_labels(key, "", output)
    key.set_xlabel("± of the 90%\nrange: pale is\nuncertain", fontsize=style.SMALL)
    key.set_xticks([0.0, scale.most], ["0", f"≥{scale.most:.2g}"])
