"""The Gaussian process behind outcomes with a link, given noisy sums of them.

The measured numbers are ``t = A (g(f) - c)`` plus the scatter of outcomes about g(f) plus noise. Given
mean m and variance v of f at the nodes, g is replaced by the line that fits it best where f plausibly
lies: ``g(f) ~ E g + E g' (f - m)`` (statistical linearisation; with v = 0 a Gauss-Newton step). What is
left is a Gaussian problem with weights ``J = A diag(E g')``, numbers ``t - A (E g - c) + J m`` and the
scatter ``B diag(mass E V) B^T``, which ``condition`` and ``posterior`` solve, Laplace noise included.
Its solution gives the next m and v. An iteration that has not settled costs accuracy only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import logsumexp

from privgp.gp.changes import values
from privgp.gp.inference.evidence import Conditioned, condition
from privgp.gp.inference.learning import learn, most_plausible
from privgp.gp.inference.posterior import Component, Posterior, posterior
from privgp.gp.links import Link
from privgp.gp.measurement import Functionals, Measurement
from privgp.gp.priors import Hyperparameters, Prior
from privgp.types import Array, Integers

GRID = np.geomspace(0.1, 200.0, 301)  # of the variance of a count over its mean
PRIOR_MEAN, PRIOR_STD = 0.4, 1.0  # of its logarithm, which is 0 of a Poisson distribution
CAUTION = 0.8  # the quantile that the function is learned with: too little scatter bends it most


@dataclass(frozen=True)
class Squares:
    """What the measured sum of squares is of: ``sum e_i (y_i - middle)^2``, less the middle of the bounds.

    Attributes
    ----------
    inputs : array, (inputs, columns)
        The places of the rows.
    index : array, (rows,)
        The place of every row.
    expected : array, (rows,)
        What every count would be at the unit rate.
    shares : array, (rows,)
        The factors e_i.
    middle : float
        Of the bounds.
    energy, noise_std : float
        The measured sum, and the std of its noise.
    matrix : array, (measured, inputs)
        Of the sums of counts that were measured beside it.
    row_weights : array, (rows,)
        The factor of every count in these.
    values, sum_std : array, (measured,), and float
        These sums, and the std of their noise.
    repeats : array, (rows,)
        How many rows every entry above stands for.

    """

    inputs: Array
    index: Integers
    expected: Array
    shares: Array
    middle: float
    energy: float
    noise_std: float
    matrix: Array
    row_weights: Array
    values: Array
    sum_std: float
    repeats: Array

    def log_density(self, mean: Array, variance: Array) -> Array:
        """For every dispersion of the grid, up to a constant, (grid,).

        With m_i the mean of a count, ``sum e_i (y_i - middle)^2`` is ``sum e_i (m_i - middle)^2``, plus
        ``2 sum e_i (m_i - middle) (y_i - m_i)``, which the measured sums of counts tell, plus what
        counts scatter about m_i.

        Parameters
        ----------
        mean, variance : array, (inputs,)
            Of the rate over its unit at every place.

        """
        e, g, B = self.shares, self.row_weights, self.matrix
        m, v = self.expected * mean[self.index], self.expected**2 * variance[self.index]
        off, ones = m - self.middle, self.repeats * e
        squares = ones * e

        def at_inputs(values: Array) -> Array:
            sums = np.bincount(self.index, values * self.repeats, minlength=B.shape[1])
            return np.asarray(sums, dtype=np.float64)

        told = B @ at_inputs(e * g * m * off)
        covariance = (B * at_inputs(g * g * m)) @ B.T + self.sum_std**2 * np.eye(len(B))
        carried = np.linalg.solve(covariance, told)
        crossed = float(carried @ (self.values - B @ at_inputs(g * m)))
        found = self.energy - float(ones @ (off**2 + v)) - 2.0 * crossed
        untold = max(float(squares @ (off**2 * m)) - float(carried @ told), 0.0)
        total, each, square = float(ones @ m), float(squares @ m), float(squares @ m**2)
        fourth = GRID * (1.0 + 6.0 * GRID * np.maximum(GRID - 1.0, 0.0)) * each
        spread = self.noise_std**2 + 2.0 * GRID**2 * square + fourth + 4.0 * GRID * untold
        logs = -0.5 * np.square((np.log(GRID) - PRIOR_MEAN) / PRIOR_STD)
        return np.asarray(logs - 0.5 * (found - GRID * total) ** 2 / spread - 0.5 * np.log(spread))


def cautious(logs: Array) -> float:
    """A dispersion that is rather too large than too small, from its log density."""
    return float(_quantiles(logs, np.array([CAUTION]))[0])


def average_over(models: Sequence[Hyperparameters], logs: Array) -> tuple[Hyperparameters, ...]:
    """The models, each with its own dispersion: together they have its distribution."""
    order = np.random.default_rng(4).permutation(len(models))
    weights = np.array([models[i].weight for i in order])
    levels = (np.cumsum(weights) - 0.5 * weights) / weights.sum()
    found = dict(zip(order.tolist(), _quantiles(logs, levels).tolist(), strict=True))
    return tuple(replace(model, noise_variance=found[i]) for i, model in enumerate(models))


def _quantiles(logs: Array, levels: Array) -> Array:
    shares = np.exp(logs - logs.max())
    below = np.cumsum(shares) - 0.5 * shares
    return np.asarray(np.exp(np.interp(levels, below / shares.sum(), np.log(GRID))))


STEPS = (1.0,) * 4 + (0.7,) * 8 + (0.4,) * 8 + (0.2,) * 10  # of the way, one by one
ROUNDS = 2
FEW = 3  # steps from the best model's solution tell how plausible another model is
LEAST = 1e-6  # weights of models below it say nothing
CLOSE = 1e-2  # of the prior's std: how far the mean may still move


@dataclass(frozen=True)
class Outcomes:
    """Noisy sums of outcomes with a link.

    Attributes
    ----------
    functionals : their ``energy_gram`` counts the outcomes near every node
    measurement : noisy sums of the outcomes, less ``centre``
    link : from f to the mean of an outcome
    centre : c, a number or (nodes,): what was subtracted from every outcome before it was summed

    """

    functionals: Functionals
    measurement: Measurement
    link: Link
    centre: float | Array

    def linearise(self, mean: Array, variance: Array) -> tuple[Functionals, Measurement]:
        """The Gaussian problem that stands for this one about f at the nodes.

        Parameters
        ----------
        mean, variance
            (nodes,), where f plausibly lies.

        Returns
        -------
        functionals, measurement
            Whose ``fixed_gram`` holds the scatter of outcomes about their means.

        """
        f, link, A = self.functionals, self.link, self.functionals.weights
        slope = link.average_slope(mean, variance)
        J = A * slope
        moved = A @ (link.average(mean, variance) - self.centre) - J @ mean
        # Where f at a row is not quite that at the nodes, the slope of the rows nearby carries it.
        carried = np.sqrt(_row_averages(A, slope**2))
        fixed = self._scatter(link.average_variance(mean, variance))
        if f.fixed_gram is not None:
            fixed = fixed + f.fixed_gram
        line = replace(
            f,
            weights=J,
            noise_gram=np.zeros_like(f.noise_gram),
            residual_gram=f.residual_gram * np.outer(carried, carried),
            fixed_gram=fixed,
            scatter=None if f.scatter is None else f.scatter * carried[:, None],
        )
        numbers = replace(
            self.measurement, values=self.measurement.values - moved, energy=None, counts=None
        )
        return line, numbers

    def _scatter(self, variance: Array) -> Array:
        """``B diag(mass V) B^T`` from V at the nodes: exact where every input is a node.

        Numbers of different outcomes, such as those of different batches, have a ``noise_gram`` of
        blocks, and what they scatter is independent.
        """
        f = self.functionals
        mass = np.maximum(f.energy_gram.sum(axis=1), 1e-12 * f.energy_total)
        D = f.weights / np.sqrt(mass)
        total = np.maximum(np.square(D).sum(axis=1), 1e-300)
        D = D * np.sqrt(np.diag(f.noise_gram) / total)[:, None]
        blocks = connected_components(csr_array(f.noise_gram), directed=False)[1]
        return np.where(blocks[:, None] == blocks, (D * variance) @ D.T, 0.0)


def _row_averages(A: Array, values: Array) -> Array:
    """The averages of values at the nodes over what every number measures, (measured,)."""
    weights = np.abs(A)
    return np.asarray(weights @ values / np.maximum(weights.sum(axis=1), 1e-300))


@dataclass(frozen=True)
class Settled:
    """One model given outcomes: the Gaussian problem that stands for them, and its solution.

    Attributes
    ----------
    functionals, measurement : the Gaussian problem
    given : that model conditioned on it
    mean, variance : (nodes,), of f at the nodes

    """

    functionals: Functionals
    measurement: Measurement
    given: Conditioned
    mean: Array
    variance: Array

    @property
    def log_evidence(self) -> float:
        return self.given.log_evidence


def settle(
    outcomes: Outcomes,
    model: Hyperparameters,
    near: Settled | None = None,
    steps: Sequence[float] = STEPS,
) -> Settled:
    """Linearise and condition in turn until f at the nodes moves no more.

    Always finite: a step that cannot be made is not made.

    Parameters
    ----------
    outcomes
        The measured outcomes.
    model
        The hyperparameters.
    near
        a solution to start from; the prior by default.
    steps
        The share of the way to go, step by step.

    Raises
    ------
    numpy.linalg.LinAlgError
        Not even the first step could be made.

    """
    nodes = outcomes.functionals.nodes
    smooth = replace(model, changes=()).covariance(nodes)
    K = smooth
    if model.changes:
        heights = values(model.changes, nodes)
        K = smooth + heights @ heights.T
    prior = np.diag(K).copy()
    mean = np.zeros(len(K)) if near is None else near.mean
    variance = prior if near is None else np.minimum(near.variance, prior)
    held: Settled | None = None
    for step in steps:
        line, numbers = outcomes.linearise(mean, variance)
        try:
            given = condition(line, numbers, model, smooth)
        except np.linalg.LinAlgError:
            break
        JK = line.weights @ K
        half = solve_triangular(given.factor, JK, lower=True, check_finite=False)
        left = np.maximum(prior - np.square(half).sum(axis=0), 0.0)
        found = JK.T @ given.solved
        if not (np.all(np.isfinite(found)) and np.isfinite(given.log_evidence)):
            break
        ahead = np.clip(found - mean, -outcomes.link.reach, outcomes.link.reach)
        held = Settled(line, numbers, given, mean + ahead, left)
        most = max(np.abs(ahead).max() ** 2, CLOSE * np.abs(left - variance).max())
        mean, variance = mean + step * ahead, variance + step * (left - variance)
        if most < CLOSE**2 * prior.max():
            break
    if held is None:
        raise np.linalg.LinAlgError("no step could be made.")
    return held


def learn_outcomes(outcomes: Outcomes, priors: Sequence[Prior]) -> tuple[Hyperparameters, ...]:
    """Weighted models, most plausible first, as ``learn`` finds them for the Gaussian problem.

    That problem is made again about the solution of the best model so far. In the end every
    model has its own, and is weighted by the evidence of that.

    Parameters
    ----------
    outcomes
        The measured outcomes.
    priors
        One per input map.

    """
    near = settle(outcomes, priors[0].start)
    for _ in range(ROUNDS):
        best = most_plausible(near.functionals, near.measurement, priors[0])
        near = settle(outcomes, best, near)
    models, shared = learn(near.functionals, near.measurement, priors), near
    near = settle(outcomes, models[0], near)
    kept, logs = [], []
    for model in models:
        try:
            before = condition(shared.functionals, shared.measurement, model).log_evidence
            own = settle(outcomes, model, near, STEPS[:FEW]).log_evidence
        except np.linalg.LinAlgError:  # the budget is spent, so the others must do
            continue
        kept.append(model)
        logs.append(np.log(model.weight) + own - before)
    if not kept:
        return models
    weights = np.exp(logs - logsumexp(logs))
    total = weights[weights > LEAST].sum()
    reweighted = [
        replace(m, weight=float(w / total)) for m, w in zip(kept, weights, strict=True) if w > LEAST
    ]
    return tuple(sorted(reweighted, key=lambda model: -model.weight))


def outcome_posterior(outcomes: Outcomes, models: Sequence[Hyperparameters]) -> Posterior:
    """The function given the outcomes: a mixture over the models, each with its own Gaussian
    problem.

    Parameters
    ----------
    outcomes
        The measured outcomes.
    models
        Their weights sum to 1; those that cannot be conditioned are left out.

    Raises
    ------
    numpy.linalg.LinAlgError
        No model could be conditioned.

    """
    components: list[Component] = []
    near = None
    for model in models:
        try:
            near = settle(outcomes, model, near)
        except np.linalg.LinAlgError:  # the budget is spent, so the others must do
            continue
        components += posterior(near.functionals, near.measurement, (model,), 0.0).components
    if not components:
        raise np.linalg.LinAlgError("no model could be conditioned.")
    if len(components) < len(models):
        total = sum(c.model.weight for c in components)
        components = [
            replace(c, model=replace(c.model, weight=c.model.weight / total)) for c in components
        ]
    return Posterior(tuple(components), 0.0)
