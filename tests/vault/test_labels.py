"""Labels are compared with the declared classes one by one, and nobody hears of any."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from privgp.vault.labels import label_codes, shares_of_second


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (["a", "b", "z", "a"], ("a", "b")),
        (np.array(["a", "b", "z", "a"]), ("a", "b")),
        (pd.Series(["a", "b", "z", "a"]), ("a", "b")),
        ([1, 2.0, 7, Decimal(1)], (1, 2)),
        (np.array([1, 2, 7, 1]), (1.0, 2.0)),
        (np.array([1.0, 2.0, 1.5, 1.0]), (1, 2)),
        (["a", "b", 1, "a"], ("a", "b")),
        (["a", "b", date(2026, 3, 1), "a"], ("a", "b")),
        ([1, 2, 1j, 1], (1, 2)),
        (np.array(["a", "b", [1], "a"], dtype=object), ("a", "b")),
        (pd.Series(["a", "b", pd.Timestamp(0), "a"]), ("a", "b")),
        (np.array(["a", "b", 1, "a"], dtype=object), ("a", "b")),
    ],
)
def test_an_undeclared_label_belongs_to_no_class_and_changes_no_other(y, classes):
    assert_array_equal(label_codes(y, classes, 4), [0.0, 1.0, -1.0, 0.0])


def test_of_two_classes_no_class_is_half_way():
    assert_array_equal(shares_of_second(np.array([0.0, 1.0, -1.0])), [0.0, 1.0, 0.5])


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (["a", None, "b"], "label in every row"),
        (["a", pd.NaT, "b"], "label in every row"),
        (["a", pd.NA, "b"], "label in every row"),
        ([1.0, float("nan"), 0.0], "label in every row"),
        (np.array([1.0, np.inf, 0.0]), "label in every row"),
        (["a", "b"], "one label for each row"),
        (np.zeros((3, 2)), "one label for each row"),
        (7, "must be labels"),
        (np.array([1, 2, 3]), "of one type"),
    ],
)
def test_what_is_refused_holds_no_label(y, words):
    with pytest.raises(ValueError, match=words) as caught:
        label_codes(y, ("a", "b") if words == "of one type" else (0, 1), 3)
    assert "nan" not in str(caught.value)
    assert caught.value.__cause__ is None
