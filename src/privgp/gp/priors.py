"""Weak public priors on hyperparameters, and rougher ones beside the default.

The default kernel, a Matern kernel of smoothness 5/2, has one lengthscale. Temperatures over a year, or prices
on a map, change slowly over long ranges and also from place to place. Intervals that follow from one
lengthscale are then too narrow between the places that were measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from typing import Annotated

import numpy as np
from scipy.interpolate import PchipInterpolator
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern

from privgp.gp.changes import SHAPES, Change, values
from privgp.gp.kernels.evaluate import check_kernel, constant_variance, diagonal, evaluate
from privgp.gp.kernels.registry import kernel_tree
from privgp.types import Array, Integers, Positive, Share, added_field

KNOTS = 25  # few enough that the map is smooth


@dataclass(frozen=True)
class InputMap:
    """A monotone map of each input column: ``(1 - share) * x + share * rank(x)``.

    ``rank`` is the empirical distribution function of the public inputs, stretched to the spread
    of its column, so that ``share`` moves between raw and ranked coordinates without changing
    scale. Beyond the observed range the ranked part stays at its end.

    Attributes
    ----------
    share : share of the ranked coordinate, between 0 and 1
    knots, ranks : (knots, columns), a coordinate and the rank it has
    plain : columns that stay as they are
    bins : (columns, 3), if given: every coordinate is moved to the middle of its bin. The lower end of
        the first bin, the width of a bin, and how many there are

    """

    share: Share = 0.0
    knots: Annotated[Array, "* *"] = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    ranks: Annotated[Array, "* *"] = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    plain: tuple[int, ...] | None = added_field(None)
    bins: Annotated[Array, "* *"] | None = added_field(None)

    @property
    def key(self) -> tuple[object, ...]:
        """What tells maps apart."""
        bins = None if self.bins is None else self.bins.tobytes()
        return self.share, self.knots.tobytes(), self.ranks.tobytes(), self.plain, bins

    @cached_property
    def _curves(self) -> list[Callable[[Array], Array]]:
        """The rank of a coordinate, for every column."""
        pairs = zip(self.knots.T, self.ranks.T, strict=True)
        return [_smooth_ranks(knots, ranks) for knots, ranks in pairs]

    def __call__(self, X: Array) -> Array:
        """The mapped rows of X, (rows, columns)."""
        if self.bins is not None:
            low, width, count = self.bins.T
            X = low + width * (np.clip(np.floor((X - low) / width), 0.0, count - 1.0) + 0.5)
        if self.share == 0.0:
            return X
        ranked = np.column_stack([own(X[:, j]) for j, own in enumerate(self._curves)])
        mapped = (1.0 - self.share) * X + self.share * ranked
        plain = list(self.plain or ())
        mapped[:, plain] = X[:, plain]
        return mapped


def _smooth_ranks(knots: Array, ranks: Array) -> Callable[[Array], Array]:
    """A smooth monotone curve through the knots, constant beyond them."""
    places, first = np.unique(knots, return_index=True)
    curve = PchipInterpolator(places, ranks[first]) if len(places) > 1 else None
    return partial(_rank, curve, float(ranks[0]), (places[0], places[-1]))


def _rank(
    curve: PchipInterpolator | None, single: float, ends: tuple[float, float], x: Array
) -> Array:
    return np.full(len(x), single) if curve is None else np.asarray(curve(np.clip(x, *ends)))


def blend_ranks(X: Array, share: float, plain: tuple[int, ...] = ()) -> InputMap:
    """The map that blends the coordinates of ``X``, except for the plain ones, with their ranks.

    Parameters
    ----------
    X
        (rows, columns), public inputs.
    share
        Share of the ranked coordinate; 0 gives the map that changes nothing.
    plain
        Columns that stay as they are.

    """
    if share == 0.0:
        return InputMap()
    levels = np.linspace(0.0, 1.0, KNOTS)
    knots = np.quantile(X, levels, axis=0)
    centre, spread = X.mean(axis=0), spreads(X)
    ranks = centre + spread * np.sqrt(12.0) * (levels[:, None] - 0.5)
    # Equal knots (many rows at one value) share the middle of their ranks.
    for j in range(X.shape[1]):
        _, index, counts = np.unique(knots[:, j], return_inverse=True, return_counts=True)
        ranks[:, j] = (np.bincount(index, ranks[:, j]) / counts)[index]
    return InputMap(share, knots, ranks, plain or None)


def spreads(X: Array) -> Array:
    """Standard deviation of each column, (columns,); 1 if a column is constant."""
    spread = np.asarray(X.std(axis=0), dtype=float)
    floor = 1e-12 * np.abs(X).max(axis=0)
    return np.where(spread > floor, spread, 1.0)


def collapse(X: Array) -> tuple[Array, Integers]:
    """The distinct rows of X, sorted, and for every row which of them it is, (rows,)."""
    unique, index = np.unique(X, axis=0, return_inverse=True)
    return unique, np.asarray(index, dtype=np.int64).ravel()


COMMON_LENGTHSCALE_STD = 1.0
OTHER_STD = 0.7
MOST_CHANGES = 2  # of one model
NOISE_STD = 1.4  # of the noise std; its level is the least known of all beforehand
# What is usual within declared bounds: stds of the function and of outputs about it, over those that a
# plan starts with, and stds of their logarithms.
USUAL_SIGNAL, USUAL_SIGNAL_STD = 0.5, 1.2
USUAL_NOISE, USUAL_NOISE_STD = 0.53, 1.0
ROUGH = 0.5  # smoothness of a kernel whose functions have a kink everywhere
SHORT = 0.125  # lengthscale of the short range, over that of the long one
SHORT_VARIANCE = 0.1  # over that of the whole function


@dataclass(frozen=True)
class Hyperparameters:
    """One model of the function.

    Attributes
    ----------
    kernel : a scikit-learn kernel on mapped inputs, without noise
    noise_variance : variance of an output about the function, in squared units of the outputs
    input_map : applied to inputs before the kernel
    weight : how plausible the model is; those of a set of models sum to 1
    changes : local changes of the function, at most two

    """

    kernel: Kernel
    noise_variance: Positive
    input_map: InputMap = field(default_factory=InputMap)
    weight: Positive = 1.0
    changes: tuple[Change, ...] = added_field(())

    def smooth(self, X: Array, Z: Array | None = None) -> Array:
        """Covariances without the changes, (rows of X, rows of Z); Z is X by default."""
        return evaluate(self.kernel, self.input_map(X), None if Z is None else self.input_map(Z))

    def covariance(self, X: Array, Z: Array | None = None, smooth: Array | None = None) -> Array:
        """Covariances of f, (rows of X, rows of Z).

        Parameters
        ----------
        X, Z
            Inputs as they are, before the map; Z is X by default.
        smooth
            The result of ``smooth(X, Z)``, if it is known already.

        """
        K = self.smooth(X, Z) if smooth is None else smooth
        if not self.changes:
            return K
        return K + values(self.changes, X) @ values(self.changes, X if Z is None else Z).T

    def variances(self, X: Array) -> Array:
        """The prior variance of f at every row of X, (rows,)."""
        constant = constant_variance(self.kernel) is not None
        own = diagonal(self.kernel, X if constant else self.input_map(X))
        return np.asarray(own + np.square(values(self.changes, X)).sum(axis=1))

    def check_for(self, columns: int) -> None:
        """Refuse a kernel, a map or a change that is not for inputs of this many columns.

        Raises
        ------
        ValueError
            As only a damaged file or a wrong argument can cause it.

        """
        check_kernel(self.kernel, columns)
        knots, ranks = self.input_map.knots, self.input_map.ranks
        shape = (max(len(knots), 1), columns) if self.input_map.share else (0, 0)
        if not knots.shape == ranks.shape == shape or np.any(np.diff(knots, axis=0) < 0.0):
            raise ValueError("input map is broken.")
        if not {*(self.input_map.plain or ())} <= {*range(columns)}:
            raise ValueError("input map is broken.")
        bins = self.input_map.bins
        if bins is not None and not (bins.shape == (columns, 3) and np.all(bins[:, 1] > 0.0)):
            raise ValueError("input map is broken.")
        if len(self.changes) > MOST_CHANGES or not all(_fits(c, columns) for c in self.changes):
            raise ValueError("changes are broken.")


def of_one_kernel(models: Sequence[Hyperparameters]) -> list[list[int]]:
    """The places of the models, grouped by kernel and map.

    One evaluation of the kernel serves a whole group.
    """
    found: dict[tuple[object, ...], list[int]] = {}
    for place, model in enumerate(models):
        found.setdefault((_key(model.kernel), *model.input_map.key), []).append(place)
    return [*found.values()]


def _key(kernel: Kernel) -> object:
    """Equal for equal kernels, as far as these are of classes that privgp knows."""
    try:
        return repr(kernel_tree(kernel))
    except ValueError:
        return id(kernel)


def _fits(change: Change, columns: int) -> bool:
    slopes, centre = change.slopes, change.centre
    along_one = slopes.shape == (1, columns)
    fits = along_one or (change.kind == "bump" and slopes.shape == (columns, columns))
    finite = bool(np.all(np.isfinite(slopes)) and np.all(np.isfinite(centre)))
    known = change.kind in SHAPES and 0.0 < change.std < np.inf
    return fits and finite and known and centre.shape == (columns,)


@dataclass(frozen=True)
class Prior:
    """Log-normal about the starting values: ``log parameters = centre + root @ z``, z standard
    normal.

    The last parameter is the noise variance if it is free.

    Attributes
    ----------
    start : the model that a plan starts with, at z = 0 if the prior is about it
    centre : (parameters,), logarithms
    root : (parameters, moves); lengthscales that are one move as one
    noise_free : whether the noise variance is learned too

    """

    start: Hyperparameters
    centre: Annotated[Array, "parameters"]
    root: Annotated[Array, "parameters moves"]
    noise_free: bool

    @property
    def size(self) -> int:
        """How many standard normal numbers a model is made of."""
        return int(self.root.shape[1])

    def check_for(self, columns: int) -> None:
        """Refuse parts that do not belong together, or not to inputs of this many columns."""
        self.start.check_for(columns)
        if len(self.centre) != sum(count for _, count in self._free) + self.noise_free:
            raise ValueError("prior has another number of parameters than its kernel.")

    def at(self, z: Array) -> Hyperparameters:
        """The model at z, (size,); its weight is 1 and it has no changes."""
        logs = np.clip(self.centre + self.root @ z, -200.0, 200.0)
        kernel = self._with_values(np.exp(logs)) if self._free else self.start.kernel
        noise = float(np.exp(logs[-1])) if self.noise_free else self.start.noise_variance
        return Hyperparameters(kernel, noise, self.start.input_map)

    @cached_property
    def _free(self) -> list[tuple[str, int]]:
        """The kernel's free parameters in the order of its ``theta``: names and sizes."""
        parameters = self.start.kernel.hyperparameters
        return [(p.name, p.n_elements) for p in parameters if not p.fixed]

    def _with_values(self, values: Array) -> Kernel:
        """``clone_with_theta`` without its search for parameters, which takes a millisecond."""
        kernel, first = deepcopy(self.start.kernel), 0
        for name, count in self._free:
            *path, last = name.split("__")
            value = values[first] if count == 1 else values[first : first + count]
            setattr(reduce(getattr, path, kernel), last, value)
            first += count
        return kernel


