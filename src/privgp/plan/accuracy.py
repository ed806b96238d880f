"""What plans have in common: the accuracy that a measurement will have, and how it is told."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from privgp.gp.functionals import Functionals
from privgp.gp.measurement import Measurement
from privgp.gp.posterior import Posterior, mean_map, posterior
from privgp.gp.priors import Hyperparameters, Prior
from privgp.plan.fingerprint import fingerprint
from privgp.plan.inputs.arguments import check_bounds
from privgp.plan.parameters import Parameters
from privgp.plan.strategy import Strategy, noise_of
from privgp.privacy.noise import LAPLACE, AnyNoise
from privgp.types import Array

PRIOR_DRAWS = 32
SAME_NOISE = 1e-9  # the order of sums may change the last digits
NOTICE = (
    "The file contains inputs: coordinates of the rows of X, or of inducing inputs, which count as "
    "public. It contains no output."
)


@dataclass(frozen=True)
class MadeFor:
    """What a plan was asked for.

    ``parameters``: of the regressor; ``names``: of the input columns; ``groups``: the name of the
    column of people. None where a name is not known.
    """

    parameters: Parameters
    names: tuple[str, ...] | None = None
    groups: str | None = None


@dataclass(frozen=True)
class Accuracy:
    """A measurement of functionals of f with noise, under priors of the hyperparameters.

    ``fingerprint``: of what it was made for, which ``fit`` compares; empty if not made by a model.
    ``made_for``: what it was asked for; None if not made by a model.
    """

    epsilon: float
    delta: float
    y_bounds: tuple[float, float]
    targets: Array = field(repr=False)
    functionals: Functionals = field(repr=False)
    noise: AnyNoise = field(repr=False)
    priors: tuple[Prior, ...] = field(repr=False)
    fingerprint: str = field(repr=False, default="", kw_only=True)
    made_for: MadeFor | None = field(repr=False, default=None, kw_only=True)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the whole plan, which the certificate of its release carries.

        The noise is left out, as it follows from the rest.
        """
        parts = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "noise"}
        return fingerprint(type(self).__name__, self._strategy.law, parts)

    @property
    def _strategy(self) -> Strategy:
        return self.strategy  # type: ignore[attr-defined,no-any-return]

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the plan to a .plan file that somebody can approve; see privgp.load_plan.

        It holds inputs where they are public, which a warning says.
        """
        from privgp.plan.file import save_plan

        save_plan(self, path, overwrite=overwrite)  # type: ignore[arg-type]
        if self.made_for is not None and self.made_for.parameters.protect == "outputs":
            warnings.warn(NOTICE, UserWarning, stacklevel=2)

    def with_noise_for(self, epsilon: float, delta: float) -> Self:
        """The plan with the noise that its strategy needs; refused if it holds other noise."""
        needed = noise_of(self._strategy, epsilon, delta)
        same = self.noise.law == needed.law and self.noise.size == needed.size
        if not same or not abs(self.noise.std - needed.std) <= SAME_NOISE * needed.std:
            raise ValueError("plan holds other noise than its budget asks for. Nothing was spent.")
        return self if self.noise == needed else replace(self, noise=needed)

    def check_parts(self) -> None:
        """Refuse parts that do not belong together, as only a file can have them."""
        check_bounds("bounds", self.y_bounds)
        columns, measured = self.functionals.nodes.shape[1], len(self.functionals.weights)
        made, asked = self.made_for, None if self.made_for is None else self.made_for.parameters
        if made is None or asked is None or not self.priors or self.epsilon != asked.epsilon:
            raise ValueError("plan does not say what it was made for.")
        asked.check_for(columns)
        public = asked.protect == "outputs"
        exact = public and asked.inducing is None
        domain = getattr(self, "x_bounds", None)
        if (self._strategy.distinct_inputs is None) == exact or (domain is None) != public:
            raise ValueError("plan measures something else than was asked for.")
        if (self.delta, self.y_bounds) != (asked.delta, asked.y_bounds):
            raise ValueError("plan is for another budget or other bounds than were asked for.")
        if made.names is not None and len(made.names) != columns:
            raise ValueError("names must be one per column.")
        if self.targets.shape != (len(self.targets), columns) or not len(self.targets):
            raise ValueError("targets must be points like the inputs.")
        if self._strategy.matrix.shape[0] != measured:
            raise ValueError("functionals are not those that are measured.")
        for prior in self.priors:
            prior.check_for(columns)

    @property
    def start(self) -> Hyperparameters:
        """The starting hyperparameters on the inputs as they are."""
        return self.priors[0].start

    @property
    def is_pure(self) -> bool:
        """Whether the release will be epsilon-private with delta = 0, whatever delta is offered."""
        return self.noise.law == LAPLACE

    @property
    def promised_delta(self) -> float:
        """The delta of the release: what was offered, or 0 where the noise needs none."""
        return 0.0 if self.is_pure else self.delta

    @property
    def budget(self) -> str:
        """What will be spent, in words."""
        pure = " (Laplace noise needs none)" if self.is_pure else ""
        return f"epsilon = {self.epsilon:g}, delta = {self.promised_delta:g}{pure}"

    @property
    def half_width(self) -> float:
        return 0.5 * self.y_bounds[1] - 0.5 * self.y_bounds[0]

    @property
    def measured_noise_std(self) -> float:
        """Std of the noise on every measured sum of outputs, in units of y."""
        return self._strategy.sum_std(self.noise.std) * self.half_width

    @cached_property
    def noise_std(self) -> Array:
        """Std at every target of the privacy noise in the posterior mean, under the starting
        hyperparameters."""
        rows = mean_map(self.functionals, self._nothing(), self.start, self.targets)
        return np.asarray(self.measured_noise_std * np.linalg.norm(rows, axis=1))

    def expected_std(self, X_new: Array, prior_range: float | None = None) -> Array:
        """Std of f about the release at new points, privacy noise included.

        Under the starting hyperparameters; with ``prior_range=0.9``, an array of two rows with the
        ends of that share of the prior's range of hyperparameters.
        """
        X_new, columns = np.asarray(X_new, dtype=float), self.functionals.nodes.shape[1]
        X_new = X_new[:, None] if X_new.ndim == 1 and columns == 1 else X_new
        if X_new.ndim != 2 or X_new.shape[1] != columns:
            raise ValueError(f"X_new must have {columns} columns.")
        if prior_range is None:
            return np.sqrt(self._prior_posterior(self.start).mean_and_variance(X_new)[1])
        if not 0 < prior_range < 1:
            raise ValueError(f"prior_range must lie between 0 and 1, got {prior_range}.")
        rng, prior = np.random.default_rng(0), self.priors[0]
        models = [prior.at(rng.standard_normal(prior.size)) for _ in range(PRIOR_DRAWS)]
        variances = [self._prior_posterior(m).mean_and_variance(X_new)[1] for m in models]
        tail = 0.5 * (1.0 - prior_range)
        return np.asarray(np.quantile(np.sqrt(variances), [tail, 1.0 - tail], axis=0))

    def plot(self, ax: Any = None) -> Any:
        """The error to expect against epsilon, as a figure; see privgp.plan.picture."""
        from privgp.plan.picture import plot_plan

        return plot_plan(self, ax)  # type: ignore[arg-type]

    def _nothing(self) -> Measurement:
        measured = len(self.functionals.weights)
        return Measurement(np.zeros(measured), self.measured_noise_std, None, 0.0)

    def _prior_posterior(self, model: Hyperparameters) -> Posterior:
        """The posterior that a measurement of exactly zero would give: its variances are exact."""
        return posterior(self.functionals, self._nothing(), [model], 0.0)
