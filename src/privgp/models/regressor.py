"""PrivateGPRegressor: a scikit-learn regressor that spends its budget once, in ``fit``."""

from __future__ import annotations

import os
import warnings
from copy import deepcopy
from datetime import UTC, datetime
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags, check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from privgp.gp.learning import learn
from privgp.gp.measurement import Measurement
from privgp.gp.posterior import posterior
from privgp.gp.priors import Hyperparameters
from privgp.gp.threads import laid_out, one_thread, threads_for
from privgp.models.inducing import fit_rows, plan_rows
from privgp.models.planned import PublicRows, accepted, bound, named, names_of
from privgp.models.promise import facts_of, outputs_guarantee, simulation
from privgp.models.records import fit_records, plan_records
from privgp.models.spending import SpendsAtFit
from privgp.plan.build import Budget, Question, make_plan
from privgp.plan.inputs.arguments import check_bounds, check_choice, inducing_inputs, target_points
from privgp.plan.inputs.rows import ArrayRows, Rows
from privgp.plan.parameters import MECHANISMS, OBJECTIVES, RECONSTRUCTIONS
from privgp.plan.streamed.sketch import Sketch, sketch_plan
from privgp.privacy.budget import check_budget
from privgp.privacy.noise import PURE
from privgp.release.at_targets import AtTargets, Release
from privgp.release.certificate import core, utc
from privgp.types import Array
from privgp.vault.measure import measure
from privgp.vault.people import person_ids
from privgp.vault.stream import with_outputs
from privgp.vault.validate import checked_outputs


