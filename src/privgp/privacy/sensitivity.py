"""How far one person can move a measurement, computed from the stored matrix. Outputs are scaled to
[-1, 1], so one output changes by at most 2, or by a declared ``change`` below that. All numbers
here are upper bounds: rounding errors of their own computation are added. Before anything is
squared it is multiplied by a power of two that brings the largest entry near 1, so that no square
that counts underflows or overflows. Proofs: docs/proofs/measure.md and docs/proofs/counts.md."""

from itertools import product

import numpy as np

from privgp.gp.arithmetic import UNIT_ROUNDOFF, rounding
from privgp.types import Array, Integers

# The largest w with delta^2 (1 + w^2 s^2) <= 4 whenever |delta| + |s| <= 2: the minimum of
# (2 + delta) / (delta^2 (2 - delta)), at delta = sqrt(5) - 1, rounded down.
MAX_ENERGY_WEIGHT = 2.7725**0.5
# The largest w with delta (1 + w s) <= 2 whenever |delta| + |s| <= 2.
MAX_TOTAL_ENERGY_WEIGHT = 0.5
ENUMERATED_ROWS = 12
# The largest number that private values may be multiplied by: what then underflows is nothing beside
# the least sensitivity that noise is drawn for.
LARGEST_FACTOR = 1e100
WHOLE = 2.0  # the largest change of a scaled output: from one bound to the other


def scale_change(max_change: float | None, bounds: tuple[float, float]) -> float:
    """How far an output, scaled to [-1, 1], moves if it changes by at most ``max_change``.

    Parameters
    ----------
    max_change
        In units of the output; None means by anything within the bounds.
    bounds
        The declared bounds of the output.

    Returns
    -------
    float
        At most 2, rounded up, errors of scaling included.

    """
    if max_change is None:
        return WHOLE
    # as the vault scales; before and after, that errs by two roundings of numbers of at most 1, and
    # the output itself was rounded when it was read
    half, most = 0.5 * bounds[1] - 0.5 * bounds[0], max(abs(bounds[0]), abs(bounds[1]))
    rounded = (8.0 + 4.0 * most / half) * UNIT_ROUNDOFF
    return min(WHOLE, max_change / half * (1.0 + 4.0 * UNIT_ROUNDOFF) + rounded)


def column_norms(B: Array) -> Array:
    """Upper bounds of the Euclidean norms of the columns.

    Parameters
    ----------
    B
        (measured, rows).

    Returns
    -------
    Array
        (rows,)

    """
    power = _power_below(np.maximum(B.max(axis=0, initial=0.0), -B.min(axis=0, initial=0.0)))
    scaled = B * power
    norms: Array = np.sqrt(np.einsum("ij,ij->j", scaled, scaled)) * (1.0 + rounding(len(B) + 2))
    return norms / power


def _power_below(largest: Array) -> Array:
    """For each of these numbers a power of two that brings it near 1: multiplying by it is exact, except for entries so much smaller that they do not count."""
    return np.asarray(np.ldexp(1.0, -np.clip(np.frexp(largest)[1], -1000, 1000)))


def absolute_sums(B: Array) -> Array:
    """Upper bounds of the sums of absolute values of the columns, (rows,), of B, (measured, rows)."""
    return np.asarray(np.abs(B).sum(axis=0) * (1.0 + rounding(B.shape[0] + 2)))


def person_norms(
    B: Array, index: Integers, people: Integers, weights: Array | None = None
) -> Array:
    """For every person the largest norm of ``sum of +-g_i b_i`` over their rows.

    Parameters
    ----------
    B
        (measured, distinct inputs).
    index
        (rows,), the column of B of every row.
    people
        (rows,), whole numbers from 0 on, one per person.
    weights
        (rows,), the factors g_i, not negative; None: 1 each.

    Returns
    -------
    Array
        (people,), upper bounds.

    Notes
    -----
    Exact by enumerating the signs up to 12 rows. Above that the least of three bounds: the sum
    of norms, and the roots of rows times the Gram matrix's largest eigenvalue and of its
    absolute sum.

    """
    order = np.argsort(people, kind="stable")
    counts = np.bincount(people)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    norms, factors = column_norms(B), np.ones(len(people)) if weights is None else weights
    out = np.zeros(len(counts))
    for k in np.unique(counts):
        who = np.flatnonzero(counts == k)
        rows = order[starts[who][:, None] + np.arange(k)]
        columns = index[rows]
        if k == 1:
            out[who] = norms[columns[:, 0]] * factors[rows[:, 0]]
            continue
        step = max(1, 2**22 // (k * max(B.shape[0], k)))
        for first in range(0, len(who), step):
            part = slice(first, first + step)
            out[who[part]] = _norms_of_equal_size(B, columns[part], norms, factors[rows[part]])
    return out


def _norms_of_equal_size(B: Array, columns: Integers, norms: Array, factors: Array) -> Array:
    """person_norms for people with the same number of rows: columns and factors are (people, rows)."""
    k, alone = columns.shape[1], norms[columns] * factors
    power = _power_below(alone.max(axis=1))
    held = np.moveaxis(B[:, columns], 1, 0)  # (people, measured, rows)
    held = held * (factors * power[:, None])[:, None, :]
    gram = np.matmul(np.swapaxes(held, 1, 2), held)
    added = (alone * power[:, None]).sum(axis=1)
    error = rounding(B.shape[0] + k * k + 6) * added**2
    if k <= ENUMERATED_ROWS:
        signs = np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=k - 1)])
        squares = np.zeros(len(columns))
        for first in range(0, len(columns), 256):
            chunk = gram[first : first + 256]
            values = np.einsum("pij,si,sj->ps", chunk, signs, signs, optimize=True)
            squares[first : first + 256] = values.max(axis=1)
        exact: Array = np.sqrt(np.maximum(squares, 0.0) + error)
        return exact / power
    largest = np.linalg.eigvalsh(gram)[:, -1]
    spectral = np.sqrt(k * np.maximum(largest, 0.0) * (1.0 + 1e-12) + error)
    entries = np.sqrt(np.abs(gram).sum(axis=(1, 2)) + error)
    bound: Array = np.minimum.reduce([spectral, entries, added * (1.0 + rounding(k))])
    return bound / power


