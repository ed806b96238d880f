"""The papers' baselines: noisy means over the bins of a regular grid, and a process on them."""

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel
from sklearn.utils.validation import check_is_fitted, validate_data

from privgp.gp.arithmetic import one_thread
from privgp.gp.kernels.evaluate import evaluate, signal_and_noise, variance
from privgp.gp.kernels.integral import integral_cross, integral_gram
from privgp.gp.measurement import Measurement
from privgp.ledger.account import Account
from privgp.models.published import SpendingRegressor, simulation
from privgp.models.rows.tables import numbers_only
from privgp.plan.bins.bins import Bins, BinSums, Grid, HalvedBins
from privgp.plan.strategy import Strategy, noise_of
from privgp.privacy.budget import check_budget
from privgp.privacy.guarantee import promise
from privgp.privacy.noise import LAWS, PURE
from privgp.privacy.protected import OUTPUTS, RECORDS, Protected
from privgp.question.rules import check_bounds, check_choice, domain_pairs
from privgp.types import Array, Bounds, Column, Integers, RandomState, Table, UserData
from privgp.vault.measure import measure
from privgp.vault.validate import seal_inputs, seal_outputs
from privgp.vault.values import Sealed

MOST_BINS = 2**62
MOST_PRIVATE_BINS = 2000
FEWEST = 2.0  # noise stds that a private count needs for its bin to have a mean
PUBLIC_INPUTS = (
    "the inputs, so the number of rows in every bin, are public",
    "kernel, bounds, bins and budget were chosen without looking at the outputs",
)
PRIVATE_INPUTS = (
    "the number of records is public",
    "kernel, bounds of inputs and outputs, bins and budget were chosen without looking at the records",
)


@dataclass(eq=False, repr=False)
class BinnedMeans(SpendingRegressor):
    """Noisy means over bins: every point gets the mean of its bin, of an empty one the middle.

    Parameters
    ----------
    bins : int, or one int per input: bins per input, between the x_bounds.
    y_bounds : (low, high), public bounds of the outputs; values outside are clipped.
    x_bounds : (low, high), or one pair per input: the box of the bins. None: that of a public X;
        required with ``protect="records"``.
    epsilon, delta : the budget of one ``fit``; Laplace noise is pure: its delta is 0.
    noise : "laplace" or "gaussian"
    protect : "outputs" (inputs and counts are public, as in the papers) or "records"
    ledger : the Account of these data, which every fit charges before it draws; None: none.
    random_state : for simulations only: ordinary noise, and a guarantee that states this.

    Attributes
    ----------
    guarantee_ : what was guaranteed.
    bin_low_, bin_high_ : corners of the bins that have a mean.
    counts_, means_, noise_std_ : rows, noisy mean and the noise's std in each.
    n_features_in_, feature_names_in_ : the number of columns of X, and their names in a table.

    """

    bins: int | Sequence[int] = 10
    _: KW_ONLY
    y_bounds: Bounds | None = None
    x_bounds: Bounds | None = None
    epsilon: float = 1.0
    delta: float = 1e-6
    noise: str = "laplace"
    protect: str = "outputs"
    ledger: Account | None = None
    random_state: RandomState = None

    def fit(self, X: Table, y: Column) -> Self:
        """Measure once, with noise. Spends the budget, at every call.

        Parameters
        ----------
        X : table (rows, inputs)
            The inputs.
        y : column (rows,)
            The private values.

        Returns
        -------
        self

        """
        self._check_call(X, y)
        check_budget(self.epsilon, self.delta, pure=self.noise in PURE)
        check_bounds("y_bounds", self.y_bounds)
        check_choice("noise", self.noise, tuple(LAWS))
        check_choice("protect", self.protect, ("outputs", "records"))
        {"outputs": self._measure_outputs, "records": self._measure_records}[self.protect](X, y)
        return self

    def predict(self, X: Table) -> Array:
        """The mean of the bin of every point; outside the box, of the nearest bin.

        Parameters
        ----------
        X : table (rows, inputs)
            The inputs.

        Returns
        -------
        array (rows,)

        """
        points = self._points(X)
        bins, asked = self._bins, self._grid.of(points)
        out = np.full(len(asked), self._middle_and_half()[0])
        if len(bins):
            place = np.minimum(np.searchsorted(bins, asked), len(bins) - 1)
            there = bins[place] == asked
            out[there] = self.means_[place[there]]
        return out

    def _measure_outputs(self, X: UserData, y: UserData) -> None:
        """Sums per bin. X is public, y goes to the vault."""
        numbers_only(self, X)
        X = validate_data(self, X, dtype=np.float64)
        y = seal_outputs(y, len(X))
        grid = Grid(*self._box(X), self._shape(X.shape[1]))
        bins, index = np.unique(grid.of(X), return_inverse=True)
        counts = np.bincount(index).astype(float)
        what = f"the sums of the clipped outputs over {len(bins)} bins"

        def keep(measured: Measurement) -> None:
            means = self._middle_and_half()[0] + measured.values / counts
            self._keep(grid, bins, counts, means, measured.noise_std / counts)

        strategy, whom = BinSums(self.noise, index, len(bins)), (OUTPUTS, PUBLIC_INPUTS)
        self._publish_sums(y, len(X), strategy, whom, what, keep)

    def _measure_records(self, X: Table, y: UserData) -> None:
        """Counts and sums per bin. Inputs and outputs go to the vault."""
        low, high = np.array(domain_pairs("x_bounds", self.x_bounds)).T
        grid = Grid(low, high, self._shape(len(low)))
        if grid.count > MOST_PRIVATE_BINS:
            raise ValueError(
                f"bins must make at most {MOST_PRIVATE_BINS} with protect='records', got {grid.count}."
            )
        inputs = seal_inputs(X, len(low))
        y = seal_outputs(y, len(inputs))
        validate_data(self, X, skip_check_array=True)  # remembers names and number of columns
        kind = HalvedBins if self.noise in PURE else Bins
        eye = np.eye(grid.count)
        strategy = kind(low, high, grid.shape, len(inputs), eye, 0.0, law=self.noise)
        what = (
            f"counts and sums of the clipped outputs over {grid.count} bins of the declared domain"
        )

        def keep(measured: Measurement) -> None:
            assert measured.counts is not None
            middle, half = self._middle_and_half()
            bins = np.flatnonzero(measured.counts > FEWEST * measured.noise_std / half)
            counts = measured.counts[bins]
            bounds = check_bounds("y_bounds", self.y_bounds)
            means = np.clip(middle + measured.values[bins] / counts, *bounds)
            # the error of a ratio: of its numerator, and of its denominator times itself
            spread = measured.noise_std * np.sqrt(1.0 + ((means - middle) / half) ** 2)
            self._keep(grid, bins, counts, means, spread / counts)

        whom = RECORDS, PRIVATE_INPUTS
        self._publish_sums((inputs, y), len(inputs), strategy, whom, what, keep)

    def _publish_sums(
        self,
        data: Sealed | tuple[Sealed, Sealed],
        rows: int,
        strategy: Strategy,
        whom: tuple[Protected, tuple[str, ...]],
        what: str,
        keep: Callable[[Measurement], None],
    ) -> None:
        """Spend the budget on these sums, which ``what`` describes; ``whom``: who is protected, under which
        assumptions; ``keep`` takes the noisy ones."""
        noise = noise_of(strategy, float(self.epsilon), float(self.delta))
        bounds = check_bounds("y_bounds", self.y_bounds)
        promised = promise(
            whom[0],
            [noise.event],
            (self.epsilon, self.delta),
            assumptions=whom[1],
            mechanism=f"{noise.describe()} on {what}; all else is post-processing",
            sampler=noise.sampler,
            simulated=self.random_state is not None,
        )
        rng = simulation(self)

        def learn(measured: Measurement) -> None:
            self.guarantee_ = promised
            keep(measured)
            self._learn()

        self._publish(
            promised, lambda: measure(data, bounds, strategy, noise, rng), learn, rows=rows
        )

    def _keep(self, grid: Grid, bins: Integers, counts: Array, means: Array, std: Array) -> None:
        self._grid, self._bins = grid, bins
        self.counts_, self.means_, self.noise_std_ = counts, means, std
        self.bin_low_, self.bin_high_ = grid.corners(bins)

    def _check(self, columns: int) -> None:
        """Refuse wrong arguments of the model itself, before anything is spent."""

    def _learn(self) -> None:
        """What follows from the measurement."""

    def _middle_and_half(self) -> tuple[float, float]:
        low, high = check_bounds("y_bounds", self.y_bounds)
        return 0.5 * high + 0.5 * low, 0.5 * high - 0.5 * low

    def _box(self, X: Array) -> tuple[Array, Array]:
        """The declared domain, or the box of the public inputs where none was declared."""
        if self.x_bounds is not None:
            return tuple(np.array(domain_pairs("x_bounds", self.x_bounds, X.shape[1])).T)
        low, high = X.min(axis=0), X.max(axis=0)
        pad = np.where(high > low, 0.0, np.maximum(0.5, np.abs(low)))
        return low - pad, high + pad

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

    def _points(self, X: Table) -> Array:
        check_is_fitted(self)
        numbers_only(self, X)
        return np.asarray(validate_data(self, X, reset=False, dtype=np.float64))