def prior_about(start: Hyperparameters, *, noise_free: bool, widths: tuple[int, ...] = ()) -> Prior:
    """A weak prior: lengthscales share a common factor; variances move as squares of their roots.

    Parameters
    ----------
    start
        The model in the middle.
    noise_free
        Whether the noise variance is learned too.
    widths
        Numbers of neighbouring inputs that have one lengthscale; each its own if there are none.

    """
    blocks: list[Array] = []
    for parameter in start.kernel.hyperparameters:
        if parameter.fixed:
            continue
        count = parameter.n_elements
        scales = parameter.name.endswith("length_scale")
        shared = len(widths) if scales and count > 1 and count == sum(widths) else 0
        if scales:
            root = np.full((shared or count, 1), COMMON_LENGTHSCALE_STD)
            if len(root) > 1:
                root = np.hstack([root, OTHER_STD * np.eye(len(root))])
        else:
            # a variance moves as the square of a standard deviation
            power = 2.0 if parameter.name.endswith("constant_value") else 1.0
            root = power * OTHER_STD * np.eye(count)
        block = np.linalg.cholesky(root @ root.T)
        blocks.append(np.repeat(block, widths, axis=0) if shared else block)
    centre = np.asarray(start.kernel.theta, dtype=float)
    if noise_free:
        blocks.append(np.array([[2.0 * NOISE_STD]]))
        centre = np.append(centre, np.log(start.noise_variance))
    root = np.zeros((len(centre), sum(block.shape[1] for block in blocks)))
    row = column = 0
    for block in blocks:
        root[row : row + len(block), column : column + block.shape[1]] = block
        row, column = row + len(block), column + block.shape[1]
    return Prior(start, centre, root, noise_free)


