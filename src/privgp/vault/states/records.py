"""Lazy draws of a function of private records: one noisy coordinate for every new point.

The function is ``k(., inputs) weights``; its coordinates at the points asked are L^-1 of its values,
L public and stored as it was used. Proof: docs/proofs/function_records.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.kernels.proved import values_by_differences
from privgp.privacy.lattice import LatticeNoise
from privgp.types import Array
from privgp.vault.noise import add_lattice_noise
from privgp.vault.validate import checked_inputs, clipped_outputs


@dataclass(frozen=True)
class RecordDraws:
    """What has been drawn of one function, and what is needed to go on.

    Private: ``inputs`` (records, columns), ``weights`` (records,), ``exact`` coordinates. Public:
    ``numbers``, the noisy ones; ``lower``, the rows of L as they were used; ``residual``, the squared
    error of L; ``noise``, for the most coordinates there may be; ``seed``, for simulations.
    """

    inputs: Array = field(repr=False)
    weights: Array = field(repr=False)
    noise: LatticeNoise
    seed: int | None
    exact: Array = field(repr=False)
    numbers: Array = field(repr=False)
    lower: tuple[Array, ...] = field(repr=False)
    residual: float


def first_record_draws(
    X: Any,
    y: Any,
    domain: tuple[tuple[float, float], ...],
    bounds: tuple[float, float],
    kernel: Kernel,
    noise_variance: float,
    noise: LatticeNoise,
    seed: int | None,
) -> RecordDraws:
    """Nothing drawn yet: inputs projected onto the domain, outputs clipped and scaled to [-1, 1]."""
    low, high = np.array(domain).T
    inputs = np.clip(checked_inputs(X, len(domain)), low, high)
    outputs = clipped_outputs(y, len(inputs), bounds)
    K = values_by_differences(kernel, inputs, inputs)
    K.flat[:: len(K) + 1] += noise_variance
    factor = cho_factor(K, lower=True, overwrite_a=True, check_finite=False)
    weights = np.asarray(cho_solve(factor, outputs, check_finite=False))
    return RecordDraws(inputs, weights, noise, seed, np.empty(0), np.empty(0), (), 0.0)


def extended_records(
    draws: RecordDraws, kernel: Kernel, points: Array, lower: Array, residual: float
) -> RecordDraws:
    """The same function in further coordinates, of which ``lower`` (new, old + new) are the rows."""
    first, count = len(draws.numbers), len(points)
    if lower.shape != (count, first + count) or not np.all(np.isfinite(lower)):
        raise ValueError("the rows of the factor have a wrong shape or are not finite.")
    if first + count > draws.noise.size:
        raise ValueError("this function has no coordinates left.")
    values = values_by_differences(kernel, points, draws.inputs) @ draws.weights
    rest = values - lower[:, :first] @ draws.exact
    exact = solve_triangular(lower[:, first:], rest, lower=True, check_finite=False)
    if draws.seed is None:
        released = add_lattice_noise(exact, replace(draws.noise, size=count))
    else:
        # one stream per coordinate: a simulation does not depend on batches or restarts
        streams = (np.random.default_rng([draws.seed, i]) for i in range(first, first + count))
        released = exact + draws.noise.std * np.array([s.standard_normal() for s in streams])
    return replace(
        draws,
        exact=np.concatenate([draws.exact, exact]),
        numbers=np.concatenate([draws.numbers, released]),
        lower=(*draws.lower, *(row[: first + i + 1].copy() for i, row in enumerate(lower))),
        residual=residual,
    )
