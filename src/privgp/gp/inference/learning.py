"""Hyperparameters learned from the measurements alone, and averaged over.

A weak public prior on the logarithms, several starts, a Laplace approximation at the best, and
weighted draws around it: all post-processing of what was already measured, so free of budget. With
every draw the function may bend: in a few places it may change as its kernel does not expect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp, ndtri
from scipy.stats import chi2, qmc

from privgp.gp.changes import halve, list_changes, values
from privgp.gp.inference.evidence import Bending, Fit, condition, fit
from privgp.gp.kernels.evaluate import mean_variance
from privgp.gp.measurement import Functionals, Measurement
from privgp.gp.priors import Hyperparameters, Prior
from privgp.types import Array, Integers

ROUGHNESS_SHOWS = 24  # numbers from which on they can tell a rough function from a smooth one
ROUGH_SHARE = 0.2  # prior probability of every rougher prior, over that of the others together
ROUGH_DRAWS = 16
ROUGH_MODELS = 20  # the approximate number that is kept of these, which have no changes
MANY = 160  # numbers from which on changes of the function show on their own
DRAWS = 32  # of the hyperparameters, about each proposal
ROUNDS = 3
ENOUGH = 12.0  # effective draws
MODELS = 64  # the approximate number of models that are kept
FIRST_MODELS = 112  # the approximate number that they are chosen from
HALVINGS = 6  # of listed changes, at most
HEAVY = 0.2  # weight from which on a listed change is halved
PAIRED = 32  # the most plausible changes, of which two may come together
# Prior probabilities of no change, one and two: along one input, and on maps.
ALONG, ACROSS = (0.25, 0.45, 0.3), (0.4, 0.4, 0.2)
CHANGE_STD = 1.6  # std of a change's height, as a multiple of the function's


def learn(
    functionals: Functionals,
    measurement: Measurement,
    priors: Sequence[Prior],
    rough: Sequence[Prior] = (),
) -> tuple[Hyperparameters, ...]:
    """Weighted models, most plausible first.

    Parameters
    ----------
    functionals, measurement
        The measured functionals, and their noisy values.
    priors
        One per input map.
    rough
        Priors of rougher functions, which many numbers are compared with too.

    """
    rough = rough if len(measurement.values) >= ROUGHNESS_SHOWS else ()
    if len(measurement.values) > MANY:
        return learn_many(functionals, measurement, [*priors, *rough])
    std = CHANGE_STD * float(np.sqrt(mean_variance(priors[0].start.kernel, functionals.nodes)))
    cells, shares = list_changes(functionals.nodes, std)
    first = priors[0]
    peak = climb(functionals, measurement, first, starts(first.size))
    for halving in range(HALVINGS + 1):
        shapes = values([cell.change for cell in cells], functionals.nodes)
        bending = Bending.of(functionals, measurement, shapes)
        alone = _alone(bending, first, peak, shares)
        heavy = np.exp(alone.logs - logsumexp(alone.logs)) > HEAVY
        if halving == HALVINGS or not heavy.any():
            break
        cells, shares = halve(cells, shares, heavy)
    best = np.argsort(-alone.logs, kind="stable")[:PAIRED]
    pairs = np.array(list(combinations(np.sort(best), 2)), dtype=np.int64).reshape(-1, 2)
    bending = replace(bending, pairs=pairs)
    both = 2.0 * shares[pairs[:, 0]] * shares[pairs[:, 1]]
    none, one, two = ALONG if functionals.nodes.shape[1] == 1 else ACROSS
    log_shares = np.log(np.concatenate([[none], one * shares, two * both]))
    sets = [(), *((i,) for i in range(len(cells))), *map(tuple, pairs)]
    bent = climb(functionals, measurement, first, [alone.z], bending.shapes[:, best[:1]])
    families = [tuple(priors), *((prior,) for prior in rough)]
    drawn = [_weigh_draws(bending, priors, [peak, bent], log_shares, DRAWS)]
    unbent = Bending.of(functionals, measurement, shapes[:, :0])
    for prior in rough:
        top = climb(functionals, measurement, prior, [start_from(peak.z, first, prior)])
        drawn.append(_weigh_draws(unbent, [prior], [top], np.log([ROUGH_SHARE]), ROUGH_DRAWS))
    sizes = [each.logs.size for each in drawn]
    weights = np.concatenate([each.logs.ravel() for each in drawn])
    weights = np.exp(weights - logsumexp(weights))
    of = np.repeat(np.arange(len(drawn)), sizes)
    place = np.concatenate([np.arange(size) for size in sizes])
    rng, last = np.random.default_rng(2), (-1, -1)
    models, logs, rough_ones = [], [], []
    for i, weight in sorted(thin_weights(weights, FIRST_MODELS)):
        family, (draw, chosen) = int(of[i]), divmod(int(place[i]), drawn[of[i]].logs.shape[1])
        own = drawn[family]
        if (family, draw) != last:
            plain = families[family][own.of[draw]].at(own.z[draw])
            smooth, last = plain.covariance(functionals.nodes), (family, draw)
        model = replace(plain, changes=tuple(cells[j].anywhere(rng) for j in sets[chosen]))
        try:
            ours = condition(functionals, measurement, model, smooth)
        except np.linalg.LinAlgError:  # the budget is spent, so the others must do
            continue
        # The weight so far is that of listed changes and normal noise. This model has changes near
        # the listed ones, and the noise as it is.
        logs.append(np.log(weight) + ours.log_evidence - own.normal[draw, chosen])
        models.append(model)
        rough_ones.append(family > 0)
    if not models:
        return (first.at(peak.z),)
    weights = np.exp(logs - logsumexp(logs))
    count = MODELS - round((MODELS - ROUGH_MODELS) * float(weights @ rough_ones))
    kept = [replace(models[i], weight=weight) for i, weight in thin_weights(weights, count)]
    return tuple(sorted(kept, key=lambda model: -model.weight))


def most_plausible(
    functionals: Functionals, measurement: Measurement, prior: Prior
) -> Hyperparameters:
    """The best model without changes: where ``learn`` starts."""
    return prior.at(climb(functionals, measurement, prior, starts(prior.size)).z)


@dataclass(frozen=True)
class _Drawn:
    """Draws ``z`` of the hyperparameters, ``of`` which prior each is, and, with every set of changes,
    log weights and log evidences of the measured numbers with normal noise."""

    z: Array
    of: Integers
    logs: Array
    normal: Array


def _weigh_draws(
    bending: Bending,
    priors: Sequence[Prior],
    proposals: list[Proposal],
    log_shares: Array,
    draws: int,
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
                for one in proposal.draws(draws // len(priors), 1 + 10 * round_ + k):
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
        about = np.linalg.inv(spread + 0.05 * np.eye(len(centre)))
        fresh = [Proposal(centre, partial(np.asarray, about))]
        proposals = [*proposals, *fresh]
    weighted += np.log(len(proposals) / len(drawn))  # so that they add up to the evidence
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


@dataclass(frozen=True)
class _Alone:
    """``logs``: how plausible every change is alone; ``z``: where the best of them is."""

    logs: Array
    z: Array


def _alone(bending: Bending, prior: Prior, peak: Proposal, shares: Array) -> _Alone:
    """Changes at the peak without any, and with the prior's lengthscales, which need them more."""
    nodes = prior.start.input_map(bending.functionals.nodes)
    tried = [peak.z, np.append(np.zeros(prior.size - 1), peak.z[-1:])] if prior.size else [peak.z]
    logs = np.array([_log_posterior(bending, prior, nodes, z)[1][1:] for z in tried])
    logs += np.log(shares)
    return _Alone(logs.max(axis=0), tried[int(np.argmax(logs.max(axis=1)))])


