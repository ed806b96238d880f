"""Smooth features of points of a box, all of norm 1.

``phi(x) = R k(U, x)`` divided by its norm, with k a squared exponential over the unit box plus a
constant, U public points and R a public matrix. Without the division ``R K_UU R^T = I`` makes phi(x)
a projection of a unit vector; with it the norm is 1 whatever R is and however it was computed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import qmc

from privgp.types import Array

CONSTANT_SHARE = 0.1  # of k(x, x), so that a constant is nearly one of the features
INDUCING = 512
LEAST_EIGENVALUE = 1e-9  # of the largest: below it a feature would be rounding
LEAST_NORM = 1e-150  # before the division
BLOCK_ROWS = 256  # whose products stay in a processor's cache


def spread_points(low: Array, high: Array, count: int, seed: int) -> Array:
    """Points spread evenly over a box, (count, inputs): a scrambled Sobol sequence.

    Parameters
    ----------
    low, high
        (inputs,), the corners of the box.
    count
        a power of two.
    seed
        Public; the same seed gives the same points.

    """
    sobol = qmc.Sobol(len(low), scramble=True, rng=np.random.default_rng(seed))
    return np.asarray(low + (high - low) * sobol.random_base2(count.bit_length() - 1))


@dataclass(frozen=True)
class FeatureMap:
    """A public map of points to features of norm 1.

    Attributes
    ----------
    low, high : (inputs,), the box
    lengthscale : as a share of each side
    inducing : U in the unit box, (inducing, inputs)
    matrix : R, (features, inducing)

    """

    low: Array
    high: Array
    lengthscale: float
    inducing: Array = field(repr=False)
    matrix: Array = field(repr=False)

    def at(self, X: Array) -> Array:
        """The features of public points of the box, (rows, features)."""
        places = (X - self.low) / (self.high - self.low)
        return _unit(self.matrix @ correlation(self.inducing, places, self.lengthscale)).T


def unit_features(places: Array, lengthscale: float, inducing: Array, matrix: Array) -> Array:
    """The features of private points of the unit box, each row separately, (rows, features).

    The bits of a row do not depend on the other rows: sums are added in one order.

    Parameters
    ----------
    places
        (rows, inputs), in the unit box.
    lengthscale, inducing, matrix
        As in ``FeatureMap``.

    """
    out = np.empty((len(places), len(matrix)))
    for first in range(0, len(places), BLOCK_ROWS):
        rows = slice(first, first + BLOCK_ROWS)
        values = correlation(inducing, places[rows], lengthscale)
        out[rows] = _unit(products_in_order(matrix, values)).T
    return out


def _unit(raw: Array) -> Array:
    """Columns divided by their norms."""
    squares = np.zeros(raw.shape[1])
    for each in raw:
        squares += each * each
    return np.asarray(raw / np.maximum(np.sqrt(squares), LEAST_NORM))


def products_in_order(first: Array, second: Array) -> Array:
    """``first @ second`` with every entry added up in one order.

    The bits of a column are its own, however many columns there are. A library's product may
    take another order for other shapes.
    """
    out, added = np.zeros((2, len(first), second.shape[1]))
    for weights, row in zip(first.T, second, strict=True):
        np.multiply(weights[:, None], row, out=added)
        out += added
    return np.asarray(out)


def pack_symmetric(gram: Array) -> Array:
    """A symmetric matrix as its lower triangle, sqrt(2) off the diagonal, so that its norm is kept.

    Parameters
    ----------
    gram
        (size, size).

    Returns
    -------
    Array
        (size (size + 1) / 2,), whose Euclidean norm is the Frobenius norm of ``gram``.

    """
    i, j = np.tril_indices(len(gram))
    return np.asarray(gram[i, j] * np.where(i == j, 1.0, np.sqrt(2.0)))


def unpack_symmetric(numbers: Array, size: int) -> Array:
    """The symmetric matrix, (size, size), of what ``pack_symmetric`` made of it."""
    i, j = np.tril_indices(size)
    gram = np.empty((size, size))
    gram[i, j] = gram[j, i] = numbers / np.where(i == j, 1.0, np.sqrt(2.0))
    return gram


def correlation(first: Array, second: Array, lengthscale: float) -> Array:
    """The correlation k of points of the unit box, (rows of first, rows of second)."""
    squares = cdist(first, second, "sqeuclidean")
    smooth = np.exp(squares / (-2.0 * lengthscale**2))
    return np.asarray(CONSTANT_SHARE + (1.0 - CONSTANT_SHARE) * smooth)


def principal_features(low: Array, high: Array, lengthscale: float, most: int) -> FeatureMap:
    """The features that carry most of k over the box: leading eigenvectors at evenly spread points.

    Parameters
    ----------
    low, high
        (inputs,), the corners of the box.
    lengthscale
        As a share of each side.
    most
        How many features at most; fewer if the others would be rounding.

    """
    inducing, values, vectors = _spectrum(len(low), float(lengthscale))
    good = values[:most] > LEAST_EIGENVALUE * values[0]
    matrix = (vectors[:, :most][:, good] / np.sqrt(values[:most][good])).T
    return FeatureMap(low, high, float(lengthscale), inducing, np.ascontiguousarray(matrix))


@lru_cache(maxsize=16)
def _spectrum(inputs: int, lengthscale: float) -> tuple[Array, Array, Array]:
    """Evenly spread points of the unit box, and the eigenvalues of k there, largest first, with their
    vectors."""
    inducing = spread_points(np.zeros(inputs), np.ones(inputs), INDUCING, 1)
    values, vectors = np.linalg.eigh(correlation(inducing, inducing, lengthscale))
    return inducing, values[::-1], vectors[:, ::-1]
