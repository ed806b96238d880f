"""Scores on private validation records: bounded, one record at a time, of sensitivity 1/n."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privgp.vault.scores import (
    Loss,
    check_validation,
    make_loss,
    mean_loss,
    record_losses,
    score_sensitivity,
)

numbers = st.floats(allow_nan=False, allow_infinity=False)


class Echo:
    """A model that predicts its first input."""

    def predict(self, X):
        return np.asarray(X)[:, 0]


def score(X, y, loss):
    return mean_loss(Echo(), check_validation(X, y, loss))


def test_losses_are_what_their_names_say():
    X, y = np.array([[1.0], [2.0], [5.0], [0.0]]), np.array([1.0, 4.0, 1.0, 0.0])
    assert score(X, y, make_loss("accuracy")) == 0.5
    assert score(X, y, make_loss("squared_error", (0, 10))) == (0 + 4 + 10 + 0) / 40
    absolute = make_loss("absolute_error", (1, 3))
    assert absolute.score(score(X, y, absolute)) == -(1 + 2 + 3 + 1) / 4
    tilted = make_loss(lambda y, p: np.maximum(0.9 * (y - p), 0.1 * (p - y)), (0, 2))
    assert score(X, y, tilted) == pytest.approx((0 + 1.8 + 0.4 + 0) / 8)


def test_labels_may_be_words():
    y = np.array(["well", "ill", "ill"])
    assert record_losses(y, np.array(["well", "well", "ill"]), make_loss("accuracy")).tolist() == [
        0.0,
        1.0,
        0.0,
    ]


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=40), numbers, numbers, st.data())
def test_one_record_moves_the_computed_mean_by_at_most_its_sensitivity(pairs, x, y, data):
    """In exact arithmetic on the floats that were computed, whatever the record and its replacement."""
    kind = data.draw(st.sampled_from(["squared_error", "absolute_error"]))
    loss = make_loss(kind, data.draw(st.sampled_from([(0, 1), (-3, 1e-9), (0, 1e300), (1, 1.5)])))
    X, outputs = np.array(pairs)[:, :1], np.array(pairs)[:, 1]
    place = data.draw(st.integers(0, len(pairs) - 1))
    before = score(X, outputs, loss)
    X[place, 0], outputs[place] = x, y
    moved = abs(Fraction(score(X, outputs, loss)) - Fraction(before))
    assert moved <= Fraction(score_sensitivity(len(pairs)))


def test_the_sensitivity_is_reached():
    X, y = np.zeros((7, 1)), np.zeros(7)
    loss = make_loss("absolute_error", (0, 2))
    before = score(X, y, loss)
    y[3] = 1e9
    assert score(X, y, loss) - before >= 0.999 * score_sensitivity(7)


def test_a_given_loss_cannot_look_at_other_records():
    """A loss that adds up what it sees sees one record at a time, so it is no worse than others."""
    y, loss = np.arange(5.0), make_loss(lambda y, p: [np.sum(y) * np.ones(len(y)).item()], (0, 100))
    changed = y.copy()
    changed[0] = 50.0
    before, after = (record_losses(v, np.zeros(5), loss) for v in (y, changed))
    assert np.flatnonzero(before != after).tolist() == [0]


def test_what_is_no_number_costs_the_most():
    loss = make_loss(lambda y, p: np.log(y - 2.0), (-1, 1))
    assert record_losses(np.array([1.0, 3.0]), np.zeros(2), loss).tolist() == [1.0, 0.5]
    squared = make_loss("squared_error", (0, 4))
    assert record_losses(np.zeros(2), np.array([np.nan, np.inf]), squared).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("kind", "bounds", "message"),
    [
        ("r2", (0, 1), "scoring must be"),
        (3, (0, 1), "scoring must be the name"),
        ("squared_error", None, "loss_bounds must be given"),
        ("accuracy", (0, 1), "leave loss_bounds=None"),
        ("squared_error", (1, 1), "low < high"),
        ("squared_error", (0, np.inf), "finite"),
        ("squared_error", (-1e308, 1e308), "finite"),
        ("squared_error", (0, "x"), "two numbers"),
        ("squared_error", (0, 1, 2), "two numbers"),
    ],
)
def test_losses_without_sound_bounds_are_refused(kind, bounds, message):
    with pytest.raises(ValueError, match=message):
        make_loss(kind, bounds)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (None, [1.0], "X_val and y_val"),
        ([[1.0]], None, "X_val and y_val"),
        ([[1.0]], [1.0, 2.0], "same number"),
        (np.empty((0, 1)), [], "at least one"),
        ([[1.0]], [[1.0, 2.0]], "one-dimensional"),
        ([[1.0]], ["a"], "must be numbers"),
        ([[1.0]], [np.nan], "y_val contains NaN"),
        ([[np.inf]], [1.0], "X_val contains NaN"),
    ],
)
def test_records_that_cannot_be_scored_are_refused(X, y, message):
    with pytest.raises(ValueError, match=message):
        check_validation(X, y, make_loss("squared_error", (0, 1)))


def test_a_failing_model_or_loss_quotes_nothing():
    class Failing:
        def predict(self, X):
            raise RuntimeError(f"cannot predict {X}")

    loss = make_loss("squared_error", (0, 1))
    held = check_validation([[123.456]], [1.0], loss)
    assert "123" not in repr(held)
    with pytest.raises(ValueError, match="could not predict") as caught:
        mean_loss(Failing(), held)
    assert "123" not in str(caught.value)
    assert caught.value.__cause__ is None
    with pytest.raises(ValueError, match="one number for one record"):
        record_losses(np.zeros(2), np.zeros(2), Loss(lambda y, p: [1.0, 2.0], 0.0, 1.0))