class PrivateGPRegressor(SpendsAtFit, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Gaussian-process regression of private outputs, (epsilon, delta)-private.

    Parameters
    ----------
    kernel : scikit-learn kernel or None
        RBF, Matern, RationalQuadratic, ExpSineSquared, ConstantKernel, their sums and products, in
        units of X and squared units of y. Its values centre the priors of what is learned; what it
        fixes stays. None: Matern 5/2 with scales from the public X and bounds, plus a constant.
    noise_variance : float or None
        Variance of an output about the function (or a WhiteKernel in the kernel's top-level sum).
    y_bounds : (low, high)
        Public bounds of the outputs, chosen without looking at them. Values outside are clipped.
    x_bounds : (low, high), or one such pair per input
        Public bounds of the inputs, for ``protect="records"``. Inputs outside are moved to them.
    epsilon, delta : float
        The budget that one ``fit`` spends.
    protect : "outputs" or "records"
        What is private: the outputs, or inputs and outputs.
    targets : array or None
        Where the release should be accurate; None: at the rows of X.
    objective : "posterior", "trace", "max" or "logdet"
        What the measurement makes least: the error of the posterior, or the mean, largest or
        geometric-mean variance of the noise at the targets.
    reconstruct : "posterior" or "unbiased"
        The posterior predicts anywhere. "unbiased" is the papers' output, the non-private
        prediction plus noise, at the targets only; its objective is "trace" unless given.
    hyperparameters : "learned" or "fixed"
        Learned from the private measurement at no cost and averaged over, or as given.
    inducing : int, array of points or None
        For many rows: so many inducing inputs, chosen from X, or these. Rows are then read in
        blocks and nothing grows with their number. None: exact.
    mechanism : "auto", or a noise distribution: "gaussian" or "laplace"
        "auto" takes whichever the plan expects the least error from: Laplace
        noise on sums over groups of inputs, which needs no delta at all, or Gaussian noise on
        weighted sums of everything.
    random_state : int, RandomState or None
        For simulations only: reproducible, ordinary noise, and a guarantee that says so.
        None: the noise that protects.

    Attributes
    ----------
    guarantee_, plan_, measurements_, kernel_, noise_variance_ : what was promised, planned and
        measured, the most plausible kernel (on the inputs as its ``input_map_`` maps them), and the
        expected noise variance. None of them holds a private value. ``plan_summary_`` and
        ``released_at_`` tell the plan in words and the time of the fit; a loaded model has no ``plan_``.

    """

    def __init__(
        self,
        kernel: Any = None,
        noise_variance: float | None = None,
        *,
        y_bounds: Any = None,
        x_bounds: Any = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        protect: str = "outputs",
        targets: Any = None,
        objective: str = "posterior",
        reconstruct: str = "posterior",
        hyperparameters: str = "learned",
        inducing: Any = None,
        mechanism: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.noise_variance = noise_variance
        self.y_bounds = y_bounds
        self.x_bounds = x_bounds
        self.epsilon = epsilon
        self.delta = delta
        self.protect = protect
        self.targets = targets
        self.objective = objective
        self.reconstruct = reconstruct
        self.hyperparameters = hyperparameters
        self.inducing = inducing
        self.mechanism = mechanism
        self.random_state = random_state

    def plan(self, X: Any, groups: Any = None) -> Any:
        """What a ``fit`` on these inputs would measure and how accurate it would be. Spends nothing.

        With ``protect="records"`` X may be the number of records: nothing else of it is used.
        """
        names = names_of(getattr(X, "columns", None))
        if self.protect != "records":
            X = check_array(X, dtype=np.float64, estimator=self)
        return named(self._plan(X, groups), names)

    def fit(self, X: Any, y: Any, groups: Any = None, plan: Any = None) -> Self:
        """Measure once, with noise, and learn from the measurement. The only call that spends.

        ``groups``: public person identifiers; all rows of one person are protected together.
        ``plan``: what ``plan(X, groups)`` returned, which is then measured and not made again. A plan
        made for anything else is refused before anything is spent.
        """
        if y is None:
            raise ValueError(
                "This PrivateGPRegressor estimator requires y to be passed, but the target y is None."
            )
        if self.protect == "records":
            fit_records(self, X, y, groups, plan)
            return self
        X = validate_data(self, X, dtype=np.float64)
        y = checked_outputs(y, len(X))
        if self.inducing is not None:
            rows = ArrayRows(X)
            fit_rows(self, rows, with_outputs(rows.blocks(), y), groups, plan)
            return self
        if plan is None:
            plan = self._plan(X, groups)
        else:
            self._question(X.shape[1])
            plan = accepted(self, plan, PublicRows.of(X, person_ids(groups, len(X))))
        measurement = measure(y, plan.y_bounds, plan.strategy, plan.noise, simulation(self))
        del y
        self._release(plan, measurement)
        return self

    def predict(
        self,
        X: Any,
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
        X = validate_data(self, X, reset=False, dtype=np.float64)
        if return_cov:
            with one_thread():
                mean, covariance = self.release_.mean_and_covariance(X)
            if observation:
                latent = np.diag(covariance).copy()
                np.fill_diagonal(covariance, self._observed(mean, latent))
            return mean, covariance
        with one_thread():
            mean, variance = self.release_.mean_and_variance(X)
        if observation:
            variance = self._observed(mean, variance)
        return (mean, np.sqrt(variance)) if return_std else mean

    def _observed(self, mean: Array, variance: Array) -> Array:
        """The variance of an output: with the noise's, but never more than bounded values can have.

        Values between lo and hi with this mean have variance at most (mean - lo)(hi - mean).
        """
        low, high = check_bounds("y_bounds", self.y_bounds)
        most = (mean - low) * (high - mean)
        return np.maximum(variance, np.minimum(variance + self.noise_variance_, most))

    def plot(
        self,
        ax: Any = None,
        *,
        figure: Any = None,
        output: str = "output",
        observation: bool = False,
    ) -> Any:
        """The released curve, map or slices as a figure; see privgp.models.picture."""
        from privgp.models.picture import released_model
        from privgp.pictures.curves import plot_released

        check_is_fitted(self)
        return plot_released(released_model(self, output, observation), ax, figure)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the release to a .privgp file, which holds no output; see privgp.load.

        Under ``protect="outputs"`` it holds inputs, which a warning says.
        """
        from privgp.models.load import notice, save

        save(self, path, overwrite=overwrite)
        if self.protect == "outputs":
            warnings.warn(notice(self), UserWarning, stacklevel=2)

    @property
    def plan_summary_(self) -> str:
        """What the plan said of itself; also where only a file is left of it."""
        loaded = vars(self).get("loaded_")
        return str(self.plan_.summary() if loaded is None else loaded.plan_summary)

    def _certified(self) -> dict[str, Any]:
        """What a certificate says before its holder adds to it; a copy."""
        loaded = vars(self).get("loaded_")
        return core(facts_of(self)) if loaded is None else deepcopy(loaded.certificate)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

    def _plan(self, X: Any, groups: Any, ranked: bool = False) -> Any:
        if self.protect == "records":
            self._question(1)
            return plan_records(self, X, groups)
        if self.inducing is not None:
            return plan_rows(self, ArrayRows(X), groups)
        question = self._question(X.shape[1], ranked)
        budget = Budget(float(self.epsilon), float(self.delta))
        # Only the other objectives have matrices so large that threads do more than wait.
        people = person_ids(groups, len(X))
        with one_thread() if question.objective == "posterior" else threads_for(len(X)):
            plan = make_plan(X, question, budget, people)
        return plan if ranked else bound(self, plan, PublicRows.of(X, people))

    def _sketch(self, rows: Rows, groups: Any) -> Sketch:
        """What is measured of a row, with inducing inputs, for rows in memory or in a file."""
        question = self._question(rows.columns)
        if groups is not None:
            raise ValueError(
                "groups do not go with inducing: leave inducing=None, which holds all rows at once."
            )
        given = inducing_inputs(self.inducing, rows.columns)
        budget = Budget(float(self.epsilon), float(self.delta))
        with one_thread():
            return sketch_plan(rows, question, budget, given)

    def _question(self, columns: int, ranked: bool = False) -> Question:
        """The parameters, checked."""
        check_budget(self.epsilon, self.delta, pure=True)
        bounds = check_bounds("y_bounds", self.y_bounds)
        check_choice("protect", self.protect, ("outputs", "records"))
        check_choice("objective", self.objective, OBJECTIVES)
        check_choice("reconstruct", self.reconstruct, RECONSTRUCTIONS)
        check_choice("mechanism", self.mechanism, MECHANISMS)
        check_choice("hyperparameters", self.hyperparameters, ("learned", "fixed"))
        records = self.protect == "records"
        if records and self.inducing is not None:
            raise ValueError(
                "protect='records' measures bins, whose number does not grow with the rows: "
                "leave inducing=None."
            )
        if self.noise_variance is not None and not isinstance(self.noise_variance, Real):
            raise ValueError("noise_variance must be a number or None.")
        # "posterior" is the default objective; the unbiased output has none of its own kind.
        unbiased = self.reconstruct == "unbiased"
        objective = "trace" if unbiased and self.objective == "posterior" else self.objective
        mixed = objective != "posterior" or self.inducing is not None
        if self.mechanism in PURE and mixed:
            raise ValueError(
                f"mechanism={self.mechanism!r} goes with objective='posterior', without inducing "
                "inputs."
            )
        pure = not mixed and self.mechanism in ("auto", *PURE)
        check_budget(self.epsilon, self.delta, pure=pure)
        return Question(
            y_bounds=bounds,
            kernel=self.kernel,
            noise_variance=self.noise_variance,
            targets=None if records else target_points(self.targets, columns),
            objective=objective,
            reconstruct=self.reconstruct,
            learned=self.hyperparameters == "learned",
            mechanism=self.mechanism,
            ranked=ranked,
        )

    def _release(
        self, plan: Any, measurement: Measurement, models: tuple[Hyperparameters, ...] = ()
    ) -> None:
        """All that follows from a measurement: post-processing. ``models``: given, not learned."""
        self.guarantee_ = outputs_guarantee(plan, simulated=self.random_state is not None)
        self.plan_ = plan
        self.functionals_ = laid_out(plan.functionals)
        self.measurements_ = (measurement,)
        self.released_at_ = utc(datetime.now(UTC))
        self.__dict__.pop("loaded_", None)  # what came from a file is no longer what was released
        self.__dict__.pop("chosen_by_", None)
        centre = 0.5 * plan.y_bounds[0] + 0.5 * plan.y_bounds[1]
        if plan.unbiased is not None:
            models = (plan.start,)
            self.release_: Release = laid_out(AtTargets.of(plan, measurement, centre))
        else:
            if not models and self.hyperparameters == "learned":
                with one_thread():  # the nodes' matrices are small
                    models = learn(plan.functionals, measurement, plan.priors)
            models = models or (plan.start,)
            with one_thread():
                self.release_ = posterior(self.functionals_, measurement, models, centre)
        self.kernel_ = models[0].kernel
        self.input_map_ = models[0].input_map
        self.noise_variance_ = self.release_.noise_variance
