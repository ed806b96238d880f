"""Where released paths exceed a threshold, by a vote: post-processing, which costs nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privgp.privacy.guarantee import Guarantee
from privgp.types import STAMP, Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class Excursion:
    """``inside`` (points,): whether at least ``vote`` of the paths reach the threshold there.

    ``share`` (points,) of the paths that do; ``points`` (points, inputs); ``paths``
    (paths, points), smoothed where that was asked for.
    """

    points: Array
    threshold: float
    vote: float
    share: Array
    inside: Any
    paths: Array
    names: tuple[str, ...] | None
    guarantee: Guarantee

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
        from privgp.pictures.excursions import plot_excursion
        from privgp.pictures.style import budget_text, number

        one_path = self.vote == 0.5 and len(self.paths) == 1
        promise = self.guarantee
        budget = budget_text(promise.epsilon, promise.delta)
        return plot_excursion(
            self.points,
            self.inside,
            paths=self.paths,
            threshold=self.threshold,
            height=self.paths[0] - self.threshold if one_path else self.share - self.vote,
            names=self.names,
            title=f"at least {number(self.threshold)}: {budget}, {promise.unit}",
            simulation=promise.is_simulation,
        )


def check_vote(threshold: float, vote: float, smoothing: float | None) -> None:
    """Refuse what no paths can be asked, before they are: their answers cost."""
    if not math.isfinite(threshold):
        raise ValueError(f"threshold must be finite, got {threshold}.")
    if not 0 < vote <= 1:
        raise ValueError(f"vote must satisfy 0 < vote <= 1, got {vote}.")
    if smoothing is not None and not (math.isfinite(smoothing) and smoothing > 0):
        raise ValueError(f"smoothing must be positive and finite, got {smoothing}.")


def excursion_set(
    points: Array,
    paths: Array,
    threshold: float,
    *,
    vote: float,
    smoothing: float | None,
    names: Sequence[object] | None,
    guarantee: Guarantee,
) -> Excursion:
    """The vote of these paths (paths, points)."""
    check_vote(threshold, vote, smoothing)
    if smoothing is not None:
        paths = smoothed(points, paths, smoothing)
    share = np.mean(paths >= threshold, axis=0)
    return Excursion(
        points, float(threshold), float(vote), share, share >= vote, paths,
        None if names is None else tuple(str(name) for name in names), guarantee,
    )  # fmt: skip


def smoothed(points: Array, paths: Array, std: float) -> Array:
    """Every path averaged over its neighbours with Gaussian weights of this std, in units of x."""
    squared = np.zeros((len(points), len(points)))
    for column in points.T:
        squared += (column[:, None] - column) ** 2
    weights = np.exp(-0.5 * squared / std**2)
    weights /= weights.sum(axis=1, keepdims=True)
    return np.asarray(paths @ weights.T)
