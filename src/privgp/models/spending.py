"""Estimators that spend a budget of their own at every fit: how they are charged for it, and how
they are found however deep they are nested."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags

from privgp.plan.fingerprint import fingerprint
from privgp.privacy.guarantee import Guarantee
from privgp.types import Array
from privgp.vault.checks.roles import check_roles

if TYPE_CHECKING:
    from privgp.ledger.account import Account
    from privgp.ledger.chain import Entry

DECLARED = ("outcomes", "y_bounds", "x_bounds", "domain", "classes", "loss_bounds")
AGAIN = (
    "this process made such a fit before, to the same public inputs or to as many rows under the same "
    "declared bounds. If both are about the same people, each spends its whole budget: compose() adds "
    "their guarantees up, and a ledger limits the total. cross_val_score and GridSearchCV fit once per "
    "fold and candidate: give a random_state to try things out on data that are not private, and use "
    "PrivateGridSearchCV to choose within one budget. This warning is given once."
)


class SpendsAtFit:
    """A mark: every ``fit`` measures private values and spends the estimator's own budget."""

    def _check_given(self, X: Any, y: Any, groups: Any = None, exposure: Any = None) -> None:
        """Refuse a fit without y, and one whose y is public elsewhere or in another order."""
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is "
                "None."
            )
        check_roles(y, X=X, groups=groups, exposure=exposure)


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


@dataclass
class Fits:
    """Fits that protect, known by what is public of them; ``warned``: of one that repeats another."""

    marks: set[Hashable] = field(default_factory=set)
    warned: bool = False

    def warn_of(self, marks: set[Hashable]) -> None:
        """Say once that an earlier fit had one of these marks."""
        if not self.warned and not self.marks.isdisjoint(marks):
            self.warned = True
            warnings.warn(AGAIN, UserWarning, stacklevel=4)


FITS = ContextVar("FITS", default=Fits())  # noqa: B039 - of the whole process


@contextmanager
def unrecorded() -> Iterator[None]:
    """Fits to simulated data in here spend nobody's budget: they are forgotten, and warn of nothing."""
    token = FITS.set(Fits(warned=True))
    try:
        yield
    finally:
        FITS.reset(token)


def charge(
    model: Any, guarantee: Guarantee, inputs: Array | None = None, *, rows: int | None = None
) -> None:
    """Charge the model's account, if it has one, for what is about to be drawn.

    A simulation is charged too, as its numbers depend on private values.

    Parameters
    ----------
    model : estimator
        The one that is about to draw.
    guarantee : Guarantee
        What the draw guarantees.
    inputs : array (rows, columns) or None
        The public inputs; None where inputs are private or not in memory.
    rows : int or None
        The number of rows of a fit, which then warns if it repeats another; None for an update of a
        release, whose guarantee states the total.

    """
    account = check_ledger(model)
    public = None if inputs is None else fingerprint(inputs)
    marks = set[Hashable]()
    if rows is not None and not guarantee.is_simulation:
        declared = tuple(repr(getattr(model, name, None)) for name in DECLARED)
        marks = {(type(model).__name__, declared, rows), *([public] if public else [])}
    fits = FITS.get()
    fits.warn_of(marks)
    if account is None:
        model.__dict__.pop("charged_", None)
    else:
        entry = _charged(account, guarantee, public)
        model.charged_ = {"dataset": entry.dataset, "entry": entry.number, "head": entry.hash}
    fits.marks |= marks


def _charged(account: Account, guarantee: Guarantee, public: str | None) -> Entry:
    from privgp.ledger.errors import BudgetExceeded, ChargeRefused

    try:
        return account.charge(guarantee, fingerprint=public)
    except ChargeRefused as refused:
        if _in_model_selection():
            raise BudgetExceeded(*refused.args) from None
        raise


def _in_model_selection() -> bool:
    """Whether scikit-learn fits this model, and may take an ``Exception`` for a score."""
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("sklearn.model_selection."):
            return True
        frame = frame.f_back
    return False


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
