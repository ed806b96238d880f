"""PrivateGridSearchCV: one of many candidates, chosen privately, like scikit-learn's GridSearchCV."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from privgp.ledger.account import Account
from privgp.models.published import Search, refuse_spenders, simulation
from privgp.models.search.candidates import (
    MEASUREMENT,
    VALIDATION_ASSUMPTIONS,
    candidates_of,
    compares_outputs,
    loss_of,
)
from privgp.models.search.outputs import fit_by_blocks, fit_by_cross_validation, fit_by_evidence
from privgp.privacy.budget import check_budget
from privgp.privacy.guarantee import Event, promise
from privgp.privacy.protected import VALIDATION
from privgp.question.rules import check_choice, check_defaults, is_number
from privgp.types import Array, Bounds, Column, RandomState, Table
from privgp.vault.scores import check_validation, score_sensitivity
from privgp.vault.select import CHOICES, SELECTION_SAMPLER, choose_by_validation

METHODS = (MEASUREMENT, *CHOICES)
CROSS_VALIDATION = ("cv", "selection_share")


def _if_model_has(name: str) -> Callable[[Callable[..., Any]], Any]:
    """A method that exists where the chosen model, or before a fit the given one, has it."""

    def check(search: Any) -> bool:
        getattr(vars(search).get("best_estimator_", search.estimator), name)
        return True

    return available_if(check)  # type: ignore[no-any-return]


@dataclass(eq=False, repr=False)
class PrivateGridSearchCV(Search, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Choose among candidates and say no more of the private data than epsilon and delta allow.

    Parameters
    ----------
    estimator : PrivateGPRegressor, PrivateGPClassifier, PrivateFunction or PosteriorPaths, or with private
        validation records any estimator. Its own epsilon, delta, random_state and hyperparameters are
        replaced by the search's.
    param_grid : dict of lists, or a list; of a private estimator: kernel(__...), noise_variance.
    epsilon, delta : the total that one ``fit`` spends, choice and release together.
    cv : int, splitter or list of splits, for a choice by cross-validation; never sees outputs.
    method : "measurement" chooses for nothing: all of the budget goes into one measurement, whose
        evidence ranks the candidates; for the outputs of a PrivateGPRegressor. "permute-and-flip" and
        "exponential" choose by cross-validation of such outputs, by blocks of the rows for all other
        private estimators, or by validation records.
    selection_share : the part of epsilon that a choice by cross-validation or by blocks spends.
    blocks : the number of blocks; None: the root of the number of rows.
    scoring : with validation records: "accuracy", "squared_error", "absolute_error" or a function of
        (y, prediction), called with one record at a time.
    loss_bounds : (low, high), bounds of one record's loss, declared.
    ledger : the Account of the private data, which every fit charges before it draws; None: none.
    random_state : for simulations only, and the guarantee states this.

    Attributes
    ----------
    best_params_, best_index_, best_estimator_ : the choice, and the model fitted with it.
    guarantee_ : what choice and release guarantee together.
    cv_results_ : the candidates and what is public about them; their scores stay private.

    """

    estimator: BaseEstimator
    param_grid: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    _: KW_ONLY
    epsilon: float
    delta: float
    cv: Any = 5
    method: str = "measurement"
    selection_share: float = 0.3
    blocks: int | None = None
    scoring: str | Callable[..., float] | None = None
    loss_bounds: Bounds | None = None
    ledger: Account | None = None
    random_state: RandomState = None

    def fit(
        self,
        X: Table,
        y: Column,
        *,
        groups: Column | None = None,
        X_val: Table | None = None,
        y_val: Column | None = None,
    ) -> Self:
        """Choose among the candidates and fit the chosen model. Spends the whole budget once.

        Parameters
        ----------
        X : table (rows, inputs)
            The inputs.
        y : column (rows,)
            The private outputs, or public training rows if validation records are given.
        groups : column (rows,), optional
            Public person identifiers.
        X_val, y_val : table and column, optional
            Private validation records: then only they are protected.

        Returns
        -------
        self

        """
        check_budget(self.epsilon, self.delta, pure=True)
        check_choice("method", self.method, METHODS)
        if not is_number(self.selection_share) or not 0 < self.selection_share < 1:
            raise ValueError("selection_share must be a number between 0 and 1.")
        if self.method == MEASUREMENT:
            check_defaults(self, (*CROSS_VALIDATION, "blocks"), f"method={MEASUREMENT!r}")
        if X_val is None and y_val is None:
            if self.scoring is not None or self.loss_bounds is not None:
                raise ValueError("scoring and loss_bounds are for validation records: give X_val.")
            self._check_call(X, y, groups)
            if self.method == MEASUREMENT:
                fit_by_evidence(self, X, y, groups)
            elif compares_outputs(self.estimator):
                check_defaults(self, ("blocks",), "outputs of a PrivateGPRegressor")
                fit_by_cross_validation(self, X, y, groups)
            else:
                fit_by_blocks(self, X, y, groups)
        elif groups is not None:
            raise ValueError("groups cannot be given with X_val: validation records are single.")
        else:
            self._fit_by_validation(X, y, X_val, y_val)
        return self

    def _fit_by_validation(self, X: object, y: object, X_val: object, y_val: object) -> None:
        """Train every candidate on (X, y) and choose by its mean loss on the private records."""
        if self.method == MEASUREMENT:
            raise ValueError(
                "method='measurement' does not use validation records: give "
                "method='permute-and-flip' or 'exponential' with X_val, y_val."
            )
        check_defaults(self, (*CROSS_VALIDATION, "blocks"), "validation records X_val, y_val")
        refuse_spenders(estimator=self.estimator, param_grid=self.param_grid)
        loss = loss_of(self.estimator, self.scoring, self.loss_bounds)
        validation = check_validation(X_val, y_val, loss)
        params, epsilon = candidates_of(self.param_grid), float(self.epsilon)
        models = [clone(self.estimator).set_params(**each).fit(X, y) for each in params]
        rng = simulation(self)
        promised = promise(
            VALIDATION,
            [Event(pure_epsilons=(epsilon,))],
            (epsilon, self.delta),
            assumptions=VALIDATION_ASSUMPTIONS,
            mechanism=f"one of {len(params)} candidates by {self.method} on the mean of "
            f"{loss.name} between {loss.low:g} and {loss.high:g}",
            sampler=SELECTION_SAMPLER,
            simulated=rng is not None,
        )

        def keep(best: int) -> None:
            self.guarantee_ = promised
            sensitivity = loss.width * score_sensitivity(validation.rows)
            self._keep(best, models[best], {"sensitivity": np.full(len(params), sensitivity)})

        self._publish(
            promised,
            lambda: choose_by_validation(self.method, models, validation, epsilon, rng),
            keep,
            rows=validation.rows,
        )

    def _keep(
        self, best: int, model: Any, results: dict[str, Any], chosen_by: str | None = None
    ) -> None:
        """The choice, its model, and a table of candidates with what is public about them."""
        params = candidates_of(self.param_grid)
        self.best_index_, self.best_params_, self.best_estimator_ = best, params[best], model
        if chosen_by is not None:  # by outputs, which the model releases too
            model.chosen_by_ = f"chosen among {len(params)} candidates by {chosen_by}"
            model._state(self.guarantee_, vars(self).get("charged_"), model.chosen_by_)
        self.cv_results_: dict[str, Any] = {"params": params}
        for name in sorted({name for each in params for name in each}):
            values = np.empty(len(params), dtype=object)
            values[:] = [each.get(name) for each in params]
            missing = [name not in each for each in params]
            self.cv_results_[f"param_{name}"] = np.ma.MaskedArray(values, mask=missing)
        self.cv_results_ |= results

    def describe(self) -> str:
        """The budget and how it is divided; after ``fit`` also the choice and the guarantee."""
        check_budget(self.epsilon, self.delta, pure=True)
        count = len(candidates_of(self.param_grid))
        lines = [
            f"{count} candidates, chosen among by {self.method}; "
            f"epsilon = {self.epsilon:g}, delta = {self.delta:g} in total."
        ]
        guarantee = vars(self).get("guarantee_")
        by_records = guarantee is not None and guarantee.unit == VALIDATION.unit
        if self.method == MEASUREMENT:
            lines.append("The choice spends nothing: all of the budget is the measurement's.")
        elif by_records or self.scoring is not None:
            lines.append("The choice spends all of epsilon; it is pure, so delta is 0.")
        else:
            spent = self.selection_share * self.epsilon
            lines.append(
                f"The choice spends epsilon = {spent:g} (selection_share = "
                f"{self.selection_share:g}); the release has the rest."
            )
        if "best_params_" in vars(self):
            lines.append(f"Chosen: {self.best_params_}.")
        if guarantee is not None:
            lines.append(guarantee.describe())
        return "\n".join(lines)

    @_if_model_has("predict")
    def predict(self, X: Table, **options: object) -> Any:
        """Predict at the rows of X with the chosen model, which gets the ``options``."""
        return self._best().predict(X, **options)

    @_if_model_has("predict_proba")
    def predict_proba(self, X: Table) -> Array:
        """The probabilities of the chosen model at the rows of X."""
        return np.asarray(self._best().predict_proba(X))

    @_if_model_has("decision_function")
    def decision_function(self, X: Table) -> Array:
        """The decision function of the chosen model at the rows of X."""
        return np.asarray(self._best().decision_function(X))

    @_if_model_has("transform")
    def transform(self, X: Table) -> Any:
        """The rows of X as the chosen model transforms them."""
        return self._best().transform(X)

    @_if_model_has("score")
    def score(self, X: Table, y: Column) -> float:
        """The score of the chosen model on public X and y; on private records it is not protected."""
        return float(self._best().score(X, y))

    def _best(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    # What is not fitted has none of these: NotFittedError is an AttributeError.
    n_features_in_ = property(
        lambda self: self._best().n_features_in_, doc="The number of inputs of the chosen model."
    )
    feature_names_in_ = property(
        lambda self: self._best().feature_names_in_, doc="The names of its inputs."
    )
    classes_ = property(lambda self: self._best().classes_, doc="The classes of the chosen model.")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        for part in ("classifier_tags", "regressor_tags", "target_tags"):
            setattr(tags, part, deepcopy(getattr(inner, part)))
        tags.input_tags.sparse = inner.input_tags.sparse
        return tags
