"""What earlier measurements tell, for a plan that builds on them.

At public inputs every model that they left plausible is conditioned on them: a new measurement is
chosen for what is still unknown. For private records the same sums are measured again, and all of them
are one measurement. All of it is public, and none of it matters to privacy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from scipy.linalg import solve_triangular
from scipy.sparse import coo_array

from privgp.gp.changes import values
from privgp.gp.inference.evidence import condition
from privgp.gp.inference.posterior import Posterior
from privgp.gp.kernels.evaluate import evaluate
from privgp.gp.measurement import Measurement
from privgp.gp.priors import Hyperparameters, Prior
from privgp.gp.smoothers import Nystrom
from privgp.gp.stacking import Shared, Stacked
from privgp.plan.designs.noise_aware import Hypothesis, Weighed, design_models
from privgp.types import Array, Integers

if TYPE_CHECKING:
    from privgp.plan.choice import OfRecords
    from privgp.plan.part import Part
    from privgp.plan.strategy import OutputSums

MODELS = 6  # the approximate number of models that a measurement is chosen for
DISAGREEMENTS = 8  # directions in which the models' means differ
CAUTION = 0.8  # weight of models that do not depend on what was measured
WEAK = 1e-9  # of the strongest direction: left out of a factor


@dataclass(frozen=True)
class SameRows:
    """Numbers measured before of the rows that are to be measured again.

    Attributes
    ----------
    first : place of the first among the stacked numbers
    sums : B, (numbers, inputs), scaled as these are
    index : (rows,), the input of every row, as it was gathered then
    row_weights : (rows,), the factor of every output in its sum

    """

    first: int
    sums: Array
    index: Integers
    row_weights: Array

    def products(self, strategy: OutputSums, factors: Array) -> Array:
        """Sums over rows of both weights times a factor each, (numbers, numbers of the strategy)."""
        shape = self.sums.shape[1], strategy.matrix.shape[1]
        weights = self.row_weights * strategy.row_weights * strategy.sizes * factors
        weights = weights * strategy.repeats * strategy.spread
        rows = coo_array((weights, (self.index, strategy.index)), shape=shape)
        return np.asarray(self.sums @ (rows.tocsr() @ strategy.matrix.T))


@dataclass(frozen=True)
class Earlier:
    """Earlier measurements, as one. All of it is public.

    Attributes
    ----------
    known : the stacked numbers
    posterior : the posterior under each of the weighted models that they left plausible
    priors : priors of the hyperparameters, for learning from all measurements together
    again : those of the very rows to be measured, if any
    unit : unit of rates, if outputs are counts

    """

    known: Stacked = field(repr=False)
    posterior: Posterior = field(repr=False)
    priors: tuple[Prior, ...] = field(repr=False)
    again: tuple[SameRows, ...] = field(repr=False, default=())
    unit: float | None = None
    law: ClassVar[None] = None  # any noise will do

    @property
    def values(self) -> Array:
        """What was measured, as the plan of one measurement has it, (measured,)."""
        return self.known.measurement.values

    def as_one(self, plan: Part) -> Part:
        """The plan of one measurement that tells what this and the earlier ones tell."""
        measured = Measurement(
            np.zeros(len(plan.functionals.weights)), plan.measured_noise_std, None, 0.0
        )
        strategy = cast("OutputSums", plan.strategy)
        both = self.known.with_another(
            plan.functionals, measured, self.priors[0].start, self.share_with(strategy)
        )
        factor = both.measurement.noise_std / measured.noise_std
        noise = plan.noise.with_size(plan.noise.size, factor)
        return replace(plan, functionals=both.functionals, noise=noise, earlier=None)

    @property
    def models(self) -> list[Hyperparameters]:
        """The weighted models that the earlier measurements left plausible."""
        return [component.model for component in self.posterior.components]

    @cached_property
    def plausible(self) -> list[Hyperparameters]:
        """A few models that represent all: a systematic sample, by weight."""
        weights = np.array([model.weight for model in self.models])
        steps = (np.arange(MODELS) + 0.5) / MODELS * weights.sum()
        places = np.minimum(np.searchsorted(np.cumsum(weights), steps), len(weights) - 1)
        picked, times = np.unique(places, return_counts=True)
        return [
            replace(self.models[i], weight=n / MODELS)
            for i, n in zip(picked.tolist(), times.tolist(), strict=True)
        ]

    @cached_property
    def models_to_serve(self) -> list[Hyperparameters]:
        """The models that a measurement is chosen for.

        The plausible ones, and if they were learned also those that a first measurement is
        chosen for, lest an unlucky one misleads the next.
        """
        if len(self.models) == 1:
            return self.plausible
        first = design_models(self.priors)
        return [
            *(replace(model, weight=(1.0 - CAUTION) * model.weight) for model in self.plausible),
            *(replace(model, weight=CAUTION / len(first)) for model in first),
        ]

    def share_with(self, strategy: OutputSums) -> Shared | None:
        """The overlap of a measurement with those of the same rows before; None for new rows.

        Parameters
        ----------
        strategy
            Strategy of the new measurement.

        """
        if not self.again:
            return None
        noise, energy = np.zeros((2, len(self.known.measurement.values), len(strategy.matrix)))
        for before in self.again:
            places = slice(before.first, before.first + len(before.sums))
            noise[places] = before.products(strategy, np.ones(len(before.index)))
            energy[places] = before.products(strategy, strategy.energy_shares)
        return Shared(noise, energy)

    def root(self, model: Hyperparameters, factor: Nystrom) -> Array:
        """R, (rank, rank), with ``F R R^T F^T`` the covariance of f that is left under this model.

        Parameters
        ----------
        model
            One of those that a measurement is chosen for.
        factor
            F, of the covariance before anything was measured; changes come last.

        """
        nodes, A = self.known.functionals.nodes, self.known.functionals.weights
        M = A @ features(model, factor, nodes)
        normal = replace(self.known.measurement, is_laplace=False)  # by its std
        given = condition(self.known.functionals, normal, model)
        half = solve_triangular(given.factor, M, lower=True, check_finite=False)
        left, vectors = np.linalg.eigh(np.eye(half.shape[1]) - half.T @ half)
        return np.asarray(vectors * np.sqrt(np.clip(left, 0.0, 1.0)))

    def disagreement(self, X: Array, Z: Array, weights: Array) -> tuple[Array, Array]:
        """How the models' means differ, as factors at X and at Z, along the leading directions at
        Z.

        Parameters
        ----------
        X, Z
            (rows, columns).
        weights
            (rows of Z,), how much each of them counts.

        Returns
        -------
        at_X, at_Z : Array
            (rows, directions), at most 8 directions.

        """
        shares = np.sqrt([model.weight for model in self.models])
        at_Z = self._means(Z)
        at_X = at_Z if X is Z else self._means(X)
        middle = shares**2 / np.sum(shares**2)
        D, E = ((shares * (means - (means @ middle)[:, None])) for means in (at_X, at_Z))
        _, _, rows = np.linalg.svd(E * np.sqrt(weights)[:, None], full_matrices=False)
        leading = rows[:DISAGREEMENTS].T
        return D @ leading, E @ leading

    def _means(self, X: Array) -> Array:
        """(rows, models)"""
        means = np.empty((len(X), len(self.posterior.components)))
        for rows in self.posterior.blocks(X):
            for i, _, found in self.posterior.products(X[rows], lambda c: c.mean_weights[:, None]):
                means[rows, i] = found[:, 0]
        return means


@dataclass(frozen=True)
class EarlierRecords:
    """Earlier measurements of private records, with the same sums.

    Attributes
    ----------
    strategy : strategy of the first of them
    rows : number of rows of other batches
    variance : variance of the noise that these have together, in squared units of y
    precision : one over the variance of the noise in what was measured of the very records to be
        measured again, 0 for new ones

    """

    values: ClassVar[Array] = np.zeros(0)  # sums of more records are not known before
    plausible: ClassVar[tuple[Hyperparameters, ...]] = ()
    strategy: Any = field(repr=False)
    rows: int
    variance: float
    precision: float

    @property
    def law(self) -> str:
        """The noise distribution, which is the first one's."""
        return str(self.strategy.law)

    def repeat_measurement(self, plan: Part) -> Part:
        """A plan for as many records that measures the same sums again."""
        again = plan.measuring(replace(self.strategy, rows=plan.rows))
        return replace(again, earlier=self)

    def as_one(self, plan: Part) -> Part:
        """The plan of one measurement of all records that is as noisy as all of them together."""
        own = plan.measured_noise_std
        std = np.sqrt(self.variance + 1.0 / (self.precision + own**-2.0))
        noise = plan.noise.with_size(plan.noise.size, float(std) / own)
        strategy = cast("OfRecords", plan.strategy)
        more = replace(strategy, rows=strategy.rows + self.rows)
        return replace(plan, strategy=more, noise=noise, earlier=None)