def usual(prior: Prior, *, noise: bool = True) -> Prior:
    """The prior to learn with: a plan prepares for functions that fill the bounds, most vary less.

    Measured sums tell the variance of a nearly constant function, and the scatter of some hundred
    outputs, only up to a limit. Below it the prior decides how wide intervals are.

    Parameters
    ----------
    prior : Prior
        About the default kernel, as a plan starts with it.
    noise : bool
        Whether the noise variance too is the default one.

    """
    centre, root, place = prior.centre.copy(), prior.root.copy(), 0
    for name, count in prior._free:
        if name.endswith("constant_value"):
            centre[place] += 2.0 * np.log(USUAL_SIGNAL)
            root[place] *= USUAL_SIGNAL_STD / OTHER_STD
        place += count
    if noise and prior.noise_free:
        centre[-1] += 2.0 * np.log(USUAL_NOISE)
        root[-1] *= USUAL_NOISE_STD / NOISE_STD
    return replace(prior, centre=centre, root=root)


def rougher(prior: Prior) -> tuple[Prior, ...]:
    """The prior with a kernel of smoothness 1/2, and with a second component of short range.

    Parameters
    ----------
    prior : Prior
        About the default kernel.

    Returns
    -------
    tuple of Prior
        Empty where the kernel has not exactly one Matern kernel of smoothness 5/2, or nothing is free.

    """
    leaves = _materns(prior.start.kernel)
    if len(leaves) != 1 or leaves[0].nu != 2.5 or prior.start.kernel.theta.size == 0:
        return ()
    return _with_smoothness(prior, ROUGH), _with_short_range(prior)


