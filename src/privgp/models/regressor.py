"""PrivateGPRegressor: a scikit-learn regressor that spends its budget once, in ``fit``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from privgp.gp.arithmetic import one_thread
from privgp.ledger.account import Account
from privgp.models.published import SpendingRegressor
from privgp.models.rows.estimator import RowsModel
from privgp.plan.build import Question
from privgp.privacy.budget import check_budget
from privgp.privacy.noise import PURE
from privgp.question.outcomes import BY_LIKELIHOOD, Outcome, has_private_inputs
from privgp.question.parameters import RECONSTRUCTIONS, check_values
from privgp.question.rules import (
    ONE,
    SEVERAL,
    Exposures,
    are_several,
    check_bounds,
    check_exposure,
    check_output_shares,
    output_bounds,
    per_output,
)
from privgp.release.queries.quantities import ReleasedFunction, check_coverage
from privgp.types import Array, Bounds, Column, Pair, RandomState, Table, UserData
from privgp.vault.measure import seal_columns
from privgp.vault.values import Sealed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(eq=False, repr=False)
class PrivateGPRegressor(RowsModel, SpendingRegressor):
    """Gaussian-process regression of private outputs, (epsilon, delta)-private.

    Parameters
    ----------
    kernel : scikit-learn kernel, in units of X and squared units of y: RBF, Matern,
        RationalQuadratic, ExpSineSquared, ConstantKernel, their sums and products. Its values centre
        the priors of what is learned; what it fixes stays. None: Matern 5/2 with scales from the
        public X and bounds, plus a constant.
    noise_variance : variance of an output about the function (or a WhiteKernel in the kernel's
        top-level sum). An array or a column has one for every row of X, public and known: it is not
        learned, and an observation has the mean of them.
    y_bounds : (low, high), public bounds of the outputs, chosen without looking at them. Values
        outside are clipped. One pair per column where y has several outputs, which are protected
        together: then ``kernel`` and ``noise_variance`` may be lists of one per output.
    x_bounds : (low, high), or one such pair per input, for ``protect="records"``: public bounds of the
        inputs. Inputs outside are moved to them.
    epsilon, delta : the budget that one ``fit`` spends.
    protect : "outputs", or "records": inputs and outputs are private.
    targets : points where the release should be accurate; None: the rows of X.
    objective : what the measurement minimises. "posterior": the error of the posterior; "trace",
        "max" or "logdet": the mean, largest or geometric-mean variance of the noise at the targets.
    reconstruct : "posterior" predicts anywhere. "unbiased" is the papers' output, the non-private
        prediction plus noise at the targets, and elsewhere what follows from these values; its
        objective is "trace" by default.
    hyperparameters : "learned" from the private measurement at no cost and averaged over, or "fixed".
    inducing : for many rows: the number of inducing inputs to choose from X, or an array of them. Rows
        are then read in blocks and nothing grows with their number. None: none, rows are
        gathered in cells. With ``protect="records"``: the largest number of bins or features.
    mechanism : the noise distribution: "gaussian", on weighted sums of all outputs; "laplace", on sums
        over groups of inputs, which needs no delta; or "auto", the one with the smaller expected error.
    likelihood : "gaussian"; or "poisson": outputs are counts, and their rate per unit of ``exposure`` is
        predicted. The kernel is then that of the rate's logarithm, and the noise variance that of a
        count over its mean, 1 by default. An observation is a count at one unit of exposure.
    max_change : how much one person can change one output, 1 for a count of people; with ``groups``,
        each of that person's outputs. None: from one bound to the other.
    shares : of several outputs: one positive number for each; the noise of an output, relative to
        its bounds, is proportional to one over its share. None: equal.
    columns : what inputs are, by their names in X, such as ``{"when": "date", "region": "category",
        ("lat", "lon"): "place", "hour": ("periodic", 24)}``; also "number", "boolean",
        ("category", levels) and ("place", crs). Other columns are inferred. A kernel then has
        one lengthscale, or one for each of these.
    most_rows : with ``groups``: the most rows of one person that are used, the first ones. None: all.
    residuals : {"auto", "always", "never"}
        whether a first part of the budget buys a curve, and the rest measures what outputs are above or
        below it, clipped to a width that the first part tells. "auto": where less error is expected.
    max_weight : with ``protect="records"`` and sample weights: the largest weight that counts, declared without
        looking at the data. Larger ones are lowered to it. None: records have no weights.
    engine : where many rows are worked on: None, threads of this process; a ``dask.distributed`` Client,
        or its scheduler's address.
    ledger : the Account of these data, which every fit charges before it draws; None: none.
    random_state : for simulations only: reproducible, ordinary noise, and a guarantee that states this.
        None: the noise that protects.

    Attributes
    ----------
    guarantee_ : the Guarantee.
    plan_, plan_summary_ : the Plan that was carried out, and the plan in words. A loaded model has the
        words only.
    measurements_ : tuple of the noisy measurements, one for each time that budget was spent; with several
        outputs, one per output.
    kernel_, input_map_, noise_variance_ : the most plausible kernel, the map of the inputs that belongs to
        it, and the expected variance of an output about the function. With several outputs, one of each
        per output.
    release_, functionals_ : what predicts, and which sums of the function were measured.
    released_at_ : when the budget was spent, in UTC.
    output_ : the name of the output, and its units, where they are known.
    output_names_ : with several outputs, the names of the columns of y.
    n_features_in_, feature_names_in_ : the number of columns of X, and their names in a table.
    inputs_ : the column kinds, where not all inputs are numbers; else None.

    """

    kernel: Kernel | Sequence[Kernel] | None = None
    noise_variance: float | Column | Sequence[float] | None = None
    _: KW_ONLY
    y_bounds: Bounds | None = None
    x_bounds: Bounds | None = None
    epsilon: float = 1.0
    delta: float = 1e-6
    protect: str = "outputs"
    targets: Table | None = None
    objective: str = "posterior"
    reconstruct: str = "posterior"
    hyperparameters: str = "learned"
    inducing: int | Table | None = None
    mechanism: str = "auto"
    likelihood: str = "gaussian"
    max_change: float | None = None
    shares: Sequence[float] | None = None
    columns: Mapping[Any, Any] | None = None
    most_rows: int | None = None
    residuals: str = "auto"
    max_weight: float | None = None
    engine: Any = None
    ledger: Account | None = None
    random_state: RandomState = None

    def predict(
        self,
        X: Table,
        *,
        return_std: bool = False,
        return_cov: bool = False,
        observation: bool = False,
    ) -> Any:
        """The released function at any inputs: free and deterministic.

        Parameters
        ----------
        X : table (rows, inputs)
            The inputs.
        return_std, return_cov : bool, default False
            Also return the standard deviation (rows,) or the covariance (rows, rows) of the function, privacy
            noise included. Not both.
        observation : bool, default False
            Add the variance of a new output about the function, limited near the bounds to what outputs
            within them can have.

        Returns
        -------
        array (rows,), or a pair
            With several outputs, every array has a last axis for them.

        """
        if return_std and return_cov:
            raise ValueError("ask for return_std or return_cov, not both.")
        X, functions = self._locate(X), self._functions()
        with one_thread():
            if return_cov:
                found = [each.mean_and_covariance(X, observation) for each in functions]
            elif return_std:
                found = [each.mean_and_std(X, observation) for each in functions]
            else:
                means = [each.answer.mean_at(X) for each in functions]
                return self._released.collect(means, partial(np.stack, axis=-1))
        return self._stack_outputs(found)

    def _functions(self) -> list[ReleasedFunction]:
        """The released function of every output."""
        return [ReleasedFunction.of(one) for one in self._released.each]

    def _stack_outputs(self, found: list[tuple[Array, Array]]) -> tuple[Array, Array]:
        """What all functions answer; of several outputs, with an axis for them at the end."""
        join = partial(np.stack, axis=-1)
        first, second = (self._released.collect(each, join) for each in zip(*found, strict=True))
        return first, second

    def interval(
        self,
        X: Table,
        coverage: float = 0.9,
        *,
        observation: bool = False,
        simultaneous: bool = False,
    ) -> tuple[Array, Array]:
        """An interval at every row of X that contains the function with the given probability.

        Its ends are quantiles of the mixture of models that was learned, so the mean need not be in the
        middle. Free and deterministic.

        Parameters
        ----------
        X : table (rows, inputs)
            The inputs.
        coverage : float, default 0.9
            The probability.
        observation : bool, default False
            For a new output instead of the function.
        simultaneous : bool, default False
            For the function at all rows of X at once.

        Returns
        -------
        low, high : array (rows,)
            With several outputs, (rows, outputs).

        """
        if simultaneous:
            return self._band(X, coverage, observation)
        levels, X = check_coverage(coverage), self._locate(X)
        with one_thread():
            found = [each.interval(X, levels, observation) for each in self._functions()]
        return self._stack_outputs(found)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        figure: Figure | None = None,
        output: str | None = None,
        observation: bool = False,
        points: UserData = None,
    ) -> Figure:
        """Draw the released curve, map or slices.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw.
        figure : matplotlib Figure, optional
            Where to draw. Default: a new figure.
        output : str, optional
            The name of the output on the picture. Default: as ``name_output`` set it.
        observation : bool, default False
            Draw the 90% interval of a new output instead of the function's. Not on a map.
        points : table, optional
            Rows to mark.

        Returns
        -------
        matplotlib Figure

        """
        from privgp.models.picture import function_picture, on_paper, plot_several
        from privgp.pictures.curves import plot_release

        check_is_fitted(self)
        if self._released.output_names is not None:
            return plot_several(self, ax, figure, observation, points)
        output = self._released.label("output") if output is None else output
        released = function_picture(self._released, output, observation)
        return plot_release(on_paper(self, released, points), ax, figure)

    def __sklearn_clone__(self) -> Self:
        """As scikit-learn does it, except for a client of a cluster, of which there are no copies."""
        given = self.get_params(deep=False)
        copied = {
            name: clone(value, safe=False) for name, value in given.items() if name != "engine"
        }
        return type(self)(**copied, engine=self.engine)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._outcome_rules() == SEVERAL
        tags.target_tags.single_output = not tags.target_tags.multi_output
        return tags

    def _exposures_by_place(self, exposure: Column | None, rows: int) -> dict[int, Array]:
        """The exposure of every row by the place of the output, which is one for all."""
        self._check_together(exposure=exposure)
        counted = [place for place, one in enumerate(self._alone()) if one._outcome().has_rate]
        return dict.fromkeys(counted, check_exposure(exposure, rows)) if counted else {}

    def _alone(self) -> tuple[Self, ...]:
        """An unfitted model of every output alone, with the whole budget."""
        if self._outcome_rules() == ONE:
            return (self,)
        self._check_together()
        bounds = output_bounds(self.y_bounds, least=2)
        check_output_shares(self.shares, len(bounds))
        kernels = per_output("kernel", self.kernel, len(bounds))
        noises = per_output("noise_variance", self.noise_variance, len(bounds))
        given = {**self.get_params(deep=False), "shares": None, "ledger": None}
        each = tuple(
            type(self)(**{**given, "y_bounds": pair, "kernel": kernel, "noise_variance": noise})
            for pair, kernel, noise in zip(bounds, kernels, noises, strict=True)
        )
        for one in each:
            one.inputs_ = self.inputs_
        return each

    def _data(
        self, y: UserData, rows: int, records: Sealed | None = None, people: UserData = None
    ) -> Sealed:
        if len(self._alone()) == 1:
            return super()._data(y, rows, records, people)
        return seal_columns(y, len(self._alone()), rows, records, people)

    def _rehearsal_outputs(self, rows: int) -> Array:
        """Outputs to rehearse with, in the middle of their bounds."""
        low, high = np.array(self.y_bounds, dtype=float).T
        return np.full((rows, *np.shape(low)), 0.5 * low + 0.5 * high)

    def _outcome_rules(self) -> str:
        return SEVERAL if are_several(self.y_bounds) else ONE

    def _outcome(self) -> Outcome:
        """What is declared of one output."""
        check_values(self.get_params(deep=False))
        bounds = check_bounds("y_bounds", self.y_bounds)
        return self._declared or BY_LIKELIHOOD[self.likelihood].of(bounds, self.max_change, None)

    def _question(self, columns: int) -> Question:
        """The parameters, checked, for this many input columns."""
        check_budget(self.epsilon, self.delta, pure=True)
        bounds = check_bounds("y_bounds", self.y_bounds)
        self._outcome()
        self._check_together()
        objective = RECONSTRUCTIONS[self.reconstruct].choose_objective(self.objective)
        linear = objective != "posterior"
        pure = not linear and self.mechanism in ("auto", *PURE)
        check_budget(self.epsilon, self.delta, pure=pure)
        counted = record_exposures(self, bounds)
        asked = self._parameters(columns)
        return Question.of(asked, y_bounds=bounds, objective=objective, exposures=counted)


def record_exposures(model: PrivateGPRegressor, bounds: Pair) -> Exposures | None:
    """What private records count over, where outputs are counts: one unit each."""
    counts = model._outcome().has_rate and has_private_inputs(model.protect)
    return Exposures.of(np.ones(1), bounds) if counts else None
