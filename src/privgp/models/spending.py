"""Estimators that spend a budget of their own at every fit: how they are charged for it, and how
they are found however deep they are nested."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, check_random_state

from privgp.plan.search.folds import Trial
from privgp.privacy.guarantee import Guarantee
from privgp.publish import (
    Measured,
    Payer,
    Receipt,
    Released,
    check_account,
    forget_fits,
    publish,
)
from privgp.storage.codec import fingerprint
from privgp.types import Array, Column, Pair, RandomState, Table, UserData
from privgp.vault.validate import check_roles

DECLARED = ("outcomes", "y_bounds", "x_bounds", "domain", "classes", "loss_bounds")


class SpendsAtFit:
    """A mark: every ``fit`` measures private values and spends the estimator's own budget."""

    ledger: Any
    charged_: Receipt
    guarantee_: Guarantee

    def _check_call(
        self, X: UserData, y: UserData, groups: UserData = None, **others: UserData
    ) -> None:
        """Refuse a fit without y, and one whose y is public elsewhere or in another order."""
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is "
                "None."
            )
        for name in ("noise_variance", "targets", "inducing"):
            others.setdefault(name, getattr(self, name, None))
        check_roles(y, X=X, groups=groups, **others)

    def _publish(
        self,
        guarantee: Guarantee,
        measure: Callable[[], Measured],
        learn: Callable[[Measured], Released],
        *,
        inputs: Array | None = None,
        rows: int | None = None,
        key: str | None = None,
        rehearse: Callable[[], object] | None = None,
    ) -> Released:
        """Charge this estimator's account, measure, and learn.

        Parameters
        ----------
        guarantee, measure, learn, key, rehearse
            As ``publish`` and ``Payer`` have them; this estimator keeps the receipt.
        inputs : array (rows, columns) or None
            The public inputs; None where inputs are private or not in memory.
        rows : int or None
            The number of rows of a fit, which then warns if it repeats another; None for an update of
            a release, whose guarantee states the total.

        """
        public = None if inputs is None else fingerprint(inputs)
        marks = set[Hashable]()
        if rows is not None:
            declared = tuple(repr(getattr(self, name, None)) for name in DECLARED)
            marks = {(type(self).__name__, declared, rows), *([public] if public else [])}
        payer = Payer(check_account(self.ledger), frozenset(marks), public, key)
        kept = self._keep_receipt
        return publish(guarantee, payer, measure, learn, keep=kept, rehearse=rehearse)

    def _keep_receipt(self, receipt: Receipt | None) -> None:
        """Remember what the ledger wrote, from before anything is drawn."""
        if receipt is None:
            self.__dict__.pop("charged_", None)
        else:
            self.charged_ = receipt

    # What a search by blocks of private rows asks of its estimator (docs/proofs/blocks.md).

    def _domain(self) -> tuple[Pair, ...] | None:
        """The declared domain of private inputs; None where inputs are public."""
        raise ValueError(
            f"a {type(self).__name__} has no kernel to choose: give a PrivateGPRegressor, a "
            "PrivateGPClassifier, a PrivateFunction or PosteriorPaths."
        )

    def _with_budget(self, epsilon: float, delta: float, rows: int) -> Self:
        """An unfitted copy that spends at most this budget on this many rows, with fixed hyperparameters."""
        raise NotImplementedError

    def _rehearsal_outputs(self, rows: int) -> Array:
        """Outputs to rehearse with."""
        raise NotImplementedError

    def _fit_for_search(self, X: Table | None, y: Column) -> Self:
        """Fit, within the budget of a search, which is charged for it."""
        with forget_fits():
            return self.fit(X, y)  # type: ignore[attr-defined, no-any-return]

    def _state(self, guarantee: Guarantee, receipt: Receipt | None, chosen_by: str) -> None:
        """State the guarantee and the charge of a search that this model was chosen by."""
        raise NotImplementedError

    def _trial(self, X: Array | None, rows: int) -> Trial:
        """What such a copy would release of this many rows; ``X``: public inputs, None if they are private."""
        raise NotImplementedError

    def _classes(self) -> Any:
        """The declared classes of a label; None where outputs are numbers."""
        return None


class Search(SpendsAtFit):
    """What searches have in common: one budget for a choice and for what is then released."""

    estimator: BaseEstimator
    epsilon: float
    delta: float
    blocks: int | None
    random_state: RandomState


class Noisy(SpendsAtFit):
    """Noise makes scores poor, which scikit-learn asks to be told."""

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()  # type: ignore[misc]
        (tags.regressor_tags or tags.classifier_tags).poor_score = True
        return tags


class SpendingRegressor(Noisy, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    pass


class SpendingClassifier(Noisy, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    pass


def has_private_rows(estimator: object) -> bool:
    """Whether an estimator measures private rows itself, so that a search by these rows needs no others."""
    return isinstance(estimator, SpendsAtFit)


def refuse_spenders(**arguments: object) -> None:
    """Refuse arguments of a search, by their names, that hold an estimator which spends at fit: it
    would spend for every setting tried, beside the search's guarantee (docs/proofs/bayes.md)."""
    for argument, value in arguments.items():
        found = next(_spender_names(value, {}), None)
        if found is not None:
            raise ValueError(
                f"{argument} contains {found}, which spends its own budget at every fit, once "
                "for every setting tried: fit it once beforehand and give it as a FrozenEstimator, "
                "or choose its hyperparameters by PrivateGridSearchCV with method='measurement'."
            )


def _spender_names(value: object, seen: dict[int, object]) -> Iterator[str]:
    """The names of all estimators that spend, in a value and in whatever it holds."""
    if id(value) in seen or isinstance(value, FrozenEstimator):  # a frozen one is never fitted
        return
    seen[id(value)] = value  # kept, so that no other object gets its number
    kind = value if isinstance(value, type) else type(value)
    if issubclass(kind, SpendsAtFit):
        yield kind.__name__
    for part in _parts(value):
        yield from _spender_names(part, seen)


def _parts(value: object) -> list[Any]:
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


def names_of(named: object) -> tuple[str, ...] | None:
    """The names of the columns of a table or of a fitted estimator, if all are texts."""
    names = getattr(named, "feature_names_in_", getattr(named, "columns", None))
    if isinstance(named, Mapping):
        names = list(named)
    if not isinstance(names, Iterable) or isinstance(names, Mapping):  # what a model's columns are
        return None
    if not all(isinstance(name, str) for name in names):
        return None
    return tuple(map(str, names))


def seeds(model: Any, count: int = 1) -> tuple[int | None, ...]:
    """Seeds of a simulation's noise; None for the noise that protects."""
    if model.random_state is None:
        return (None,) * count
    return tuple(check_random_state(model.random_state).randint(2**31, size=count).tolist())


def generator(seed: Any) -> np.random.Generator | None:
    return None if seed is None else np.random.default_rng(seed)


def simulation(model: Any, before: int = 0) -> np.random.Generator | None:
    """The generator of a simulation's noise, another one after every earlier measurement; None for the
    noise that protects."""
    (seed,) = seeds(model)
    return generator([seed, before] if before and seed is not None else seed)
