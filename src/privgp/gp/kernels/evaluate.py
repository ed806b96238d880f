"""scikit-learn's kernels as they are, evaluated at BLAS speed and differentiated in reverse.

``value_and_pullback(kernel, X, Z)`` returns ``K`` and a function from the gradient of any scalar by
``K`` to its gradient by ``kernel.theta`` (the logarithms of the free hyperparameters, in
scikit-learn's order), without forming one matrix per hyperparameter."""

import math
import operator
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial, reduce
from numbers import Real

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel, Sum, WhiteKernel

from privgp.gp.kernels.kind import GeneralKind
from privgp.gp.kernels.registry import fold, parts, row_of
from privgp.types import Array


def split_noise(kernel: Kernel) -> tuple[Kernel | None, WhiteKernel | None]:
    """Take the WhiteKernel out of a top-level sum.

    Returns
    -------
    kernel : Kernel or None
        What is left; None if there was nothing but noise.
    white : WhiteKernel or None
        None if there was none.

    Raises
    ------
    ValueError
        There are two of them.

    """
    terms = parts(kernel, Sum)
    whites = [term for term in terms if isinstance(term, WhiteKernel)]
    if not whites:
        return kernel, None
    if len(whites) > 1:
        raise ValueError("kernel holds two WhiteKernels: give the noise variance once.")
    rest = [term for term in terms if term is not whites[0]]
    return (reduce(Sum, rest) if rest else None), whites[0]


def signal_and_noise(
    kernel: object, noise_variance: object, inputs: int, *, default: float | None = None
) -> tuple[Kernel, float]:
    """The kernel without its WhiteKernel, checked, and the noise variance.

    Parameters
    ----------
    kernel
        As the caller gave it; it is not changed.
    noise_variance
        a number, or None to take the WhiteKernel's, else the default.
    inputs
        The number of columns.
    default
        The noise variance if neither has one.

    Raises
    ------
    ValueError
        The noise is given twice or not at all, or the kernel cannot be used.

    """
    signal, white = split_noise(clone(kernel) if isinstance(kernel, Kernel) else kernel)
    if signal is None:
        raise ValueError("kernel holds nothing but noise.")
    check_kernel(signal, inputs)
    if white is not None and noise_variance is not None:
        raise ValueError("give the noise once: as noise_variance or as a WhiteKernel.")
    if noise_variance is None:
        noise_variance = default if white is None else white.noise_level
    if isinstance(noise_variance, bool) or not isinstance(noise_variance, Real):
        raise ValueError("noise_variance must be a positive number.")
    noise = float(noise_variance)
    if not 0.0 < noise < math.inf:
        raise ValueError(f"noise_variance must be positive and finite, got {noise}.")
    return signal, noise


Pullback = Callable[[Array], Array]
Differentiable = tuple[Array, Pullback]
Value = Array | float
ByRows = Callable[[slice], Value]

BLOCK_ENTRIES = 2**21
STEP = 1e-5  # of the logarithm of a hyperparameter, for derivatives by differences
CACHED_ENTRIES = 2**15  # several arrays of this many numbers stay in the processor's cache
CARRIED_ROWS = 256  # multiplied at a time


def check_kernel(kernel: object, inputs: int) -> None:
    """Refuse a kernel that cannot be evaluated on inputs with this many columns.

    Parameters
    ----------
    kernel
        As the caller gave it.
    inputs
        The number of columns.

    Raises
    ------
    ValueError
        A kind is not supported, the number of lengthscales is wrong, a kernel of one input has
        more, or a hyperparameter is not positive and finite.

    """
    for leaf in parts(kernel):
        kind = row_of(leaf)
        scales = np.size(getattr(leaf, "length_scale", 1.0))
        if scales not in (1, inputs):
            raise ValueError(
                f"kernel has {scales} lengthscales but the inputs have {inputs} columns: give one "
                "lengthscale, or one per input."
            )
        for name in (*kind.parameters, *kind.settings):
            values = np.asarray(getattr(leaf, name), dtype=float)
            finite = np.all(np.isfinite(values)) or name in kind.settings
            if not (finite and np.all(values > 0)):
                raise ValueError(f"kernel hyperparameter {name} must be positive and finite.")
        if isinstance(kind, GeneralKind):
            kind.check(leaf, inputs)
            _try(leaf, inputs)
        elif kind.one_input and inputs > 1:
            raise ValueError(f"kernel {type(leaf).__name__} is a covariance of one input only.")


