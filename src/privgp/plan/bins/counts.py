"""What is planned where records are private, and how many of them each bin holds: a weak public prior, and
what a noisy measurement leaves of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import nnls
from sklearn.gaussian_process.kernels import Matern

from privgp.gp.kernels.evaluate import evaluate, variance
from privgp.gp.kernels.integral import integral_gram
from privgp.gp.measurement import Functionals, Measurement
from privgp.gp.priors import Hyperparameters, Prior
from privgp.plan.accuracy import variances_beyond_rows
from privgp.plan.bins.bins import Bins, Grid, design_models
from privgp.plan.designs.noise_aware import Certificate, Hypothesis, gaussian_floor, hypotheses_for
from privgp.plan.labels import outcome_model
from privgp.plan.strategy import EqualRows
from privgp.question.rules import Exposures
from privgp.types import Array, Positive, added_field

if TYPE_CHECKING:
    from privgp.plan.part import Part
    from privgp.privacy.noise import Noise

# How uneven counts may be: their prior std over the even count, and the share of its square that
# is smooth over the domain (the rest is independent from bin to bin). The first is what plans take.
UNEVENNESS = ((1.0, 0.8), (0.3, 0.8), (2.0, 0.8), (1.0, 0.3), (2.0, 0.3), (4.0, 0.1), (16.0, 0.01))
TOTAL_STD = 1.0  # of an unknown total over what is expected of it
LEAST_SHARE = 1e-3  # of the even count, so that no bin is taken for certainly empty


def count_prior(bins: Bins, even: float, std: float, smooth_share: float) -> tuple[Array, Array]:
    """Mean, (bins,), and covariance, (bins, bins), of the counts beforehand.

    Parameters
    ----------
    bins
        The grid, and whether the total is known.
    even
        The count of every bin if they were equal.
    std
        How uneven counts may be, relative to the even count.
    smooth_share
        The share of that variance that is smooth over the domain.

    """
    places = (bins.centres() - bins.low) / (bins.high - bins.low)
    smooth = evaluate(Matern(np.sqrt(len(bins.shape) / 12.0), nu=1.5), places)
    covariance = smooth_share * smooth
    covariance.flat[:: bins.count + 1] += 1.0 - smooth_share
    covariance = (std * even) ** 2 * covariance
    if bins.weighted:  # the total, too, is known from its measurement alone
        covariance += (TOTAL_STD * even) ** 2
    return np.full(bins.count, even), covariance


def counts_after_noise(bins: Bins, noise_std: float, noisy: Array | None) -> tuple[Array, Array]:
    """Mean and covariance of the true counts given ``B n`` plus noise and that they sum to the
    rows; the latter is not known where records have weights.

    As uneven beforehand as explains the measurement best, and not negative.

    Parameters
    ----------
    bins
        The grid, and the sums that were measured.
    noise_std
        std of the noise on every number of ``noisy``.
    noisy
        (measured,), B n plus noise; None before it is measured, which gives the even counts with
        the covariance that a measurement will leave.

    """
    known = not bins.weighted  # the total
    B = np.vstack([bins.matrix, np.ones((int(known), bins.count))])
    total = bins.prior_total if known else _total_after_noise(bins, noise_std, noisy)
    choices = []
    for std, smooth_share in UNEVENNESS:
        mean, covariance = count_prior(bins, total / bins.count, std, smooth_share)
        CB = covariance @ B.T
        S = B @ CB
        exact = np.full(int(known), 1e-9 * S[-1, -1])
        S.flat[:: len(S) + 1] += np.append(np.full(len(bins.matrix), noise_std**2), exact)
        factor = cho_factor(S)
        left = covariance - CB @ cho_solve(factor, CB.T)
        if noisy is None:
            return mean, left
        off = np.append(noisy, np.full(int(known), total)) - B @ mean
        solved = cho_solve(factor, off)
        evidence = -0.5 * float(off @ solved) - float(np.log(np.diag(factor[0])).sum())
        # A sum that is known is no evidence: its own scale must not count.
        evidence += 0.5 * float(np.log(S[-1, -1])) if known else 0.0
        choices.append((evidence, mean, covariance, left))
    assert noisy is not None
    _, mean, covariance, left = max(choices, key=lambda choice: choice[0])
    return _most_plausible(bins, noise_std, noisy, mean, covariance), left


def _total_after_noise(bins: Bins, noise_std: float, noisy: Array | None) -> float:
    """What all weights add up to, as the measurement tells it; what is expected before it."""
    if noisy is None:
        return bins.prior_total
    to_total = np.linalg.lstsq(bins.matrix.T, np.ones(bins.count))[0]
    std = noise_std * float(np.linalg.norm(to_total))
    return min(max(float(to_total @ noisy), std, LEAST_SHARE * bins.rows), float(bins.rows))


def _most_plausible(
    bins: Bins, noise_std: float, noisy: Array, mean: Array, covariance: Array
) -> Array:
    """The most plausible counts that are not negative, by non-negative least squares.

    An estimate cut off at zero would move records from full bins to empty ones.
    """
    root = np.linalg.cholesky(covariance)
    prior = solve_triangular(root, np.eye(bins.count), lower=True)
    sure = 0.0 if bins.weighted else 1e3 / noise_std
    rows = np.vstack([bins.matrix / noise_std, np.full((1, bins.count), sure), prior])
    goal = np.concatenate([noisy / noise_std, [sure * bins.rows], prior @ mean])
    counts = np.maximum(nnls(rows, goal)[0], LEAST_SHARE * mean)
    return counts if bins.weighted else np.asarray(counts * (bins.rows / counts.sum()))


def bin_functionals(
    bins: Bins,
    counts: Array,
    covariance: Array,
    model: Hyperparameters,
    squares: Array | None = None,
    unit: float | None = None,
) -> Functionals:
    """The measured sums as functionals of f, for records spread evenly within their bins.

    With F the averages of f over the bins: ``s = counts F + (n - counts) F + scatter``. The
    second term has covariance ``covariance * E[F F^T]``, entry by entry; the third, of f within
    a bin and of outputs about f, ``counts (k(x, x) - var F + s^2)``.

    Parameters
    ----------
    bins
        The grid, and the sums to measure.
    counts
        (bins,), expected in the bins.
    covariance
        (bins, bins), of the counts.
    model
        Model of f.
    squares
        E[F F^T], (bins, bins); under ``model`` by default.
    unit
        If outputs are counts, the rate that rates are multiples of.

    """
    model = outcome_model(model, unit)
    nodes, shares = bins.nodes()
    B, A = bins.matrix, bins.matrix * counts
    noise_gram = A @ B.T
    scatter, residual = B * np.sqrt(counts), 1.0
    if len(shares) == 1:  # small bins: the share of f's variance within them need not be exact
        width = bins.widths[None, :]
        average = integral_gram(model.kernel, np.zeros_like(width), width)[0, 0]
        residual = max(0.0, 1.0 - float(average) / variance(model.kernel))
        scatter = np.zeros_like(B)
    if squares is None:
        squares = bins.average_over_bins(evaluate(model.kernel, nodes))
    fixed = B @ (covariance * squares) @ B.T
    weights = np.asarray(np.kron(A, shares), dtype=np.float64)
    found = Functionals(
        nodes=nodes,
        weights=weights,
        noise_gram=noise_gram,
        residual_gram=residual * noise_gram,
        energy_total=float(counts.sum()) if bins.weighted else float(bins.rows),
        energy_gram=np.diag(np.kron(counts, shares)),
        energy_cross=weights.T,
        energy_noise_gram=noise_gram,
        fixed_gram=0.5 * (fixed + fixed.T),
        scatter=scatter,
        shares=shares,
    )
    return found if unit is None else found.in_units(unit)


FINE = {1: 64, 2: 20, 3: 8}  # parts per input that stand for even records


@dataclass(frozen=True)
class Records:
    """What is planned where whole records are private, from their number alone.

    The accuracy is that for records spread evenly over the declared domain, ``x_bounds``.
    ``rate``: the unit of rates, where outputs are counts.
    """

    private_inputs: ClassVar[bool] = True
    inputs: ClassVar[None] = None
    chosen: ClassVar[None] = None
    unbiased: ClassVar[None] = None
    design_gap: ClassVar[float | None] = None
    is_quick: ClassVar[bool] = True
    unneeded: ClassVar[str] = "neither an input nor an output"
    totals: ClassVar[str] = "records and their values over bins of the declared domain"
    x_bounds: tuple[tuple[float, float], ...]
    default_kernel: bool
    rate: Positive | None = added_field(None)

    @property
    def unit(self) -> float | None:
        """The rate that rates are multiples of, where outputs are counts."""
        return self.rate

    @property
    def condition(self) -> str:
        relative = "" if self.rate is None else " (relative to the rate)"
        return f"{relative}, if records lie evenly over the domain"

    def fits(self, plan: Part) -> bool:
        """Whether bins, classes and weights are those that were declared; only a file can have others."""
        bins, asked = cast(Bins, plan.strategy), plan.asked
        same = np.array_equal(np.array(self.x_bounds).T, [bins.low, bins.high])
        weighted = asked is not None and asked.max_weight is not None
        return same and bins.classes == plan.outcome.functions and bins.weighted == weighted

    def exposures(self, plan: Part) -> Exposures | None:
        """What every count counts over, where outputs are counts: as much as any other."""
        return None if self.rate is None else Exposures(self.rate, np.array([self.rate]))

    def read_measurement(self, plan: Part, measurement: Measurement) -> Measurement:
        """What was measured, as the reconstruction reads it: counts about the unit rate."""
        return measurement if self.rate is None else replace(measurement, centre=1.0)

    def models(self, priors: Sequence[Prior]) -> list[Hyperparameters]:
        """The equally weighted models that bins are chosen for where hyperparameters are learned."""
        return design_models(priors[0])

    def functionals(
        self, plan: Part, strategy: Any, noise: Noise, model: Hyperparameters
    ) -> Functionals:
        """What is measured of f, given counts as uncertain as this noise leaves them."""
        counts = counts_after_noise(strategy, strategy.count_std(noise.std), None)
        return bin_functionals(strategy, *counts, model, unit=self.unit)

    def variances_without_noise(self, plan: Part, model: Hyperparameters, targets: Array) -> Array:
        """The variance of f at the targets, were even records themselves published."""
        low, high = np.array(self.x_bounds).T
        grid = Grid(low, high, (FINE[len(low)],) * len(low))
        even = np.full(grid.count, plan.rows / grid.count) * (self.unit or 1.0)
        return variances_beyond_rows(model, grid.centres(), even, grid.centres(), targets)

    def certificate(self, plan: Part, gaussian: Part) -> Certificate:
        """The expected mean square at the targets, and the least that Gaussian noise allows.

        That is for sums over these bins with known counts; noisy counts are part of the gap.
        """
        bins = cast(Bins, gaussian.strategy)
        known = even_hypotheses(bins, [plan.start], plan.targets, self.unit)
        floor = gaussian_floor(bins.matrix, known, gaussian.measured_noise_std**2)
        return Certificate(plan.starting_error**2, floor / len(plan.targets))

    def domain(self, plan: Part) -> str:
        columns = None if plan.asked is None else plan.asked.columns
        if columns is not None:
            return f", inputs {'; '.join(columns.describe())}; all of them private"
        pairs = " x ".join(f"[{a:g}, {b:g}]" for a, b in self.x_bounds)
        return f", inputs in {pairs}, both private"

    def describe_rows(self, plan: Part) -> str:
        """How many records there are, of whom and where, in words."""
        bins = cast(Bins, plan.strategy)
        return f"{bins.rows} {bins.counted}{bins.weight_words} in {' x '.join(map(str, bins.shape))} bins"

    def describe_measurement(self, plan: Part) -> str:
        """How much is measured with which noise, and what the other noise would give."""
        text = (
            f"{self.describe_rows(plan)}; {plan.strategy.size} numbers are measured, with "
            f"{plan.noise.describe()}"
        )
        if plan.rival is None:
            return text
        other = plan.measuring(plan.rival)
        error = other.expected_error()
        return f"{text} ({other.noise.describe()}: an expected error of {error:.4g})"


def even_hypotheses(
    bins: Bins, models: Sequence[Hyperparameters], targets: Array, unit: float | None = None
) -> list[Hypothesis]:
    """The models for records spread evenly over the bins' centres, as if that were known."""
    even = EqualRows(np.full(bins.count, bins.prior_total / bins.count) * (unit or 1.0))
    goal = targets, np.ones(len(targets))
    return hypotheses_for(models, bins.centres(), np.arange(bins.count), even, *goal)