def single_row_sensitivity(norm: float, energy_weight: float, change: float = WHOLE) -> float:
    """Sensitivity of ``(B u, w sum u^2)`` to one output in [-1, 1]: 2 max(norm, w / w_max).

    With a change below 2: the largest ``d hypot(norm, w (2 - d))`` over ``d <= change``, which
    grows with d up to ``(3 - sqrt(1 - 2 norm^2 / w^2)) / 2``, if that is real, and everywhere if
    not.

    Parameters
    ----------
    norm
        An upper bound of the largest column norm of B.
    energy_weight
        w, of the sum of squares; 0 if it is not measured.
    change
        How far one output moves at most, of 2.

    """
    if change >= WHOLE:
        return 2.0 * max(norm, energy_weight / MAX_ENERGY_WEIGHT) * (1.0 + 4.0 * UNIT_ROUNDOFF)
    moves = [change]
    ratio = norm / energy_weight if energy_weight > 0.0 else np.inf
    if ratio < 1.0 and 2.0 * ratio**2 <= 1.0:
        turn = 1.5 - 0.5 * float(np.sqrt(1.0 - 2.0 * ratio**2))
        moves.append(min(turn, change))
    most = max(d * float(np.hypot(norm, energy_weight * (2.0 - d))) for d in moves)
    return most * (1.0 + 2.0**-40)  # beside the top the value falls off with the square


def many_row_sensitivity(
    norm: float, energy_weight: float, energy_share: float, change: float = WHOLE
) -> float:
    """Sensitivity of ``(B u, w sum u^2)`` to all outputs of a person, Euclidean norm.

    Parameters
    ----------
    norm
        The largest of ``person_norms``.
    energy_weight
        w, of the sum of squares.
    energy_share
        The sum of the weights of a person's rows in that sum.
    change
        How far each output moves at most, of 2.

    """
    squares = energy_weight * energy_share * square_change(change)
    return float(np.hypot(change * norm, squares)) * (1.0 + 8.0 * UNIT_ROUNDOFF)


def square_change(change: float) -> float:
    """How far the square of an output in [-1, 1] moves if the output moves by at most ``change``."""
    return 1.0 if change >= 1.0 else change * (2.0 - change) * (1.0 + 8.0 * UNIT_ROUNDOFF)


def total_sensitivity(sums: Array, energy_weights: Array, change: float = WHOLE) -> Array:
    """How far one output in [-1, 1] moves ``(B u, w sum u^2)`` in the sum of absolute values.

    For every row the largest ``d (n + w s)`` over ``d <= change``, ``d + s <= 2``, n the
    column's own sum, is ``c (n + w (2 - c))`` for c the change if ``2 w (c - 1) <= n``, else
    ``(n + 2 w)^2 / (4 w)``.

    Parameters
    ----------
    sums
        (rows,), the absolute sums of B's columns.
    energy_weights
        w of every row, or one for all.
    change
        How far an output moves at most, of 2.

    Returns
    -------
    Array
        (rows,), upper bounds.

    """
    w = np.asarray(energy_weights, dtype=float)
    reach = sums + 2.0 * w
    peak = reach * (reach / np.where(w > 0.0, 4.0 * w, np.inf))
    whole = change * (sums + w * (2.0 - change))
    most: Array = np.where(2.0 * w * (change - 1.0) <= sums, whole, peak)
    return most * (1.0 + 8.0 * UNIT_ROUNDOFF)
