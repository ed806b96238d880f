"""PrivateGP: one release of whatever is declared of a person, from a table to a table."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from privgp.gp.arithmetic import one_thread
from privgp.ledger.account import Account
from privgp.models.density import NamedPoints
from privgp.models.load import ESTIMATORS
from privgp.models.published import Published
from privgp.models.rows.files import FileColumns, columns_of, inputs_to_fit, inputs_to_plan, rows_in
from privgp.models.rows.fit import (
    Exposed,
    Given,
    Tallied,
    fit_columns,
    from_inputs_alone,
    plan_for_rows,
    private_count,
    public_rows,
    with_column_names,
)
from privgp.models.rows.tables import locate_columns, records_to_plan, rows_at, rows_to_plan
from privgp.models.rows.updates import ONCE, measure_further
from privgp.plan.parameters import MIXED_ARGUMENTS, MixedParameters
from privgp.plan.plan import Plan
from privgp.question.outcomes import Outcome, has_private_inputs
from privgp.question.parameters import GENERAL, names_of
from privgp.question.rules import (
    GIVEN,
    ONE,
    Beside,
    check_exposure,
    check_output_shares,
    check_rules,
    check_weights,
)
from privgp.release.queries.quantities import check_coverage, intervals
from privgp.tables.table import absent, columns_by_name
from privgp.types import Array, Bounds, RandomState, Table, UserData
from privgp.vault.measure import seal_outcomes
from privgp.vault.values import Sealed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PUBLIC = (
    "inputs was not given, so every column that is no outcome counts as a public input, and the release "
    "will hold it: {}. Name the inputs if one of these is private."
)
ALONE = "output"  # the name of an outcome that is declared without one
Columns = Mapping[str, UserData]  # of a table, by name
SPENT = ("charged_", "guarantee_")
OF_POINTS = (
    *("x_bounds", "epsilon", "delta", "columns", "hyperparameters", "mechanism", "ledger"),
    "random_state",
)
OF_ALL = ("ledger", "shares")  # which no outcome alone has


@dataclass(eq=False, repr=False)
class PrivateGP(Published, BaseEstimator):  # type: ignore[misc]
    """Gaussian-process curves and maps of any private outcomes, (epsilon, delta)-private together.

    Parameters
    ----------
    outcomes : Outcome or dict
        What is private about a person: ``Number(low, high)``, ``Count(...)`` or ``Label(*classes)``, by
        the name of its column. One outcome without a name is given to ``fit`` as ``y``. ``Presence()``
        has no column and stands alone: where the records lie in ``x_bounds`` is private.
    epsilon, delta : float
        The budget that one ``fit`` spends on all outcomes of one person together.
    protect : {"outputs", "records"}
        "outputs": the outcomes are private; "records": the inputs are private too.
    x_bounds : dict or sequence, optional
        With ``protect="records"``: public bounds of the inputs, by name.
    inputs : list of str, optional
        The names of the input columns. None: all that are no outcome, group or exposure.
    groups : str, optional
        The name of the column of person identifiers: all rows of one person are protected together.
    columns : dict, optional
        What inputs are, by name: "date", "category", "place", "periodic", "boolean", "number".
    targets : table, optional
        Points where the release should be accurate. None: the rows of the table.
    inducing : int or table, optional
        How many inputs carry the functions, or points whose nearest inputs do. With
        ``protect="records"``: the largest number of bins or features.
    hyperparameters : {"learned", "fixed"}
        Whether hyperparameters are learned from the private measurement, at no cost.
    mechanism : {"auto", "gaussian", "laplace"}
        The noise distribution. "auto": the one with the smaller expected error.
    shares : sequence of float, optional
        One positive number per outcome: the noise of an outcome, relative to its bounds, is
        proportional to one over its share. None: equal.
    max_weight : float, optional
        With ``protect="records"`` and sample weights: the largest weight that counts, declared without
        looking at the data. Larger ones are lowered to it.
    ledger : Account, optional
        The account of these data, which every fit charges before it draws.
    random_state : int, optional
        For simulations only: reproducible noise, and a guarantee that states this.

    Attributes
    ----------
    guarantee_ : Guarantee
    plan_ : Plan
    output_names_ : tuple of str

    """

    outcomes: Outcome | Mapping[str, Outcome]
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 1e-6
    protect: str = "outputs"
    x_bounds: Bounds | Mapping[str, Any] | None = None
    inputs: Sequence[str] | None = None
    groups: str | None = None
    columns: Mapping[Any, Any] | None = None
    targets: Table | None = None
    inducing: int | Table | None = None
    hyperparameters: str = "learned"
    mechanism: str = "auto"
    shares: Sequence[float] | None = None
    max_weight: float | None = None
    ledger: Account | None = None
    random_state: RandomState = None

    @from_inputs_alone
    def plan(
        self, table: Any, *, inputs: Sequence[str] | None = None, sample_weight: UserData = None
    ) -> Plan:
        """What a ``fit`` on this table would measure, and how accurate it would be. Spends nothing.

        Parameters
        ----------
        table : data frame, dict of columns, or what ``open_table`` returned
            Holds the inputs, the groups and the exposures. The outcomes may be absent: none is read.
        inputs : list of str, optional
            The names of the input columns, if not given to the constructor.
        sample_weight : str or column, optional
            Public survey weights of the rows, or the name of their column: the target is then the
            weighted mean at every input.

        """
        points = _points_model(self, sample_weight)
        if points is not None:
            return points.plan(table)
        given = columns_of(self, table)
        names = self._input_names(given, inputs, sample_weight)
        asked, rows = self._plan_rows(given, names, sample_weight)
        made = replace(plan_for_rows(asked, rows), output_names=tuple(self._outcomes_by_name()))
        return with_column_names(made, names, self.groups)

    def fit(
        self,
        table: UserData,
        y: UserData = None,
        *,
        inputs: Sequence[str] | None = None,
        plan: Plan | None = None,
        sample_weight: UserData = None,
    ) -> Self:
        """Measure all outcomes once, with noise, and learn from it. The only call that spends.

        Parameters
        ----------
        table : data frame, dict of columns, or what ``open_table`` returned
            Holds inputs, outcomes, groups and exposures by their names.
        y : column, optional
            The private values of an outcome that is declared without a name; in files it is the output
            of the table.
        inputs : list of str, optional
            The names of the input columns, if not given to the constructor.
        plan : Plan, optional
            What ``plan(table)`` returned, which is then carried out. A plan made for anything else is
            refused before anything is spent.
        sample_weight : str or column, optional
            Public survey weights of the rows, or the name of their column: the target is then the
            weighted mean at every input.

        """
        points = _points_model(self, sample_weight)
        if points is not None:
            _fit_points(self, points, table, plan)
            return self
        given = columns_of(self, table)
        self._check_domain()
        known = self._input_names(given, inputs, sample_weight)
        X, groups, beside = self._rows(given, known, inputs_to_fit, sample_weight)
        private = self._outcome_columns(given, y)
        self._check_columns(given, X, y, groups, sample_weight)
        names = tuple(self._outcomes_by_name())
        fit_columns(self, X, private, groups, plan, lambda rows: beside, names)
        return self

    def update(
        self, table: UserData, y: UserData = None, *, sample_weight: UserData = None
    ) -> Self:
        """Measure rows of new people and learn from all measurements together. Spends their budget.

        Each person's data is measured once, so the guarantee stays (epsilon, delta) for everybody,
        provided that nobody is in two batches.

        Parameters
        ----------
        table : data frame, dict of columns, or what ``open_table`` returned
            As for ``fit``, with the same columns.
        y, sample_weight : column, optional
            As for ``fit``.

        """
        return self._fit_further(table, y, None, sample_weight)

    def refine(
        self,
        table: UserData,
        epsilon: float,
        delta: float = 0.0,
        *,
        y: UserData = None,
        sample_weight: UserData = None,
    ) -> Self:
        """Measure the rows of an earlier ``fit`` or ``update`` again, with this further budget.

        ``guarantee_`` then states the total, which counts for all of these people.

        Parameters
        ----------
        table : data frame, dict of columns, or what ``open_table`` returned
            As for ``fit``: the same rows, in the same order. Private records are not compared.
        epsilon, delta : float
            The further budget.
        y, sample_weight : column, optional
            As for ``fit``.

        """
        return self._fit_further(table, y, (epsilon, delta), sample_weight)

    def _fit_further(
        self, table: UserData, y: UserData, budget: tuple[float, float] | None, weights: UserData
    ) -> Self:
        """Measure rows of new people; with a ``budget``, the same rows again."""
        check_is_fitted(self)
        if _points_model(self, weights) is not None:
            raise ValueError(ONCE)
        given = columns_of(self, table)
        X, groups, beside = self._rows(
            given, self._input_names_of_release(given), inputs_to_fit, weights
        )
        private = self._outcome_columns(given, y)
        self._check_columns(given, X, y, groups, weights)
        measure_further(self, X, private, groups, beside, budget)
        return self

    def epsilon_for(
        self, table: UserData, error: float, *, sample_weight: UserData = None
    ) -> float:
        """The least epsilon, within 1%, whose plan expects at most this error for every outcome.

        Parameters
        ----------
        table : data frame or dict of columns
            As for ``plan``. No outcome is read and nothing is spent.
        error : float
            In the units of the outcomes. ValueError if no epsilon reaches it.
        sample_weight : str or column, optional
            As for ``plan``.

        """
        return self._least_epsilon(table, error, sample_weight=sample_weight)

    def predict(
        self,
        table: Any,
        *,
        coverage: float = 0.9,
        observation: bool = False,
        simultaneous: bool = False,
    ) -> Any:
        """The released functions at the rows of a table, as a data frame.

        Parameters
        ----------
        table : data frame or dict of columns
            Holds the inputs.
        coverage : float
            Of the intervals from low to high.
        observation : bool
            Whether intervals are those of new values of numbers and counts, not of their means.
        simultaneous : bool
            Whether intervals contain the function at all rows at once.

        Returns
        -------
        data frame
            For every number and count its mean, std, low and high; for every label the most probable
            class, and the probability of each class with its low and high.

        """
        asked: Any = {"observation": observation, "simultaneous": simultaneous}
        return self.predict_frame(table, coverage, **asked)

    def interval(
        self, table: UserData, coverage: float = 0.9, *, simultaneous: bool = False
    ) -> tuple[Array, Array]:
        """The ends (low, high) of intervals of all outcomes at the rows of a table.

        Parameters
        ----------
        table : data frame or dict of columns
            Holds the inputs.
        coverage : float
            The probability of every interval.
        simultaneous : bool
            Whether intervals contain the function at all rows at once.

        Returns
        -------
        low, high : array (rows, quantities)
            In the order of the outcomes; a label has one quantity for each class.

        """
        if simultaneous:
            return self._band(table, coverage, observation=False)
        rows, levels = self._locate(table), check_coverage(coverage)
        with one_thread():
            return intervals(self._released, rows, levels)

    def plot(
        self, *, figure: Figure | None = None, observation: bool = False, points: UserData = None
    ) -> Figure:
        """Draw the curve, map or slices of every outcome, one above the other.

        Parameters
        ----------
        figure : matplotlib Figure, optional
            Where to draw. Default: a new figure.
        observation : bool, default False
            Draw the 90% intervals of new outputs instead of the functions'. Not on a map.
        points : table, optional
            Rows to mark.

        Returns
        -------
        matplotlib Figure

        """
        from privgp.models.picture import plot_several

        check_is_fitted(self)
        return plot_several(self, None, figure, observation, points)

    def _outcomes_by_name(self) -> dict[str, Outcome]:
        """The outcomes by name."""
        given = self.outcomes
        named = dict(given) if isinstance(given, Mapping) else {ALONE: given}
        if not named or not all(hasattr(each, "parameters") for each in named.values()):
            raise ValueError(
                "outcomes must be Number, Count, Label or Presence, or a dict of them by the names of "
                "columns."
            )
        return named

    def _input_names(
        self, given: Columns, inputs: Sequence[str] | None, weights: UserData = None
    ) -> tuple[str, ...]:
        """The names of the input columns, none of which is private or names people."""
        named = self._outcomes_by_name()
        public = {*(each.exposure for each in named.values()), self.groups}
        public |= {weights} if isinstance(weights, str) else set()
        twice = [name for name in named if name in public]
        if twice:
            raise ValueError(
                f"{twice[0]!r} is a private outcome: it cannot be an exposure or groups too. "
                "Nothing was spent."
            )
        others = {*named, *public}
        asked = self.inputs if inputs is None else inputs
        if isinstance(asked, str):
            asked = [asked]
        if has_private_inputs(self.protect):
            asked = self._private_input_names(asked)
        names = [name for name in given if name not in others] if asked is None else [*asked]
        _check_present(given, names, "which inputs names.")
        if asked is None and isinstance(self.outcomes, Mapping):
            warnings.warn(PUBLIC.format(", ".join(map(repr, names))), UserWarning, stacklevel=3)
        private = [name for name in names if name in named]
        if private:
            raise ValueError(
                f"inputs has {private[0]!r}, which is a private outcome: leave it out. Nothing was spent."
            )
        if not names:
            raise ValueError("table must have at least one input column.")
        return tuple(names)

    def _check_domain(self) -> None:
        """Refuse what does not go with private inputs, which are declared and only counted."""
        if not has_private_inputs(self.protect):
            return
        if not isinstance(self.x_bounds, Mapping):
            raise ValueError(
                "x_bounds must have a pair for every private input, by its name, such as "
                "{'age': (0, 90)}: bounds of private inputs are declared, never read from the data."
            )
        for each in self._outcomes_by_name().values():
            check_rules({"protect": self.protect, "exposure": each.exposure}, ONE)

    def _private_input_names(self, asked: Sequence[str] | None) -> Sequence[str]:
        """The names of the private inputs that are declared."""
        self._check_domain()
        names: Sequence[str] = records_to_plan(self).inputs_.names
        if asked is not None and {*asked} != {*names}:
            raise ValueError(
                "inputs must be the private inputs that x_bounds and columns declare: "
                f"{', '.join(names)}."
            )
        return names if asked is None else asked

    def _outcome_columns(self, given: Columns, y: UserData) -> list[Any]:
        """The private columns of a table, one per outcome, or ``y`` where the outcome has no name."""
        declared, has_names = self._outcomes_by_name(), self._has_names(given)
        if has_names and y is not None:
            raise ValueError("the table holds the columns of all outcomes: leave y=None.")
        if not has_names:
            return [y]
        _check_present(given, [*declared], "which outcomes declares.")
        return [given[name] for name in declared]

    def _has_names(self, given: Mapping[str, object]) -> bool:
        """Whether the table holds the outcomes: by their names, or as the output of files."""
        return isinstance(self.outcomes, Mapping) or isinstance(given, FileColumns)

    def _check_columns(
        self,
        given: Columns,
        X: UserData,
        y: UserData,
        groups: UserData,
        weights: UserData = None,
    ) -> None:
        """Refuse outcomes that are public elsewhere in the table, or in another order."""
        declared, has_names = self._outcomes_by_name(), self._has_names(given)
        counted = {one.exposure for one in declared.values()}
        exposures = {name: given[name] for name in given if name in counted}
        outcomes = {name: given[name] for name in declared} if has_names else y
        own = {weights: given[weights]} if isinstance(weights, str) else weights
        self._check_call(X, outcomes, groups, exposure=exposures, sample_weight=own)

    def _locate(self, X: UserData) -> Array:
        """Where the kernel has the rows of a table, which may have other columns too."""
        check_is_fitted(self)
        given = columns_by_name(X)
        return rows_at(self, {name: given[name] for name in self._input_names_of_release(given)})

    def _prefixes(self) -> tuple[str, ...]:
        return self.output_names_ if isinstance(self.outcomes, Mapping) else ()

    def _data(
        self, y: UserData, rows: int, records: Sealed | None = None, people: UserData = None
    ) -> Sealed:
        """What the vault measures of the outcomes, one column each: it reads each separately."""
        classes = [one._classes() for one in self._alone()]
        return seal_outcomes(y, classes, rows, records, people)

    def _rows(
        self,
        given: Columns,
        names: Sequence[str],
        inputs: Callable[..., object],
        weights: UserData = None,
    ) -> tuple[Any, Any, Beside]:
        """The columns of inputs by name, as ``inputs`` takes them, the groups, and the exposures of
        counts and sample weights."""
        X = inputs(self, given, names)
        groups = None
        if self.groups is not None:
            _check_present(given, [self.groups], "which groups names.")
            groups = given[self.groups]
        if isinstance(weights, str):
            _check_present(given, [weights], "which sample_weight names.")
            if isinstance(given, FileColumns) and has_private_inputs(self.protect):
                raise ValueError(
                    "PrivateGP takes private weights of tables in memory: read the table first."
                )
            weights = given[weights]
        if has_private_inputs(self.protect):  # nothing is public beside private records
            weighed = None if weights is None or self.max_weight is not None else GIVEN
            check_rules({"protect": self.protect, "sample_weight": weighed}, ONE)
            return X, groups, Beside(of_records=weights)
        count = rows_in(given, names)
        exposures = self._exposures_by_count(given, count)
        return X, groups, Beside(exposures, check_weights(weights, count))

    def _plan_rows(
        self, given: Columns, names: Sequence[str], weights: UserData = None
    ) -> tuple[PrivateGP, Given | Tallied]:
        """A model that has what is known of the columns, and the rows to plan for."""
        self._check_domain()
        X, groups, beside = self._rows(given, names, inputs_to_plan, weights)
        if has_private_inputs(self.protect):
            return self, private_count(self, X, groups)
        asked, located = rows_to_plan(self, X)
        return asked, public_rows(asked, located, groups, beside, X)

    def _exposures_by_count(self, given: Mapping[str, object], rows: int) -> Exposed:
        """The exposure of every row of every count, by the count's place."""
        found: dict[int, Array] = {}
        for place, one in enumerate(self._outcomes_by_name().values()):
            if one.exposure is not None:
                _check_present(given, [one.exposure], "which an exposure names.")
            if one.has_rate:
                column = None if one.exposure is None else given[one.exposure]
                found[place] = check_exposure(column, rows)
        return found

    def _input_names_of_release(self, given: Mapping[str, object]) -> list[str]:
        """The names of the inputs of the release, all of which the table has."""
        names = [str(name) for name in self.feature_names_in_]
        missing = absent(given, names)
        if missing:
            raise ValueError(
                f"table has no column {missing[0]!r}: the inputs are {', '.join(names)}."
            )
        return names

    def _alone(self) -> tuple[Any, ...]:
        """An unfitted model of every outcome alone, with the whole budget."""
        check_output_shares(self.shares, len(self._outcomes_by_name()))
        each = []
        for outcome in self._outcomes_by_name().values():
            kind = getattr(import_module(ESTIMATORS[outcome.estimator]), outcome.estimator)
            names = (n for n in names_of(GENERAL, outcome.estimator) if n not in OF_ALL)
            shared = {name: getattr(self, name) for name in names}
            one = kind(**shared, **outcome.parameters(self.protect))
            one.inputs_, one._declared = self.inputs_, outcome
            each.append(one)
        return tuple(each)

    def _parameters(self, columns: int) -> MixedParameters:
        each = tuple(one._parameters(columns) for one in self._alone())
        given = {name: getattr(self, name) for name in MIXED_ARGUMENTS} | locate_columns(self)
        named = self._outcomes_by_name()
        return MixedParameters.from_outcomes(
            given, columns, each, tuple(named), tuple(o.exposure or "" for o in named.values())
        )


