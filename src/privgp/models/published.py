"""What models have that spend a budget at fit and are published: how they are charged and found however deep they
are nested, their least epsilon, their file and their certificate."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, check_random_state

from privgp.gp.measurement import Measurement
from privgp.gp.priors import Hyperparameters
from privgp.models.queries import Queries
from privgp.models.rows.tables import remember
from privgp.plan.accuracy import check_error, least_epsilon
from privgp.plan.build import Budget
from privgp.plan.plan import Plan
from privgp.plan.search.folds import Trial
from privgp.privacy.guarantee import Guarantee
from privgp.publish import (
    Measured,
    Payer,
    Receipt,
    Released,
    check_account,
    forget_fits,
    guarantee_of,
    publish,
)
from privgp.release.learn import learn_release, zeros_of
from privgp.release.parts import utc
from privgp.release.release import Planned, Release
from privgp.release.residuals import FirstStage, LeftSquares
from privgp.storage.codec import fingerprint
from privgp.types import Array, Column, Pair, RandomState, Table, UserData
from privgp.vault.measure import measure, measure_twice
from privgp.vault.validate import check_roles
from privgp.vault.values import Sealed

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


MISSING = "which rows have a missing value is public: these rows were left out"


def with_assumptions(model: Any, guarantee: Guarantee) -> Guarantee:
    """The guarantee with what is assumed besides of how the model's data came about."""
    return replace(guarantee, assumptions=(*guarantee.assumptions, *model._noted))


LONGEST = 200


FITTED = ("release_", "functionals_", "noise_variance_", "output_names_")


