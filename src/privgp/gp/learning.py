"""Hyperparameters learned from the measurements alone, and averaged over.

A weak public prior on the logarithms, several starts, a Laplace approximation at the best, and
weighted draws around it: all post-processing of what was already measured, so free of budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, ndtri
from scipy.stats import chi2, qmc

from privgp.gp.evidence import Fit, fit
from privgp.gp.functionals import Functionals
from privgp.gp.measurement import Measurement
from privgp.gp.priors import Hyperparameters, Prior
from privgp.types import Array

DRAWS = 24
TAIL = 6.0  # degrees of freedom of the draws: heavier than the Laplace approximation
KEPT_WEIGHT = 1e-3
KEPT_MAP = 0.01
FAR = 30.0  # standard deviations of the prior: nothing plausible lies there


def learn(
    functionals: Functionals, measurement: Measurement, priors: Sequence[Prior]
) -> tuple[Hyperparameters, ...]:
    """Weighted models, most plausible first, over all input maps among the priors."""
    peaks: list[_Peak] = []
    for prior in priors:
        # Maps share their parameters, so the first one's peak is a good start for the others.
        starts = [peaks[0].z] if peaks else _starts(prior.size)
        peaks.append(_climb(functionals, measurement, prior, starts))
    laplace = np.array([peak.laplace_evidence for peak in peaks])
    kept = np.flatnonzero(laplace - logsumexp(laplace) > np.log(KEPT_MAP))
    models: list[Hyperparameters] = []
    logs: list[float] = []
    for i in kept:
        for model, log_weight in _draws(functionals, measurement, peaks[i]):
            models.append(model)
            logs.append(log_weight)
    weights = np.exp(np.array(logs) - np.max(logs))
    weights /= weights.sum()
    strong = np.flatnonzero(weights >= KEPT_WEIGHT)
    strong = strong[np.argsort(-weights[strong], kind="stable")]
    total = weights[strong].sum()
    return tuple(
        Hyperparameters(
            models[i].kernel, models[i].noise_variance, models[i].input_map, weights[i] / total
        )
        for i in strong
    )


@dataclass(frozen=True)
class _Peak:
    prior: Prior
    z: Array
    log_posterior: float
    precision: Array

    @property
    def laplace_evidence(self) -> float:
        return self.log_posterior - 0.5 * float(np.linalg.slogdet(self.precision)[1])


def _explain(
    functionals: Functionals,
    measurement: Measurement,
    prior: Prior,
    nodes: Array,
    z: Array,
    energy_variance: float | None = None,
    gradient: bool = False,
) -> tuple[float, Fit]:
    model = prior.at(z)
    result = fit(
        functionals,
        measurement,
        model.kernel,
        model.noise_variance,
        nodes,
        gradient=gradient,
        energy_variance=energy_variance,
    )
    return result.log_evidence - 0.5 * float(z @ z), result


def _climb(
    functionals: Functionals, measurement: Measurement, prior: Prior, starts: Sequence[Array]
) -> _Peak:
    """The best hyperparameters from these starts, with the curvature there."""
    nodes = prior.start.input_map(functionals.nodes)
    count = prior.size - prior.noise_free

    def slope(z: Array, spread: float) -> tuple[float, Array]:
        value, result = _explain(functionals, measurement, prior, nodes, z, spread, True)
        assert result.gradient is not None
        inner = result.gradient if prior.noise_free else result.gradient[:count]
        return value, prior.root.T @ inner - z

    def descend(z: Array, spread: float) -> tuple[float, Array]:
        if np.any(np.abs(z) > FAR):  # a steep first step: turn back before it overflows
            return 1e300, np.zeros_like(z)
        try:
            value, inner = slope(z, spread)
        except np.linalg.LinAlgError:
            return 1e300, np.zeros_like(z)
        return -value, -inner

    best: tuple[float, Array, float] | None = None
    for start in starts:
        z = start
        for steps in (12, 25):
            spread = _explain(functionals, measurement, prior, nodes, z)[1].energy_variance or 1.0
            options = {"maxiter": steps, "ftol": 1e-6}
            z = minimize(descend, z, (spread,), method="L-BFGS-B", jac=True, options=options).x
        value, result = _explain(functionals, measurement, prior, nodes, z)
        if best is None or value > best[0]:
            best = value, z, result.energy_variance or 1.0
    assert best is not None
    value, z, spread = best
    step = 1e-3
    rows = [
        (slope(z - step * axis, spread)[1] - slope(z + step * axis, spread)[1]) / (2.0 * step)
        for axis in np.eye(prior.size)
    ]
    return _Peak(prior, z, value, _at_least_prior(np.array(rows).reshape(prior.size, prior.size)))


def _starts(size: int) -> list[Array]:
    """The prior's centre, and shorter lengthscales with less noise."""
    return [np.zeros(size), np.full(size, -0.8)] if size else [np.zeros(0)]


def _at_least_prior(precision: Array) -> Array:
    """Symmetrise and keep every direction between half the prior's precision and a sane maximum."""
    values, vectors = np.linalg.eigh(0.5 * (precision + precision.T))
    return np.asarray((vectors * np.clip(values, 0.5, 1e8)) @ vectors.T)


def _draws(
    functionals: Functionals, measurement: Measurement, peak: _Peak
) -> list[tuple[Hyperparameters, float]]:
    """Importance-weighted draws from a Student-t about the peak, on a fixed low-discrepancy set."""
    prior, size = peak.prior, peak.prior.size
    if size == 0:
        return [(prior.at(peak.z), peak.log_posterior)]
    nodes = prior.start.input_map(functionals.nodes)
    uniform = qmc.Halton(size + 1, scramble=True, rng=np.random.default_rng(1)).random(DRAWS)
    uniform = np.clip(uniform, 1e-6, 1 - 1e-6)
    spherical = ndtri(uniform[:, :size])
    stretch = np.sqrt(TAIL / chi2.ppf(uniform[:, size], TAIL))
    spherical *= stretch[:, None]
    values, vectors = np.linalg.eigh(peak.precision)
    offsets = spherical @ (vectors / np.sqrt(values)).T
    log_proposal = -0.5 * (TAIL + size) * np.log1p(np.square(spherical).sum(axis=1) / TAIL)
    log_proposal += 0.5 * np.log(values).sum()
    out = []
    for offset, proposal in zip(offsets, log_proposal, strict=True):
        try:
            value, _ = _explain(functionals, measurement, prior, nodes, peak.z + offset)
        except np.linalg.LinAlgError:
            continue
        out.append((prior.at(peak.z + offset), value - float(proposal)))
    return out
