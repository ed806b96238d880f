"""A kernel whose lengthscale changes with the place: short where data are dense, long where few."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import KDTree
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel, Matern, NormalizedKernelMixin

from privgp.gp.kernels.kind import GeneralKind
from privgp.gp.kernels.matern import MATERN_KIND
from privgp.types import Array, Table

BLOCK_ENTRIES = 2**21


class VaryingLengthscale(NormalizedKernelMixin, Kernel):  # type: ignore[misc]
    """A Matérn kernel with a lengthscale that depends on the input, of variance 1.

    The lengthscale at x is ``length_scale * f(x)``. The logarithm of f at x is the mean of the
    logarithms of ``factors``, weighted by one over the squared distance of x to their ``places``:
    at a place f is its factor. With ``q = (f(x)^2 + f(z)^2) / 2`` and D inputs

        k(x, z) = (f(x) f(z) / q)^(D / 2) matern(|x - z| / sqrt(q)),

    a covariance for any f (Gibbs 1997; Paciorek and Schervish 2004).

    Parameters
    ----------
    length_scale : float or array of shape (inputs,), default 1.0
        Common factor of all lengthscales, or one per input; it can be learned.
    length_scale_bounds : pair of floats or "fixed"
        As in scikit-learn.
    places : array of shape (places, inputs)
        Where the lengthscale is given; public.
    factors : array of shape (places,)
        Lengthscales there over ``length_scale``, positive.
    nu : float, default 2.5
        Smoothness of the Matérn kernel; ``inf`` is RBF.

    Examples
    --------
    >>> from privgp import VaryingLengthscale
    >>> kernel = VaryingLengthscale(10.0, places=[[0.0], [50.0]], factors=[0.5, 2.0])
    >>> kernel.lengthscales([[0.0], [25.0], [50.0]]).round(1).tolist()
    [5.0, 10.0, 20.0]

    """

    def __init__(
        self,
        length_scale: ArrayLike = 1.0,
        length_scale_bounds: ArrayLike | str = (1e-5, 1e5),
        *,
        places: ArrayLike = ((0.0,),),
        factors: Sequence[float] | Array = (1.0,),
        nu: float = 2.5,
    ) -> None:
        self.length_scale = length_scale
        self.length_scale_bounds = length_scale_bounds
        self.places = places
        self.factors = factors
        self.nu = nu

    @classmethod
    def for_inputs(
        cls, X: Table, length_scale: ArrayLike = 1.0, *, places: int = 24, largest: float = 4.0
    ) -> Self:
        """A kernel with short lengthscales where public inputs are dense.

        Parameters
        ----------
        X : array of shape (rows, inputs)
            Public inputs.
        length_scale : float or array of shape (inputs,)
            The lengthscale where the density is that of the median row.
        places : int
            How many places, spread over the inputs.
        largest : float
            The largest factor, and one over the smallest.

        """
        X = np.asarray(X, dtype=float)
        if X.ndim != 2 or len(X) < 2 or not np.all(np.isfinite(X)):
            raise ValueError("X must be a table of two or more rows of finite numbers.")
        if not (places >= 1 and largest >= 1.0):
            raise ValueError("places must be at least 1 and largest at least 1.")
        scaled = X / _units(X)
        chosen = [0]
        far = np.square(scaled - scaled[0]).sum(axis=1)
        while len(chosen) < places and far.max() > 0.0:  # each is the farthest from those before
            chosen.append(int(np.argmax(far)))
            far = np.minimum(far, np.square(scaled - scaled[chosen[-1]]).sum(axis=1))
        near = int(np.clip(np.sqrt(len(X)), 2, len(X)))
        apart = KDTree(scaled).query(scaled, k=near)[0][:, -1]
        middle = float(np.median(apart)) or 1.0
        factors = np.clip(apart[chosen] / middle, 1.0 / largest, largest)
        return cls(length_scale, places=X[chosen], factors=factors)

    @property
    def hyperparameter_length_scale(self) -> Hyperparameter:
        """scikit-learn's description of the free parameter."""
        bounds, size = self.length_scale_bounds, np.size(self.length_scale)
        if size > 1:
            return Hyperparameter("length_scale", "numeric", bounds, size)
        return Hyperparameter("length_scale", "numeric", bounds)

    def relative(self, X: Array) -> Array:
        """F at every row of X, (rows,)."""
        places = np.asarray(self.places, dtype=float)
        logs = np.log(np.asarray(self.factors, dtype=float))
        unit = _units(places)
        out = np.empty(len(X))
        step = max(1, BLOCK_ENTRIES // max(1, places.size))
        for first in range(0, len(X), step):
            apart = (X[first : first + step, None, :] - places) / unit
            squares = np.square(apart).sum(axis=2)
            weights = 1.0 / np.maximum(squares, 1e-24 * (1.0 + squares.max(axis=1, keepdims=True)))
            out[first : first + step] = weights @ logs / weights.sum(axis=1)
        return np.exp(out)

    def lengthscales(self, X: object) -> Array:
        """The lengthscale at every row of X: (rows,), or (rows, inputs) with one per input."""
        f = self.relative(np.asarray(X, dtype=float))
        return (
            f * float(np.ravel(self.length_scale)[0])
            if np.size(self.length_scale) == 1
            else (f[:, None] * np.asarray(self.length_scale, dtype=float))
        )

    def __call__(self, X: object, Y: object = None, eval_gradient: bool = False) -> Any:
        """K(X, Y), and by request its gradient by the logarithm of ``length_scale``."""
        X = np.atleast_2d(np.asarray(X, dtype=float))
        Z = X if Y is None else np.atleast_2d(np.asarray(Y, dtype=float))
        if eval_gradient and Y is not None:
            raise ValueError("Gradient can only be evaluated when Y is None.")
        f, g = self.relative(X), self.relative(Z)
        q = 0.5 * np.add.outer(f * f, g * g)
        height = (np.multiply.outer(f, g) / q) ** (0.5 * X.shape[1])
        units = np.broadcast_to(np.asarray(self.length_scale, dtype=float), (X.shape[1],))
        squares = [
            np.square(np.subtract.outer(X[:, j], Z[:, j]) / u) / q for j, u in enumerate(units)
        ]
        unit = Matern(1.0, nu=self.nu)
        s = sum(squares[1:], squares[0])
        shape = MATERN_KIND.profile(unit, s)
        K = height * shape
        if Y is None:
            np.fill_diagonal(K, 1.0)
        if not eval_gradient:
            return K
        if self.hyperparameter_length_scale.fixed:
            return K, np.empty((*K.shape, 0))
        assert MATERN_KIND.slope is not None
        slope = height * MATERN_KIND.slope(unit, s, shape)
        moved = [s] if np.size(self.length_scale) == 1 else squares
        return K, np.stack([slope * each for each in moved], axis=2)

    def is_stationary(self) -> bool:
        """False."""
        return False

    def __repr__(self) -> str:
        scale = np.array2string(np.asarray(self.length_scale, dtype=float), precision=3)
        return f"VaryingLengthscale(length_scale={scale}, {len(self.factors)} places)"


def _units(points: Array) -> Array:
    """The spread of every column, 1 where there is none, (columns,)."""
    spread = np.asarray(points, dtype=float).std(axis=0)
    return np.where(spread > 0.0, spread, 1.0)


def _check(kernel: VaryingLengthscale, inputs: int) -> None:
    try:
        places, factors = (np.asarray(part, float) for part in (kernel.places, kernel.factors))
    except (TypeError, ValueError):
        raise ValueError("kernel VaryingLengthscale needs places and factors of numbers.") from None
    if places.ndim != 2 or places.shape[1] != inputs or factors.shape != (len(places),):
        raise ValueError(
            f"kernel VaryingLengthscale needs places of shape (places, {inputs}) and one factor for "
            "each place."
        )
    if not (len(places) and np.all(np.isfinite(places)) and np.all(np.abs(places) <= 1e50)):
        raise ValueError("kernel VaryingLengthscale needs one or more finite places.")
    if not np.all((factors >= 1e-6) & (factors <= 1e6)):
        raise ValueError("kernel VaryingLengthscale needs factors between 1e-6 and 1e6.")


VARYING = GeneralKind(
    VaryingLengthscale,
    ("length_scale",),
    settings=("nu",),
    per_input=True,
    arrays={"places": 2, "factors": 1},
    check=_check,
    variance=lambda kernel: 1.0,
)
