"""PrivateFunction: the posterior mean as one noisy function, at any points, kept by the curator."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from privgp.gp.kernels.evaluate import variance
from privgp.models.function.common import parameters, shown
from privgp.models.function.outputs import fit_outputs
from privgp.models.function.records import fit_records
from privgp.models.spending import SpendsAtFit
from privgp.plan.inputs.arguments import check_choice
from privgp.storage.state_file import check_new
from privgp.types import Array
from privgp.vault.states.files import keep_function, load_function
from privgp.vault.states.kept_functions import KeptFunction


class PrivateFunction(SpendsAtFit, BaseEstimator):  # type: ignore[misc]
    """One (epsilon, delta)-private function over the whole space: ``f + c Delta G``, G ~ GP(0, k).

    It is drawn lazily, where it is asked for, so it needs the private outputs as long as it is
    asked: unlike a ``.privgp`` file it stays with the curator. Answers may be published.

    Parameters
    ----------
    kernel : scikit-learn kernel, in units of X and squared units of y, fixed.
    noise_variance : variance of an output about the function (None: the kernel's WhiteKernel).
    y_bounds : (low, high), public bounds of the outputs, chosen without looking at them.
    epsilon, delta : the budget of the function, spent once for all points.
    sensitivity : "exact", or bounds that cost more noise: the papers' "infinity" and "nonnegative",
        and "varah", Varah's for kernel matrices with a dominant diagonal.
    dominance : declared least value of ``K_ii - sum |K_ij|``: with it the noise of "varah" depends
        on no input. None: that of X.
    inducing : a number of inducing inputs, chosen from X, or an array of them: the function is then
        that many numbers, and any number of points is free. None: at most 20,000 points.
    protect : "outputs" (X is public), or "records": inputs private too, at most 4,000 points.
    domain : with records, (low, high) of the inputs, or one pair per input, declared; questions
        outside are refused.
    random_state : for simulations only: ordinary noise, and a guarantee that says so.

    Attributes
    ----------
    sensitivity_ : d times the bound of the norm; ``noise_std_`` : std of the noise at a point, in
        units of y; ``guarantee_`` : what is promised, for all points together.

    """

    _kept: KeptFunction

    def __init__(
        self,
        kernel: Any,
        noise_variance: float | None,
        *,
        y_bounds: Any,
        epsilon: float,
        delta: float,
        sensitivity: str = "exact",
        dominance: float | None = None,
        inducing: Any = None,
        protect: str = "outputs",
        domain: Any = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.noise_variance = noise_variance
        self.y_bounds = y_bounds
        self.epsilon = epsilon
        self.delta = delta
        self.sensitivity = sensitivity
        self.dominance = dominance
        self.inducing = inducing
        self.protect = protect
        self.domain = domain
        self.random_state = random_state

    def fit(self, X: Any, y: Any, state: str | os.PathLike[str] | None = None) -> Self:
        """Take the data. The first release spends the budget, for all points there will ever be.

        ``state``: a new file, ending in ``.private-state``, in which every draw is kept before its
        answer is given. Every fit is another function, with a budget of its own.
        """
        if y is None:
            raise ValueError("PrivateFunction requires y to be passed, but the target y is None.")
        check_choice("protect", self.protect, ("outputs", "records"))
        if state is not None:
            check_new(state)
        columns = clone(self)  # a fit that is refused leaves the former function as it was
        seed = None
        if self.random_state is not None:
            seed = int(check_random_state(self.random_state).randint(2**31))
        fit = fit_records if self.protect == "records" else fit_outputs
        self._take(keep_function(fit(self, X, y, columns, seed), state))
        return self

    def release(self, X_new: Any) -> Array:
        """The function at these points, (points,), the same for ever; kept before it is returned."""
        check_is_fitted(self)
        return self._kept.ask(validate_data(self, X_new, reset=False, dtype=np.float64))

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """The function at a grid's points as a figure; see privgp.pictures.pictures.plot_function."""
        from privgp.pictures.pictures import plot_function

        check_is_fitted(self)
        return plot_function(shown(self._kept), ax, **options)

    def save_state(self, path: str | os.PathLike[str]) -> None:
        """Write the private state to a new ``.private-state`` file, and keep it up to date there."""
        check_is_fitted(self)
        self._kept.save(path)

    @classmethod
    def load_state(cls, path: str | os.PathLike[str]) -> Self:
        """Go on with the function of a state file, which is kept up to date."""
        kept = load_function(path)
        function = cls(**parameters(kept.contents))
        function._take(kept)
        return function

    @property
    def points_answered_(self) -> int:
        """How many points have an answer; through inducing inputs they are not counted."""
        return len(self._kept.contents.draws.points)

    @property
    def points_left_(self) -> float:
        """How many more may be asked for; infinite through inducing inputs."""
        unlimited = self._kept.contents.model.nodes is not None
        return np.inf if unlimited else self._kept.most - self.points_answered_

    def _take(self, kept: KeptFunction) -> None:
        """Become this function."""
        c = kept.contents
        self.n_features_in_ = c.model.columns
        self.__dict__.pop("feature_names_in_", None)
        if c.names is not None:
            self.feature_names_in_ = np.array(c.names, dtype=object)
        width = c.y_bounds[1] - c.y_bounds[0]
        self.sensitivity_ = width * c.norm
        self.noise_std_ = 0.5 * width * c.draws.noise.std * float(np.sqrt(variance(c.model.kernel)))
        self.guarantee_ = c.guarantee
        self._kept = kept

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_kept")

    def __getstate__(self) -> Any:
        if hasattr(self, "_kept"):
            raise TypeError(KeptFunction.COPIED)
        return super().__getstate__()
