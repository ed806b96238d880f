"""Where hyperparameters are drawn from: the best ones, and the curvature about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
TOLERANCE = {"ftol": 1e-6}  # of a climb
STEP = 1e-3  # of differences between slopes
Explained = tuple[float, Fit]


@dataclass(frozen=True)
class Proposal:
    """Where hyperparameters are drawn from: a Student-t about ``z`` with this precision."""

    z: Array
    precision: Array

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


@dataclass(frozen=True)
class _Slopes:
    """How plausible hyperparameters of one prior are, and in which direction more so.

    Attributes
    ----------
    functionals, measurement
        What was measured.
    prior : Prior
        Of the hyperparameters.
    changes : array, (nodes, changes), optional
        Changes of the function at the nodes.

    """

    functionals: Functionals
    measurement: Measurement
    prior: Prior
    changes: Array | None

    @cached_property
    def nodes(self) -> Array:
        return self.prior.start.input_map(self.functionals.nodes)

    def explain(
        self, z: Array, spread: float | None = None, *, gradient: bool = False
    ) -> Explained:
        """The log density at z up to a constant, and the fit there; ``spread``: the variance of the energy,
        where it is held fixed."""
        model = self.prior.at(z)
        result = fit(
            self.functionals,
            self.measurement,
            model.kernel,
            model.noise_variance,
            self.nodes,
            gradient=gradient,
            energy_variance=spread,
            changes=self.changes,
        )
        return result.log_evidence - 0.5 * float(z @ z), result

    def slope(self, z: Array, spread: float) -> tuple[float, Array]:
        """The log density and its gradient."""
        value, result = self.explain(z, spread, gradient=True)
        assert result.gradient is not None
        count = len(self.prior.centre) - self.prior.noise_free
        inner = result.gradient if self.prior.noise_free else result.gradient[:count]
        return value, self.prior.root.T @ inner - z

    def descend(self, z: Array, spread: float, first: float) -> tuple[float, Array]:
        """The same downwards, about 0, so that units of y do not decide when to stop."""
        if np.any(np.abs(z) > FAR):  # a steep first step: turn back before it overflows
            return 1e300, np.zeros_like(z)
        try:
            value, inner = self.slope(z, spread)
        except np.linalg.LinAlgError:
            return 1e300, np.zeros_like(z)
        return first - value, -inner

    def peak(self, starts: Sequence[Array]) -> tuple[Array, float]:
        """The best hyperparameters from these starts, and the variance of the energy there."""
        # The variance of the energy is found again on the way; without energy there is none.
        legs = (12, 25) if self.measurement.energy is not None else (37,)
        best: tuple[float, Array, float] | None = None
        for z in starts:
            for steps in legs:
                first, result = self.explain(z)
                given, options = (
                    (result.energy_variance or 1.0, first),
                    {**TOLERANCE, "maxiter": steps},
                )
                z = minimize(self.descend, z, given, method="L-BFGS-B", jac=True, options=options).x
            value, result = self.explain(z)
            if best is None or value > best[0]:
                best = value, z, result.energy_variance or 1.0
        assert best is not None
        return best[1:]

    def curvature(self, z: Array, spread: float) -> Array:
        """Minus the second derivatives at z, (size, size)."""
        steps, size = STEP * np.eye(self.prior.size), self.prior.size
        rows = [self.slope(z - step, spread)[1] - self.slope(z + step, spread)[1] for step in steps]
        return np.reshape(rows, (size, size)) / (2.0 * STEP)


def find_peak(
    functionals: Functionals, measurement: Measurement, prior: Prior, starts: Sequence[Array]
) -> Array:
    """The best hyperparameters from these starts."""
    return _Slopes(functionals, measurement, prior, None).peak(starts)[0]


def climb(
    functionals: Functionals,
    measurement: Measurement,
    prior: Prior,
    starts: Sequence[Array],
    changes: Array | None = None,
) -> Proposal:
    """The best hyperparameters from these starts, with the curvature there."""
    slopes = _Slopes(functionals, measurement, prior, changes)
    z, spread = slopes.peak(starts)
    return Proposal(z, _at_least_prior(slopes.curvature(z, spread)))


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