TAIL = 6.0  # degrees of freedom of the draws: heavier than the Laplace approximation
FAR_OUT = 30.0  # standard deviations of the prior: nothing plausible lies there
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
        if np.any(np.abs(z) > FAR_OUT):  # a steep first step: turn back before it overflows
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


FIRST, SECOND = 160, 400  # numbers on which priors are compared, and on which the best are learned
RUNS = 5  # of neighbouring numbers, into which samples of them are divided
DRAWS_OF_MANY = 16  # of the hyperparameters, about the best of every prior that is left
MODELS_OF_MANY = 8  # the approximate number of models that are kept
TOO_UNLIKELY = 6.0  # of log evidence below the best: a prior that far is left out
LEAST_NOISE = 1e-3  # of the prior's noise variance


def learn_many(
    functionals: Functionals, measurement: Measurement, priors: Sequence[Prior]
) -> tuple[Hyperparameters, ...]:
    """Weighted models, most plausible first, from many measured numbers, where the data speak.

    Hyperparameters are learned on some hundred of the numbers. The most plausible models are then
    conditioned on all numbers and weighted by the evidence of all. The variance of outputs about the
    function follows from the measured sum of squares. Laplace noise counts by its standard deviation.
    """
    numbers = replace(measurement, is_laplace=False, energy=None)
    some, first = sample(functionals, numbers, FIRST), _with_noise(priors[0])
    top = climb(*some, first, starts(first.size))
    noise = noise_variance(functionals, measurement, first.at(top.z))
    held = [_with_noise(prior, noise) for prior in priors]
    tried = [climb(*some, prior, [start_from(top.z, first, prior)]) for prior in held]
    values = np.array(
        [_log_posterior_of_many(*some, p, t.z) for p, t in zip(held, tried, strict=True)]
    )
    left = [i for i in np.argsort(-values) if values[i] > values.max() - TOO_UNLIKELY]
    some = sample(functionals, numbers, SECOND)
    models, logs = [], []
    for i in left:
        prior = held[i]
        peak = climb(*some, prior, [tried[i].z])
        draws = np.vstack([peak.z[None, :], peak.draws(DRAWS_OF_MANY, 1 + int(i))])
        for z in draws:
            models.append(prior.at(z))
            logs.append(
                _log_posterior_of_many(*some, prior, z) - float(peak.log_density(z[None, :])[0])
            )
    weights = np.exp(logs - logsumexp(logs))
    return _weigh_by_all(functionals, measurement, models, weights)


