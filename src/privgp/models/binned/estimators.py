"""BinnedMeans and BinnedGP: the papers' baselines, noisy means over bins, as regressors."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from privgp.gp.kernels.evaluate import evaluate, variance
from privgp.gp.kernels.integral import integral_cross, integral_gram
from privgp.gp.kernels.noise import signal_and_noise
from privgp.gp.threads import one_thread
from privgp.models.binned.measured import MeasuredBins
from privgp.models.binned.outputs import BinnedRelease
from privgp.plan.inputs.arguments import check_bounds, check_choice
from privgp.types import Array


class BinnedMeans(MeasuredBins):
    """Noisy means over bins: every point gets the mean of its bin, of an empty one the middle.

    Parameters
    ----------
    bins : int, or one int per input
        Bins per input, between the x_bounds.
    y_bounds : (low, high), public bounds of the outputs; values outside are clipped.
    x_bounds : (low, high), or one such pair per input
        The box of the bins. None: that of the public X; required with ``protect="records"``.
    epsilon, delta : the budget of one ``fit``; Laplace noise is pure: its delta is 0.
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


class BinnedGP(MeasuredBins):
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
        check_choice("model", self.model, ("integral", "centres"))
        given = RBF() if self.kernel is None else self.kernel
        signal_and_noise(given, self.noise_variance, columns, default=1.0)

    def _learn(self, found: BinnedRelease) -> None:
        low, high = check_bounds("y_bounds", self.y_bounds)
        scales, width = 0.5 * (found.grid.high - found.grid.low), high - low
        given = self.kernel
        if given is None:
            given = ConstantKernel((0.25 * width) ** 2) * RBF(scales)
        self.kernel_, self.noise_variance_ = signal_and_noise(
            given, self.noise_variance, len(scales), default=(0.15 * width) ** 2
        )
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