@dataclass(eq=False, repr=False)
class BinnedGP(BinnedMeans):
    """A Gaussian process on noisy means over bins, with kernel and noise variance given.

    Parameters
    ----------
    kernel : scikit-learn kernel, in units of X and squared units of y, fixed. None: an RBF of
        lengthscale half the width of the box per input, and std a quarter of the bounds' width.
    noise_variance : variance of an output about the function. None: (0.15 of the bounds' width)^2.
    model : "integral" (a mean is the average of the function over its bin) or "centres" (its value
        at the centre).
    bins, y_bounds, x_bounds, epsilon, delta, noise, protect, ledger, random_state : as of BinnedMeans.

    Attributes
    ----------
    kernel_, noise_variance_ : as given, or their defaults. All others as of BinnedMeans.

    """

    kernel: Kernel | None = None
    noise_variance: float | None = None
    bins: int | Sequence[int] = field(default=10, kw_only=True)
    model: str = field(default="integral", kw_only=True)

    def predict(self, X: Table, *, return_std: bool = False) -> Any:
        """The posterior mean at every point.

        Parameters
        ----------
        X : table (rows, inputs)
            The inputs.
        return_std : bool, default False
            Also return the standard deviation of the function about the mean.

        Returns
        -------
        array (rows,), or a pair of them

        """
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
        self._factor: object = None
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
        if self.model == "integral":
            return integral_gram(self.kernel_, self.bin_low_, self.bin_high_)
        return evaluate(self.kernel_, self._centres)

    def _cross(self, X: Array) -> Array:
        if len(self.bin_low_) == 0:
            return np.zeros((len(X), 0))
        if self.model == "integral":
            return integral_cross(self.kernel_, X, self.bin_low_, self.bin_high_)
        return evaluate(self.kernel_, X, self._centres)
