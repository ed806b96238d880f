"""Cross-validation of a Gaussian process as linear maps: splits and weights, from inputs alone."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, check_cv

from privgp.gp.input_maps import collapse
from privgp.gp.priors import Hyperparameters
from privgp.gp.smoothers import exact_smoother
from privgp.privacy.selection import Fold
from privgp.types import Array, Column, Integers

Split = tuple[Integers, Integers]


def public_splits(cv: object, X: Array, groups: Column | None = None) -> list[Split]:
    """(train, test) row numbers of any scikit-learn splitter, number of folds, or list of splits.
    The splitter never sees outputs: one that needs them, such as StratifiedKFold, is refused. A
    number of folds shuffles by a fixed public seed and keeps the rows of a person together."""
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool) and 2 <= cv <= len(X):
        kind = KFold if groups is None else GroupKFold
        cv = kind(int(cv), shuffle=True, random_state=0)
    try:
        splits = [
            (np.asarray(train), np.asarray(test))
            for train, test in check_cv(cv).split(X, None, groups)
        ]
    except (TypeError, ValueError, AttributeError, IndexError) as problem:
        raise ValueError(
            "cv must split the rows by their number, inputs or groups alone, never by outputs: "
            f"give a number of folds, KFold, ShuffleSplit or the like ({problem})."
        ) from None
    if not splits:
        raise ValueError("cv makes no split.")
    return [_check_split(split, len(X)) for split in splits]


def folds_of(model: Hyperparameters, X: Array, splits: Sequence[Split]) -> Iterator[Fold]:
    """The residual map of a model, one fold after the other."""
    mapped = model.input_map(X)
    for train, test in splits:
        inputs, index = collapse(mapped[train])
        counts = np.bincount(index).astype(float)
        smoother = exact_smoother(model.kernel, model.noise_variance, inputs, counts, mapped[test])
        yield Fold(train, test, index, smoother.weights)


def _check_split(split: tuple[Any, Any], rows: int) -> Split:
    out = []
    for part in split:
        if part.dtype == bool and part.shape == (rows,):
            part = np.flatnonzero(part)
        if part.ndim != 1 or part.dtype.kind not in "iu" or part.size == 0:
            raise ValueError("cv must give row numbers for training and testing, none of it empty.")
        if part.min() < 0 or part.max() >= rows or len(np.unique(part)) != len(part):
            raise ValueError("cv names rows that do not exist, or one row twice.")
        out.append(part.astype(np.int64))
    if np.intersect1d(*out).size:
        raise ValueError("cv tests rows that it also trains on.")
    return out[0], out[1]
