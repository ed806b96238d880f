"""Splits that never see outputs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
)

from privgp.plan.search.folds import public_splits

X = np.arange(12.0)[:, None]


@pytest.mark.parametrize(
    "cv",
    [
        KFold(3),
        ShuffleSplit(7, test_size=0.25, random_state=1),
        RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
        LeaveOneOut(),
        PredefinedSplit([0, 1] * 6),
    ],
)
def test_any_splitter_that_needs_no_outputs_serves(cv):
    expected = list(cv.split(X))
    for (train, test), (a, b) in zip(public_splits(cv, X), expected, strict=True):
        np.testing.assert_array_equal(train, a)
        np.testing.assert_array_equal(test, b)


def test_a_number_of_folds_shuffles_by_a_public_seed():
    splits, again = public_splits(4, X), public_splits(4, X)
    tested = np.concatenate([test for _, test in splits])
    assert sorted(tested) == list(range(12))
    assert not np.array_equal(tested, np.arange(12))
    np.testing.assert_array_equal(tested, np.concatenate([test for _, test in again]))


def test_groups_are_kept_together():
    groups = np.repeat(np.arange(4), 3)
    for train, test in public_splits(GroupKFold(2), X, groups) + public_splits(2, X, groups):
        assert not set(groups[train]) & set(groups[test])


def test_masks_and_lists_of_splits_serve():
    mask = np.arange(12) < 6
    ((train, test),) = public_splits([(mask, ~mask)], X)
    np.testing.assert_array_equal(train, np.arange(6))
    np.testing.assert_array_equal(test, np.arange(6, 12))


@pytest.mark.parametrize(
    "cv",
    [StratifiedKFold(3), 1, 0, -2, 13, "five", 2.5, GroupKFold(2), [], [([0], [0, 1])],
     [([0, 0], [1])], [([0], [])], [([0], [12])], [([-1], [0])], [([0.5], [1])]],
)  # fmt: skip
def test_others_are_refused(cv):
    with pytest.raises(ValueError, match="cv"):
        public_splits(cv, X)
