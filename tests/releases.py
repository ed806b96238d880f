"""Many releases of one table, for tests of errors over releases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from privgp import PrivateGPRegressor


def releases(
    X: np.ndarray, y: np.ndarray, seeds: Iterable[int], **settings: Any
) -> Iterator[PrivateGPRegressor]:
    """One simulated fit per seed. The inputs are the same, so they are planned for once."""
    first = PrivateGPRegressor(**settings)
    plan = first.plan(X)
    for seed in seeds:
        yield PrivateGPRegressor(**settings, random_state=seed).fit(X, y, plan=plan)
