"""Hyperparameters learned from the measurements alone, and averaged over.

A weak public prior on the logarithms, several starts, a Laplace approximation at the best, and
weighted draws around it: all post-processing of what was already measured, so free of budget. With
every draw the function may bend: in a few places it may change as its kernel does not expect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, ndtri
from scipy.stats import chi2, qmc

from privgp.gp.changes import list_changes, values
from privgp.gp.functionals import Functionals
from privgp.gp.inference.evidence import Bending, Fit, condition, fit
from privgp.gp.kernels.evaluate import variance
from privgp.gp.measurement import Measurement
from privgp.gp.priors import Hyperparameters, Prior
from privgp.types import Array, Integers

DRAWS = 32  # of the hyperparameters, about each proposal
ROUNDS = 3
ENOUGH = 12.0  # effective draws
TAIL = 6.0  # degrees of freedom of the draws: heavier than the Laplace approximation
MODELS = 64  # the approximate number of models that are kept
FIRST_MODELS = 112  # the approximate number that they are chosen from
FAR = 30.0  # standard deviations of the prior: nothing plausible lies there
PAIRED = 32  # the most plausible changes, of which two may come together
# Prior probabilities of no change, one and two: along one input, and on maps.
ALONG, ACROSS = (0.25, 0.45, 0.3), (0.4, 0.4, 0.2)
CHANGE_STD = 1.6  # std of a change's height, as a multiple of the function's


def learn(
    functionals: Functionals, measurement: Measurement, priors: Sequence[Prior]
) -> tuple[Hyperparameters, ...]:
    """Weighted models, most plausible first, over all input maps among the priors."""
    std = CHANGE_STD * float(np.sqrt(variance(priors[0].start.kernel)))
    cells, shares = list_changes(functionals.nodes, std)
    shapes = values([cell.change for cell in cells], functionals.nodes)
    bending = Bending.of(functionals, measurement, shapes)
    first = priors[0]
    peak = _climb(functionals, measurement, first, _starts(first.size))
    alone = _alone(bending, first, peak, shares)
    best = np.argsort(-alone.logs, kind="stable")[:PAIRED]
    pairs = np.array(list(combinations(np.sort(best), 2)), dtype=np.int64).reshape(-1, 2)
    bending = replace(bending, pairs=pairs)
    both = 2.0 * shares[pairs[:, 0]] * shares[pairs[:, 1]]
    none, one, two = ALONG if functionals.nodes.shape[1] == 1 else ACROSS
    log_shares = np.log(np.concatenate([[none], one * shares, two * both]))
    sets = [(), *((i,) for i in range(len(cells))), *map(tuple, pairs)]
    bent = _climb(functionals, measurement, first, [alone.z], bending.shapes[:, best[:1]])
    drawn = _weighted(bending, priors, [peak, bent], log_shares)
    weights = np.exp(drawn.logs - logsumexp(drawn.logs))
    rng, last = np.random.default_rng(2), -1
    models, logs = [], []
    for i, weight in sorted(_thinned(weights.ravel(), FIRST_MODELS)):
        draw, chosen = divmod(i, len(sets))
        if draw != last:
            plain = priors[drawn.of[draw]].at(drawn.z[draw])
            smooth, last = plain.covariance(functionals.nodes), draw
        model = replace(plain, changes=tuple(cells[j].anywhere(rng) for j in sets[chosen]))
        try:
            ours = condition(functionals, measurement, model, smooth)
        except np.linalg.LinAlgError:  # the budget is spent, so the others must do
            continue
        # The weight so far is that of listed changes and normal noise. This model has changes near
        # the listed ones, and the noise as it is.
        logs.append(np.log(weight) + ours.log_evidence - drawn.normal[draw, chosen])
        models.append(model)
    if not models:
        return (first.at(peak.z),)
    weights = np.exp(logs - logsumexp(logs))
    kept = [replace(models[i], weight=weight) for i, weight in _thinned(weights, MODELS)]
    return tuple(sorted(kept, key=lambda model: -model.weight))


def most_plausible(
    functionals: Functionals, measurement: Measurement, prior: Prior
) -> Hyperparameters:
    """The best model without changes: where ``learn`` starts."""
    return prior.at(_climb(functionals, measurement, prior, _starts(prior.size)).z)


@dataclass(frozen=True)
class _Drawn:
    """Draws ``z`` of the hyperparameters, ``of`` which prior each is, and, with every set of changes,
    log weights and log evidences of the measured numbers with normal noise."""

    z: Array
    of: Integers
    logs: Array
    normal: Array


@dataclass(frozen=True)
class _Proposal:
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
        """Up to a constant that all proposals share."""
        away = z - self.z
        squares = np.einsum("ij,jk,ik->i", away, self.precision, away)
        log_det = float(np.linalg.slogdet(self.precision)[1])
        return np.asarray(0.5 * log_det - 0.5 * (TAIL + len(self.z)) * np.log1p(squares / TAIL))


def _weighted(
    bending: Bending, priors: Sequence[Prior], proposals: list[_Proposal], log_shares: Array
) -> _Drawn:
    """Draws weighted against the mixture of all proposals.

    While too few of them carry the weight, a proposal with the moments of all is added.
    """
    nodes = [prior.start.input_map(bending.functionals.nodes) for prior in priors]
    z, of, logs, normal = [], [], [], []
    fresh = proposals
    for round_ in range(ROUNDS):
        for proposal in fresh:
            for k, prior in enumerate(priors):
                for one in proposal.draws(DRAWS // len(priors), 1 + 10 * round_ + k):
                    numbers, all_ = _log_posterior(bending, prior, nodes[k], one)
                    z.append(one)
                    of.append(k)
                    logs.append(all_)
                    normal.append(numbers)
        drawn = np.array(z)
        density = logsumexp([p.log_density(drawn) for p in proposals], axis=0)
        weighted = np.array(logs) + log_shares - density[:, None]
        totals = logsumexp(weighted, axis=1)
        w = np.exp(totals - logsumexp(totals))
        if 1.0 / np.square(w).sum() >= ENOUGH or not priors[0].size:
            break
        centre = w @ drawn
        spread = (drawn - centre).T @ ((drawn - centre) * w[:, None])
        fresh = [_Proposal(centre, np.linalg.inv(spread + 0.05 * np.eye(len(centre))))]
        proposals = [*proposals, *fresh]
    return _Drawn(drawn, np.array(of), weighted, np.array(normal))


def _log_posterior(bending: Bending, prior: Prior, nodes: Array, z: Array) -> tuple[Array, Array]:
    """The evidence of the measured numbers, and the posterior of one draw up to the shares of sets of
    changes: each with every set."""
    model = prior.at(z)
    try:
        numbers, energy = bending.log_evidence(model.kernel, model.noise_variance, nodes)
    except np.linalg.LinAlgError:
        none = np.full(bending.sets, -np.inf)
        return none, none
    return numbers, numbers + energy - 0.5 * float(z @ z)


def _thinned(weights: Array, count: int) -> Iterator[tuple[int, float]]:
    """About ``count`` indices that stand for all: the heavy ones, and a systematic sample of the
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


