"""Estimators that spend a budget of their own at every fit: how they are charged for it, and how
they are found however deep they are nested."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags

from privgp.plan.fingerprint import fingerprint
from privgp.privacy.guarantee import Guarantee
from privgp.types import Array

if TYPE_CHECKING:
    from privgp.ledger.account import Account


class SpendsAtFit:
    """A mark: every ``fit`` measures private values and spends the estimator's own budget."""

    def _check_given(self, y: Any) -> None:
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is "
                "None."
            )


class SpendingRegressor(SpendsAtFit, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


class SpendingClassifier(SpendsAtFit, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


def charge(model: Any, guarantee: Guarantee, inputs: Array | None = None) -> None:
    """Charge the model's account, if it has one, for what is about to be drawn; ``inputs``: those
    that are public. A simulation is charged too, as its numbers depend on private values."""
    account = check_ledger(model)
    if account is None:
        model.__dict__.pop("charged_", None)
        return
    public = None if inputs is None else fingerprint(inputs)
    entry = account.charge(guarantee, fingerprint=public)
    model.charged_ = {"dataset": entry.dataset, "entry": entry.number, "head": entry.hash}


def check_ledger(model: Any) -> Account | None:
    """The account that a model is to charge."""
    account = model.ledger
    if account is None:
        return None
    from privgp.ledger.account import Account  # slow to import

    if not isinstance(account, Account):
        raise ValueError(
            "ledger must be an Account, such as Ledger(url).account(dataset), or None."
        )
    return account


def refuse_spending(**arguments: Any) -> None:
    """Refuse arguments of a search, by their names, that hold an estimator which spends at fit: it
    would spend for every setting tried, beside the search's promise (docs/proofs/bayes.md)."""
    for argument, value in arguments.items():
        found = next(_spending(value, {}), None)
        if found is not None:
            raise ValueError(
                f"{argument} contains {found}, which spends a budget of its own at every fit, once "
                "for every setting tried: fit it once beforehand and give it as a FrozenEstimator, "
                "or choose its hyperparameters by PrivateGridSearchCV with method='measurement'."
            )


def _spending(value: Any, seen: dict[int, Any]) -> Iterator[str]:
    """The names of all estimators that spend, in a value and in whatever it holds."""
    if id(value) in seen or isinstance(value, FrozenEstimator):  # a frozen one is never fitted
        return
    seen[id(value)] = value  # kept, so that no other object gets its number
    kind = value if isinstance(value, type) else type(value)
    if issubclass(kind, SpendsAtFit):
        yield kind.__name__
    for part in _parts(value):
        yield from _spending(part, seen)


def _parts(value: Any) -> list[Any]:
    """What a container or an estimator holds; what was fitted is left out, as a copy loses it."""
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if isinstance(value, np.ndarray):
        return value.ravel().tolist() if value.dtype.kind == "O" else []
    if isinstance(value, partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, type) or not (hasattr(value, "fit") or hasattr(value, "get_params")):
        return []
    held = {name: part for name, part in getattr(value, "__dict__", {}).items() if name[-1:] != "_"}
    if hasattr(value, "get_params"):
        held |= value.get_params(deep=False)
    return list(held.values())
