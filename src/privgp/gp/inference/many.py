"""Learning from many measured numbers, where the data speak and few models are left.

Hyperparameters are learned on some hundred of the numbers. The most plausible models are then
conditioned on all numbers and weighted by the evidence of all. The variance of outputs about the
function follows from the measured sum of squares. Everything is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from privgp.gp.inference.evidence import condition, fit
from privgp.gp.inference.proposals import climb, start_from, starts, thin_weights
from privgp.gp.measurement import Functionals, Measurement
from privgp.gp.priors import Hyperparameters, Prior
from privgp.types import Array

FIRST, SECOND = 160, 400  # numbers on which priors are compared, and on which the best are learned
RUNS = 5  # of neighbouring numbers, into which samples of them are divided
DRAWS = 16  # of the hyperparameters, about the best of every prior that is left
MODELS = 8  # the approximate number of models that are kept
FAR = 6.0  # of log evidence below the best: a prior that far is left out
LEAST_NOISE = 1e-3  # of the prior's noise variance


def learn_many(
    functionals: Functionals, measurement: Measurement, priors: Sequence[Prior]
) -> tuple[Hyperparameters, ...]:
    """Weighted models, most plausible first, from many measured numbers.

    Laplace noise counts by its standard deviation.
    """
    numbers = replace(measurement, is_laplace=False, energy=None)
    some, first = sample(functionals, numbers, FIRST), _with_noise(priors[0])
    top = climb(*some, first, starts(first.size))
    noise = noise_variance(functionals, measurement, first.at(top.z))
    held = [_with_noise(prior, noise) for prior in priors]
    tried = [climb(*some, prior, [start_from(top.z, first, prior)]) for prior in held]
    values = np.array([_log_posterior(*some, p, t.z) for p, t in zip(held, tried, strict=True)])
    left = [i for i in np.argsort(-values) if values[i] > values.max() - FAR]
    some = sample(functionals, numbers, SECOND)
    models, logs = [], []
    for i in left:
        prior = held[i]
        peak = climb(*some, prior, [tried[i].z])
        draws = np.vstack([peak.z[None, :], peak.draws(DRAWS, 1 + int(i))])
        for z in draws:
            models.append(prior.at(z))
            logs.append(_log_posterior(*some, prior, z) - float(peak.log_density(z[None, :])[0]))
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
    noise = prior.start.noise_variance if noise is None else noise
    count, moves = len(prior.centre) - prior.noise_free, prior.size - prior.noise_free
    return Prior(
        start=replace(
            prior.start, noise_variance=noise if prior.noise_free else prior.start.noise_variance
        ),
        centre=prior.centre[:count],
        root=prior.root[:count, :moves],
        noise_free=False,
    )


def _log_posterior(f: Functionals, measurement: Measurement, prior: Prior, z: Array) -> float:
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
    for i, weight in thin_weights(weights, MODELS):
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
