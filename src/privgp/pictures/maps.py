"""A released function of two inputs: colour is its mean, and it pales where that is uncertain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from privgp.pictures import style as style
from privgp.release.at_targets import AtTargets, Release
from privgp.types import Array

POINTS = 80  # along either input
FADED = 0.9  # how far towards white the least certain colour goes


@dataclass(frozen=True)
class _Scale:
    """Mean to colour, std to its fading: white is where the 90% interval spans all colours."""

    low: float
    high: float

    @classmethod
    def of(cls, mean: Array, std: Array, share: float = 1.0) -> _Scale:
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


def draw_map(ax: Axes, release: Release, nodes: Array, output: str) -> None:
    """The mean over two inputs as colour, fading with its std, and contours of the std."""
    if isinstance(release, AtTargets):
        mean, variance = release.mean_and_variance(release.targets)
        std = np.sqrt(variance)
        # Without smoothing a few lonely targets are far off and would leave one colour for the rest.
        scale = _Scale.of(mean, std, share=0.9)
        ax.scatter(
            release.targets[:, 0],
            release.targets[:, 1],
            c=scale.colours(mean, std),
            s=28,
            edgecolors=style.BLACK,
            linewidths=0.4,
            label=style.AT_TARGETS,
        )
    else:
        x, y = (np.linspace(*style.limits(nodes[:, j], 0.0), POINTS) for j in range(2))
        grid = np.stack(np.meshgrid(x, y), axis=-1)
        mean, variance = release.mean_and_variance(grid.reshape(-1, 2))
        mean, std = mean.reshape(grid.shape[:2]), np.sqrt(variance).reshape(grid.shape[:2])
        scale = _Scale.of(mean, std)
        ax.imshow(
            scale.colours(mean, std),
            extent=(x[0], x[-1], y[0], y[-1]),
            origin="lower",
            aspect="auto",
            interpolation="bilinear",
        )
        if np.ptp(std) > 0.02 * std.max():
            lines = ax.contour(x, y, std, levels=4, colors=style.BLACK, linewidths=0.6)
            for text in ax.clabel(lines, fontsize=style.SMALL, fmt=style.number, zorder=4):
                text.set_path_effects([withStroke(linewidth=2.0, foreground="white")])
            ax.plot([], [], color=style.BLACK, lw=0.6, label="standard deviation")
        ax.plot(
            nodes[:, 0],
            nodes[:, 1],
            ".",
            color=style.BLACK,
            ms=1.6,
            clip_on=False,
            label="public inputs",
        )
    _key(ax, scale, output)


def _key(ax: Axes, scale: _Scale, output: str) -> None:
    """A colour bar with a width: mean upwards, std to the right."""
    key = ax.inset_axes((1.04, 0.0, 0.14, 1.0))
    std, mean = np.meshgrid(
        np.linspace(0.0, scale.most, 40), np.linspace(scale.low, scale.high, 200)
    )
    key.imshow(
        scale.colours(mean, std),
        extent=(0.0, scale.most, scale.low, scale.high),
        origin="lower",
        aspect="auto",
        interpolation="bilinear",
    )
    key.yaxis.tick_right()
    key.yaxis.set_label_position("right")
    style.set_labels(key, "", f"mean of {output}")
    key.set_xlabel("std: the paler,\nthe less certain", fontsize=style.SMALL)
    key.set_xticks([0.0, scale.most], ["0", f"≥{scale.most:.2g}"])
