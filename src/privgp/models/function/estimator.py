"""PrivateFunction: the posterior mean as one noisy function, at any points, kept by the curator."""

from __future__ import annotations

import os
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from privgp.gp.kernels.evaluate import variance
from privgp.models.function.first_state import fit_outputs, fit_records
from privgp.models.kept import KeptEstimator
from privgp.plan.inputs.arguments import check_choice
from privgp.types import Array
from privgp.vault.states.files import FUNCTIONS
from privgp.vault.states.kept import Kept


@dataclass(eq=False, repr=False)
class PrivateFunction(KeptEstimator):
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

    _CODEC = FUNCTIONS

    kernel: Any
    noise_variance: float | None
    _: KW_ONLY
    y_bounds: Any
    epsilon: float
    delta: float
    sensitivity: str = "exact"
    dominance: float | None = None
    inducing: Any = None
    protect: str = "outputs"
    domain: Any = None
    random_state: Any = None

    def fit(self, X: Any, y: Any, state: str | os.PathLike[str] | None = None) -> Self:
        """Take the data. The first release spends the budget, for all points there will ever be.

        ``state``: a new file, ending in ``.private-state``, in which every draw is kept before its
        answer is given. Every fit is another function, with a budget of its own.
        """
        tried, seed = self._prepared(y, state)
        check_choice("protect", self.protect, ("outputs", "records"))
        fit = fit_records if self.protect == "records" else fit_outputs
        self._take(Kept.new(fit(self, X, y, tried, seed), FUNCTIONS, state))
        return self

    def release(self, X_new: Any) -> Array:
        """The function at these points, (points,), the same for ever; kept before it is returned."""
        return self._ask(X_new)

    def plot(self, ax: Any = None, *, figure: Any = None, output: str = "output") -> Any:
        """The function at a grid's points as a figure; see privgp.models.picture."""
        from privgp.models.picture import released_function
        from privgp.pictures.curves import plot_released

        check_is_fitted(self)
        return plot_released(released_function(self._kept, output), ax, figure)

    def _take(self, kept: Kept) -> None:
        super()._take(kept)
        c: Any = kept.contents
        width = c.y_bounds[1] - c.y_bounds[0]
        self.sensitivity_ = width * c.norm
        self.noise_std_ = 0.5 * width * c.draws.noise.std * float(np.sqrt(variance(c.model.kernel)))
