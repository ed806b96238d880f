"""Search over any estimator by private validation records that no model is trained on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone, is_classifier

from privgp.models.spending import refuse_spending
from privgp.privacy.guarantee import VALIDATION, Event, promise
from privgp.vault.scores import checked_validation, make_loss, mean_loss, score_sensitivity
from privgp.vault.select import MECHANISMS, SELECTION_SAMPLER

if TYPE_CHECKING:
    from privgp.models.search.grid import PrivateGridSearchCV

VALIDATION_ASSUMPTIONS = (
    "no model was trained on validation records, and the training data are public or protected "
    "separately",
    "a model predicts every record by itself, and the number of validation records is public",
    "the candidates, the loss and its bounds and the budget were chosen without looking at the "
    "validation records",
)


def fit_validated(search: PrivateGridSearchCV, X: Any, y: Any, X_val: Any, y_val: Any) -> None:
    """Train every candidate on (X, y) and choose by its mean loss on the private records."""
    if search.method == "measurement":
        raise ValueError(
            "method='measurement' does not use validation records: give "
            "method='permute-and-flip' or 'exponential' with X_val, y_val."
        )
    refuse_spending(estimator=search.estimator, param_grid=search.param_grid)
    scoring = search.scoring
    if scoring is None and is_classifier(search.estimator):
        scoring = "accuracy"
    if scoring is None:
        raise ValueError(
            "scoring must be given with X_val: 'squared_error' or 'absolute_error' with "
            "loss_bounds, 'accuracy', or a function (y, prediction) -> losses."
        )
    loss = make_loss(scoring, search.loss_bounds)
    validation = checked_validation(X_val, y_val, loss)
    rows = validation.rows
    params = search._candidates()
    models = [clone(search.estimator).set_params(**each).fit(X, y) for each in params]
    utilities = np.array([-mean_loss(model, validation, loss) for model in models])
    choose = MECHANISMS[search.method]
    (seed,) = search._seeds(1)
    rng = None if seed is None else np.random.default_rng(seed)
    best = choose(utilities, score_sensitivity(rows), float(search.epsilon), rng)
    del utilities, validation
    search.guarantee_ = promise(
        VALIDATION,
        [Event(pure_epsilons=(float(search.epsilon),))],
        epsilon=search.epsilon,
        delta=search.delta,
        assumptions=VALIDATION_ASSUMPTIONS,
        mechanism=f"one of {len(params)} candidates by {search.method} on the mean of "
        f"{loss.name} between {loss.low:g} and {loss.high:g}",
        sampler=SELECTION_SAMPLER,
        simulated=seed is not None,
    )
    width = loss.high - loss.low
    told = {"sensitivity": np.full(len(params), width * score_sensitivity(rows))}
    search._finish(params, best, models[best], told)
