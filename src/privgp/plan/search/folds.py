"""How candidates are compared on private rows: cross-validation as linear maps, from inputs alone, and
blocks of rows. Public throughout."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel
from sklearn.model_selection import GroupKFold, KFold, check_cv

from privgp.gp.priors import Hyperparameters, collapse
from privgp.gp.smoothers import exact_smoother
from privgp.privacy.selection import Fold
from privgp.question.rules import whole_number
from privgp.types import Array, Integers, Pair

Split = tuple[Integers, Integers]
LEAST_ROWS = 4  # of a block: two to learn from, two to predict


def public_splits(cv: object, X: Array, groups: object = None) -> list[Split]:
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


@dataclass(frozen=True)
class Trial:
    """One candidate for a release, as blocks judge it.

    Attributes
    ----------
    kernel, noise_variance : of the posterior that all rows would have
    bounds : of the outputs, declared
    classes : how many labels were declared; 2 also for numbers, which are one number each
    added : variance that the release adds to this posterior's mean at a point, in squared units of y
    is_draw : whether a draw from the posterior is released, so that its variance is an error too

    """

    kernel: Kernel
    noise_variance: float
    bounds: Pair
    classes: int = 2
    added: float = 0.0
    is_draw: bool = False


@dataclass(frozen=True)
class Dealt:
    """How private rows, once shuffled, become blocks: by their place.

    Attributes
    ----------
    rows, blocks : how many there are
    domain : of private inputs, which are moved into it; None where inputs are public

    """

    rows: int
    blocks: int
    domain: tuple[Pair, ...] | None


def count_blocks(asked: object, rows: int) -> int:
    """How many blocks: as asked for, or the root of the number of rows.

    Parameters
    ----------
    asked
        A whole number from 2 on, or None.
    rows
        How many rows there are.

    Raises
    ------
    ValueError
        There are too few rows for blocks.

    """
    most = rows // LEAST_ROWS
    if most < 2:
        raise ValueError(f"a choice by blocks needs at least {2 * LEAST_ROWS} rows.")
    if asked is None:
        return min(max(2, math.isqrt(rows)), most)
    count = whole_number("blocks", asked, most)
    if count < 2:
        raise ValueError(f"blocks must be a whole number from 2 to {most}.")
    return count