def _try(kernel: Kernel, inputs: int) -> None:
    """Refuse a class that does not compute values, or that holds noise."""
    held = kernel.get_params().values()
    if any(isinstance(part, WhiteKernel) for part in held):
        raise ValueError("kernel holds a WhiteKernel inside another kernel: give noise_variance.")
    points = np.linspace(0.1, 0.9, 3 * inputs).reshape(3, inputs)
    name = type(kernel).__name__
    try:
        values, diagonal = _compute(kernel, points, None), _compute_diagonal(kernel, points)
    except Exception as problem:
        raise ValueError(f"kernel {name} cannot be evaluated: {problem}") from None
    if not np.allclose(values, values.T) or not np.allclose(np.diag(values), diagonal):
        raise ValueError(f"kernel {name} is not symmetric, or its diag() differs from its values.")


def _compute(kernel: Kernel, X: Array, Z: Array | None) -> Array:
    """What a class computes for k(X, Z), checked for its shape."""
    K = np.array(kernel(X) if Z is None else kernel(X, Z), dtype=float)
    if K.shape != (len(X), len(X if Z is None else Z)) or not np.all(np.isfinite(K)):
        raise ValueError(
            f"kernel {type(kernel).__name__} must return one finite number for every pair of rows."
        )
    return K


def _compute_diagonal(kernel: Kernel, X: Array) -> Array:
    values = np.array(kernel.diag(X), dtype=float)
    if values.shape != (len(X),) or not np.all(np.isfinite(values) & (values >= 0.0)):
        raise ValueError(
            f"diag() of kernel {type(kernel).__name__} must return one finite number per row, none "
            "of them negative."
        )
    return values


def evaluate(kernel: Kernel, X: Array, Z: Array | None = None, out: Array | None = None) -> Array:
    """The covariance matrix k(X, Z), (rows of X, rows of Z).

    It is filled by blocks of rows that stay in the processor's cache, so nothing else of its size is held.

    Parameters
    ----------
    kernel
        Any, without noise.
    X, Z
        (rows, columns); Z is X by default, and the diagonal is then exact.
    out
        An array to fill, in place of a new one.

    """
    shape = len(X), len(X if Z is None else Z)
    out = np.empty(shape) if out is None else out
    at = _by_rows(kernel, X, Z)
    for rows in _cache_blocks(out):
        out[rows] = at(rows)
    if Z is None:
        np.fill_diagonal(out, diagonal(kernel, X))
    return out


def carry(kernel: Kernel, X: Array, Z: Array, *weights: Array) -> list[Array]:
    """``k(X, Z) weights`` for each of the weights, (rows of X, columns of weights), without the matrix in
    between. The others make no difference to the bits of one.

    Its rows are multiplied while they are in the processor's cache, a few hundred at a time, so that
    wide weights are not taken to it anew for every few rows.

    Parameters
    ----------
    kernel
        Any, without noise.
    X, Z
        (rows, columns)
    weights
        (rows of Z, some)

    """
    out, at = [np.empty((len(X), each.shape[1])) for each in weights], _by_rows(kernel, X, Z)
    for first in range(0, len(X), CARRIED_ROWS):
        block = np.empty((min(CARRIED_ROWS, len(X) - first), len(Z)))
        for rows in _cache_blocks(block):
            block[rows] = at(slice(first + rows.start, first + min(rows.stop, len(block))))
        for each, whole in zip(weights, out, strict=True):
            np.matmul(block, each, out=whole[first : first + len(block)])
    return out


def _by_rows(kernel: Kernel, X: Array, Z: Array | None) -> ByRows:
    """A kernel at some rows of X."""
    add, multiply = partial(_join, operator.iadd), partial(_join, operator.imul)
    at: ByRows = fold(kernel, lambda leaf: _leaf_by_rows(leaf, X, Z), add, multiply)
    return at


def _join(operation: Callable[[Value, Value], Value], left: ByRows, right: ByRows) -> ByRows:
    """Two parts together, in the memory of one of them."""

    def at(rows: slice) -> Value:
        a, b = left(rows), right(rows)
        return operation(b, a) if isinstance(a, float) else operation(a, b)

    return at


