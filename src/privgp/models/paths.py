"""PosteriorPaths: sample paths of a posterior, whole records private, kept by the curator."""

import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import validate_data

from privgp.ledger.account import Account
from privgp.models.kept import KeptEstimator, names_of
from privgp.models.rows.tables import numbers_only
from privgp.plan.functions.paths import NOISE, Calibration, PathModel, check_count, path_model
from privgp.plan.search.folds import Trial
from privgp.privacy.guarantee import Guarantee
from privgp.release.excursions import Excursion, check_vote, smooth_paths
from privgp.types import Array, Bounds, Column, Pair, RandomState, Table
from privgp.vault.states.files import PATHS
from privgp.vault.states.kept import Kept
from privgp.vault.states.paths import PathContents, first_path_draws
from privgp.vault.validate import seal_inputs, seal_outputs


@dataclass(eq=False, repr=False)
class PosteriorPaths(KeptEstimator):
    """Paths drawn from the posterior of private records: the draw itself is what hides them.

    They are drawn where they are asked for: the curator keeps the records. Answers may be published.

    Parameters
    ----------
    kernel : scikit-learn kernel, in units of X and squared units of y, fixed.
    noise_variance : variance of an output about the function (None: the kernel's WhiteKernel).
        Divided by the kernel's variance it is r^2, the regularisation that privacy rests on.
    domain : (low, high), or one such pair per input; inputs are projected, questions refused.
    y_bounds : (low, high), public bounds of the outputs; outputs outside are clipped.
    n_paths : how many paths; each costs.
    extra_noise : std of Gaussian-process noise with the same kernel, added to every path.
    delta : the promise is (epsilon, delta), epsilon follows from the rest.
    sensitivity : "auto", the least proved bound; "paper", the paper's bounds throughout; or
        ("function", norm), which assumes that all outputs are one function of that norm.
    max_points : the most points ever asked; the noise that hides rounding errors grows with it.
    ledger : the Account of these data, which every fit charges for all answers; None: none.
    random_state : for simulations only: repeatable paths, and a guarantee that states this.

    Attributes
    ----------
    guarantee_ : what is promised, for all paths and points together.
    sensitivity_ : the bound of how far one record moves the posterior mean, in units of y.
    nugget_std_ : std of the independent noise of every value, in units of y.

    """

    _CODEC = PATHS

    kernel: Kernel
    noise_variance: float | None
    _: KW_ONLY
    domain: Bounds
    y_bounds: Sequence[float] | None
    n_paths: int = 1
    extra_noise: float = 0.0
    delta: float
    sensitivity: str | float = "auto"
    max_points: int = 2000
    ledger: Account | None = None
    random_state: RandomState = None

    def guarantee_for(self, n: int) -> Guarantee:
        """What paths of n records would promise. Needs no data."""
        model = self._model()
        return model.guarantee(check_count(n), simulated=self.random_state is not None)

    def calibrate(self, epsilon: float, n: int, *, by: str = NOISE) -> Calibration:
        """The least noise with which paths of n records are epsilon-private, without data: the
        least noise variance, or ``by="extra_noise"`` the least of that at the one given."""
        return self._model().calibrate_noise(epsilon, check_count(n), by)

    def fit(self, X: Table, y: Column, *, state: str | os.PathLike[str] | None = None) -> Self:
        """Take the records; the first release spends the budget, and every fit has its own.
        ``state``: a new ``.private-state`` file that keeps every draw before its answer is given."""
        tried, seed = self._prepare(X, y, state)
        model = self._model()
        inputs = seal_inputs(X, len(model.domain))
        outputs = seal_outputs(y, len(inputs))
        validate_data(tried, X, skip_check_array=True)  # remembers the names of the columns
        n = check_count(len(inputs))
        promised = model.guarantee(n, simulated=seed is not None)
        known = promised, names_of(tried), model
        self._publish(
            promised,
            lambda: Kept.new(
                PathContents(*known, first_path_draws(inputs, outputs, model, seed)), PATHS, state
            ),
            self._take,
            rows=n,
        )
        return self

    def release(self, X_new: Table) -> Array:
        """The paths at these points, (paths, points), always the same; kept before returned."""
        return self._ask(X_new).T

    def excursion(
        self, X_new: Table, threshold: float, *, vote: float = 0.5, smoothing: float | None = None
    ) -> Excursion:
        """Where the function is at least ``threshold``, by a vote of the paths at these points,
        each smoothed by a Gaussian filter of std ``smoothing``, in units of X. Costs nothing."""
        check_vote(threshold, vote, smoothing)
        paths = self.release(X_new)
        numbers_only(self, X_new)
        points = validate_data(self, X_new, reset=False, dtype=np.float64)
        if smoothing is not None:
            paths = smooth_paths(points, paths, smoothing)
        names = names_of(self)
        return Excursion(points, float(threshold), float(vote), paths, names, self.guarantee_)

    def _with_budget(self, epsilon: float, delta: float, rows: int) -> Self:
        """An unfitted copy that spends at most this budget: its noise variance is raised if necessary."""
        made: Self = clone(self).set_params(delta=delta)
        if made.guarantee_for(rows).epsilon > epsilon:
            made.set_params(noise_variance=made.calibrate(epsilon, rows).noise_variance)
        return made

    def _domain(self) -> tuple[Pair, ...]:
        return self._model().domain

    def _trial(self, X: Array | None, rows: int) -> Trial:
        """A draw of the posterior, with its extra noise."""
        model = self._model()
        known = model.kernel, model.noise_variance, model.y_bounds
        return Trial(*known, added=model.extra_noise**2, is_draw=True)

    def _model(self) -> PathModel:
        return path_model(self.get_params(deep=False))

    def _take(self, kept: Kept) -> None:
        super()._take(kept)
        model, records = kept.contents.model, len(kept.contents.draws.outputs)
        self.sensitivity_ = model.mean_sensitivity(records).value
        self.nugget_std_ = model.nugget_std(records)
