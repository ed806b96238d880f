"""The law of what was drawn, from the state alone, against what the proofs need.

Each check returns the noise that was really added, over its guaranteed std: standard normal numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.stats import chi2, kstest, norm

from privgp.gp.kernels.evaluate import variance
from privgp.gp.kernels.proved import rounding_error
from privgp.plan.functions.records import NUGGET
from privgp.privacy.path_rounding import PathSizes, entry_error, gram_error
from tests.adversary.digits import (
    FLOAT,
    Digits,
    kernel_values,
    lower_factor,
    relative_error,
    solved,
)

MOST_STDS = 9.0  # a normal number is larger once in 1e19
FLOAT_ERROR = 2e-7  # of a relative covariance in float64, where nuggets are 1e-6


def check_paths(c: Any, digits: Digits = FLOAT) -> np.ndarray:
    """docs/proofs/path_rounding.md: ``L L^T`` is T up to a relative error of at most kappa."""
    m, d, n = c.model, c.draws, len(c.draws.factor)
    scale, precision = variance(m.kernel), m.precision(n)
    unit = digits.read(scale)
    X, y = d.inputs, digits.read(d.outputs)
    noise = digits.read(np.eye(n)) * digits.read(m.noise_variance)
    R = lower_factor(kernel_values(m.kernel, X, X, digits) + noise)
    half = solved(R, kernel_values(m.kernel, X, d.points, digits))
    mean = half.T @ solved(R, y[:, None])[:, 0]
    total = 1 + digits.read(m.extra_noise) ** 2 / unit
    wanted = total * kernel_values(m.kernel, d.points, d.points, digits) - half.T @ half
    wanted = wanted + digits.read(np.eye(len(d.points))) * (digits.read(precision.nugget) * unit)
    L = digits.read(triangular(d.lower.rows))
    assert np.all(np.diag(L) > 0), "a row of L without its own noise"
    error = relative_error(L @ L.T / unit, wanted / unit)
    allowed = spread(c) + (FLOAT_ERROR if digits is FLOAT else 0.0)
    assert error <= allowed, f"the covariance is off by {error:.2g}, {allowed:.2g} is allowed"
    assert len(np.unique(d.normals)) == d.normals.size, "one normal number serves two points"
    middle = digits.read(0.5 * m.y_bounds[0] + 0.5 * m.y_bounds[1])
    rest = digits.read(d.answers.T) - middle - mean - digits.read(d.normals.T) @ L.T
    added = np.asarray(rest, dtype=float) / math.sqrt(precision.lattice_nugget * scale)
    assert np.all(np.abs(added) <= MOST_STDS), "an answer is not its mean plus L z"
    assert np.all(added != 0.0), "an answer without lattice noise"
    return np.concatenate([added.ravel(), d.normals.ravel()])


def spread(c: Any) -> float:
    """Kappa of the proof, for these arguments and the most points that may be asked."""
    m, n, scale = c.model, len(c.draws.factor), variance(c.model.kernel)
    reach = 0.5 * (m.y_bounds[1] - m.y_bounds[0]) / math.sqrt(scale)
    sizes = PathSizes(
        n, m.max_points, m.paths, m.noise_variance / scale, m.extra_noise**2 / scale, reach,
        rounding_error(m.kernel, m.widths),
    )  # fmt: skip
    gram = gram_error(sizes)
    entries = m.max_points * entry_error(sizes) / m.precision(n).nugget
    return entries + math.sqrt(min(n, m.max_points)) * gram / (1.0 - gram)


def check_records(c: Any, digits: Digits = FLOAT) -> np.ndarray:
    """docs/proofs/function_records.md: ``L L^T - k(points, points)`` is positive."""
    d, kernel = c.draws, c.model.kernel
    L = digits.read(triangular(d.lower.rows))
    nugget = digits.read(np.eye(len(L))) * digits.read(0.25 * NUGGET * variance(kernel))
    above = L @ L.T - kernel_values(kernel, d.points, d.points, digits) - nugget
    lower_factor(above / digits.read(variance(kernel)))  # ArithmeticError where it is not positive
    values = kernel_values(kernel, d.points, d.inputs, digits) @ digits.read(d.weights)
    rest = np.asarray(L @ digits.read(d.exact) - values, dtype=float)
    assert np.abs(rest).max(initial=0.0) <= 1e-9 * np.abs(d.weights).sum() * variance(kernel)
    _check_answers(c, L @ digits.read(d.numbers))
    return _noise(d.numbers - d.exact, d.noise.std)


def check_outputs(c: Any, rows: np.ndarray, digits: Digits = FLOAT) -> np.ndarray:
    """docs/proofs/function.md: no column of ``rows``, all that was multiplied, exceeds the limit."""
    d, kernel = c.draws, c.model.kernel
    assert rows.shape == (len(d.numbers), len(d.sums)), "a number that no row was multiplied for"
    read = digits.read(rows)
    squares = np.asarray((read * read).sum(axis=0), dtype=float)
    assert np.all(squares <= c.norm**2), "columns larger than the noise is for"
    assert np.allclose(squares, d.squares, rtol=1e-13, atol=0.0), "squares that were not kept"
    K = kernel_values(kernel, d.points, d.points, digits)
    nugget = digits.read(np.eye(len(K))) * digits.read(NUGGET * variance(kernel))
    _check_answers(c, lower_factor(K + nugget) @ digits.read(d.numbers))
    return _noise(d.numbers - rows @ d.sums, d.noise.std)


def _check_answers(c: Any, scaled: np.ndarray) -> None:
    """Answers are L times the noisy coordinates, in units of y."""
    middle, half = sum(c.y_bounds) / 2, (c.y_bounds[1] - c.y_bounds[0]) / 2
    rest = (c.draws.answers - middle) / half - np.asarray(scaled, dtype=float)
    size = c.draws.noise.std * math.sqrt(variance(c.model.kernel))
    assert np.abs(rest).max(initial=0.0) <= 1e-5 * size, "an answer that its numbers do not give"


def _noise(drawn: np.ndarray, std: float) -> np.ndarray:
    added = drawn / std
    assert np.all(np.abs(added) <= MOST_STDS)
    assert len(np.unique(added)) == len(added), "one draw of noise serves two points"
    return added


def triangular(rows: tuple[np.ndarray, ...]) -> np.ndarray:
    """Rows of lengths 1, 2, ... as a matrix."""
    L = np.zeros((len(rows), len(rows)))
    for i, row in enumerate(rows):
        L[i, : i + 1] = row
    return L


def check_noise(noise: np.ndarray) -> None:
    """Independent standard normal numbers; fails by chance with probability below 1e-6."""
    assert kstest(noise, "norm").pvalue > 1e-7, "noise of another law"
    assert 1e-7 < chi2.cdf(np.sum(noise**2), len(noise)) < 1 - 1e-7, "noise of another size"
    assert abs(noise[1:] @ noise[:-1]) / math.sqrt(len(noise)) < norm.isf(1e-7), "noise of one draw"