def _leaf_by_rows(kernel: Kernel, X: Array, Z: Array | None) -> ByRows:
    """A leaf of a kernel at some rows of X: a new array, or one number where it is constant."""
    kind, columns = row_of(kernel), X if Z is None else Z
    if isinstance(kind, GeneralKind):
        if len(X) * len(columns) > BLOCK_ENTRIES:
            return lambda rows: _compute(kernel, X[rows], columns)
        K = _compute(kernel, X, Z)
        return lambda rows: K[rows].copy()
    if kind.unit is None:
        constant = float(kind.profile(kernel, np.zeros(1))[0])
        return lambda rows: constant
    unit = np.broadcast_to(np.asarray(getattr(kernel, kind.unit), float), (X.shape[1],))
    if X.shape[1] == 1 and (along := kind.along(kernel)) is not None:
        factor, decay = along
        x, z = X[:, 0] / unit * factor, columns[:, 0] / unit * factor
        return lambda rows: decay(_differences(x[rows], z))
    apart, profile = _square_distances_by_rows(X / unit, columns / unit), kind.profile
    return lambda rows: profile(kernel, apart(rows))


def _differences(x: Array, z: Array) -> Array:
    """Distances of numbers, (numbers of x, numbers of z)."""
    apart: Array = np.subtract.outer(x, z)
    return np.abs(apart, out=apart)


def diagonal(kernel: Kernel, X: Array) -> Array:
    """k(x, x) for every row of X, (rows,)."""
    constant = constant_variance(kernel)
    if constant is not None:
        return np.full(X.shape[0], constant)

    def leaf(part: object) -> Array:
        one = constant_variance(part)
        return _compute_diagonal(part, X) if one is None else np.full(len(X), one)

    return fold(kernel, leaf, operator.add, operator.mul)


def constant_variance(kernel: Kernel) -> float | None:
    """The prior variance k(x, x) if it is the same everywhere; None if it varies."""

    def leaf(part: object) -> float:
        kind = row_of(part)
        if isinstance(kind, GeneralKind):
            return np.nan if kind.variance is None else kind.variance(part)
        return float(kind.profile(part, np.zeros(1))[0])

    found = fold(kernel, leaf, operator.add, operator.mul)
    return None if np.isnan(found) else found


def variance(kernel: Kernel) -> float:
    """The prior variance k(x, x).

    Raises
    ------
    ValueError
        It varies with the input.

    """
    found = constant_variance(kernel)
    if found is None:
        raise ValueError(
            "kernel has a variance that varies with the input, which is not available here: use "
            "kernels of one variance, such as RBF and Matern."
        )
    return found


def mean_variance(kernel: Kernel, X: Array, weights: Array | None = None) -> float:
    """The weighted mean of k(x, x) over the rows of X; of a constant one, that number exactly."""
    found = constant_variance(kernel)
    if found is None:
        found = float(np.average(diagonal(kernel, X), weights=weights))
    return found


def total_variance(kernel: Kernel, X: Array, weights: Array) -> float:
    """The sum of k(x, x) over the rows of X, each times its weight."""
    found = constant_variance(kernel)
    if found is None:
        return float(weights @ diagonal(kernel, X))
    return found * float(weights.sum())


def value_and_pullback(kernel: Kernel, X: Array, Z: Array | None = None) -> tuple[Array, Pullback]:
    """k(X, Z) and the map from dL/dK to dL/dtheta.

    Parameters
    ----------
    kernel
        Any, without noise.
    X, Z
        (rows, columns); Z is X by default.

    Returns
    -------
    K : Array
        (rows of X, rows of Z)
    pull : callable
        From the gradient of a scalar by K, of its shape, to its gradient by ``kernel.theta``,
        the logarithms of the free hyperparameters in scikit-learn's order.

    """

    def add(left: Differentiable, right: Differentiable) -> Differentiable:
        (A, pull_a), (B, pull_b) = left, right
        return A + B, lambda G: np.concatenate([pull_a(G), pull_b(G)])

    def multiply(left: Differentiable, right: Differentiable) -> Differentiable:
        (A, pull_a), (B, pull_b) = left, right
        return A * B, lambda G: np.concatenate([pull_a(G * B), pull_b(G * A)])

    K, pull = fold(kernel, lambda leaf: _leaf(leaf, X, Z), add, multiply)
    if K.size == 1:  # nothing but constants, each one number
        K = np.full((len(X), len(X if Z is None else Z)), K.item())
    return K, pull


