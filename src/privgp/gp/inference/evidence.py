"""The marginal likelihood of what was measured, and its gradient in the hyperparameters.

``log p(t) = log N(t; 0, S)``, ``S = A K A^T + s^2 N + k0 R + lambda I`` (and what else
``Functionals`` names), times the density of the
measured energy given t, Gaussian with the moments that y has given t. Post-processing throughout.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dpotri
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.changes import values
from privgp.gp.kernels.evaluate import (
    Pullback,
    constant_variance,
    evaluate,
    mean_variance,
    value_and_pullback,
)
from privgp.gp.measurement import LARGE, Functionals, Measurement, find_sites
from privgp.gp.priors import Hyperparameters
from privgp.types import Array, Integers


@dataclass(frozen=True)
class Fit:
    """The measurement explained by one set of hyperparameters.

    Attributes
    ----------
    log_evidence : log evidence of the measured numbers and of the energy given them, up to a
        constant
    factor : lower Cholesky factor of S
    solved : S^-1 t
    energy_variance : the variance of the energy given t, to be held fixed while climbing
    gradient : with respect to (kernel.theta, log noise variance), or None

    """

    log_evidence: float
    factor: Array
    solved: Array
    energy_variance: float
    gradient: Array | None


MOST_SITES = 500  # numbers whose noise is told from normal noise


def _covariances(
    f: Functionals, k0: float, s2: float, K: Array, changes: Array | None = None
) -> tuple[Array, Array]:
    """A K, and the covariance of the measured numbers without their noise.

    ``k0``: the variance of the function, its mean over the energy if it varies.

    ``changes``: (nodes, changes); what they vary within bins is left out, as in ``Bending``.
    """
    AK = f.carry(K)
    S = f.carry(AK.T).T + s2 * f.noise_gram + k0 * f.residual_gram
    if f.fixed_gram is not None:
        S += f.fixed_gram
    if f.common is not None:
        S += f.common @ f.common.T
    if f.scatter is not None:
        S -= (f.scatter * f.average_variances(K)) @ f.scatter.T
    if changes is not None:
        U = f.weights @ changes
        AK, S = AK + U @ changes.T, S + U @ U.T
    return AK, S


def _with_noise(S: Array, t: Array, noise_std: float) -> tuple[Array, Array, float]:
    """Cholesky factor of cov(t), cov(t)^-1 t and the log density of t, up to a constant."""
    S.flat[:: len(S) + 1] += noise_std**2
    L = cholesky(S, lower=True, overwrite_a=True, check_finite=False)
    a = cho_solve((L, True), t, check_finite=False)
    return L, a, -0.5 * float(t @ a) - float(np.log(np.diag(L)).sum())


def _inverse(L: Array) -> Array:
    """The inverse of a matrix from its lower Cholesky factor."""
    if len(L) < LARGE:
        return np.asarray(cho_solve((L, True), np.eye(len(L)), check_finite=False))
    lower = np.tril(dpotri(L, lower=1)[0])  # a third of the work
    return np.asarray(lower + np.tril(lower, -1).T)


@dataclass(frozen=True)
class Conditioned:
    """One model given what was measured.

    Attributes
    ----------
    factor, solved : as in ``Fit``, of the numbers that represent the measured ones
    log_evidence : log evidence of these numbers
    normal : the log evidence if all noise were normal
    noise_variances : (measured,), of the noise for privacy on these numbers

    """

    factor: Array
    solved: Array
    log_evidence: float
    normal: float
    noise_variances: Array


def condition(
    functionals: Functionals,
    measurement: Measurement,
    model: Hyperparameters,
    smooth: Array | None = None,
) -> Conditioned:
    """Condition one model on the measurement, Laplace noise modelled exactly; of many numbers, each of
    which says little, for normal noise of its std.

    Parameters
    ----------
    functionals, measurement
        The measured functionals, and their noisy values.
    model
        The hyperparameters that explain them.
    smooth
        Its kernel at the nodes, (nodes, nodes), if that is known already.

    Raises
    ------
    numpy.linalg.LinAlgError
        The covariance of the numbers is not positive definite.

    """
    nodes = functionals.nodes
    if smooth is None:
        smooth = model.smooth(nodes)
    changes = values(model.changes, nodes) if model.changes else None
    k0 = prior_variance(functionals, model.kernel, model.input_map(nodes))
    _, S = _covariances(functionals, k0, model.noise_variance, smooth, changes)
    t, noise_std = measurement.values, measurement.noise_std
    laplace = measurement.laplace
    tell_apart = laplace.any() and len(t) <= MOST_SITES
    sites = find_sites(S, t, noise_std, laplace) if tell_apart else None
    factor, solved, normal = _with_noise(S, t, noise_std)
    if sites is None:
        return Conditioned(factor, solved, normal, normal, np.full(len(t), noise_std**2))
    solved = cho_solve((sites.factor, True), sites.values, check_finite=False)
    return Conditioned(sites.factor, solved, sites.log_evidence, normal, sites.variances)


def fit(
    functionals: Functionals,
    measurement: Measurement,
    kernel: Kernel,
    noise_variance: float,
    nodes: Array,
    *,
    gradient: bool = False,
    energy_variance: float | None = None,
    changes: Array | None = None,
) -> Fit:
    """Explain the measurement by one kernel and noise variance, its energy included.

    Parameters
    ----------
    functionals, measurement
        The measured functionals, and their noisy values.
    kernel, noise_variance
        The hyperparameters.
    nodes
        (nodes, columns), the (mapped) nodes on which the kernel acts.
    gradient
        Whether to compute it.
    energy_variance
        If given, the gradient and the value treat it as known, so climb with it fixed.
    changes
        (nodes, changes), values of changes that belong to the model.

    """
    f, s2, k0 = functionals, noise_variance, prior_variance(functionals, kernel, nodes)
    pull: Pullback | None
    K, pull = value_and_pullback(kernel, nodes) if gradient else (evaluate(kernel, nodes), None)
    AK, S = _covariances(f, k0, s2, K, changes)
    if changes is not None:
        K = K + changes @ changes.T
    L, a, value = _with_noise(S, measurement.values, measurement.noise_std)
    has_energy = measurement.energy is not None
    if not (has_energy or gradient):
        return Fit(value, L, a, 0.0, None)

    inverse = _inverse(L)
    outer = np.outer(a, a) - inverse
    dS = 0.5 * outer
    dAK: Array | float = 0.0
    d_noise = d_scale = 0.0
    spread = 0.0
    if measurement.energy is not None:
        AKG = f.energy_of(AK)
        cross = AK @ f.energy_cross
        cross = cross + cross.T
        G = AKG @ AK.T + s2 * cross + s2**2 * f.energy_noise_gram
        expected = f.energy_total * (k0 + s2) + float(np.vdot(outer, G))
        if changes is not None:
            expected += float(np.vdot(changes, f.energy_gram @ changes))
        about, line = _about_centre(f, AKG, s2)
        expected += about - 2.0 * float(a @ line)
        spread = energy_variance or (
            measurement.energy_noise_std**2 + _energy_variance(f, K, AK, L, a, s2)
        )
        excess = measurement.energy - expected
        value -= 0.5 * (excess**2 / spread + np.log(spread))
        if gradient:
            pressure = excess / spread  # d log p / d expected
            Ga = inverse @ (G @ a)
            Ga = Ga - inverse @ line
            dS = dS + pressure * (inverse @ G @ inverse - np.outer(Ga, a) - np.outer(a, Ga))
            # K is symmetric, so twice one half stands for the half and its transpose
            dAK = 2.0 * pressure * (outer @ (AKG + s2 * f.energy_cross.T))
            d_scale += pressure * f.energy_total
            d_noise += pressure * (
                f.energy_total
                + float(np.vdot(outer, cross))
                + 2.0 * s2 * float(np.vdot(outer, f.energy_noise_gram))
            )
            if f.energy_centre is not None:
                dAK = dAK - 2.0 * pressure * np.outer(a, f.energy_gram @ f.energy_centre)
                d_noise -= 2.0 * pressure * float(a @ (f.energy_cross.T @ f.energy_centre))
    if pull is None:
        return Fit(value, L, a, spread, None)
    d_noise += float(np.vdot(dS, f.noise_gram))
    d_scale += float(np.vdot(dS, f.residual_gram))
    dK = f.pull(f.pull(dS).T + dAK)  # dS is symmetric
    if f.scatter is not None:
        f.average_pull(dK, -np.einsum("ij,ij->j", f.scatter, dS @ f.scatter))
    slope = pull(dK) + d_scale * variance_gradient(f, kernel, nodes)
    return Fit(value, L, a, spread, np.append(slope, d_noise * s2))


@dataclass(frozen=True)
class Bending:
    """The evidence with changes of the function, one or two at a time: updates of rank one.

    A change with values g at the nodes adds ``u u^T``, ``u = A g``, to cov(t). What does not
    depend on hyperparameters is computed once.

    Attributes
    ----------
    functionals, measurement : the measured functionals, and their noisy values
    shapes : g, (nodes, changes)
    moved : U = A g, (measured, changes)
    squares : (changes,), g^T G g
    pulled : g^T G, (changes, nodes)
    crossed : g^T H, (changes, measured)
    pairs : (pairs, 2), the changes of which two at a time are looked at

    """

    functionals: Functionals
    measurement: Measurement
    shapes: Array
    moved: Array
    squares: Array
    pulled: Array
    crossed: Array
    pairs: Integers  # (pairs, 2), the changes of which two at a time are looked at

    @property
    def sets(self) -> int:
        """How many sets of changes are looked at."""
        return 1 + int(self.shapes.shape[1]) + len(self.pairs)

    @classmethod
    def of(cls, f: Functionals, measurement: Measurement, shapes: Array) -> Bending:
        """All of it from the values of the changes at the nodes, (nodes, changes); without pairs."""
        pulled = shapes.T @ f.energy_gram
        return cls(
            f, measurement, shapes, f.weights @ shapes, np.einsum("ij,ji->i", pulled, shapes), pulled,
            shapes.T @ f.energy_cross,
            np.empty((0, 2), dtype=np.int64),
        )  # fmt: skip

    def log_evidence(
        self, kernel: Kernel, noise_variance: float, nodes: Array
    ) -> tuple[Array, Array]:
        """Log evidences with no change, with every change alone and with the pairs.

        Parameters
        ----------
        kernel, noise_variance
            The hyperparameters.
        nodes
            (nodes, columns), mapped.

        Returns
        -------
        numbers, energy : Array
            (1 + changes + pairs,) each: of the measured numbers, and of the energy given them.

        """
        f, measurement, s2 = self.functionals, self.measurement, noise_variance
        k0 = prior_variance(f, kernel, nodes)
        K = evaluate(kernel, nodes)
        AK, S = _covariances(f, k0, s2, K)
        L, a, base = _with_noise(S, measurement.values, measurement.noise_std)
        U = self.moved
        Q = cho_solve((L, True), U, check_finite=False)
        r = U.T @ a
        one = 1.0 + np.einsum("ij,ij->j", U, Q)
        first, second = self.pairs.T
        d1, d2 = one[first], one[second]
        d12 = np.einsum("ij,ij->j", U[:, first], Q[:, second])
        det = d1 * d2 - d12**2
        h1 = (d2 * r[first] - d12 * r[second]) / det
        h2 = (d1 * r[second] - d12 * r[first]) / det
        out = np.concatenate(
            [
                [base],
                base - 0.5 * np.log(one) + 0.5 * r * r / one,
                base - 0.5 * np.log(det) + 0.5 * (r[first] * h1 + r[second] * h2),
            ]
        )
        if measurement.energy is None:
            return out, np.zeros_like(out)
        AKG = f.energy_of(AK)
        cross = AK @ f.energy_cross
        whole = AKG @ AK.T + s2 * (cross + cross.T) + s2**2 * f.energy_noise_gram
        inverse = cho_solve((L, True), np.eye(len(L)), check_finite=False)
        expected = f.energy_total * (k0 + s2) + float(np.vdot(np.outer(a, a) - inverse, whole))
        spread = measurement.energy_noise_std**2 + _energy_variance(f, K, AK, L, a, s2)
        lead = self.pulled @ AK.T + s2 * self.crossed  # (changes, measured)
        WQ = whole @ Q
        along = lead @ a - WQ.T @ a
        if f.energy_centre is not None:
            about, line = _about_centre(f, AKG, s2)
            expected += about - 2.0 * float(a @ line)
            along = along - (self.pulled @ f.energy_centre - Q.T @ line)
        height, left = r / one, 1.0 / one
        square = np.maximum(
            self.squares + np.einsum("ij,ij->j", Q, WQ) - 2.0 * np.einsum("ij,ji->i", lead, Q), 0.0
        )
        e1, e2 = square[first], square[second]
        e12 = (
            np.einsum("ij,ji->i", self.pulled[first], self.shapes[:, second])
            + np.einsum("ij,ij->j", Q[:, first], WQ[:, second])
            - np.einsum("ij,ji->i", lead[first], Q[:, second])
            - np.einsum("ij,ji->i", lead[second], Q[:, first])
        )
        l1, l2, l12 = d2 / det, d1 / det, -d12 / det
        p1 = along[first] + h1 * e1 + h2 * e12
        p2 = along[second] + h2 * e2 + h1 * e12
        mean = expected + np.concatenate(
            [
                [0.0],
                2.0 * height * along + (height**2 + left) * square,
                2.0 * (h1 * along[first] + h2 * along[second])
                + (h1**2 + l1) * e1
                + (h2**2 + l2) * e2
                + 2.0 * (h1 * h2 + l12) * e12,
            ]
        )
        m11, m12 = l1 * e1 + l12 * e12, l1 * e12 + l12 * e2
        m21, m22 = l12 * e1 + l2 * e12, l12 * e12 + l2 * e2
        spreads = spread + np.concatenate(
            [
                [0.0],
                4.0 * left * (along + height * square) ** 2 + 2.0 * (left * square) ** 2,
                4.0 * (l1 * p1**2 + l2 * p2**2 + 2.0 * l12 * p1 * p2)
                + 2.0 * (m11**2 + m22**2 + 2.0 * m12 * m21),
            ]
        )
        spreads = np.maximum(spreads, spread)
        return out, -0.5 * ((measurement.energy - mean) ** 2 / spreads + np.log(spreads))


def prior_variance(f: Functionals, kernel: Kernel, nodes: Array) -> float:
    """K(x, x); if it varies, its mean over the (mapped) nodes, weighted as the energy weights them."""
    found = constant_variance(kernel)
    return mean_variance(kernel, nodes, _energy_weights(f)) if found is None else found


def variance_gradient(f: Functionals, kernel: Kernel, nodes: Array) -> Array:
    """The gradient of ``prior_variance`` with respect to kernel.theta, (parameters,)."""
    if constant_variance(kernel) is not None:
        return value_and_pullback(kernel, nodes[:1])[1](np.ones((1, 1)))
    weights = _energy_weights(f)
    return value_and_pullback(kernel, nodes)[1](np.diag(weights / weights.sum()))


def _energy_weights(f: Functionals) -> Array:
    """How much of the energy lies at every node, (nodes,); equal if none is measured."""
    weights = np.maximum(f.energy_gram.sum(axis=1), 0.0)
    return weights if weights.sum() > 0.0 else np.ones(len(weights))


def _about_centre(f: Functionals, AKG: Array, s2: float) -> tuple[float, Array]:
    """``sum e_i o_i^2`` and the sum of ``e_i o_i cov(t, y_i)``, where squares are about a function o."""
    o = f.energy_centre
    if o is None:
        return 0.0, np.zeros(len(AKG))
    return float(o @ f.energy_gram @ o), AKG @ o + s2 * (f.energy_cross.T @ o)


def _energy_variance(f: Functionals, K: Array, AK: Array, L: Array, a: Array, s2: float) -> float:
    """Variance of ``sum e_i y_i^2`` given t: 2 tr(V^2) + 4 m^T V m with V the posterior of y.

    In the smaller trace term the energy's weights are lumped at the nodes.
    """
    half = solve_triangular(L, AK, lower=True, check_finite=False)
    V = K - half.T @ half
    mean = AK.T @ a
    if f.energy_centre is not None:
        mean = mean - f.energy_centre
    Gm = f.energy_gram @ mean
    lumped = np.maximum(f.energy_gram.sum(axis=1), 0.0)
    scatter = lumped @ np.square(V) @ lumped + 2.0 * s2 * float(lumped @ np.diag(V))
    shift = float(Gm @ (V @ Gm)) + s2 * float(mean @ Gm)
    return float(2.0 * max(scatter + s2**2 * f.energy_total, 0.0) + 4.0 * max(shift, 0.0))
