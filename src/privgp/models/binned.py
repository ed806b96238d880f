"""BinnedMeans and BinnedGP: the papers' baselines, noisy means over bins, as regressors."""

from __future__ import annotations

import math
import operator
from numbers import Real
from typing import Any, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from privgp.models.arguments import check_bounds, check_choice
from privgp.models.bins_of_outputs import BinnedRelease, release_outputs
from privgp.models.bins_of_records import release_records
from privgp.plan.integral import integral_cross, integral_gram
from privgp.plan.kernels import check_kernel, evaluate, variance
from privgp.privacy.calibrate import check_budget
from privgp.release.reproducible import one_thread
from privgp.types import Array

MOST_BINS = 2**62


class _Binned(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """What both baselines do: measure once, over a regular grid of bins."""

    bins: Any
    y_bounds: Any
    x_bounds: Any
    epsilon: Any
    delta: Any
    noise: Any
    protect: Any
    random_state: Any

    def fit(self, X: Any, y: Any) -> Self:
        """Measure once, with noise. The only call that spends."""
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None."
            )
        check_budget(self.epsilon, self.delta)
        check_bounds("y_bounds", self.y_bounds)
        check_choice("noise", self.noise, ("laplace", "gaussian"))
        check_choice("protect", self.protect, ("outputs", "records"))
        if self.protect == "records":
            if self.noise != "gaussian":
                raise ValueError("noise must be 'gaussian' with protect='records'.")
            found = release_records(self, X, y)
        else:
            found = release_outputs(self, X, y)
        del X, y
        self.guarantee_ = found.guarantee
        self.counts_, self.means_ = found.counts, found.means
        self.noise_std_ = found.noise_std
        self.bin_low_, self.bin_high_ = found.grid.corners(found.bins)
        self._release = found
        self._learn(found)
        return self

    def _check(self, columns: int) -> None:
        """Refuse wrong arguments of the model itself, before anything is spent."""

    def _learn(self, found: BinnedRelease) -> None:
        """What follows from the measurement."""

    def _middle(self) -> float:
        low, high = check_bounds("y_bounds", self.y_bounds)
        return 0.5 * high + 0.5 * low

    def _shape(self, columns: int) -> tuple[int, ...]:
        """Bins per input, of a number for all or one for each."""
        self._check(columns)
        wanted = "bins must be a whole number of at least 1, or one for each input"
        try:
            given = [operator.index(k) for k in np.ravel(np.asarray(self.bins, dtype=object))]
        except TypeError:
            raise ValueError(f"{wanted}.") from None
        shape = tuple(given * columns if np.ndim(self.bins) == 0 else given)
        if len(shape) != columns or min(shape) < 1 or isinstance(self.bins, bool):
            raise ValueError(f"{wanted}; there are {columns} inputs.")
        if sum(math.log2(k) for k in shape) > math.log2(MOST_BINS):
            raise ValueError("bins are too many: use fewer per input.")
        return shape

    def _rng(self) -> np.random.Generator | None:
        if self.random_state is None:
            return None
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31))

    def _points(self, X: Any) -> Array:
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, reset=False, dtype=np.float64))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


class BinnedMeans(_Binned):
    """Noisy means over bins: every point gets the mean of its bin, of an empty one the middle.

    Parameters
    ----------
    bins : int, or one int per input
        Bins per input, between the x_bounds.
    y_bounds : (low, high), public bounds of the outputs; values outside are clipped.
    x_bounds : (low, high), or one such pair per input
        The box of the bins. None: that of the public X; required with ``protect="records"``.
    epsilon, delta : the budget of one ``fit``; Laplace noise leaves delta unspent.
    noise : "laplace" or "gaussian"
    protect : "outputs" (inputs and counts are public, as in the papers) or "records" (Gaussian only)
    random_state : for simulations only: ordinary noise, and a guarantee that says so.

    Attributes
    ----------
    guarantee_ : what was promised; ``bin_low_``, ``bin_high_`` : corners of the bins that have a
        mean; ``counts_``, ``means_``, ``noise_std_`` : rows, noisy mean and the noise's std in each.

    """

    def __init__(
        self,
        bins: Any = 10,
        *,
        y_bounds: Any = None,
        x_bounds: Any = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        noise: str = "laplace",
        protect: str = "outputs",
        random_state: Any = None,
    ) -> None:
        self.bins = bins
        self.y_bounds = y_bounds
        self.x_bounds = x_bounds
        self.epsilon = epsilon
        self.delta = delta
        self.noise = noise
        self.protect = protect
        self.random_state = random_state

    def predict(self, X: Any) -> Array:
        """The mean of the bin of every point; outside the box, of the nearest bin."""
        points = self._points(X)
        bins, asked = self._release.bins, self._release.grid.of(points)
        out = np.full(len(asked), self._middle())
        if len(bins):
            place = np.minimum(np.searchsorted(bins, asked), len(bins) - 1)
            there = bins[place] == asked
            out[there] = self.means_[place[there]]
        return out


