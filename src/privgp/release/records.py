"""From noisy counts and sums to functionals of f and maps of the inputs. Post-processing."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.optimize import nnls

from privgp.gp.features import spread_points
from privgp.gp.inference.posterior import posterior
from privgp.gp.kernels.evaluate import evaluate
from privgp.gp.measurement import Functionals, Measurement
from privgp.gp.priors import Hyperparameters, InputMap, Prior, prior_about
from privgp.plan.bins.bins import Bins
from privgp.plan.bins.counts import bin_functionals, counts_after_noise
from privgp.plan.build import RANK_SHARES
from privgp.plan.features import Features, feature_functionals, precision_of, total_precision
from privgp.plan.inputs.inputs import Inputs, scale_widths
from privgp.plan.labels import outcome_model
from privgp.types import Array


@dataclass(frozen=True)
class RecordsInBins:
    """How many records each bin holds, as a measurement tells: ``counts``, (bins,), and their
    ``covariance``."""

    bins: Bins
    counts: Array
    covariance: Array

    @classmethod
    def of(cls, bins: Bins, measurement: Measurement, noise_std: float) -> Self:
        """Given the measured counts; ``noise_std``: of every measured number."""
        return cls(bins, *counts_after_noise(bins, bins.count_std(noise_std), measurement.counts))

    def functionals(
        self, measurement: Measurement, start: Hyperparameters, unit: float | None = None
    ) -> Functionals:
        """What the sums of one function's outcomes are of it.

        Uncertain counts act through f itself, so f is estimated twice: under the prior, then with its
        own first estimate in that place. ``unit``: of rates, where outcomes are counts.
        """
        known, model = (self.bins, self.counts, self.covariance), outcome_model(start, unit)
        first = bin_functionals(*known, start, unit=unit)
        mean, cov = posterior(first, measurement, [model], 0.0).mean_and_covariance(first.nodes)
        F = self.bins.average_over_bins(mean)
        squares = self.bins.average_over_bins(cov) + np.outer(F, F)
        return bin_functionals(*known, start, squares, unit)

    def priors(self, prior: Prior, inputs: Inputs | None = None) -> tuple[Prior, ...]:
        return part_ranked_by_counts(self.bins, self.counts, prior, inputs)


def part_ranked_by_counts(
    bins: Bins, counts: Array, prior: Prior, inputs: Inputs | None = None
) -> tuple[Prior, ...]:
    """One prior per map that blends coordinates with their ranks, as the noisy counts tell them."""
    knots, ranks = [], []
    cells = counts.reshape(bins.shape)
    for j, parts in enumerate(bins.shape):
        others = tuple(axis for axis in range(len(bins.shape)) if axis != j)
        below = np.concatenate([[0.0], np.cumsum(cells.sum(axis=others))])
        width = bins.high[j] - bins.low[j]
        knots.append(np.linspace(bins.low[j], bins.high[j], parts + 1))
        ranks.append(bins.low[j] + width * below / below[-1])
    return _priors_on_ranks(prior, knots, ranks, inputs)


ROUNDS = 12
FIRST_POINTS, FRESH_POINTS = 256, 2048
ADDED = 60  # points in a round
# Copies of a point nearby, and how near, as a share of the domain's sides.
MOVES, MOVED_BY = 4, 0.08
LEAST_SHARE = 1e-6  # of all records, below which a point is dropped
BESIDE = 2.0  # in five trials the squared error was 1.9 to 2.2 times that of masses alone
TWICE = 2  # times that f is estimated before hyperparameters are learned
KNOTS = 17


@dataclass(frozen=True)
class RecordsAtPoints:
    """Where records are, as a noisy Gram matrix tells: ``masses`` at ``points``, (points, inputs), and
    the ``covariance`` of the masses."""

    features: Features
    points: Array
    masses: Array
    covariance: Array

    @classmethod
    def of(cls, features: Features, measurement: Measurement, noise_std: float) -> Self:
        """Given the measured Gram matrix; ``noise_std``: of every measured number."""
        assert measurement.gram is not None
        points, masses = masses_after_noise(features, measurement.gram, noise_std)
        covariance = covariance_after_noise(features, points, masses, noise_std)
        return cls(features, points, masses, covariance)

    def functionals(
        self, measurement: Measurement, start: Hyperparameters, unit: float | None = None
    ) -> Functionals:
        """What the sums of one function's outcomes are of it.

        Uncertain masses act through f itself, so f is estimated first under the prior, then with its
        own estimate in that place. ``unit``: of rates, where outcomes are counts.
        """
        known = self.features, self.points, self.masses, self.covariance
        model = outcome_model(start, unit)
        squares = evaluate(model.kernel, self.points)
        for _ in range(TWICE):
            found = feature_functionals(*known, squares, unit)
            left = posterior(found, measurement, [model], 0.0)
            mean, cov = left.mean_and_covariance(self.points)
            squares = cov + np.outer(mean, mean)
        return feature_functionals(*known, squares, unit)

    def priors(self, prior: Prior, inputs: Inputs | None = None) -> tuple[Prior, ...]:
        return part_ranked_by_masses(self.features, self.points, self.masses, prior, inputs)


def masses_after_noise(features: Features, gram: Array, noise_std: float) -> tuple[Array, Array]:
    """The points, (points, inputs), and the masses that explain the noisy Gram matrix best."""
    low, high, rows = features.low, features.high, features.prior_total
    rng = np.random.default_rng(0)
    points = spread_points(low, high, FIRST_POINTS, 5)
    phi, masses = features.at(points), np.full(FIRST_POINTS, rows / FIRST_POINTS)
    for round_ in range(-1, ROUNDS):
        if round_ >= 0:
            near = np.repeat(points, MOVES, axis=0)
            near = near + MOVED_BY * (high - low) * rng.standard_normal(near.shape)
            tried = np.vstack(
                [spread_points(low, high, FRESH_POINTS, 10 + round_), np.clip(near, low, high)]
            )
            unexplained = gram - (phi.T * masses) @ phi
            at_tried = features.at(tried)
            gained = np.einsum("si,si->s", at_tried @ unexplained, at_tried)
            new = np.argsort(-gained, kind="stable")[:ADDED]
            points, phi = np.vstack([points, tried[new]]), np.vstack([phi, at_tried[new]])
            masses = np.append(masses, np.zeros(len(new)))
        with suppress(RuntimeError):  # no convergence: the budget is spent, so those before must do
            masses = _fit_masses(features, phi, gram, noise_std)
        kept = masses > LEAST_SHARE * rows
        points, phi, masses = points[kept], phi[kept], masses[kept]
    return points, masses if features.weighted else masses * (rows / masses.sum())


def _fit_masses(features: Features, phi: Array, gram: Array, noise_std: float) -> Array:
    """Masses that are not negative, by least squares."""
    precision = precision_of(features, phi, noise_std)
    precision.flat[:: len(phi) + 1] *= 1.0 + 1e-9
    pulled = np.einsum("si,si->s", phi @ gram, phi) * (features.gram_weight / noise_std) ** 2
    pulled += total_precision(features, noise_std) * features.prior_total
    root = np.linalg.cholesky(precision)
    return np.asarray(nnls(root.T, np.linalg.solve(root, pulled), maxiter=30 * len(phi))[0])


def covariance_after_noise(
    features: Features, points: Array, masses: Array, noise_std: float
) -> Array:
    """The variance of the masses: each was as uncertain as it is large, and records may lie beside the points."""
    precision = precision_of(features, features.at(points), noise_std)
    precision.flat[:: len(masses) + 1] += 1.0 / masses**2
    return np.asarray(BESIDE * np.linalg.inv(precision))


def part_ranked_by_masses(
    features: Features,
    points: Array,
    masses: Array,
    prior: Prior,
    inputs: Inputs | None = None,
) -> tuple[Prior, ...]:
    """One prior per map that blends coordinates with their ranks, as the masses tell them."""
    knots, ranks = [], []
    for j, (low, high) in enumerate(zip(features.low, features.high, strict=True)):
        order = np.argsort(points[:, j], kind="stable")
        below = np.cumsum(masses[order]) - 0.5 * masses[order]
        places = np.concatenate([[low], points[order, j], [high]])
        shares = np.concatenate([[0.0], below / masses.sum(), [1.0]])
        at = np.linspace(low, high, KNOTS)
        knots.append(at)
        ranks.append(low + (high - low) * np.interp(at, places, shares))
    return _priors_on_ranks(prior, knots, ranks, inputs)


def _priors_on_ranks(
    prior: Prior, knots: Sequence[Array], ranks: Sequence[Array], inputs: Inputs | None
) -> tuple[Prior, ...]:
    """One prior per map that blends coordinates with these ranks of theirs."""
    edges, places = np.column_stack(knots), np.column_stack(ranks)
    plain, widths = (
        (None, ()) if inputs is None else (inputs.plain_coordinates, scale_widths(inputs))
    )
    maps = [InputMap(share, edges, places, plain) if share else InputMap() for share in RANK_SHARES]
    maps = maps[: 1 if plain and len(plain) == len(knots) else None]
    free = prior.noise_free
    return tuple(
        prior_about(replace(prior.start, input_map=m), noise_free=free, widths=widths) for m in maps
    )
