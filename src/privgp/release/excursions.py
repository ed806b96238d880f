"""Where released paths exceed a threshold, by a vote: post-processing, which costs nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial.distance import cdist

from privgp.privacy.guarantee import Guarantee
from privgp.types import STAMP, Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class Excursion:
    """Where at least ``vote`` of the paths reach the threshold. ``points``: (points, inputs);
    ``paths``: (paths, points), smoothed where that was asked for."""

    points: Array
    threshold: float
    vote: float
    paths: Array
    names: tuple[str, ...] | None
    guarantee: Guarantee

    @property
    def share(self) -> Array:
        """The share of the paths that reach the threshold at each point, (points,)."""
        return np.asarray(np.mean(self.paths >= self.threshold, axis=0))

    @property
    def inside(self) -> Any:
        """Whether each point belongs to the set, (points,)."""
        return self.share >= self.vote

    def describe(self) -> str:
        stamp = f"{STAMP}: " if self.guarantee.is_simulation else ""
        return (
            f"{stamp}{int(np.sum(self.inside))} of {len(self.points)} points lie where at least "
            f"{self.vote:g} of {len(self.paths)} paths reach {self.threshold:g}.\n"
            f"{self.guarantee.describe()}"
        )

    def __repr__(self) -> str:
        stamp = f", {STAMP!r}" if self.guarantee.is_simulation else ""
        return (
            f"Excursion(threshold={self.threshold:g}, vote={self.vote:g}, points={len(self.points)}, "
            f"inside={int(np.sum(self.inside))}, paths={len(self.paths)}{stamp})"
        )

    def plot(self) -> Figure:
        """One input: paths, threshold and the set as a band; two: the set and its boundary."""
        from privgp.release.picture import plot_excursion

        return plot_excursion(self)


def check_vote(threshold: float, vote: float, smoothing: float | None) -> None:
    """Refuse what no paths can be asked, before they are: their answers cost."""
    if not math.isfinite(threshold):
        raise ValueError(f"threshold must be finite, got {threshold}.")
    if not 0 < vote <= 1:
        raise ValueError(f"vote must satisfy 0 < vote <= 1, got {vote}.")
    if smoothing is not None and not (math.isfinite(smoothing) and smoothing > 0):
        raise ValueError(f"smoothing must be positive and finite, got {smoothing}.")


def smooth_paths(points: Array, paths: Array, std: float) -> Array:
    """Every path averaged over its neighbours with Gaussian weights of this std, in units of x."""
    weights = np.exp(-0.5 * cdist(points, points, "sqeuclidean") / std**2)
    weights /= weights.sum(axis=1, keepdims=True)
    return np.asarray(paths @ weights.T)
