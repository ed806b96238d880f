"""BinnedGP: a Gaussian process on the noisy means over bins."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from privgp.gp.kernels.evaluate import evaluate, variance
from privgp.gp.kernels.integral import integral_cross, integral_gram
from privgp.gp.kernels.noise import signal_and_noise
from privgp.gp.threads import one_thread
from privgp.models.binned.means import BinnedMeans
from privgp.plan.inputs.arguments import check_choice
from privgp.types import Array


@dataclass(eq=False, repr=False)
class BinnedGP(BinnedMeans):
    """A Gaussian process on noisy means over bins, with kernel and noise variance given.

    Parameters
    ----------
    kernel : scikit-learn kernel, in units of X and squared units of y, fixed. None: an RBF of
        lengthscale half the width of the box per input, and std a quarter of the bounds' width.
    noise_variance : variance of an output about the function. None: (0.15 of the bounds' width)^2.
    model : "integral" (a mean is the average of the function over its bin) or "centres" (its value
        at the centre). All others as of BinnedMeans.

    Attributes
    ----------
    kernel_, noise_variance_ : as given, or their defaults. All others as of BinnedMeans.

    """

    kernel: Any = None
    noise_variance: float | None = None
    bins: Any = field(default=10, kw_only=True)
    model: str = field(default="integral", kw_only=True)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The posterior mean at every point, and the std of the function about it."""
        points = self._points(X)
        with one_thread():
            cross = self._cross(points)
            mean = self._middle_and_half()[0] + cross @ self._weights
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

    def _learn(self) -> None:
        middle, half = self._middle_and_half()
        scales, given = 0.5 * (self._grid.high - self._grid.low), self.kernel
        if given is None:
            given = ConstantKernel((0.5 * half) ** 2) * RBF(scales)
        self.kernel_, self.noise_variance_ = signal_and_noise(
            given, self.noise_variance, len(scales), default=(0.3 * half) ** 2
        )
        self._factor: Any = None
        self._weights = np.zeros(0)
        if len(self._bins) == 0:
            return
        spread = self.noise_variance_ / self.counts_ + self.noise_std_**2
        with one_thread():
            K = self._gram() + np.diag(spread)
            self._factor = cho_factor(K, lower=True, check_finite=False)
            self._weights = cho_solve(self._factor, self.means_ - middle)

    @property
    def _centres(self) -> Array:
        return 0.5 * self.bin_low_ + 0.5 * self.bin_high_

    def _gram(self) -> Array:
        """Covariances of the bin means."""
        if self.model == "integral":
            return integral_gram(self.kernel_, self.bin_low_, self.bin_high_)
        return evaluate(self.kernel_, self._centres)

    def _cross(self, X: Array) -> Array:
        """Covariances of the function at X with the bin means."""
        if len(self.bin_low_) == 0:
            return np.zeros((len(X), 0))
        if self.model == "integral":
            return integral_cross(self.kernel_, X, self.bin_low_, self.bin_high_)
        return evaluate(self.kernel_, X, self._centres)