def features(model: Hyperparameters, factor: Nystrom, X: Array) -> Array:
    """The factor of a model's covariance at other points, changes last, (rows, rank)."""
    cross = evaluate(model.kernel, factor.nodes, model.input_map(X))
    smooth = solve_triangular(factor.root, cross, lower=True, check_finite=False).T
    return np.hstack([smooth, values(model.changes, X)])


def hypotheses_after_earlier(
    earlier: Earlier,
    inputs: Array,
    strategy: Weighed,
    targets: Array,
    target_weights: Array,
    factors: Sequence[Nystrom],
) -> list[Hypothesis]:
    """One hypothesis per model: what is left unknown under it, and in what the plausible ones
    differ.

    Parameters
    ----------
    earlier
        The earlier measurements.
    inputs
        (inputs, columns), distinct.
    strategy
        How rows at them are weighed.
    targets
        (targets, columns).
    target_weights
        (targets,).
    factors
        Low-rank factors of the models at the inputs.

    """
    mass, squares = strategy.masses()
    roots = np.sqrt(target_weights)[:, None]
    apart, apart_there = earlier.disagreement(inputs, targets, target_weights)
    out = []
    for model, factor in zip(earlier.models_to_serve, factors, strict=True):
        R = earlier.root(model, factor)
        here = np.hstack([factor.factor, values(model.changes, inputs)])
        there = here if targets is inputs else features(model, factor, targets)
        left = np.hstack([there @ R, apart_there])
        missing = model.variances(targets) - np.square(there).sum(axis=1)
        total = np.square(left).sum(axis=1) + np.maximum(missing, 0.0)
        F, reach = strong(np.hstack([here @ R, apart]) * mass[:, None], left)
        weighted = reach * roots
        out.append(
            Hypothesis(
                factor=F,
                noise=model.noise_variance * squares,
                gram=weighted.T @ weighted,
                total=float(target_weights @ total),
                weight=model.weight,
            )
        )
    return out


def strong(factor: Array, other: Array) -> tuple[Array, Array]:
    """Two factors turned alike, without the directions that are weak in the first."""
    powers, vectors = np.linalg.eigh(factor.T @ factor)
    kept = vectors[:, powers > WEAK * powers[-1]]
    return factor @ kept, other @ kept


def relative(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """The hypotheses weighted by one over what is left unknown under each.

    Average gains are then shares of that, and the roughest models do not rule.
    """
    shares = np.array([h.weight / h.total for h in hypotheses])
    shares /= shares.sum()
    return [replace(h, weight=float(s)) for h, s in zip(hypotheses, shares, strict=True)]
