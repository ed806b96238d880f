"""The questions that hurt sample paths most, with the curator restarted between them."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from privgp.models.paths import PosteriorPaths
from privgp.types import Array

CLUSTER: Array = np.array(
    [3e-9, 6e-9, 9e-9, 12e-9]
)  # of the domain's width: rounding errors weigh most there
NEAR: Array = np.array([1e-12, 1e-3])


def worst_questions(domain: Sequence[tuple[float, float]], places: Array) -> list[Array]:
    """Where the datasets differ, ``places`` (points, columns); clusters and single points near there;
    the edges of the domain and the next numbers inside; and the first places once more."""
    low, high = np.array(domain).T
    width = high - low

    def about(steps: Array) -> Array:
        moved = places[:, None, :] + steps[:, None] * width
        inside = np.where(moved <= high, moved, 2.0 * places[:, None, :] - moved)
        return np.asarray(np.clip(inside.reshape(-1, len(low)), low, high))

    edges = np.stack([low, high, np.nextafter(low, high), np.nextafter(high, low)])
    return [places, about(CLUSTER), edges, about(NEAR), places]


def asked_with_restarts(paths: PosteriorPaths, questions: Sequence[Array]) -> Array:
    """The answers to all questions, (paths, points); after each the curator starts again."""
    answers = []
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "audit.private-state"
        paths.save_state(state)
        for points in questions:
            answers.append(paths.release(points))
            paths = PosteriorPaths.load_state(state)
    return np.hstack(answers)
