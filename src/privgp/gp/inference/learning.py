"""Hyperparameters learned from the measurements alone, and averaged over.

A weak public prior on the logarithms, several starts, a Laplace approximation at the best, and
weighted draws around it: all post-processing of what was already measured, so free of budget. With
every draw the function may bend: in a few places it may change as its kernel does not expect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np
from scipy.special import logsumexp

from privgp.gp.changes import list_changes, values
from privgp.gp.inference.evidence import Bending, condition
from privgp.gp.inference.many import learn_many
from privgp.gp.inference.proposals import Proposal, climb, start_from, starts, thin_weights
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
    shapes = values([cell.change for cell in cells], functionals.nodes)
    bending = Bending.of(functionals, measurement, shapes)
    first = priors[0]
    peak = climb(functionals, measurement, first, starts(first.size))
    alone = _alone(bending, first, peak, shares)
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
    logs = np.array([_log_posterior(bending, prior, nodes, z)[1][1:] for z in tried]) + np.log(
        shares
    )
    return _Alone(logs.max(axis=0), tried[int(np.argmax(logs.max(axis=1)))])
