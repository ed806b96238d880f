"""What models of rows X and their private outputs y have in common: plan, fit, and further measurements."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Self, TypeGuard

import numpy as np
from sklearn.base import clone

from privgp.gp.kernels.evaluate import signal_and_noise
from privgp.models.published import Published, names_of
from privgp.models.rows.files import (
    FileInputs,
    columns_to_fit,
    columns_to_plan,
    fit_in_place,
    rows_in_place,
)
from privgp.models.rows.fit import (
    NOTHING,
    Aside,
    Given,
    Tallied,
    check_names,
    domain,
    fit_columns,
    from_inputs_alone,
    plan_for_rows,
    private_count,
    public_rows,
    row_count,
    with_column_names,
)
from privgp.models.rows.tables import domain_of, locate_columns, rows_to_plan
from privgp.models.rows.updates import measure_further, measure_tally, stages
from privgp.plan.designs.stages import Stages
from privgp.plan.parameters import PARAMETERS, Parameters
from privgp.plan.plan import Plan
from privgp.plan.search.folds import Trial
from privgp.question.outcomes import Classes, Outcome, has_private_inputs
from privgp.question.rules import GIVEN, ONE, Beside, check_rules, check_weights
from privgp.tables.table import in_memory
from privgp.types import Array, Column, Pair, Table, UserData
from privgp.vault.measure import seal_outcome
from privgp.vault.validate import check_order, column_names
from privgp.vault.values import Sealed


def aside_of(X: UserData, exposure: UserData, weights: UserData) -> Aside:
    """Exposures and sample weights, given or of a table in files."""
    given = Aside(exposure, weights)
    return X.choose_aside(given) if isinstance(X, FileInputs) else given


def is_read_in_place(X: UserData, model: RowsModel) -> TypeGuard[FileInputs]:
    """Whether X is a table in files, or in a database, of which sums alone are ever in memory."""
    return isinstance(X, FileInputs) and X.stays(model)


class RowsModel(Published):
    """A model of private outputs y at rows X, one function of the inputs or several."""

    _declares: ClassVar[type[Parameters]] = Parameters
    _declared: Outcome | None = None  # by PrivateGP, in place of parameters

    @from_inputs_alone
    def plan(
        self,
        X: Table,
        *,
        groups: Column | None = None,
        exposure: Column | None = None,
        sample_weight: Column | None = None,
    ) -> Plan:
        """What a ``fit`` on these inputs would measure and how accurate it would be. Spends nothing.

        Parameters
        ----------
        X : table (rows, inputs)
            The inputs. With ``protect="records"`` X may be the number of records, as only their number is
            used.
        groups : array (rows,), optional
            Person identifiers; with ``protect="records"`` only the number of people is used.
        exposure, sample_weight : array (rows,), optional
            As for ``fit``.

        Returns
        -------
        Plan

        """
        aside = aside_of(X, exposure, sample_weight)
        self._check_together(exposure=aside.exposure)
        return self._plan_table(X, groups, aside)

    def epsilon_for(
        self,
        X: Table,
        error: float,
        *,
        groups: Column | None = None,
        exposure: Column | None = None,
        sample_weight: Column | None = None,
    ) -> float:
        """The least epsilon, within 1%, whose plan for these inputs expects at most this error.

        Every epsilon that is tried is planned for; the model's own is not used. Reads no output and spends
        nothing.

        Parameters
        ----------
        X : table (rows, inputs)
            The public inputs; with ``protect="records"``, the number of records will do.
        error : float
            The largest expected error, in units of the output.
        groups, exposure, sample_weight : column (rows,), optional
            As ``fit`` takes them.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If no epsilon reaches the error. The message states the error without privacy.

        """
        given = {"groups": groups, "exposure": exposure, "sample_weight": sample_weight}
        return self._least_epsilon(X, error, **given)

    def fit(
        self,
        X: Table,
        y: Column,
        *,
        groups: Column | None = None,
        plan: Plan | None = None,
        exposure: Column | None = None,
        sample_weight: Column | None = None,
    ) -> Self:
        """Measure once, with noise, and learn from the measurement. Spends the budget, at every call.

        Parameters
        ----------
        X : table (rows, inputs)
            The inputs: public, unless ``protect="records"``.
        y : column (rows,) or (rows, outputs)
            The private outputs: finite numbers, where values outside ``y_bounds`` are clipped, or labels, where
            one that is not among ``classes`` counts in no class.
        groups : column (rows,), optional
            Person identifiers, public unless records are protected. All rows of one person are protected
            together.
        plan : Plan, optional
            What ``plan(X, groups=groups)`` returned; it is then measured as it stands. A plan made for
            anything else is refused before anything is spent.
        exposure : column (rows,), optional
            With ``likelihood="poisson"``: what every count is out of, such as a population or days at risk.
            Public and positive. Default: 1 each.
        sample_weight : column (rows,), optional
            Public survey weights, positive. The release then estimates weighted means.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Before anything is spent: if ``y`` is a column of X or shares memory with one, if pandas indexes
            differ, if a value is missing or infinite. Messages about y contain no value, place or count.
        BudgetExceeded
            If the charge does not fit into the ``ledger``.
        RuntimeError
            If the sampler failed after noise was drawn: count the budget as spent.

        """
        aside = aside_of(X, exposure, sample_weight)
        self._check_together(exposure=aside.exposure)
        return self._fit(X, y, groups, plan, aside)

    def update(
        self,
        X: Table,
        y: Column,
        *,
        groups: Column | None = None,
        exposure: Column | None = None,
        sample_weight: Column | None = None,
    ) -> Self:
        """Measure rows of new people and learn from all measurements together. Spends their budget.

        Each person's data are measured once, so the guarantee stays (epsilon, delta) for everybody, provided
        that nobody is in two batches. At public inputs, the measurement is planned from the release so far;
        for private records, the same sums are measured again.

        Parameters
        ----------
        X : table (rows, inputs)
            The inputs.
        y : column (rows,)
            Rows of people who are in no earlier batch. Rows at public inputs that were measured before are
            refused.
        groups, exposure, sample_weight : column (rows,), optional
            As ``fit`` takes them. They must not have been chosen by looking at outputs.

        Returns
        -------
        self

        """
        return self._fit_further(X, y, groups, None, aside_of(X, exposure, sample_weight))

    def refine(
        self,
        X: Table,
        y: Column,
        epsilon: float,
        delta: float = 0.0,
        *,
        groups: Column | None = None,
        exposure: Column | None = None,
        sample_weight: Column | None = None,
    ) -> Self:
        """Measure the rows of an earlier ``fit`` or ``update`` again. Spends this further budget.

        ``guarantee_`` then states the total, which holds for all of these people. At public inputs, the new
        measurement is planned from the release so far and measures most where that is least certain.
        Private records must be those of an earlier measurement, which cannot be checked.

        Parameters
        ----------
        X : table (rows, inputs)
            The inputs.
        y : column (rows,)
            The same rows as before.
        epsilon : float
            The budget.
        delta : float, default 0
            The further budget.
        groups, exposure, sample_weight : column (rows,), optional
            As ``fit`` takes them.

        Returns
        -------
        self

        """
        aside = aside_of(X, exposure, sample_weight)
        return self._fit_further(X, y, groups, (epsilon, delta), aside)

    @from_inputs_alone
    def stages(
        self,
        X: Table,
        *,
        shares: Sequence[float] = (0.5, 0.5),
        groups: Column | None = None,
        exposure: Column | None = None,
    ) -> Stages:
        """How to divide (epsilon, delta) between a ``fit`` and refinements of the same rows.

        Laplace noise loses information when it is split and Gaussian noise does not, so the noise
        distribution is chosen for all stages together. Reads no output and spends nothing.

        Parameters
        ----------
        X : table (rows, inputs)
            The inputs.
        shares : sequence of float, default (0.5, 0.5)
            The share of the budget of every stage.
        groups, exposure : column (rows,), optional
            As ``fit`` takes them.

        Returns
        -------
        Stages
            ``mechanism``, ``budgets`` (one pair per stage), ``errors`` by noise distribution, and ``describe()``.

        """
        return stages(self, X, shares, groups, exposure=exposure)

    def _check_together(self, **columns: object) -> None:
        """Refuse parameters, and columns, that do not go together."""
        check_rules({**self.get_params(deep=False), **columns}, self._outcome_rules())

    def _outcome(self) -> Outcome:
        """What is declared of one output."""
        raise NotImplementedError

    def _classes(self) -> Classes | None:
        return None if len(self._alone()) > 1 else self._outcome().codes

    def _plan_table(self, X: UserData, groups: UserData, aside: Aside = NOTHING) -> Plan:
        """What a ``fit`` on this table would measure."""
        X = in_memory(X)
        check_order(X=X, groups=groups, **aside.roles)
        self._check_weights(aside)
        names, asked = names_of(X), self
        rows: Given | Tallied
        if is_read_in_place(X, self):
            asked, rows = rows_in_place(self, X, groups, aside)
            return with_column_names(plan_for_rows(asked, rows), names)
        if isinstance(X, FileInputs):
            X, groups, aside = columns_to_plan(self, X, groups, aside)
        if has_private_inputs(self.protect):
            rows = private_count(self, X, groups)
        else:
            asked, inputs = rows_to_plan(self, X)
            rows = public_rows(asked, inputs, groups, asked._beside(aside, len(inputs)), X)
        return with_column_names(plan_for_rows(asked, rows), names)

    def _fit(
        self, X: UserData, y: UserData, groups: UserData, plan: Plan | None, aside: Aside = NOTHING
    ) -> Self:
        """Measure once, with noise, and learn from the measurement."""
        X = self._check_rows(X, y, groups, aside)
        if is_read_in_place(X, self):
            fit_in_place(self, X, y, groups, plan, aside)
            return self
        if isinstance(X, FileInputs):
            X, y, groups, aside = columns_to_fit(self, X, y, groups, aside)
        names, alone = column_names(y), len(self._alone()) == 1
        if alone:
            self._take_name(names[0] if names else None)
        known = None if alone else names
        fit_columns(self, X, y, groups, plan, partial(self._beside, aside), known)
        return self

    def _fit_further(
        self,
        X: UserData,
        y: UserData,
        groups: UserData,
        budget: tuple[float, float] | None,
        aside: Aside = NOTHING,
    ) -> Self:
        """Measure rows of new people; with a ``budget``, the same rows again."""
        X = self._check_rows(X, y, groups, aside)
        if len(self._alone()) > 1:
            check_names(self, column_names(y))
        if is_read_in_place(X, self):
            _, rows = rows_in_place(self, X, groups, aside)
            measure_tally(self, rows, X._seal(y, rows.source, self), budget)
            return self
        if isinstance(X, FileInputs):
            X, y, groups, aside = columns_to_fit(self, X, y, groups, aside)
        measure_further(self, X, y, groups, self._beside(aside, row_count(X)), budget)
        return self

    def _check_rows(self, X: UserData, y: UserData, groups: UserData, aside: Aside) -> UserData:
        """X in memory, where a frame was lazy; refuses columns that are in two roles."""
        self._check_call(X, y, groups, **aside.roles)  # whose memory the other need not share
        if not isinstance(X, np.ndarray):  # an array has its rows in memory
            X = in_memory(X)
            self._check_call(X, y, groups, **aside.roles)
        self._check_weights(aside)
        return X

    def _check_weights(self, aside: Aside) -> None:
        """Refuse sample weights where outputs are not summed with weights of ours."""
        if aside.weights is not None:
            declared = self.max_weight is not None and has_private_inputs(self.protect)
            given = {} if declared else {"sample_weight": GIVEN}
            check_rules({**self.get_params(deep=False), **given}, ONE)

    def _beside(self, aside: Aside, rows: int) -> Beside:
        """The exposures and sample weights of this many rows, checked."""
        exposures = self._exposures_by_place(aside.exposure, rows)
        if has_private_inputs(self.protect):
            return Beside(exposures, of_records=aside.weights)
        return Beside(exposures, check_weights(aside.weights, rows))

    def _data(
        self, y: UserData, rows: int, records: Sealed | None = None, people: UserData = None
    ) -> Sealed:
        """What the vault measures: the outputs; with ``records``, the private inputs, both, and whose
        they are where people are protected."""
        return seal_outcome(y, self._classes(), rows, records, people)

    def _alone(self) -> tuple[Any, ...]:
        """An unfitted model of every output alone, with the whole budget."""
        return (self,)

    def _parameters(self, columns: int) -> Any:
        """What was declared, as a plan and a file hold it."""
        given = self.get_params(deep=False) | locate_columns(self)
        if self._declared is None:
            return self._declares.of(given, columns)
        declares = PARAMETERS.get(type(self._declared), Parameters)
        return declares.of({**vars(self._declared), **given}, columns)

    def _with_budget(self, epsilon: float, delta: float, rows: int) -> Self:
        """An unfitted copy that spends at most this budget, with fixed hyperparameters."""
        if self.columns is not None or len(self._alone()) > 1:
            raise ValueError("blocks compare models of one output at inputs that are numbers.")
        made: Self = clone(self)
        return made.set_params(epsilon=epsilon, delta=delta, hyperparameters="fixed")  # type: ignore[no-any-return]

    def _domain(self) -> tuple[Pair, ...] | None:
        """The declared domain of private inputs; None where inputs are public."""
        return domain(domain_of(self)) if has_private_inputs(self.protect) else None

    def _trial(self, X: Array | None, rows: int) -> Trial:
        """The posterior of the kernel, of a label in units of its probability."""
        private = self._domain()
        columns = len(private or ()) if X is None else X.shape[1]
        asked = self._question(columns)
        if asked.kernel is None:
            raise ValueError(
                "kernel must be given for a choice by blocks: its values are compared."
            )
        kernel, noise = signal_and_noise(asked.kernel, asked.noise_variance, columns)
        return Trial(kernel, noise, asked.y_bounds, asked.classes)
