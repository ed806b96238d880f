"""PrivateFunction: the posterior mean as one noisy function, at any points, kept by the custodian."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import check_is_fitted, validate_data

from privgp.gp.arithmetic import threads_for
from privgp.gp.kernels.evaluate import signal_and_noise
from privgp.gp.kernels.proved import rounding_error
from privgp.gp.kernels.registry import KERNELS, kernel_tree
from privgp.gp.priors import collapse
from privgp.gp.smoothers import choose_nodes
from privgp.ledger.account import Account
from privgp.models.kept import KeptEstimator
from privgp.models.published import names_of
from privgp.models.rows.tables import numbers_only
from privgp.plan.functions.outputs import SENSITIVITIES, FunctionModel
from privgp.plan.functions.records import RECORD_SENSITIVITIES, RecordsModel
from privgp.plan.search.folds import Trial
from privgp.privacy.budget import check_budget
from privgp.privacy.guarantee import NOT_TIMED, Guarantee, promise
from privgp.privacy.noise import GaussianNoise
from privgp.privacy.protected import OUTPUTS, RECORDS, Protected
from privgp.question.outcomes import has_private_inputs
from privgp.question.rules import (
    check_bounds,
    check_choice,
    check_inducing_inputs,
    check_row_noise,
    domain_pairs,
    is_number,
)
from privgp.types import Array, Bounds, Column, Integers, Pair, RandomState, Table
from privgp.vault.states.kept import Kept, StateCodec
from privgp.vault.states.outputs import OutputsContents, first_draws
from privgp.vault.states.records import RecordsContents, first_record_draws
from privgp.vault.validate import seal_inputs, seal_outputs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FUNCTIONS = StateCodec(OutputsContents | RecordsContents, "function", KERNELS)
MOST_RECORDS = 10_000
LAZILY = "drawn where it is asked for, at most {:,} points"
ONCE = "no draw is made twice: the state of the function is kept and never set back"
OUTPUTS_ASSUMPTIONS = (
    "the inputs and the number of rows are public",
    "kernel, noise variance, bounds, inducing inputs and budget were chosen without looking at the "
    "outputs",
)
RECORDS_ASSUMPTIONS = (
    "the number of records is public",
    "kernel, noise variance, domain, bounds and budget were chosen without looking at the records",
)


@dataclass(eq=False, repr=False)
class PrivateFunction(KeptEstimator):
    """One (epsilon, delta)-private function over the whole space: ``f + c Delta G``, G ~ GP(0, k).

    It is drawn where it is asked for: the custodian keeps the outputs. Answers may be published.

    Parameters
    ----------
    kernel : scikit-learn kernel, in units of X and squared units of y, fixed.
    noise_variance : variance of an output about the function (None: the kernel's WhiteKernel); with
        ``protect="outputs"`` also one per row, public.
    y_bounds : (low, high), public bounds of the outputs, chosen without looking at them.
    epsilon, delta : the budget of the function, spent once for all points.
    sensitivity : "exact", or "infinity", "nonnegative" and "varah", bounds that cost more noise.
    dominance : declared least ``K_ii - sum |K_ij|`` for "varah". None: that of X.
    inducing : a number of inducing inputs, chosen from X, or an array of them: the function is then
        that many numbers, and any number of points is free. None: at most 20,000 points.
    protect : "outputs" (X is public), or "records": inputs private too, at most 4,000 points.
    domain : with records, (low, high), or one such pair per input; questions outside are refused.
    ledger : the Account of these data, which every fit charges for all answers; None: none.
    random_state : for simulations only: ordinary noise, and a guarantee that states this.

    Attributes
    ----------
    guarantee_ : what is guaranteed, for all points together.
    sensitivity_, noise_std_ : d times the norm's bound; std of the noise at a point, in units of y.

    """

    _CODEC = FUNCTIONS

    kernel: Kernel
    noise_variance: float | Column | None
    _: KW_ONLY
    y_bounds: Sequence[float] | None
    epsilon: float
    delta: float
    sensitivity: str = "exact"
    dominance: float | None = None
    inducing: int | Table | None = None
    protect: str = "outputs"
    domain: Bounds | None = None
    ledger: Account | None = None
    random_state: RandomState = None

    def fit(self, X: Table, y: Column, *, state: str | os.PathLike[str] | None = None) -> Self:
        """Take the data. The first release spends the budget; every fit has its own.

        Parameters
        ----------
        X : table (rows, inputs)
            The inputs.
        y : column (rows,)
            The private values.
        state : str or path, optional
            A new ``.private-state`` file, which keeps every draw before its answer is given.

        Returns
        -------
        self

        """
        tried, seed = self._prepare(X, y, state)
        check_choice("protect", self.protect, ("outputs", "records"))
        fit = {"outputs": self._fit_outputs, "records": self._fit_records}[self.protect]
        fit(X, y, tried, seed, state)
        return self

    def release(self, X_new: Table) -> Array:
        """The function at these points, always the same; stored before it is returned.

        Parameters
        ----------
        X_new : table (points, inputs)
            Where to evaluate.

        Returns
        -------
        array (points,)

        """
        return self._ask(X_new)

    def plot(
        self, ax: Axes | None = None, *, figure: Figure | None = None, output: str = "output"
    ) -> Figure:
        """Draw the function at the points of a grid, which it then answers.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw.
        figure : matplotlib Figure, optional
            Where to draw. Default: a new figure.
        output : str, default "output"
            The name of the output on the picture.

        Returns
        -------
        matplotlib Figure

        """
        from privgp.models.picture import as_map, function_of_release
        from privgp.pictures.curves import plot_release

        check_is_fitted(self)
        return plot_release(as_map(function_of_release(self._kept, output)), ax, figure)

    def _take(self, kept: Kept) -> None:
        super()._take(kept)
        c: Any = kept.contents
        width = c.y_bounds[1] - c.y_bounds[0]
        self.sensitivity_ = width * c.norm
        self.noise_std_ = 0.5 * width * c.draws.noise.std * float(np.sqrt(c.model.typical_variance))

    # From arguments and data to a function of which nothing has been asked. ``tried`` is an estimator
    # that is told the names of the columns.

    def _fit_outputs(
        self, X: Any, y: Any, tried: Self, seed: int | None, state: str | os.PathLike[str] | None
    ) -> None:
        numbers_only(self, X)
        X = validate_data(tried, X, dtype=np.float64) + 0.0  # no negative zeros
        y = seal_outputs(y, len(X))
        asked = self._check_request()
        model, index, norm = self._plan_outputs(X)
        if state is not None:
            kernel_tree(model.kernel)  # refuses what no file can hold, before anything is charged
        law = model.noise(asked["epsilon"], asked["delta"], norm)
        how, when = LAZILY, [ONCE, NOT_TIMED]
        if model.nodes is not None:  # all numbers are drawn at once
            how, when = "in {:,} numbers through inducing inputs", [ONCE]
        promised = self._guarantee(OUTPUTS, (*OUTPUTS_ASSUMPTIONS, *when), law, how)

        def draw() -> Kept:
            draws = first_draws(y, asked["y_bounds"], index, law, norm, seed, model.columns)
            made = OutputsContents(promised, names_of(tried), model, draws, norm=norm, **asked)
            return Kept.new(made, FUNCTIONS, state)

        self._publish(promised, draw, self._take, rows=model.rows)

    def _plan_outputs(self, X: Array) -> tuple[FunctionModel, Integers, float]:
        """The public model at these inputs, the distinct input of every row, and the norm's bound."""
        if self.domain is not None:
            raise ValueError("domain goes with protect='records' only.")
        noise = check_row_noise(self.noise_variance, len(X))
        inputs, index = collapse(X if noise is None else np.column_stack([X, noise]))
        with threads_for(len(inputs)), np.errstate(all="ignore"):
            counts = np.bincount(index).astype(np.float64)
            each = None if noise is None else inputs[:, -1].copy()
            model = self._outputs_model(inputs[:, : X.shape[1]].copy(), counts, each)
            norm = model.norm(self.sensitivity, self.dominance)
        if not (np.isfinite(norm) and norm > 0):
            raise ValueError("the sensitivity is not finite: choose other units for the kernel.")
        return model, index, norm

    def _outputs_model(self, inputs: Array, counts: Array, noises: Array | None) -> FunctionModel:
        """The public model on these distinct inputs, each of which occurs ``counts`` times.

        ``noises``: the noise variance at each, where it differs by row.
        """
        check_choice("sensitivity", self.sensitivity, SENSITIVITIES)
        if self.dominance is not None:
            if self.sensitivity != "varah":
                raise ValueError("dominance goes with sensitivity='varah' only.")
            if not is_number(self.dominance) or not 0.0 < self.dominance < np.inf:
                raise ValueError("dominance must be a positive, finite number.")
        columns = inputs.shape[1]
        mean = self.noise_variance if noises is None else float(np.average(noises, weights=counts))
        kernel, noise = signal_and_noise(self.kernel, mean, columns)
        if self.inducing is None:
            return FunctionModel(kernel, noise, inputs, counts, None, noises)
        if self.sensitivity not in ("exact", "varah"):
            raise ValueError("inducing inputs go with sensitivity 'exact' or 'varah' only.")
        if self.dominance is not None:
            raise ValueError("inducing inputs need no dominance: leave it out.")
        nodes = check_inducing_inputs(self.inducing, columns)
        if isinstance(nodes, int):
            nodes = inputs[choose_nodes(kernel, inputs, nodes)]
        return FunctionModel(kernel, noise, inputs, counts, nodes, noises)

    def _fit_records(
        self, X: Any, y: Any, tried: Self, seed: int | None, state: str | os.PathLike[str] | None
    ) -> None:
        asked = self._check_request()
        inputs = seal_inputs(X, len(domain_pairs("domain", self.domain)))
        y = seal_outputs(y, len(inputs))
        validate_data(tried, X, skip_check_array=True)
        model = self._records_model(len(inputs))
        norm = model.norm(self.sensitivity)
        noise = model.noise(asked["epsilon"], asked["delta"], norm)
        promised = self._guarantee(RECORDS, (*RECORDS_ASSUMPTIONS, ONCE, NOT_TIMED), noise, LAZILY)

        def draw() -> Kept:
            with threads_for(model.rows), np.errstate(all="ignore"):
                draws = first_record_draws(inputs, y, model, asked["y_bounds"], noise, seed)
            made = RecordsContents(promised, names_of(tried), model, draws, norm=norm, **asked)
            return Kept.new(made, FUNCTIONS, state)

        self._publish(promised, draw, self._take, rows=model.rows)

    def _records_model(self, rows: int) -> RecordsModel:
        """The public model, from the arguments and the number of records alone."""
        check_choice("sensitivity", self.sensitivity, RECORD_SENSITIVITIES)
        if self.inducing is not None or self.dominance is not None:
            raise ValueError("inducing and dominance are not available with protect='records'.")
        domain = domain_pairs("domain", self.domain)
        kernel, noise = signal_and_noise(self.kernel, self.noise_variance, len(domain))
        if not 1 <= rows <= MOST_RECORDS:
            raise ValueError(f"X must hold 1 to {MOST_RECORDS:,} records, got {rows}.")
        model = RecordsModel(kernel, noise, domain, rows)
        rounding_error(model.kernel, model.widths)  # refuses what has no proved error
        return model

    def _with_budget(self, epsilon: float, delta: float, rows: int) -> Self:
        """An unfitted copy that spends this budget."""
        made: Self = clone(self).set_params(epsilon=epsilon, delta=delta)
        return made

    def _domain(self) -> tuple[Pair, ...] | None:
        """The declared domain of private inputs; None where inputs are public."""
        check_choice("protect", self.protect, ("outputs", "records"))
        private = has_private_inputs(self.protect)
        return domain_pairs("domain", self.domain) if private else None

    def _trial(self, X: Array | None, rows: int) -> Trial:
        """The posterior mean with the noise of the function."""
        asked = self._check_request()
        model: FunctionModel | RecordsModel
        if X is None:
            model = self._records_model(rows)
            norm = model.norm(self.sensitivity)
        else:
            model, _, norm = self._plan_outputs(X + 0.0)
        half = 0.5 * (asked["y_bounds"][1] - asked["y_bounds"][0])
        std = half * model.noise(asked["epsilon"], asked["delta"], norm).std
        known = model.kernel, model.noise_variance, asked["y_bounds"]
        return Trial(*known, added=std**2 * model.typical_variance)

    def _check_request(self) -> dict[str, Any]:
        """What was asked for, checked, as every function keeps it."""
        check_budget(self.epsilon, self.delta)
        dominance = self.dominance
        return {
            "y_bounds": check_bounds("y_bounds", self.y_bounds),
            "epsilon": float(self.epsilon),
            "delta": float(self.delta),
            "sensitivity": self.sensitivity,
            "dominance": float(dominance) if isinstance(dominance, Real) else dominance,
        }

    def _guarantee(
        self, protected: Protected, assumptions: tuple[str, ...], noise: GaussianNoise, how: str
    ) -> Guarantee:
        """What is guaranteed of all answers together; ``how``: the function is drawn, {} for its size."""
        return promise(
            protected,
            [noise.event],
            (self.epsilon, self.delta),
            assumptions=assumptions,
            mechanism=f"{noise.describe()} on the posterior mean as a function, "
            f"{how.format(noise.size)}; all answers together are covered",
            sampler=noise.sampler,
            simulated=self.random_state is not None,
        )