def _check_present(given: Columns, names: Sequence[str], why: str) -> None:
    """Refuse a table without one of these columns. ``why``: what names it."""
    missing = absent(given, names)
    if missing:
        raise ValueError(f"table has no column {missing[0]!r}, {why}")


def _points_model(model: PrivateGP, weights: UserData) -> NamedPoints | None:
    """The model of where records lie, if that is the outcome; None where columns hold outcomes."""
    named = model._outcomes_by_name()
    if all(each.column for each in named.values()):
        return None
    others = {"groups": model.groups, "sample_weight": weights, "targets": model.targets}
    given = [name for name, value in others.items() if value is not None]
    if len(named) > 1 or given:
        what = given[0] if given else "another outcome"
        raise ValueError(f"{what} does not go with Presence(), which counts records one by one.")
    kept = {name: getattr(model, name) for name in OF_POINTS}
    return NamedPoints(**kept, outcome_name=next(iter(named)))


def _fit_points(model: PrivateGP, points: NamedPoints, table: UserData, plan: Plan | None) -> None:
    """Become what a model of where records lie releases; what it spent is kept if that fails."""
    try:
        points.fit(table, plan=plan)
    finally:
        for name in SPENT:
            if name in vars(points):
                setattr(model, name, vars(points)[name])
    model.plan_ = points.plan_
    model._hold(points._released)
