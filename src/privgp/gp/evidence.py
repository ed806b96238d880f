"""The marginal likelihood of what was measured, and its gradient in the hyperparameters.

``log p(t) = log N(t; 0, S)``, ``S = A K A^T + s^2 N + k0 R + lambda I`` (and what else
``Functionals`` names), times the density of the
measured energy given t, Gaussian with the moments that y has given t. Post-processing throughout.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.functionals import Functionals
from privgp.gp.kernels.evaluate import value_and_pullback, variance
from privgp.gp.kernels.registry import parts
from privgp.gp.measurement import Measurement
from privgp.types import Array


@dataclass(frozen=True)
class Fit:
    """The measurement explained by one set of hyperparameters.

    ``factor``: lower Cholesky factor of S; ``solved``: S^-1 t; ``energy_variance``: the variance of
    the energy given t, to be held fixed while climbing; ``gradient``: with respect to
    (kernel.theta, log noise variance), or None.
    """

    log_evidence: float
    factor: Array
    solved: Array
    energy_variance: float
    gradient: Array | None


def fit(
    functionals: Functionals,
    measurement: Measurement,
    kernel: Kernel,
    noise_variance: float,
    nodes: Array,
    *,
    gradient: bool = False,
    energy_variance: float | None = None,
) -> Fit:
    """Explain the measurement; ``nodes`` are the (mapped) nodes on which the kernel acts.

    The gradient treats ``energy_variance`` as given, so climb with it fixed.
    """
    f, s2, k0 = functionals, noise_variance, variance(kernel)
    K, pull = value_and_pullback(kernel, nodes)
    A, t = f.weights, measurement.values
    AK = A @ K
    S = AK @ A.T + s2 * f.noise_gram + k0 * f.residual_gram
    if f.fixed_gram is not None:
        S += f.fixed_gram
    if f.scatter is not None:
        S -= (f.scatter * f.average_variances(K)) @ f.scatter.T
    S.flat[:: len(S) + 1] += measurement.noise_std**2
    L = cholesky(S, lower=True, overwrite_a=True, check_finite=False)
    a = cho_solve((L, True), t, check_finite=False)
    value = -0.5 * float(t @ a) - float(np.log(np.diag(L)).sum())
    has_energy = measurement.energy is not None
    if not (has_energy or gradient):
        return Fit(value, L, a, 0.0, None)

    inverse = cho_solve((L, True), np.eye(len(L)), check_finite=False)
    outer = np.outer(a, a) - inverse
    dS = 0.5 * outer
    dAK: Array | float = 0.0
    d_noise = d_scale = 0.0
    spread = 0.0
    if measurement.energy is not None:
        AKG = AK @ f.energy_gram
        cross = AK @ f.energy_cross
        cross = cross + cross.T
        G = AKG @ AK.T + s2 * cross + s2**2 * f.energy_noise_gram
        expected = f.energy_total * (k0 + s2) + float(np.vdot(outer, G))
        spread = energy_variance or (
            measurement.energy_noise_std**2 + _energy_variance(f, K, AK, L, a, s2)
        )
        excess = measurement.energy - expected
        value -= 0.5 * (excess**2 / spread + np.log(spread))
        if gradient:
            pressure = excess / spread  # d log p / d expected
            Ga = inverse @ (G @ a)
            dS = dS + pressure * (inverse @ G @ inverse - np.outer(Ga, a) - np.outer(a, Ga))
            # K is symmetric, so twice one half stands for the half and its transpose
            dAK = 2.0 * pressure * (outer @ (AKG + s2 * f.energy_cross.T))
            d_scale += pressure * f.energy_total
            d_noise += pressure * (
                f.energy_total
                + float(np.vdot(outer, cross))
                + 2.0 * s2 * float(np.vdot(outer, f.energy_noise_gram))
            )
    if not gradient:
        return Fit(value, L, a, spread, None)
    d_noise += float(np.vdot(dS, f.noise_gram))
    d_scale += float(np.vdot(dS, f.residual_gram))
    dK = A.T @ (dS @ A + dAK)
    if f.scatter is not None:
        f.average_pull(dK, -np.einsum("ij,ij->j", f.scatter, dS @ f.scatter))
    slope = pull(dK) + d_scale * variance_gradient(kernel)
    return Fit(value, L, a, spread, np.append(slope, d_noise * s2))


def variance_gradient(kernel: Kernel) -> Array:
    """The gradient of k(x, x) with respect to kernel.theta."""
    width = max(np.size(getattr(leaf, "length_scale", 1.0)) for leaf in parts(kernel))
    return value_and_pullback(kernel, np.zeros((1, width)))[1](np.ones((1, 1)))


def _energy_variance(f: Functionals, K: Array, AK: Array, L: Array, a: Array, s2: float) -> float:
    """Variance of ``sum e_i y_i^2`` given t: 2 tr(V^2) + 4 m^T V m with V the posterior of y.

    In the smaller trace term the energy's weights are lumped at the nodes.
    """
    half = solve_triangular(L, AK, lower=True, check_finite=False)
    V = K - half.T @ half
    mean = AK.T @ a
    Gm = f.energy_gram @ mean
    lumped = np.maximum(f.energy_gram.sum(axis=1), 0.0)
    scatter = lumped @ np.square(V) @ lumped + 2.0 * s2 * float(lumped @ np.diag(V))
    shift = float(Gm @ (V @ Gm)) + s2 * float(mean @ Gm)
    return float(2.0 * max(scatter + s2**2 * f.energy_total, 0.0) + 4.0 * max(shift, 0.0))
