"""PrivateGPRegressor: a scikit-learn regressor that spends its budget once, in ``fit``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from privgp.engine.cluster import engine_of
from privgp.gp.inference.learning import learn
from privgp.gp.measurement import Measurement
from privgp.gp.priors import Hyperparameters
from privgp.gp.threads import laid_out, one_thread, threads_for
from privgp.ledger.account import Account
from privgp.models.files import (
    columns_to_fit,
    columns_to_plan,
    exposure_of,
    fit_table,
    is_streamed,
    plan_table,
)
from privgp.models.kept import names_of
from privgp.models.kinds.inducing import array_rows, fit_rows, plan_rows, streams
from privgp.models.kinds.rates import (
    answer_to,
    check_exposed,
    check_likelihood,
    record_exposures,
)
from privgp.models.kinds.records import (
    check_protect,
    fit_records,
    measured_functions,
    plan_records,
    row_count,
)
from privgp.models.kinds.several.model import (
    check_names,
    fit_several,
    intervals,
    plan_several,
    plot_several,
    predicted,
)
from privgp.models.kinds.several.rows import private_count, public_rows
from privgp.models.kinds.updates import measure_again, measure_new, stages
from privgp.models.planned import PublicRows, accepted, bound, from_inputs_alone, named
from privgp.models.promise import simulation
from privgp.models.published import FIRST, Further, Published
from privgp.models.spending import SpendingRegressor, charge
from privgp.models.tables import located, rows_at, rows_to_fit, rows_to_plan
from privgp.plan.build import Question, make_plan
from privgp.plan.counts.exposures import Exposures, checked_exposure
from privgp.plan.inputs.arguments import (
    check_bounds,
    check_change,
    check_choice,
    check_unused,
    inducing_inputs,
    target_points,
)
from privgp.plan.inputs.rows import Rows
from privgp.plan.parameters import MECHANISMS, OBJECTIVES, RECONSTRUCTIONS, Parameters
from privgp.plan.plan import Plan
from privgp.plan.several.arguments import (
    are_several,
    checked_shares,
    output_bounds,
    per_output,
)
from privgp.plan.streamed.sketch import Sketch, sketch_plan
from privgp.privacy.budget import check_budget
from privgp.privacy.noise import PURE
from privgp.privacy.stages import Stages
from privgp.release.at_targets import AtTargets, Release
from privgp.release.file import Contents
from privgp.release.rates import learn_rates
from privgp.release.several import OutputContents
from privgp.types import Array, Bounds, Column, RandomState, Table
from privgp.vault.checks.roles import check_order
from privgp.vault.labels import split_columns
from privgp.vault.measure import measure
from privgp.vault.stream import ArrayOutputs
from privgp.vault.validate import checked_outputs, column_names, person_ids

INTERVAL_ROWS = 8192  # at a time: every model of the mixture has a mean and a variance at each


def check_coverage(coverage: Any) -> tuple[float, float]:
    """The levels of the ends of an interval with this probability, both inside of 0 and 1."""
    low = 0.5 * (1.0 - float(coverage)) if isinstance(coverage, Real) else 0.0
    if not 0.0 < low < 0.5 or 1.0 - low == 1.0:
        raise ValueError(f"coverage must lie between 0 and 1, got {coverage!r}.")
    return low, 1.0 - low


@dataclass(eq=False, repr=False)
class PrivateGPRegressor(Published, SpendingRegressor):
    """Gaussian-process regression of private outputs, (epsilon, delta)-private.

    Parameters
    ----------
    kernel : scikit-learn kernel, in units of X and squared units of y: RBF, Matern,
        RationalQuadratic, ExpSineSquared, ConstantKernel, their sums and products. Its values centre
        the priors of what is learned; what it fixes stays. None: Matern 5/2 with scales from the
        public X and bounds, plus a constant.
    noise_variance : variance of an output about the function (or a WhiteKernel in the kernel's
        top-level sum).
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
        prediction plus noise, at the targets only; its objective is "trace" unless given.
    hyperparameters : "learned" from the private measurement at no cost and averaged over, or "fixed".
    inducing : for many rows: the number of inducing inputs to choose from X, or an array of them. Rows
        are then read in blocks and nothing grows with their number. None: exact, or a usual number of
        them past 20,000 rows.
    mechanism : the noise distribution: "gaussian", on weighted sums of all outputs; "laplace", on sums
        over groups of inputs, which needs no delta; or "auto", the one with the smaller expected error.
    likelihood : "gaussian"; or "poisson": outputs are counts, and their rate per unit of ``exposure`` is
        predicted. The kernel is then that of the rate's logarithm, and the noise variance that of a
        count over its mean, 1 unless given. An observation is a count at one unit of exposure.
    max_change : how much one person can change one output, 1 for a count of people; with ``groups``,
        each of that person's outputs. None: from one bound to the other.
    shares : of several outputs: one positive number for each; the noise of an output, relative to
        its bounds, is proportional to one over its share. None: equal.
    columns : what inputs are, by their names in X, such as ``{"when": "date", "region": "category",
        ("lat", "lon"): "place", "hour": ("periodic", 24)}``; also "number", "boolean",
        ("category", levels) and ("place", crs). The others are what they plainly are. A kernel then has
        one lengthscale, or one for each of these.
    most_rows : with ``groups``: the most rows of one person that are used, the first ones; rows are then
        streamed. None: all, or 1,000 of many rows.
    engine : where many rows are worked on: None, threads of this process; a ``dask.distributed`` Client,
        or its scheduler's address.
    ledger : the Account of these data, which every fit charges before it draws; None: none.
    random_state : for simulations only: reproducible, ordinary noise, and a guarantee that says so.
        None: the noise that protects.

    Attributes
    ----------
    guarantee_, plan_, measurements_, kernel_, noise_variance_ : what was promised, planned and
        measured, the most plausible kernel (on the inputs as its ``input_map_`` maps them), and the
        expected noise variance. None of them holds a private value. ``plan_summary_`` and
        ``released_at_`` tell the plan in words and the time of the fit; a loaded model has no ``plan_``.
        With several outputs ``measurements_``, ``kernel_`` and ``noise_variance_`` have one entry per
        output, all of one measurement, and ``output_names_`` has the names of y's columns.

    """

    kernel: Kernel | Sequence[Kernel] | None = None
    noise_variance: float | None = None
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
    engine: Any = None
    ledger: Account | None = None
    random_state: RandomState = None

    @from_inputs_alone
    def plan(
        self, X: Table, *, groups: Column | None = None, exposure: Column | None = None
    ) -> Plan:
        """What a ``fit`` on these inputs would measure and how accurate it would be. Spends nothing.

        With ``protect="records"`` X may be the number of records: nothing else of it is used, nor of
        ``groups`` but the number of people. ``exposure``: as ``fit`` has it.
        """
        check_order(X=X, groups=groups, exposure=exposure)
        exposure = exposure_of(X, exposure)
        check_exposed(self, exposure)
        if is_streamed(X, self):
            return plan_table(self, X, groups)
        names, asked = names_of(X), self
        X, groups, exposure = columns_to_plan(self, X, groups, exposure)
        if self.protect != "records":
            asked, X = rows_to_plan(self, X)
        return named(asked._plan(X, groups, exposure=exposure), names)

    def epsilon_for(
        self,
        X: Table,
        error: float,
        *,
        groups: Column | None = None,
        exposure: Column | None = None,
    ) -> float:
        """The least epsilon, within 1%, whose plan for these inputs expects at most this error.

        Every epsilon that is tried is planned for; the model's own is not used. Reads no output and
        spends nothing. ValueError if no epsilon reaches the error. ``exposure``: as ``fit`` has it.
        """
        given = {} if exposure is None else {"exposure": exposure}
        return self._least_epsilon(X, error, groups, **given)

    def fit(
        self,
        X: Table,
        y: Column,
        *,
        groups: Column | None = None,
        plan: Plan | None = None,
        exposure: Column | None = None,
    ) -> Self:
        """Measure once, with noise, and learn from the measurement. The only call that spends.

        ``groups``: person identifiers, public unless records are protected; all rows of one person
        are protected together.
        ``plan``: what ``plan(X, groups=groups)`` returned, which is then measured and not made again. A plan
        made for anything else is refused before anything is spent.
        ``exposure``: with ``likelihood="poisson"``, what every count is counted over, such as a
        population or days at risk: public, positive, one per row. None: 1 each.
        """
        exposure = exposure_of(X, exposure)
        check_exposed(self, exposure)
        self._check_given(X, y, groups, exposure)
        if is_streamed(X, self):
            fit_table(self, X, y, groups, plan)
            return self
        X, y, groups, exposure = columns_to_fit(self, X, y, groups, exposure)
        if are_several(self.y_bounds):
            count = row_count(X)
            private = split_columns(y, count, len(self._alone()))
            exposed = self._exposed_by(exposure, count)
            fit_several(self, X, private, column_names(y), groups, plan, exposed)
            return self
        if self.protect == "records":
            fit_records(self, X, y, groups, plan)
            return self
        X = rows_to_fit(self, X)
        y = checked_outputs(y, len(X))
        if streams(self, len(X)):
            rows = array_rows(self, X, groups)
            fit_rows(self, rows, ArrayOutputs.of(y, rows), plan)
            return self
        public = PublicRows.of(X, person_ids(groups, len(X)), self._exposure(exposure, len(X)))
        plan = self._plan_for(public, groups, plan)
        charge(self, self._promised(plan), public.inputs, rows=len(X))
        measurement = measure(y, plan.y_bounds, plan.strategy, plan.noise, simulation(self))
        del y
        self._release(plan, measurement)
        return self

    def update(
        self, X: Table, y: Column, *, groups: Column | None = None, exposure: Column | None = None
    ) -> Self:
        """Measure rows of new people and learn from all measurements together. Spends their budget.

        Each person's data is measured once, so the promise stays (epsilon, delta) for everybody,
        provided that nobody is in two batches. At public inputs, what is measured is planned knowing
        the release so far; of private records, the same sums are measured as at first. X, groups,
        exposure and parameters must not have been chosen by looking at outputs.
        """
        self._check_given(X, y, groups, exposure)
        X, y, groups, exposure = columns_to_fit(self, X, y, groups, exposure_of(X, exposure))
        measure_new(self, X, y, groups, self._exposed_by(exposure, row_count(X)))
        return self

    def refine(
        self,
        X: Table,
        y: Column,
        epsilon: float,
        delta: float = 0.0,
        *,
        groups: Column | None = None,
        exposure: Column | None = None,
    ) -> Self:
        """Measure the rows of an earlier ``fit`` or ``update`` again, with this further budget.

        ``guarantee_`` then states the total, which counts for all of these people. At public inputs,
        what is measured is planned knowing the release so far: it looks closer where that is least
        certain. Private records must be those of an earlier measurement, which cannot be checked.
        """
        self._check_given(X, y, groups, exposure)
        X, y, groups, exposure = columns_to_fit(self, X, y, groups, exposure_of(X, exposure))
        exposed = self._exposed_by(exposure, row_count(X))
        measure_again(self, X, y, epsilon, delta, groups, exposed)
        return self

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

        Laplace noise loses information when it is split and Gaussian noise does not: the noise
        distribution is chosen for all stages together. Reads no output and spends nothing.
        """
        given = {} if exposure is None else {"exposure": exposure}
        return stages(self, X, shares, groups, **given)

    def predict(
        self,
        X: Table,
        *,
        return_std: bool = False,
        return_cov: bool = False,
        observation: bool = False,
    ) -> Any:
        """The released function anywhere: deterministic, free, any number of times.

        ``return_std`` and ``return_cov`` describe the latent function, privacy noise included;
        ``observation`` adds the variance of an output about it (near the bounds no more than outputs
        between them can have).
        """
        if return_std and return_cov:
            raise ValueError("ask for return_std or return_cov, not both.")
        check_is_fitted(self)
        at = rows_at(self, X)
        if self._each:
            asked = {"return_std": return_std, "return_cov": return_cov}
            X = at if self.inputs_ is None else X
            return predicted(self, X, **asked, observation=observation)
        X = at
        with one_thread():
            if return_cov:
                mean, covariance = self.release_.mean_and_covariance(X)
                if observation:
                    latent = np.diag(covariance).copy()
                    np.fill_diagonal(covariance, self._observed(mean, latent))
                return mean, covariance
            mean, variance = self.release_.mean_and_variance(X)
        if observation:
            variance = self._observed(mean, variance)
        return (mean, np.sqrt(variance)) if return_std else mean

    def interval(
        self, X: Table, coverage: float = 0.9, *, observation: bool = False
    ) -> tuple[Array, Array]:
        """The ends (low, high), at every row of X, of an interval that holds the function with this
        probability; with ``observation``, a new output.

        They are quantiles of the mixture of models that was learned, so they need not lie evenly
        about the mean. Free, like ``predict``.
        """
        check_is_fitted(self)
        levels = check_coverage(coverage)
        at = rows_at(self, X)
        if self._each:
            return intervals(self, at if self.inputs_ is None else X, coverage, observation)
        X = at
        ends = np.empty((2, len(X)))
        with one_thread():
            for first in range(0, len(X), INTERVAL_ROWS):
                rows = slice(first, first + INTERVAL_ROWS)
                ends[:, rows] = self._quantiles(self.release_.mixture(X[rows]), levels, observation)
        return ends[0], ends[1]

    def _quantiles(self, mixture: Any, levels: Sequence[float], observation: bool) -> Array:
        """Of the function, or of outputs: both lie within their bounds.

        An unbiased release may lie beyond them, and so may its intervals; rates are no outputs.
        """
        low, high = check_bounds("y_bounds", self.y_bounds)
        mixture = mixture.of_outputs(low, high) if observation else mixture
        if self._at_targets is not None or self.likelihood == "poisson":
            return np.asarray(mixture.quantiles(levels))
        if observation:  # clipped, so that many may lie on a bound
            return np.asarray(np.clip(mixture.quantiles(levels), low, high))
        return np.asarray(mixture.quantiles_within(levels, low, high))

    def _observed(self, mean: Array, variance: Array) -> Array:
        """The variance of an output: at most (mean - low)(high - mean), as values in bounds have."""
        if self.likelihood == "poisson":  # at one unit of exposure, whatever bounds the counts have
            return variance + self.noise_variance_ * mean
        low, high = check_bounds("y_bounds", self.y_bounds)
        most = (mean - low) * (high - mean)
        return np.maximum(variance, np.minimum(variance + self.noise_variance_, most))

    def plot(
        self,
        ax: Any = None,
        *,
        figure: Any = None,
        output: str | None = None,
        observation: bool = False,
        points: Any = None,
    ) -> Any:
        """The released curve, map or slices as a figure; see privgp.models.picture.

        ``output``: its name on the picture; None: as ``name_output`` said. ``points``: rows to mark.
        """
        from privgp.models.picture import on_paper, released_model
        from privgp.pictures.curves import plot_released

        check_is_fitted(self)
        if self._each:
            return plot_several(self, ax, figure, observation, points)
        output = self._called("output") if output is None else output
        released = on_paper(self, released_model(self, output, observation), points)
        return plot_released(released, ax, figure)

    def __sklearn_clone__(self) -> Self:
        """As scikit-learn does it, but for a client of a cluster, of which there are no copies."""
        given = self.get_params(deep=False)
        copied = {
            name: clone(value, safe=False) for name, value in given.items() if name != "engine"
        }
        return type(self)(**copied, engine=self.engine)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = are_several(self.y_bounds)
        tags.target_tags.single_output = not tags.target_tags.multi_output
        return tags

    def _plan(
        self,
        X: Any,
        groups: Any,
        ranked: bool = False,
        exposure: Any = None,
        earlier: Any = None,
    ) -> Any:
        """``earlier``: what was measured before, if anything."""
        check_exposed(self, exposure)
        if are_several(self.y_bounds):
            if self.protect == "records":
                return plan_several(self, private_count(self, X, groups))
            exposed = self._exposed_by(exposure, len(X))
            return plan_several(self, public_rows(self, X, groups, exposed))
        if self.protect == "records":
            return plan_records(self, X, groups, earlier)
        if streams(self, len(X)) and not ranked and earlier is None:
            return plan_rows(self, array_rows(self, X, groups))
        question = self._question(X.shape[1], ranked=ranked)
        # Only the other objectives have matrices so large that threads do more than wait.
        people, exposure = person_ids(groups, len(X)), self._exposure(exposure, len(X))
        if exposure is not None:
            unit = None if earlier is None else earlier.unit
            question = replace(question, exposures=Exposures.of(exposure, question.y_bounds, unit))
        with one_thread() if question.objective == "posterior" else threads_for(len(X)):
            plan = make_plan(X, question, self._budget(), people, earlier)
        return plan if ranked else bound(self, plan, PublicRows.of(X, people, exposure))

    def _plan_for(self, rows: PublicRows, groups: Any, plan: Any) -> Plan:
        """A new plan for these rows, or the given one if it was made for them."""
        if plan is None:
            inputs = rows.count if rows.inputs is None else rows.inputs
            made: Plan = self._plan(inputs, groups, exposure=rows.exposure)
            return made
        self._question(rows.columns)
        return accepted(self, plan, rows)

    def _sketch(self, rows: Rows) -> Sketch:
        """What is measured of a row, for rows in memory or in a file."""
        question = self._question(rows.columns)
        asked = self._parameters(rows.columns).inducing
        given = None if asked is None else inducing_inputs(asked, rows.columns)
        with one_thread():
            return sketch_plan(rows, question, self._budget(), given, engine_of(self.engine))

    def _exposed_by(self, exposure: Any, rows: int) -> dict[int, Array]:
        """The exposure of every row by the place of the output, which is one for all."""
        each = self._exposure(exposure, rows)
        count = len(self.y_bounds) if are_several(self.y_bounds) else 1
        return {} if each is None else dict.fromkeys(range(count), each)

    def _alone(self) -> tuple[Self, ...]:
        """An unfitted model of every output alone, with the whole budget."""
        check_unused(self, ("objective", "reconstruct", "most_rows"), "several outputs")
        bounds = output_bounds(self.y_bounds, least=2)
        checked_shares(self.shares, len(bounds))
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

    def _answers(self, X: Any, coverage: float, observation: bool) -> dict[str, Array]:
        """What a table of predictions holds of this output, by the names of its columns."""
        mean, std = self.predict(X, return_std=True, observation=observation)
        low, high = self.interval(X, coverage, observation=observation)
        return {"mean": mean, "std": std, "low": low, "high": high}

    def _classes(self) -> None:
        """Outputs are numbers."""
        return None

    def _streams(self, rows: int) -> bool:
        return streams(self, rows)

    def _pictured(self, output: str, observation: bool) -> Any:
        """What a picture among those of several outcomes shows."""
        from privgp.models.picture import released_model

        return released_model(self, output, observation)

    def _part_contents(self) -> OutputContents:
        """What a file of several outcomes holds of this one."""
        return OutputContents(
            measurement=self._as_one[0],
            functionals=self.functionals_,
            models=self._models,
            noise_variance=self.noise_variance_,
            unit_rate=self.plan_.unit,
            spent=self._spent,
        )

    def _exposure(self, exposure: Any, rows: int) -> Array | None:
        """The exposure of every row where outputs are counts."""
        check_exposed(self, exposure)
        return checked_exposure(exposure, rows) if self.likelihood == "poisson" else None

    def _checked(self, y: Any, rows: int) -> Any:
        """Outputs of a further measurement, to be handed to the vault: of several, the columns."""
        if not self._each:
            return checked_outputs(y, rows)
        check_names(self, column_names(y))
        return split_columns(y, rows, len(self._each))

    def _made_up(self, rows: int) -> Array:
        """Outputs to rehearse with, in the middle of their bounds."""
        low, high = np.array(self.y_bounds, dtype=float).T
        return np.full((rows, *np.shape(low)), 0.5 * low + 0.5 * high)

    def _parameters(self, columns: int) -> Parameters:
        return Parameters.of(self.get_params(deep=False) | located(self), columns)

    def _question(self, columns: int, ranked: bool = False) -> Question:
        """The parameters, checked, for this many input columns."""
        check_budget(self.epsilon, self.delta, pure=True)
        bounds = check_bounds("y_bounds", self.y_bounds)
        if self.shares is not None:
            raise ValueError("shares is for several outputs: give y_bounds one pair per output.")
        check_choice("objective", self.objective, OBJECTIVES)
        check_choice("reconstruct", self.reconstruct, RECONSTRUCTIONS)
        check_choice("mechanism", self.mechanism, MECHANISMS)
        check_choice("hyperparameters", self.hyperparameters, ("learned", "fixed"))
        check_likelihood(self, bounds)
        if self.noise_variance is not None and not isinstance(self.noise_variance, Real):
            raise ValueError("noise_variance must be a number or None.")
        check_protect(self)
        # "posterior" is the default objective; the unbiased output has none of its own kind.
        unbiased = self.reconstruct == "unbiased"
        objective = "trace" if unbiased and self.objective == "posterior" else self.objective
        linear = objective != "posterior"
        if self.mechanism in PURE and linear:
            raise ValueError(f"mechanism={self.mechanism!r} goes with objective='posterior'.")
        pure = not linear and self.mechanism in ("auto", *PURE)
        check_budget(self.epsilon, self.delta, pure=pure)
        return Question(
            y_bounds=bounds,
            kernel=self.kernel,
            noise_variance=self.noise_variance,
            targets=target_points(located(self).get("targets", self.targets), columns),
            objective=objective,
            reconstruct=self.reconstruct,
            learned=self.hyperparameters == "learned",
            mechanism=self.mechanism,
            ranked=ranked,
            max_change=check_change(self.max_change, self.protect),
            squares=self.likelihood != "poisson",
            exposures=record_exposures(self, bounds),
            inputs=self.inputs_,
            inducing=self._parameters(columns).inducing,
        )

    def _release(
        self,
        plan: Plan,
        measurement: Measurement,
        models: tuple[Hyperparameters, ...] = (),
        further: Further = FIRST,
    ) -> None:
        """All that follows from a measurement: post-processing. ``models``: given, not learned;
        ``further``: the measurements that it is added to."""
        if further.before and self.hyperparameters == "fixed":
            models = self._models
        (measurement,) = self._note(plan, plan.kind.counted(plan, measurement), 1, further)
        for several in ("_each", "output_names_"):
            self.__dict__.pop(several, None)
        centre = 0.5 * plan.y_bounds[0] + 0.5 * plan.y_bounds[1]
        with one_thread():  # the nodes' matrices are small
            (functionals,), priors = measured_functions(plan, (measurement,))
            self.functionals_ = functionals
            if plan.unbiased is not None:
                at_targets = laid_out(AtTargets.of(plan, measurement, centre))
                self._answer_by(at_targets, (plan.start,), at_targets)
                return
            learning = learn if plan.unit is None else learn_rates
            if not models and self.hyperparameters == "learned":
                models = learning(functionals, measurement, priors)
            models = models or (plan.start,)
            answer = answer_to(self.functionals_, measurement, models, centre, plan.unit)
            self._answer_by(answer, models)

    def _contents(self, parts: dict[str, Any]) -> Contents:
        """What a file of this model holds, ``parts`` of which every model has."""
        return Contents(
            measurement=self._as_one[0],
            spent=self._spent,
            models=self._models,
            at_targets=self._at_targets,
            noise_variance=self.noise_variance_,
            unit_rate=self.plan_.unit,
            **parts,
        )

    def _answer_from(self, held: Contents | OutputContents) -> None:
        """Answer as the model did whose file held this."""
        self._hold(held.spent, (held.measurement,))
        low, high = check_bounds("bounds", self.y_bounds)
        numbers = held.functionals, held.measurement, held.models
        release = held.at_targets or answer_to(*numbers, 0.5 * low + 0.5 * high, held.unit_rate)
        self._answer_by(release, held.models, held.at_targets)
        self.noise_variance_ = held.noise_variance

    def _answer_by(
        self,
        release: Release,
        models: tuple[Hyperparameters, ...],
        at_targets: AtTargets | None = None,
    ) -> None:
        """``at_targets``: the release, if it answers at the targets alone."""
        self.release_, self._models, self._at_targets = release, models, at_targets
        self.kernel_ = models[0].kernel
        self.input_map_ = models[0].input_map
        self.noise_variance_ = release.noise_variance
