"""What is proved of a kernel on a declared box: values and how far off they are, and the least one.
Distances come from differences, not from a matrix product, and no formula's error grows with the
distance or with a parameter. Proof: docs/proofs/kernels.md."""

import math
import operator

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.arithmetic import UNIT_ROUNDOFF
from privgp.gp.kernels.evaluate import check_kernel, evaluate, variance
from privgp.gp.kernels.kind import GeneralKind
from privgp.gp.kernels.registry import fold, kind_of, row_of
from privgp.types import Array

LARGEST = 1e50  # coordinates
VARIANCES = (1e-100, 1e100)
MOST_COLUMNS = 10**6
SLACK = 1.001  # terms of second order, underflow, and the rounding of the bound itself


def values_by_differences(kernel: Kernel, X: Array, Z: Array) -> Array:
    """k(X, Z), (rows of X, rows of Z), with a proved error.

    An entry depends on its two points alone; k(X, X) is symmetric, its diagonal
    ``variance(kernel)``. Kernels without a proof are evaluated as their classes do it.
    """
    return fold(kernel, lambda leaf: _leaf_values(leaf, X, Z), operator.add, operator.mul)


def _leaf_values(kernel: object, X: Array, Z: Array) -> Array:
    kind = row_of(kernel)
    if isinstance(kind, GeneralKind):
        return evaluate(kernel, X, Z)
    if kind.by_differences is not None:
        return kind.by_differences(kernel, X, Z)
    s = np.zeros((len(X), len(Z)))
    if kind.unit is not None:
        units = np.broadcast_to(np.asarray(getattr(kernel, kind.unit), float), (X.shape[1],))
        for x, z, unit in zip(X.T, Z.T, units, strict=True):
            difference = np.subtract.outer(x, z)
            difference /= unit
            difference *= difference
            s += difference
    return kind.profile(kernel, s)


def rounding_error(kernel: Kernel, widths: Array) -> float:
    """A bound of ``|values_by_differences - k|`` as a share of ``variance(kernel)``.

    Parameters
    ----------
    kernel
        a supported one.
    widths
        (inputs,), the sides of a box with coordinates of at most 1e50.

    Raises
    ------
    ValueError
        No bound is proved for the kernel, its parameters or the box.

    Notes
    -----
    docs/proofs/kernels.md.

    """
    sides = np.asarray(widths, dtype=float)
    if sides.ndim != 1 or not 1 <= len(sides) <= MOST_COLUMNS:
        raise ValueError(f"widths must hold one number per input, at most {MOST_COLUMNS:,}.")
    if not np.all((sides >= 0.0) & (sides <= 2.0 * LARGEST)):
        raise ValueError(f"the domain must lie within {-LARGEST:g} and {LARGEST:g}.")

    def leaf(part: object) -> tuple[float, float]:
        kind = kind_of(part)
        for name in kind.parameters:
            _check(name, getattr(part, name), *kind.limits)
        check_kernel(part, len(sides))
        return variance(part), kind.error_units(part, sides) * UNIT_ROUNDOFF * SLACK

    def round_up(size: float, share: float) -> tuple[float, float]:
        _check("variance", size, *VARIANCES)
        return size, share + (1.0 + share) * UNIT_ROUNDOFF * SLACK

    # pairs of the variance and the error as a share of the exact variance
    _, share = fold(
        kernel,
        leaf,
        lambda a, b: round_up(a[0] + b[0], max(a[1], b[1])),
        lambda a, b: round_up(a[0] * b[0], a[1] + b[1] + a[1] * b[1]),
    )
    return share / (1.0 - share) * SLACK  # of the computed variance, which errs by no more


def _check(name: str, value: float | Array, low: float, high: float) -> None:
    values = np.asarray(value, dtype=float)
    if not np.all((values >= low) & (values <= high)):
        raise ValueError(f"kernel {name} must lie between {low:g} and {high:g} here.")


def least_value(kernel: Kernel, widths: Array) -> float:
    """A lower bound of k(x, x') over x, x' in a box, rounded down.

    The bound of a sum or product comes from its parts' bounds, none negative; 0 if no error is
    proved.

    Parameters
    ----------
    kernel
        a supported one.
    widths
        (inputs,), the sides of the box.

    """

    def down(value: float) -> float:
        return math.nextafter(value, 0.0)

    def leaf(part: object) -> float:
        kind = kind_of(part)
        apart = np.nextafter(np.asarray(widths, dtype=float), np.inf)  # widths are differences
        if kind.least_at is not None:
            apart = kind.least_at(part, apart)
        try:
            error = rounding_error(part, apart) * variance(part)
        except ValueError:
            return 0.0
        value = float(_leaf_values(part, np.zeros((1, len(apart))), apart[None, :])[0, 0])
        return down(max(value - error, 0.0)) if error else value

    return fold(kernel, leaf, lambda a, b: down(a + b), lambda a, b: down(a * b))


def exponential_rate(kernel: Kernel) -> float | None:
    """``q`` with k(x, x') = k(x, x) exp(-q |x - x'|) for one input, 0 for a constant; else None.

    Products of such kernels are such kernels; a sum is one only if all its parts are constant.
    """
    return fold(
        kernel,
        lambda leaf: kind_of(leaf).exponential_rate(leaf),
        lambda a, b: 0.0 if a == b == 0.0 else None,
        lambda a, b: None if a is None or b is None else a + b,
    )