def _materns(kernel: Kernel) -> list[Matern]:
    if isinstance(kernel, Matern):
        return [kernel]
    inner = (getattr(kernel, name, None) for name in ("k1", "k2"))
    return [leaf for each in inner if each is not None for leaf in _materns(each)]


def lengthscales(kernel: Kernel) -> list[float]:
    """For a kernel with exactly one Matern kernel; none for any other."""
    leaves = _materns(kernel)
    return np.atleast_1d(leaves[0].length_scale).tolist() if len(leaves) == 1 else []


def _with_smoothness(prior: Prior, nu: float) -> Prior:
    kernel = deepcopy(prior.start.kernel)
    _materns(kernel)[0].nu = nu
    return replace(prior, start=replace(prior.start, kernel=kernel))


def _with_short_range(prior: Prior) -> Prior:
    """The kernel plus a short range, whose lengthscales move with the long ones and on their own."""
    kernel, names = prior.start.kernel, []
    for parameter in kernel.hyperparameters:
        if not parameter.fixed:
            names += [parameter.name.rsplit("__", 1)[-1]] * parameter.n_elements
    scales = np.array([name == "length_scale" for name in names])
    long, variance = _materns(kernel)[0].length_scale, float(np.exp(kernel.theta[~scales][0]))
    short = ConstantKernel(SHORT_VARIANCE * variance) * Matern(SHORT * long, nu=1.5)
    count, moves = len(names), prior.size - prior.noise_free
    own = prior.root[:count, :moves]
    along = own[scales]
    root = np.zeros((count + 1 + len(along), moves + 2))
    root[:count, :moves] = own
    root[count, moves] = 2.0 * OTHER_STD
    root[count + 1 :, :moves], root[count + 1 :, -1] = along, COMMON_LENGTHSCALE_STD
    centre = np.concatenate([prior.centre[:count], short.theta])
    if prior.noise_free:
        root = np.block(
            [[root, np.zeros((len(root), 1))], [np.zeros((1, moves + 2)), prior.root[-1:, -1:]]]
        )
        centre = np.append(centre, prior.centre[-1])
    return Prior(replace(prior.start, kernel=kernel + short), centre, root, prior.noise_free)
