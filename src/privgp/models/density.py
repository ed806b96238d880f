"""What a released density guarantees (docs/proofs/density.md)."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import check_is_fitted

from privgp.gp.arithmetic import one_thread
from privgp.ledger.account import Account
from privgp.models.published import Published, with_assumptions
from privgp.models.rows.fit import (
    PublicRows,
    bind_plan,
    domain,
    from_inputs_alone,
    private_inputs,
    row_count,
    verify_plan,
)
from privgp.models.rows.tables import domain_of, locate_columns, records_to_plan, remember
from privgp.plan.bins.points import LEAST_TOLD, PointBins, bins_of, locate_exposure
from privgp.plan.build import PublicInputs, Question
from privgp.plan.parameters import MIXED_ARGUMENTS, DensityParameters, MixedParameters
from privgp.plan.plan import Plan, make_plan
from privgp.privacy.budget import check_budget
from privgp.privacy.guarantee import Guarantee, promise
from privgp.privacy.protected import POINTS
from privgp.question.parameters import check_values
from privgp.question.rules import Exposures
from privgp.release.parts import FROM_THEM
from privgp.release.queries.quantities import ReleasedFunction, check_coverage
from privgp.types import Array, Bounds, RandomState, Table, UserData
from privgp.vault.table import seal_counts
from privgp.vault.validate import column_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


ASSUMPTIONS = (
    "the number of points is public",
    "kernel, domain, bins and budget were chosen without looking at the points",
)


def density_guarantee(plan: Plan, *, simulated: bool) -> Guarantee:
    """The guarantee of noisy sums of the numbers of points in the bins of a grid.

    Replacing one point moves two counts by 1, so every sum of counts with weights of norm at most 1 by
    at most 2: what the plan states as the change of one output.
    """
    size, bins = plan.strategy.size, plan.rows
    totals = f"{size} noisy total{'s' if size > 1 else ''} of the numbers of points in {bins} bins"
    return promise(
        POINTS,
        [plan.noise.event],
        (plan.epsilon, plan.delta),
        assumptions=ASSUMPTIONS,
        mechanism=f"{totals} of the declared domain ({plan.noise.describe()}){FROM_THEM}",
        sampler=plan.noise.sampler,
        simulated=simulated,
    )


@dataclass(eq=False, repr=False)
class PrivateGPDensity(Published, DensityMixin, BaseEstimator):  # type: ignore[misc]
    """Where private points lie, (epsilon, delta)-private.

    Points are counted in the bins of a regular grid over the declared domain. A noisy count of every bin
    is released, and a Gaussian process models the logarithm of the intensity.

    Parameters
    ----------
    x_bounds : sequence of (low, high), or dict
        The declared domain, a pair for every input, by name where points are a table. Points outside
        are moved to it. It must not be read from the data.
    epsilon, delta : float
        The budget that one ``fit`` spends.
    kernel : scikit-learn kernel, optional
        Of the logarithm of the intensity.
    bins : int, optional
        Bins per number. None: 64, 20, 8, 5 or 4 for one to five numbers, more from 5,000 points on, and
        fewer if there are fewer points than 2.5 / epsilon per bin. Every level of a category has its own.
    columns : dict, optional
        Inputs that are dates, places or categories, by name. Places lie on the declared rectangle, in
        kilometres. The levels of a category are declared: ``("category", ["north", "south"])``.
    hyperparameters : {"learned", "fixed"}
        Whether they are learned from the private measurement, at no cost.
    mechanism : {"auto", "gaussian", "laplace"}
        The noise distribution. "auto": the one with the smaller expected error.
    ledger : Account, optional
        The account of these data, which every fit charges before it draws.
    random_state : int, optional
        For simulations only: reproducible noise, and a guarantee that states this.

    Attributes
    ----------
    guarantee_ : Guarantee
    plan_ : Plan
    n_points_ : int
        The number of points, which is public.

    """

    _unnamed: ClassVar[str] = "points per unit"

    _: KW_ONLY
    x_bounds: Bounds | Mapping[str, Any] | None = None
    epsilon: float = 1.0
    delta: float = 1e-6
    kernel: Kernel | None = None
    bins: int | None = None
    columns: Mapping[Any, Any] | None = None
    hyperparameters: str = "learned"
    mechanism: str = "auto"
    ledger: Account | None = None
    random_state: RandomState = None

    @property
    def protect(self) -> str:  # type: ignore[override]
        """Whole points are protected."""
        return "records"

    @from_inputs_alone
    def plan(self, X: Table | int, *, groups: None = None, exposure: Table | None = None) -> Plan:
        """What a ``fit`` would measure, and how accurate the intensity would be. Spends nothing.

        Parameters
        ----------
        X : table or int
            The points, of which nothing but their number is used, or that number.
        groups : None
            Refused: points are protected one by one.
        exposure : table, optional
            As for ``fit``.

        """
        _refuse_people(groups)
        asked = copy(self)._declare(row_count(X))
        return asked._make_plan(asked._public_rows(exposure))

    def epsilon_for(self, X: Table, error: float, *, exposure: Table | None = None) -> float:
        """The least epsilon, within 1%, whose plan for these inputs expects at most this error.

        Every epsilon that is tried is planned for; the model's own is not used. Reads no point and spends
        nothing.

        Parameters
        ----------
        X : table (rows, inputs)
            The points, or their number: nothing else of them is used.
        error : float
            The largest expected error, as a share of the intensity.
        exposure : table, optional
            As for ``fit``.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If no epsilon reaches the error. The message states the error without privacy.

        """
        return self._least_epsilon(X, error, exposure=exposure)

    def fit(
        self,
        X: Table,
        y: UserData = None,
        *,
        groups: None = None,
        plan: Plan | None = None,
        exposure: Table | None = None,
    ) -> Self:
        """Count the points, once, with noise, and learn from the counts. The only call that spends.

        Parameters
        ----------
        X : table (points, inputs)
            The private points.
        y : None
            Ignored, as scikit-learn has it.
        groups : None
            Refused: points are protected one by one.
        plan : Plan, optional
            What ``plan`` returned for this number of points, which is then carried out.
        exposure : table, optional
            What points are counted over, such as the inhabitants of a census: public places in the
            columns of X, and in one more column how much is there; 1 for each if there is none. The
            intensity is then the number of points per unit of exposure.

        """
        _refuse_people(groups)
        count = row_count(X)
        self.inputs_ = None
        self._declare(count)
        points = private_inputs(self, X)
        names = column_names(X) if self.inputs_ is None else self.inputs_.names
        remember(self, names, len(self._pairs))
        public = self._public_rows(exposure)
        made = self._make_plan(public) if plan is None else verify_plan(self, plan, public)
        self._publish_plan(made, seal_counts(points, self._bins), inputs=None, rows=count)
        return self

    def intensity(self, X: Table) -> Array:
        """The expected number of points per unit of length, area or volume, or of exposure.

        Parameters
        ----------
        X : table (rows, inputs)
            The inputs.

        Returns
        -------
        array (rows,)
            0 outside of the declared domain.

        """
        rows = self._locate(X)
        with one_thread():
            found = self._points * self._medians(rows) / self._total
        return np.where(self._exposure_at(rows) > 0.0, found, 0.0)

    def score_samples(self, X: Table) -> Array:
        """The logarithm of the density, as scikit-learn's ``KernelDensity`` returns it.

        The density is the posterior median of the intensity, times the exposure where there is one, over
        its integral: it integrates to 1 over the declared domain.

        Parameters
        ----------
        X : table (rows, inputs)
            The inputs.

        Returns
        -------
        array (rows,)

        """
        rows = self._locate(X)
        with one_thread(), np.errstate(divide="ignore"):
            found = np.log(self._medians(rows) * self._exposure_at(rows)) - np.log(self._total)
        return np.asarray(found)

    def score(self, X: Table, y: UserData = None) -> float:
        """The total log density of the rows of X. On private points it is not private.

        Parameters
        ----------
        X : table (rows, inputs)
            The inputs.
        y : ignored
            scikit-learn passes it.

        Returns
        -------
        float

        """
        return float(np.sum(self.score_samples(X)))

    def interval(
        self, X: Table, coverage: float = 0.9, *, simultaneous: bool = False
    ) -> tuple[Array, Array]:
        """The ends (low, high) of an interval of the intensity at every row of X.

        Parameters
        ----------
        X : table (rows, inputs)
            Where to ask.
        coverage : float
            The probability of the interval.
        simultaneous : bool
            Whether intervals hold the intensity at all rows at once.

        Returns
        -------
        low, high : array (rows,)
            ``low`` is 0 where a bin would hold less than half a point: fewer are not told from none.

        """
        levels, rows = check_coverage(coverage), self._locate(X)
        if simultaneous:
            low, high = self._band(X, coverage, observation=False)
        else:
            with one_thread():
                found = ReleasedFunction.of(self._released)
                low, high = found.interval(rows, levels, observation=False)
        told = low * self._exposure_at(rows) * self._declaration.grid.volume >= LEAST_TOLD
        return np.where(told, low, 0.0), high

    def plot(
        self,
        ax: Axes | None = None,
        *,
        figure: Figure | None = None,
        output: str | None = None,
        points: UserData = None,
    ) -> Figure:
        """Draw the released intensity as a curve, map or slices.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw.
        figure : matplotlib Figure, optional
            Where to draw. Default: a new figure.
        output : str, optional
            The name of the intensity on the picture.
        points : table, optional
            Public rows to mark.

        Returns
        -------
        matplotlib Figure

        """
        from privgp.models.picture import function_picture, on_paper
        from privgp.pictures.curves import plot_release

        check_is_fitted(self)
        output = self._released.label(self._unnamed) if output is None else output
        released = on_paper(self, function_picture(self._released, output, False), points)
        return plot_release(released, ax, figure)

    @cached_property
    def _total(self) -> float:
        """The integral of the intensity over the domain."""
        points, weights = self._declaration.grid.quadrature()
        return float(weights @ (self._exposure_at(points) * self._medians(points)))

    @property
    def _declaration(self) -> DensityParameters:
        """What was declared of the points that were released."""
        (found,) = self._released.parameters.parts()
        return cast(DensityParameters, found)

    def _medians(self, rows: Array) -> Array:
        """The posterior median of the intensity at every row, (rows,)."""
        answer: Any = self._released.answers[0]
        parts = np.array_split(rows, 1 + len(rows) // 4096)
        return np.concatenate([answer.mixture(part).quantiles([0.5])[0] for part in parts])

    def _exposure_at(self, rows: Array) -> Array:
        """The exposure per unit of length, area or volume at every row, 1 where none was given, (rows,);
        0 where no point can lie."""
        part, bins = self._released.parts[0], self._declaration.grid
        assert part.unit_rate is not None
        known = np.diag(part.functionals.weights) / (part.unit_rate * bins.volume)
        return np.append(known, 0.0)[bins.find(rows)]

    def _declare(self, count: int) -> Self:
        """Take the number of points, and check what was declared."""
        check_budget(self.epsilon, self.delta, pure=True)
        check_values({name: getattr(self, name) for name in ("hyperparameters", "mechanism")})
        self.inputs_ = records_to_plan(self).inputs_
        each = () if self.inputs_ is None else self.inputs_.columns
        if any(column.width != column.name_count and column.most == np.inf for column in each):
            raise ValueError(
                "a density is over numbers, dates, places and categories: leave out other columns."
            )
        self._points = count
        self.__dict__.pop("_total", None)
        return self

    @property
    def _pairs(self) -> tuple[tuple[float, float], ...]:
        if self.x_bounds is None:
            raise ValueError("x_bounds must be declared, a pair (low, high) for every input.")
        return domain(domain_of(self))

    @property
    def _bins(self) -> PointBins:
        return bins_of(self.bins, self._pairs, self.inputs_, self._points, self.epsilon)

    def _public_rows(self, exposure: Table | None = None) -> PublicRows:
        """The bins, whose centres and exposures are public; without exposures these are volumes."""
        bins = self._bins
        exposed = np.full(len(bins.places), bins.volume)
        if exposure is not None:
            exposed = bins.exposures(*locate_exposure(exposure, self.inputs_, len(bins.shape)))
        return PublicRows.of(bins.nodes, None, exposed)

    def _make_plan(self, rows: PublicRows) -> Plan:
        asked = self._own_parameters()
        assert rows.inputs is not None
        assert rows.exposure is not None
        unit = self._points / float(rows.exposure.sum())
        counted = Exposures.of(rows.exposure, asked.y_bounds, unit)
        question = replace(self._question(rows.columns), exposures=counted)
        made = make_plan(PublicInputs(rows.inputs, None), [question], self._budget(), (1.0,))
        return bind_plan(self, made, rows)

    def _question(self, columns: int) -> Question:
        return Question.of(self._own_parameters())

    def _parameters(self, columns: int) -> Any:
        return self._own_parameters()

    def _own_parameters(self) -> Any:
        """What was declared of the points."""
        kept = {name: getattr(self, name) for name in ("kernel", "hyperparameters", "mechanism")}
        columns_of = locate_columns(self)["columns"]
        return DensityParameters.declare(
            self._pairs,
            self._bins.shape,
            self._points,
            (float(self.epsilon), float(self.delta)),
            columns_of,
            kept,
        )

    def _rehearsal_outputs(self, rows: int) -> Array:
        """Ignored, as points have no output."""
        return np.zeros(rows)

    def _alone(self) -> tuple[Any, ...]:
        return (self,)

    def _guarantee(self, plan: Any) -> Guarantee:
        made = density_guarantee(plan, simulated=self.random_state is not None)
        return with_assumptions(self, made)

    def _hold(self, release: Any) -> Self:
        super()._hold(release)
        self._points = self.n_points_ = self._declaration.points
        self.__dict__.pop("_total", None)
        return self


def _refuse_people(groups: object) -> None:
    if groups is not None:
        raise ValueError("groups does not go with a density: points are protected one by one.")


@dataclass(eq=False, repr=False)
class NamedPoints(PrivateGPDensity):
    """The same for ``PrivateGP``, which names the outcome."""

    outcome_name: str = "output"

    def _parameters(self, columns: int) -> MixedParameters:
        own = self._own_parameters()
        given = {name: getattr(own, name) for name in MIXED_ARGUMENTS}
        return MixedParameters.from_outcomes(given, columns, (own,), (self.outcome_name,), ("",))

    def _make_plan(self, rows: PublicRows) -> Plan:
        return replace(super()._make_plan(rows), output_names=(self.outcome_name,))
