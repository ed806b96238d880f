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
    if first.inducing is None:
        plan = first._plan(X if first.protect == "outputs" else len(X), None)
    for seed in seeds:
        model = PrivateGPRegressor(**settings, random_state=seed)
        if first.inducing is None:
            model._plan = lambda *_, **__: plan  # type: ignore[method-assign]
        yield model.fit(X, y)
