"""What both searches ask of validation records: a loss, and what is assumed."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_classifier

from privgp.vault.scores import Loss, make_loss

VALIDATION_ASSUMPTIONS = (
    "the number of validation records is public",
    "models are trained without the validation records, on data that are public or protected "
    "separately, and predict every record by itself",
    "the settings, the loss and its bounds and the budget were chosen without looking at the "
    "validation records",
)


def loss_of(estimator: Any, scoring: Any, loss_bounds: Any) -> Loss:
    """The loss that was asked for: accuracy unless given, for classifiers."""
    if scoring is None and not is_classifier(estimator):
        raise ValueError(
            "scoring must be given for a regressor: 'squared_error', 'absolute_error' or a function "
            "(y, prediction) -> loss, with loss_bounds=(low, high)."
        )
    return make_loss("accuracy" if scoring is None else scoring, loss_bounds)
