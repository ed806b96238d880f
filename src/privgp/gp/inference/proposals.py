"""Where hyperparameters are drawn from: the best ones, and the curvature about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln, ndtri
from scipy.stats import chi2, qmc

from privgp.gp.inference.evidence import Fit, fit
from privgp.gp.measurement import Functionals, Measurement
from privgp.gp.priors import Prior
from privgp.types import Array

TAIL = 6.0  # degrees of freedom of the draws: heavier than the Laplace approximation
FAR = 30.0  # standard deviations of the prior: nothing plausible lies there
STEP = 1e-3  # of differences between slopes


@dataclass(frozen=True)
class Proposal:
    """Where hyperparameters are drawn from: a Student-t about ``z``, of the precision that ``curvature`` finds
    when it is asked for."""

    z: Array
    curvature: Callable[[], Array]

    @cached_property
    def precision(self) -> Array:
        return self.curvature()

    def draws(self, count: int, seed: int) -> Array:
        """Draws on a fixed low-discrepancy set."""
        size = len(self.z)
        if size == 0:
            return self.z[None, :]
        uniform = qmc.Halton(size + 1, scramble=True, rng=np.random.default_rng(seed)).random(count)
        uniform = np.clip(uniform, 1e-6, 1 - 1e-6)
        spherical = ndtri(uniform[:, :size])
        spherical *= np.sqrt(TAIL / chi2.ppf(uniform[:, size], TAIL))[:, None]
        values, vectors = np.linalg.eigh(self.precision)
        return np.asarray(self.z + spherical @ (vectors / np.sqrt(values)).T)

    def log_density(self, z: Array) -> Array:
        """Over the constant of a standard normal density of as many numbers, and up to a constant that all
        proposals share."""
        away, size = z - self.z, len(self.z)
        squares = np.einsum("ij,jk,ik->i", away, self.precision, away)
        log_det = float(np.linalg.slogdet(self.precision)[1])
        constant = float(gammaln(0.5 * (TAIL + size))) - 0.5 * size * np.log(0.5 * TAIL)
        return np.asarray(constant + 0.5 * log_det - 0.5 * (TAIL + size) * np.log1p(squares / TAIL))


def climb(
    functionals: Functionals,
    measurement: Measurement,
    prior: Prior,
    starts: Sequence[Array],
    changes: Array | None = None,
) -> Proposal:
    """The best hyperparameters from these starts, with the curvature there."""
    nodes = prior.start.input_map(functionals.nodes)
    count = len(prior.centre) - prior.noise_free

    def explain(z: Array, spread: float | None = None, gradient: bool = False) -> tuple[float, Fit]:
        model = prior.at(z)
        result = fit(
            functionals,
            measurement,
            model.kernel,
            model.noise_variance,
            nodes,
            gradient=gradient,
            energy_variance=spread,
            changes=changes,
        )
        return result.log_evidence - 0.5 * float(z @ z), result

    def slope(z: Array, spread: float) -> tuple[float, Array]:
        value, result = explain(z, spread, True)
        assert result.gradient is not None
        inner = result.gradient if prior.noise_free else result.gradient[:count]
        return value, prior.root.T @ inner - z

    def descend(z: Array, spread: float, first: float) -> tuple[float, Array]:
        if np.any(np.abs(z) > FAR):  # a steep first step: turn back before it overflows
            return 1e300, np.zeros_like(z)
        try:
            value, inner = slope(z, spread)
        except np.linalg.LinAlgError:
            return 1e300, np.zeros_like(z)
        return first - value, -inner  # about 0, so that units of y do not decide when to stop

    best: tuple[float, Array, float] | None = None
    # the variance of the energy is found anew on the way, if there is energy
    legs = (37,) if measurement.energy is None else (12, 25)
    for start in starts:
        z = start
        for steps in legs:
            first, result = explain(z)
            spread = result.energy_variance or 1.0
            options = {"maxiter": steps, "ftol": 1e-6}
            given = (spread, first)
            z = minimize(descend, z, given, method="L-BFGS-B", jac=True, options=options).x
        value, result = explain(z)
        if best is None or value > best[0]:
            best = value, z, result.energy_variance or 1.0
    assert best is not None
    value, z, spread = best

    def curvature() -> Array:
        steps, size = STEP * np.eye(prior.size), prior.size
        rows = [slope(z - step, spread)[1] - slope(z + step, spread)[1] for step in steps]
        return _at_least_prior(np.reshape(rows, (size, size)) / (2.0 * STEP))

    return Proposal(z, curvature)


def starts(size: int) -> list[Array]:
    """The prior's centre, and shorter lengthscales with less noise."""
    return [np.zeros(size), np.full(size, -0.8)] if size else [np.zeros(0)]


def start_from(z: Array, prior: Prior, other: Prior) -> Array:
    """Where to climb under another prior from a peak of this one, which has as many moves or fewer: further
    moves stand before that of the noise variance."""
    noise = int(prior.noise_free and other.noise_free)
    count = len(z) - noise
    return np.concatenate([z[:count], np.zeros(other.size - len(z)), z[count:]])


def _at_least_prior(precision: Array) -> Array:
    """Symmetrise and keep every direction between half the prior's precision and a sane maximum."""
    values, vectors = np.linalg.eigh(0.5 * (precision + precision.T))
    return np.asarray((vectors * np.clip(values, 0.5, 1e8)) @ vectors.T)


def thin_weights(weights: Array, count: int) -> Iterator[tuple[int, float]]:
    """About ``count`` indices that represent all: the heavy ones, and a systematic sample of the
    others, which share their weight equally."""
    heavy = weights >= 1.0 / count
    for i in np.flatnonzero(heavy):
        yield int(i), float(weights[i])
    light = np.flatnonzero(~heavy)
    rest = np.cumsum(weights[light])
    if len(light) and rest[-1] > 0.0:
        number = max(1, round(float(rest[-1]) * count))
        steps = rest[-1] * (np.arange(number) + 0.5) / number
        picked, times = np.unique(light[np.searchsorted(rest, steps)], return_counts=True)
        for i, n in zip(picked, times, strict=True):
            yield int(i), float(n * rest[-1] / number)
