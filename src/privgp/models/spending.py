"""Estimators that spend a budget of their own at every fit: how they are charged for it, and how
they are found however deep they are nested."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, check_random_state

from privgp.plan.fingerprint import fingerprint
from privgp.plan.part import unit_of
from privgp.plan.plan import Plan
from privgp.privacy.guarantee import Guarantee, promise
from privgp.privacy.protected import ROW, Protected, exactly
from privgp.publish import Measured, Payer, Receipt, Released, check_account, publish
from privgp.question.outcomes import NUMBER_WORDING, Unit, Wording
from privgp.release.spendings import FROM_THEM
from privgp.types import Array, UserData
from privgp.vault.validate import check_roles

RESIDUALS = (
    "; then as many totals of how far values are above or below a curve that was learned from the first "
    "ones, each distance clipped to a width that was learned from them too"
)
MISSING = "which rows have a missing value is public: these rows were left out"
EXPOSURES = "the exposures are public, and were not computed from the counts"


def seeds(model: Any, count: int = 1) -> tuple[int | None, ...]:
    """Seeds of a simulation's noise; None for the noise that protects."""
    if model.random_state is None:
        return (None,) * count
    return tuple(check_random_state(model.random_state).randint(2**31, size=count).tolist())


def generator(seed: Any) -> np.random.Generator | None:
    return None if seed is None else np.random.default_rng(seed)


def simulation(model: object, before: int = 0) -> np.random.Generator | None:
    """The generator of a simulation's noise, another one after every earlier measurement; None for the
    noise that protects."""
    (seed,) = seeds(model)
    return generator([seed, before] if before and seed is not None else seed)


def with_assumptions(model: Any, guarantee: Guarantee) -> Guarantee:
    """The promise with what is assumed besides of how the model's data came about."""
    return replace(guarantee, assumptions=(*guarantee.assumptions, *model._noted))


def guarantee_of(plan: Plan, *, simulated: bool) -> Guarantee:
    """What the measurement of a plan promises, of outputs or of records."""
    protected, assumptions = _protection_of(plan)
    return promise(
        protected,
        [noise.event for noise in plan.noises],
        (plan.epsilon, plan.delta),
        assumptions=assumptions,
        mechanism=f"{_totals_of(plan)}{'' if plan.residuals is None else RESIDUALS} ({plan.noise.describe()}){FROM_THEM}",
        sampler=plan.noise.sampler,
        simulated=simulated,
    )


def _totals_of(plan: Plan) -> str:
    """What is measured, in words."""
    size, squares = plan.strategy.size, sum(p.strategy.energy_weight > 0 for p in plan.parts)
    if len(plan.parts) > 1:
        of_squares = f", {squares} of them of squares," if squares else ","
        return (
            f"{size} noisy totals of the values of {len(plan.parts)} outputs{of_squares} each value "
            "clipped to the declared range of its output"
        )
    (part,) = plan.parts
    told = part.outcome.wording
    what = part.kind.totals.replace("values", told.values)
    of_squares = ", one of them of squares," if squares else ","
    return f"{size} noisy total{'s' if size > 1 else ''} of {what}{of_squares} {told.limited}"


def _protection_of(plan: Plan) -> tuple[Protected, tuple[str, ...]]:
    """Whom the guarantee protects, and what it assumes."""
    unit, told = unit_of(plan.parts[0]), plan.parts[0].outcome.wording
    if len(plan.parts) > 1:
        told = replace(NUMBER_WORDING, outputs=ROW)
        protected, assumptions = _limits_of_several(plan, unit, told)
    else:
        protected, assumptions = unit.limit_change(told, plan.parts[0].max_change)
    counted = not unit.private_inputs and any(part.outcome.is_counted for part in plan.parts)
    return protected, (*assumptions, *((EXPOSURES,) if counted else ()))


def _limits_of_several(plan: Plan, unit: Unit, told: Wording) -> tuple[Protected, tuple[str, ...]]:
    """The same of several outputs, each with a limit of its own or none."""
    protected, assumptions = unit.protected(told), unit.assumed(told)
    limits = [
        f"{name} by at most {exactly(change)}"
        for name, change in zip(plan.names, plan.max_changes, strict=True)
        if change is not None
    ]
    if not limits or unit.private_inputs:
        return protected, assumptions
    limited = "; ".join(limits)
    counts = ", ".join(limit.partition(" by ")[0] for limit in limits)
    protected = replace(
        protected,
        unit=f"{protected.unit}, of {counts} one person's contribution alone",
        neighbours=f"{protected.neighbours}, and {limited}",
    )
    return protected, (*assumptions, f"one person changes no more than this: {limited}")


DECLARED = ("outcomes", "y_bounds", "x_bounds", "domain", "classes", "loss_bounds")


class SpendsAtFit:
    """A mark: every ``fit`` measures private values and spends the estimator's own budget."""

    ledger: Any
    charged_: Receipt

    def _check_given(
        self, X: UserData, y: UserData, groups: UserData = None, exposure: UserData = None
    ) -> None:
        """Refuse a fit without y, and one whose y is public elsewhere or in another order."""
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is "
                "None."
            )
        check_roles(y, X=X, groups=groups, exposure=exposure)

    def _publish(
        self,
        guarantee: Guarantee,
        measure: Callable[[], Measured],
        learn: Callable[[Measured], Released],
        *,
        inputs: Array | None = None,
        rows: int | None = None,
        receipt: Receipt | None = None,
        keep: Callable[[Receipt | None], None] | None = None,
        rehearse: Callable[[], object] | None = None,
    ) -> Released:
        """Charge this estimator's account, measure, and learn.

        Parameters
        ----------
        guarantee, measure, learn, receipt, keep, rehearse
            As ``publish`` and ``Payer`` have them; this estimator keeps the receipt if ``keep`` is None.
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
        payer = Payer(check_account(self.ledger), frozenset(marks), public, receipt)
        keep = keep or self._keep_receipt
        return publish(guarantee, payer, measure, learn, keep=keep, rehearse=rehearse)

    def _keep_receipt(self, receipt: Receipt | None) -> None:
        """Remember what the ledger wrote, from before anything is drawn."""
        if receipt is None:
            self.__dict__.pop("charged_", None)
        else:
            self.charged_ = receipt


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


def refuse_spenders(**arguments: object) -> None:
    """Refuse arguments of a search, by their names, that hold an estimator which spends at fit: it
    would spend for every setting tried, beside the search's promise (docs/proofs/bayes.md)."""
    for argument, value in arguments.items():
        found = next(_spender_names(value, {}), None)
        if found is not None:
            raise ValueError(
                f"{argument} contains {found}, which spends a budget of its own at every fit, once "
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


def _parts(value: object) -> list[object]:
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