class Published(Queries, SpendsAtFit):
    _released: Release
    inputs_: Any = None  # what the columns are, where they are not all numbers
    output_: Any = None  # what the output is called, and its units
    _noted: tuple[str, ...] = ()  # what the guarantee assumes besides
    epsilon: float
    delta: float
    protect: str

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """The parameters of the constructor, and what an estimator makes of them."""

    def _least_epsilon(self, X: Table, error: float, **given: object) -> float:
        def plan_at(epsilon: float) -> Any:
            return clone(self).set_params(epsilon=epsilon).plan(X, **given)

        return least_epsilon(plan_at, check_error(error))

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the release to a ``.privgp`` file of JSON and arrays, which ``privgp.load`` reads.

        The file holds noisy sums and, with ``protect="outputs"``, the inputs, which a warning states: publish
        it only if no column of X is private. Equal models give equal bytes.

        Parameters
        ----------
        path : str or path
            A new file whose name ends in ``.privgp``.
        overwrite : bool, default False
            Replace a file that exists.

        """
        from privgp.models.load import notice, save

        save(self, path, overwrite=overwrite)
        if self._released.parameters.holds_inputs:
            warnings.warn(notice(self), UserWarning, stacklevel=2)

    def certificate(
        self, *, holder: Mapping[str, str] | None = None, date: datetime | None = None
    ) -> dict[str, object]:
        """What is guaranteed, as the JSON object that ``privgp inspect --json`` prints.

        Parameters
        ----------
        holder : mapping, optional
            What only the custodian knows, such as a contact, by the names on the certificate page.
        date : datetime, optional
            The date of the certificate. Default: now.

        Returns
        -------
        dict

        """
        from privgp.release.certificate import certificate

        return certificate(self, holder=holder, date=date)

    def name_output(self, name: str, units: str | None = None, column: str | None = None) -> Self:
        """Name the output on pictures, in the file and in the certificate.

        Parameters
        ----------
        name : str
            Its name.
        units : str, optional
            Such as "cm".
        column : str, optional
            The column of the table that held it.

        Returns
        -------
        self

        """
        said: dict[str, Any] = {"name": name, "units": units, "column": column}
        given = {key: text for key, text in said.items() if text is not None or key == "name"}
        for what, text in given.items():
            if not isinstance(text, str) or not text.strip() or len(text) > LONGEST:
                raise ValueError(f"{what} must be a text of at most {LONGEST} characters.")
        if vars(self).get("output_names_"):
            raise ValueError("several outputs have the names of the columns of y.")
        self.output_ = given
        if "_released" in vars(self):
            self._released = self._released.with_facts(self._released.facts.with_name(given))
        return self

    def _take_name(self, column: str | None = None) -> None:
        """Name the output as its column is named, unless somebody named it otherwise."""
        said = self.output_ or {}
        if set(said) <= {"name", "column"} and said.get("name") == said.get("column"):
            named = column and {"name": column[:LONGEST], "column": column[:LONGEST]}
            self.output_ = named or None

    @property
    def plan_summary_(self) -> str:
        """What the plan said of itself; also where only a file is left of it."""
        return self._released.facts.plan_summary

    def _exposures_by_place(self, exposure: Column | None, rows: int) -> dict[int, Array]:
        """The exposure of every row by the place of the output that is counted; labels are not."""
        return {}

    def _guarantee(self, plan: Plan) -> Guarantee:
        """What the measurement of a plan guarantees, with what is assumed besides."""
        simulated = self.random_state is not None
        return with_assumptions(self, guarantee_of(plan, simulated=simulated))

    def _publish_plan(
        self,
        plan: Plan,
        data: Sealed,
        *,
        inputs: Array | None = None,
        rows: int | None = None,
        batch: int | None = None,
    ) -> None:
        """Charge for a plan, measure it once and learn from the measurement.

        Parameters
        ----------
        plan : Plan
            What to measure, and the noise.
        data : Sealed
            The private values, as the vault measures them.
        inputs, rows
            As ``SpendsAtFit._publish`` has them.
        batch : int or None
            The batch of people, if this is added to what was released before.

        """
        random_state = simulation(self, 0 if batch is None else len(self._released.spent))
        self._publish(
            self._guarantee(plan),
            lambda: self._measure(plan, data, random_state),
            lambda drawn: self._learn(plan, drawn[0], batch, inputs=inputs, squares=drawn[1]),
            rehearse=lambda: self._rehearse(plan, batch),
            inputs=inputs,
            rows=rows,
        )

    def _measure(
        self, plan: Any, data: Sealed, random_state: Any
    ) -> tuple[object, LeftSquares | None]:
        """The noisy numbers of a plan, and where it has two stages the sum of squared residuals."""
        if plan.residuals is None:
            return measure(data, plan.y_bounds, plan.strategy, plan.noise, random_state), None
        known: list[FirstStage] = []

        def learn_centre(first: Measurement) -> tuple[Array, float]:
            self.guarantee_ = self._guarantee(plan)  # from here on it counts as spent
            known.append(self._first_stage(plan, first))
            return known[0].centre

        stages = plan.residuals.strategies(plan.strategy)
        given = plan.y_bounds, stages, plan.noises, learn_centre
        _, second = measure_twice(data, *given, random_state)
        return known[0].together(second)

    def _first_stage(self, plan: Plan, first: Measurement) -> FirstStage:
        """What the first of two stages tells: post-processing."""
        assert plan.residuals is not None
        part = plan.parts[0]
        return FirstStage(part, plan.residuals, first, self.hyperparameters == "learned")

    def _rehearse(self, plan: Plan, batch: int | None = None) -> None:
        """Let a copy learn from zeros in place of a measurement, with hyperparameters that are fixed, as
        learning them takes long: most of what would stop a release stops this first."""
        quick, zeros, squares = copy(self).set_params(hyperparameters="fixed"), zeros_of(plan), None
        if plan.residuals is not None:
            first = replace(zeros, values=plan.residuals.add_up(zeros.values))
            zeros, squares = quick._first_stage(plan, first).together(zeros)
        quick._learn(plan, zeros, batch, squares=squares)

    def _learn(
        self,
        plan: Plan,
        measured: object,
        batch: int | None = None,
        models: tuple[Hyperparameters, ...] = (),
        inputs: Array | None = None,
        squares: LeftSquares | None = None,
    ) -> None:
        """All that follows from the measurement of a plan: post-processing.

        Parameters
        ----------
        plan : Plan
            What was measured.
        measured : Measurement, or one of each outcome
            The noisy numbers.
        batch : int or None
            The batch of people, if this is added to what was released before.
        models : tuple of Hyperparameters
            Models that are given, not learned.
        inputs : array (rows, columns), optional
            The public inputs.
        squares : LeftSquares, optional
            The sum of squared residuals, of two stages.

        """
        # with what was drawn and never released, should an update have failed
        before = None if batch is None else replace(self._released, guarantee=self.guarantee_)
        chosen_by = None if before is None else before.facts.chosen_by
        receipt = vars(self).get("charged_")
        facts = Planned(plan, utc(datetime.now(UTC)), receipt, chosen_by, self.output_)
        asked, guarantee = self._parameters(plan.targets.shape[1]), self._guarantee(plan)
        names = names_of(self) if hasattr(self, "feature_names_in_") else None
        known: Any = {"names": names, "before": before, "batch": batch or 0}
        note = partial(setattr, self, "guarantee_")
        given = plan, measured, asked, guarantee, facts, note
        self._hold(learn_release(*given, **known, models=models, inputs=inputs, squares=squares))
        self.plan_ = plan
        self.__dict__.pop("chosen_by_", None)
        if chosen_by is not None:
            self.chosen_by_ = chosen_by

    def _hold(self, release: Release) -> Self:
        """Become what was released, just now or in a file."""
        self._released, self.inputs_ = release, release.parameters.columns
        remember(self, release.names, release.columns)
        self.guarantee_, self.released_at_ = release.guarantee, release.facts.date
        if release.facts.called is not None:
            self.output_ = release.facts.called
        self.measurements_ = tuple(each for part in release.parts for each in part.measurements)
        for name in FITTED:
            self.__dict__.pop(name, None)
        vars(self).update(release.attributes_of_fit())
        return self

    def _state(self, guarantee: Guarantee, receipt: Receipt | None, chosen_by: str) -> None:
        """State the guarantee and the charge of a search that this model was chosen by."""
        facts: Any = self._released.facts
        facts = replace(facts, receipt=receipt, chosen_by=chosen_by)
        self._released = self._released.with_facts(facts, guarantee)
        self.guarantee_ = guarantee
        self._keep_receipt(receipt)

    def _budget(self) -> Budget:
        return Budget(float(self.epsilon), float(self.delta))
