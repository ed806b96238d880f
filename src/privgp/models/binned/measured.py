"""The part of BinnedMeans and BinnedGP that measures: once, over a regular grid of bins."""

from __future__ import annotations

import math
import operator
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from privgp.models.binned.outputs import BinnedRelease, release_outputs
from privgp.models.binned.records import release_records
from privgp.models.spending import SpendsAtFit
from privgp.plan.inputs.arguments import check_bounds, check_choice
from privgp.privacy.budget import check_budget
from privgp.types import Array

MOST_BINS = 2**62


class MeasuredBins(SpendsAtFit, RegressorMixin, BaseEstimator):  # type: ignore[misc]
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
        check_budget(self.epsilon, self.delta, pure=self.noise == "laplace")
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