def _leaf(kernel: object, X: Array, Z: Array | None) -> Differentiable:
    """With x and s in units l: dk/dlog l = -2 dk/ds s, and by column ``(x_j - z_j)^2`` for s."""
    kind = row_of(kernel)
    if isinstance(kind, GeneralKind):
        return _general(kernel, X, Z)
    if kind.unit is None:
        s = np.zeros((1, 1))
    else:
        unit = np.broadcast_to(np.asarray(getattr(kernel, kind.unit), float), (X.shape[1],))
        X, Z = X / unit, None if Z is None else Z / unit
        s = square_distances(X, Z)
    K = in_cache(partial(kind.profile, kernel), s)

    def pull(G: Array) -> Array:
        gradient: list[object] = []
        for name in sorted(kind.parameters):  # scikit-learn's order
            parameter = getattr(kernel, f"hyperparameter_{name}")
            if parameter.fixed:
                continue
            if name != kind.unit or kind.slope is None:
                gradient.append(np.sum(G * kind.derivatives[name](kernel, s, K)))
                continue
            W: Array = G * in_cache(partial(kind.slope, kernel), s, K)
            one = parameter.n_elements == 1
            gradient.extend([np.vdot(W, s)] if one else _by_column(W, X, Z))
        return np.array(gradient)

    return K, pull


def _general(kernel: Kernel, X: Array, Z: Array | None) -> Differentiable:
    """Values as the class computes them, and differences of them for derivatives."""

    def pull(G: Array) -> Array:
        theta = np.asarray(kernel.theta, dtype=float)
        out = np.empty(len(theta))
        for place in range(len(theta)):
            ends = []
            for step in (STEP, -STEP):
                moved = theta.copy()
                moved[place] += step
                ends.append(_compute(deepcopy(kernel).clone_with_theta(moved), X, Z))
            out[place] = np.vdot(G, ends[0] - ends[1]) / (2.0 * STEP)
        return out

    return _compute(kernel, X, Z), pull


def square_distances(X: Array, Z: Array | None = None) -> Array:
    """Squared distances.

    Parameters
    ----------
    X, Z
        (rows, columns); Z is X by default, and the diagonal is then 0.

    """
    columns = X if Z is None else Z
    out, apart = np.empty((len(X), len(columns))), _square_distances_by_rows(X, columns)
    for rows in _cache_blocks(out):
        out[rows] = apart(rows)
    if Z is None:
        np.fill_diagonal(out, 0.0)
    return out


def _square_distances_by_rows(X: Array, Z: Array) -> Callable[[slice], Array]:
    """Squared distances of some rows of X from all of Z: by differences along one column, otherwise by one
    matrix product, after centring against cancellation."""
    if X.shape[1] == 1:
        x, z = X[:, 0], Z[:, 0]

        return lambda rows: np.asarray(np.square(np.subtract.outer(x[rows], z)))
    X, Z = np.ascontiguousarray(X), np.ascontiguousarray(Z)  # sums have the same bits in any layout
    centre = Z.mean(axis=0)
    X, Z = X - centre, Z - centre
    lengths, others = np.einsum("ij,ij->i", X, X), np.einsum("ij,ij->i", Z, Z)
    left = np.column_stack([X, lengths, np.ones(len(X))])
    right = np.vstack([-2.0 * Z.T, np.ones(len(Z)), others])

    def multiply(rows: slice) -> Array:
        apart: Array = left[rows] @ right
        return np.maximum(apart, 0.0, out=apart)

    return multiply


def in_cache(function: Callable[..., Array], *matrices: Array) -> Array:
    """A function of every entry, by blocks that one operation after another finds in the cache.

    Parameters
    ----------
    function
        Takes as many blocks as there are matrices and returns one of their shape.
    matrices
        (rows, columns), all of one shape.

    """
    out = np.empty_like(matrices[0])
    for rows in _cache_blocks(out):
        out[rows] = function(*(matrix[rows] for matrix in matrices))
    return out


def _cache_blocks(matrix: Array) -> Iterator[slice]:
    step = max(1, CACHED_ENTRIES // max(1, matrix.shape[1]))
    for first in range(0, len(matrix), step):
        yield slice(first, first + step)


def _by_column(W: Array, X: Array, Z: Array | None) -> Array:
    """Sum of ``W (x_j - z_j)^2`` for every column j."""
    centre = X.mean(axis=0)
    left = X - centre
    right = left if Z is None else Z - centre
    moments = W.sum(axis=1) @ left**2 + W.sum(axis=0) @ right**2
    return np.asarray(moments - 2.0 * np.einsum("ij,ij->j", left, W @ right))