class BinnedGP(_Binned):
    """A Gaussian process on noisy means over bins, with kernel and noise variance given.

    Parameters
    ----------
    kernel : scikit-learn kernel, in units of X and squared units of y, fixed. None: an RBF of
        lengthscale half the width of the box per input, and std a quarter of the bounds' width.
    noise_variance : variance of an output about the function. None: (0.15 of the bounds' width)^2.
    model : "integral" (a mean is the average of the function over its bin) or "centres" (its value
        at the centre).

    The others are those of BinnedMeans, and so are the attributes; ``kernel_``, ``noise_variance_``.

    """

    def __init__(
        self,
        kernel: Any = None,
        noise_variance: float | None = None,
        *,
        bins: Any = 10,
        model: str = "integral",
        y_bounds: Any = None,
        x_bounds: Any = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        noise: str = "laplace",
        protect: str = "outputs",
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.noise_variance = noise_variance
        self.bins = bins
        self.model = model
        self.y_bounds = y_bounds
        self.x_bounds = x_bounds
        self.epsilon = epsilon
        self.delta = delta
        self.noise = noise
        self.protect = protect
        self.random_state = random_state

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The posterior mean at every point, and the std of the function about it."""
        points = self._points(X)
        with one_thread():
            cross = self._cross(points)
            mean = self._middle() + cross @ self._weights
            if not return_std:
                return mean
            left = variance(self.kernel_)
            if self._factor is not None:
                left = left - np.einsum("ij,ji->i", cross, cho_solve(self._factor, cross.T))
        return mean, np.sqrt(np.maximum(np.broadcast_to(left, mean.shape), 0.0))

    def _check(self, columns: int) -> None:
        if self.kernel is not None:
            check_kernel(self.kernel, columns)
        check_choice("model", self.model, ("integral", "centres"))
        noise = self.noise_variance
        if noise is not None and not (isinstance(noise, Real) and 0 < noise < np.inf):
            raise ValueError("noise_variance must be a positive number or None.")

    def _learn(self, found: BinnedRelease) -> None:
        low, high = check_bounds("y_bounds", self.y_bounds)
        self.kernel_ = self.kernel
        if self.kernel is None:
            scales = 0.5 * (found.grid.high - found.grid.low)
            self.kernel_ = ConstantKernel((0.25 * (high - low)) ** 2) * RBF(scales)
        given = self.noise_variance
        self.noise_variance_ = float((0.15 * (high - low)) ** 2 if given is None else given)
        self._factor: Any = None
        if len(found.bins) == 0:
            self._weights = np.zeros(0)
            return
        spread = self.noise_variance_ / found.counts + found.noise_std**2
        with one_thread():
            K = self._gram() + np.diag(spread)
            self._factor = cho_factor(K, lower=True, check_finite=False)
            self._weights = cho_solve(self._factor, found.means - self._middle())

    def _gram(self) -> Array:
        if self.model == "integral":
            return integral_gram(self.kernel_, self.bin_low_, self.bin_high_)
        return evaluate(self.kernel_, 0.5 * self.bin_low_ + 0.5 * self.bin_high_)

    def _cross(self, X: Array) -> Array:
        if len(self.bin_low_) == 0:
            return np.zeros((len(X), 0))
        if self.model == "integral":
            return integral_cross(self.kernel_, X, self.bin_low_, self.bin_high_)
        return evaluate(self.kernel_, X, 0.5 * self.bin_low_ + 0.5 * self.bin_high_)
