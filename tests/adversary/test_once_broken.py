"""What once broke the guarantee of sample paths, as it was done: these fail on the versions that had it.

Only public names are used, so that an older version can be tried in the same way.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern

from privgp import PosteriorPaths

RECORDS = np.linspace(0, 1, 100)[:, None]
OUTPUTS = np.sin(6 * RECORDS[:, 0])
DRAWS = 400
FAR = [[1e18], [0.0], [0.5], [1.0]]


def paths() -> PosteriorPaths:
    """Draws of r = 5, the exponential kernel on [0, 1]."""
    made = PosteriorPaths(
        Matern(1.0, nu=0.5), 25.0, domain=(0, 1), y_bounds=(-1, 1), n_paths=DRAWS, delta=0.01,
        random_state=0,
    )  # fmt: skip
    return made.fit(RECORDS, OUTPUTS)


def std_beside_a_far_point() -> float:
    """The std of f(0) - f(1), asked together with a point 1e18 lengthscales away."""
    drawn = paths().release(FAR)
    return float(np.std(drawn[:, 1] - drawn[:, 3]))


def correlation_after_restarts(folder) -> float:
    """Between f(0.5), drawn first, and f(0.5 + 1e-9), drawn after points 3e-9 apart and restarts."""
    state = folder / "kept.private-state"
    made = paths()
    made.save_state(state)
    first = made.release([[0.5]])[:, 0]
    steps = 3e-9 * np.arange(1, 81)
    clusters = np.concatenate([steps, 0.25 + steps, 0.75 + steps, 1.0 - steps])
    PosteriorPaths.load_state(state).release(clusters[:, None])
    last = PosteriorPaths.load_state(state).release([[0.5 + 1e-9]])[:, 0]
    return float(np.corrcoef(first, last)[0, 1])


def test_a_far_question_is_refused_and_removes_no_noise():
    made = paths()
    with pytest.raises(ValueError, match="outside"):
        made.release(FAR)
    assert made.points_answered_ == 0
    drawn = made.release(FAR[1:])
    assert np.std(drawn[:, 0] - drawn[:, 2]) > 0.85  # 0.96; of 400 draws, three stds below


def test_a_restart_changes_no_sign(tmp_path):
    assert correlation_after_restarts(tmp_path) > 0.99