def sample(f: Functionals, measurement: Measurement, count: int) -> tuple[Functionals, Measurement]:
    """About ``count`` of the measured numbers, with the nodes that they are about.

    Neighbours stand together, so runs of them are taken: a function shows there how rough it is.
    """
    if len(f.weights) <= count:
        return f, measurement
    firsts = np.linspace(0, len(f.weights) - count // RUNS, RUNS).astype(np.int64)
    chosen = np.unique(firsts[:, None] + np.arange(count // RUNS))
    nodes = np.flatnonzero(np.any(f.weights[chosen] != 0.0, axis=0))
    square = np.ix_(chosen, chosen)
    some = replace(
        f,
        nodes=f.nodes[nodes],
        weights=f.weights[np.ix_(chosen, nodes)],
        noise_gram=f.noise_gram[square],
        residual_gram=f.residual_gram[square],
        energy_gram=f.energy_gram[np.ix_(nodes, nodes)],
        energy_cross=f.energy_cross[np.ix_(nodes, chosen)],
        energy_noise_gram=f.energy_noise_gram[square],
        fixed_gram=None if f.fixed_gram is None else f.fixed_gram[square],
        energy_centre=None if f.energy_centre is None else f.energy_centre[nodes],
        common=None if f.common is None else f.common[chosen],
    )
    flags = tuple(map(bool, measurement.laplace[chosen]))
    return some, replace(measurement, values=measurement.values[chosen], is_laplace=flags)


def noise_variance(f: Functionals, measurement: Measurement, model: Hyperparameters) -> float:
    """The variance of an output about the function that explains the measured sum of squares."""
    if measurement.energy is None:
        return model.noise_variance
    for _ in range(2):
        numbers = replace(measurement, is_laplace=False)
        K = model.smooth(f.nodes)
        given = condition(f, numbers, model, K)
        AK = f.carry(K)
        half = solve_triangular(given.factor, AK, lower=True, check_finite=False)
        mean = AK.T @ given.solved
        if f.energy_centre is not None:
            mean = mean - f.energy_centre
        explained = float(mean @ f.energy_gram @ mean)
        explained += float(np.vdot(f.energy_gram, K)) - float(np.vdot(f.energy_of(half), half))
        found = (measurement.energy - explained) / f.energy_total
        model = replace(model, noise_variance=max(found, LEAST_NOISE * model.noise_variance))
    return model.noise_variance


def _with_noise(prior: Prior, noise: float | None = None) -> Prior:
    """The prior with this noise variance, or with its own one, which is not free."""
    noise = noise if noise is not None and prior.noise_free else prior.start.noise_variance
    count, moves = len(prior.centre) - prior.noise_free, prior.size - prior.noise_free
    return Prior(
        start=replace(prior.start, noise_variance=noise),
        centre=prior.centre[:count],
        root=prior.root[:count, :moves],
        noise_free=False,
    )


def _log_posterior_of_many(
    f: Functionals, measurement: Measurement, prior: Prior, z: Array
) -> float:
    model = prior.at(z)
    nodes = prior.start.input_map(f.nodes)
    try:
        found = fit(f, measurement, model.kernel, model.noise_variance, nodes)
    except np.linalg.LinAlgError:
        return -np.inf
    return found.log_evidence - 0.5 * float(z @ z)


def _weigh_by_all(
    f: Functionals, measurement: Measurement, models: Sequence[Hyperparameters], weights: Array
) -> tuple[Hyperparameters, ...]:
    """The few that represent all, weighted by the evidence of all numbers."""
    numbers = replace(measurement, is_laplace=False, energy=None)
    some = sample(f, numbers, SECOND)
    kept, logs = [], []
    for i, weight in thin_weights(weights, MODELS_OF_MANY):
        model, more = models[i], 0.0
        if some[0] is not f:
            try:
                whole = condition(f, numbers, model).log_evidence
                more = whole - condition(*some, model).log_evidence
            except np.linalg.LinAlgError:  # the budget is spent, so the others must do
                continue
        kept.append(model)
        logs.append(np.log(weight) + more)
    if not kept:
        return (replace(models[int(np.argmax(weights))], weight=1.0),)
    shares = np.exp(np.array(logs) - logsumexp(logs))
    best = [(m, s) for m, s in zip(kept, shares, strict=True) if s > 1e-3]
    total = sum(s for _, s in best)
    found = (replace(model, weight=float(share / total)) for model, share in best)
    return tuple(sorted(found, key=lambda model: -model.weight))