@dataclass(frozen=True)
class _Alone:
    """``logs``: how plausible every change is alone; ``z``: where the best of them is."""

    logs: Array
    z: Array


def _alone(bending: Bending, prior: Prior, peak: _Proposal, shares: Array) -> _Alone:
    """Changes at the peak without any, and with the prior's lengthscales, which need them more."""
    nodes = prior.start.input_map(bending.functionals.nodes)
    tried = [peak.z, np.append(np.zeros(prior.size - 1), peak.z[-1:])] if prior.size else [peak.z]
    logs = np.array([_log_posterior(bending, prior, nodes, z)[1][1:] for z in tried]) + np.log(
        shares
    )
    return _Alone(logs.max(axis=0), tried[int(np.argmax(logs.max(axis=1)))])


def _climb(
    functionals: Functionals,
    measurement: Measurement,
    prior: Prior,
    starts: Sequence[Array],
    changes: Array | None = None,
) -> _Proposal:
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
    for start in starts:
        z = start
        for steps in (12, 25):
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
    step = 1e-3
    rows = [
        (slope(z - step * axis, spread)[1] - slope(z + step * axis, spread)[1]) / (2.0 * step)
        for axis in np.eye(prior.size)
    ]
    return _Proposal(z, _at_least_prior(np.array(rows).reshape(prior.size, prior.size)))


def _starts(size: int) -> list[Array]:
    """The prior's centre, and shorter lengthscales with less noise."""
    return [np.zeros(size), np.full(size, -0.8)] if size else [np.zeros(0)]


def _at_least_prior(precision: Array) -> Array:
    """Symmetrise and keep every direction between half the prior's precision and a sane maximum."""
    values, vectors = np.linalg.eigh(0.5 * (precision + precision.T))
    return np.asarray((vectors * np.clip(values, 0.5, 1e8)) @ vectors.T)
