"""Rehearse a release before its budget is spent, and say what is spent when something stops it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import clone

from privgp.command.errors import Failure, Refusal, stopped
from privgp.command.io.columns import in_the_middle
from privgp.command.io.request import public_computation
from privgp.models.load import save
from privgp.models.regressor import PrivateGPRegressor
from privgp.storage.parts import part_beside


def rehearse(model: PrivateGPRegressor, X: pl.DataFrame, people: Any, path: Path) -> None:
    """Release made-up values to a file that is then removed.

    A release that cannot be saved would have spent its budget for nothing, so whatever stops one
    (a full disk, a name that the format cannot hold) should stop this one first. It learns nothing,
    which keeps it short.
    """
    trial = clone(model).set_params(hyperparameters="fixed", random_state=0)
    low, high = model.y_bounds
    if model.protect == "records":  # private inputs stay out of it too
        X = in_the_middle(model.x_bounds, X)
    try:
        with public_computation(), part_beside(path, ending=path.suffix) as part:
            trial.fit(X, np.full(X.height, 0.5 * low + 0.5 * high), people)
            save(trial, part, overwrite=True)
    except OSError:
        raise Refusal(f"'{path}' cannot be written there; nothing was spent.") from None


@contextmanager
def spending(epsilon: float, delta: float) -> Iterator[list[Path]]:
    """From here on the budget counts as spent, whatever happens; errors say so and nothing else.

    Yields a list to note the release in once it is written.
    """
    saved: list[Path] = []
    spent = f"count epsilon = {epsilon:g}, delta = {delta:g} as spent."
    try:
        yield saved
    except (KeyboardInterrupt, Exception) as problem:
        what = "noise may have been drawn, and nothing was released"
        if saved:
            what = f"'{saved[0]}' was written, which is complete"
        raise Failure(f"{stopped(problem)} after {what}; {spent}") from None
