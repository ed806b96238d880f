"""What was measured: noisy linear functionals of the outputs, and their noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky
from scipy.linalg.lapack import dpotri
from scipy.sparse import csr_array
from scipy.special import erfcx, log_ndtr

from privgp.gp.arithmetic import add_rows
from privgp.types import Array, Integers, NotNegative, Positive, added_field

SPARSE = 0.05  # share of entries up to which products with a large matrix skip the zeros
LARGE = 100  # rows


def without_zeros(matrix: Array) -> Array | csr_array:
    """A matrix whose products skip its zeros, where most entries are."""
    few = len(matrix) >= LARGE and np.count_nonzero(matrix) <= SPARSE * matrix.size
    return csr_array(matrix) if few else matrix


def _add_both(matrix: Array, groups: Integers) -> Array:
    """The sums of rows that are in one group, and of columns, (groups, groups)."""
    return add_rows(add_rows(matrix, groups).T, groups)


@dataclass(frozen=True)
class Functionals:
    """cov(t) = A k(Z, Z) A^T + s^2 noise_gram + k(x, x) residual_gram + fixed_gram + noise.

    Everything is public: it depends on inputs and on what is measured, never on outputs.

    Attributes
    ----------
    nodes : Z, (nodes, inputs' columns)
    weights : A, (measured, nodes)
    noise_gram, residual_gram : (measured, measured)
    energy_total : the sum of e_i, of the energy ``sum e_i y_i^2``
    energy_gram : G, (nodes, nodes)
    energy_cross : H, (nodes, measured)
    energy_noise_gram : N, (measured, measured), so that the weighted sum over rows of
        ``cov(t, y_i) cov(y_i, t)`` is ``A K G K A^T + s^2 (A K H + (A K H)^T) + s^4 N``
    fixed_gram : (measured, measured), what no hyperparameter changes, such as the effect of
        uncertain counts if inputs are private; None for nothing
    scatter : C, (measured, bins), of records at unknown places of bins, whose nodes stand
        together. The covariance has ``- C diag(v) C^T`` besides, with v the variances of f's
        averages over the bins, so that with ``residual_gram = C C^T`` what f varies within bins
        remains.
    shares : (nodes per bin,), summing to 1, the weights of the nodes in such an average
    energy_centre : o, (nodes,), the function about which squared outputs were summed, so that the energy is
        ``sum e_i (y_i - o_i)^2``; None for the middle of the bounds
    common : C, (measured, few), of what else is unknown of the numbers, whose covariance ``C C^T`` is;
        None for nothing

    """

    nodes: Annotated[Array, "nodes columns"]
    weights: Annotated[Array, "measured nodes"]
    noise_gram: Annotated[Array, "measured measured"]
    residual_gram: Annotated[Array, "measured measured"]
    energy_total: Positive
    energy_gram: Annotated[Array, "nodes nodes"]
    energy_cross: Annotated[Array, "nodes measured"]
    energy_noise_gram: Annotated[Array, "measured measured"]
    fixed_gram: Annotated[Array, "measured measured"] | None = None
    scatter: Annotated[Array, "measured bins"] | None = None
    shares: Annotated[Array, "parts"] | None = None
    energy_centre: Annotated[Array, "nodes"] | None = added_field(None)
    common: Annotated[Array, "measured few"] | None = added_field(None)

    @cached_property
    def _sparse_weights(self) -> Array | csr_array:
        return without_zeros(self.weights)

    @cached_property
    def _sparse_energy(self) -> Array | csr_array:
        return without_zeros(self.energy_gram)

    def carry(self, K: Array) -> Array:
        """``A K``, (measured, columns), from K, (nodes, columns)."""
        return np.asarray(self._sparse_weights @ K)

    def pull(self, V: Array) -> Array:
        """``A^T V``, (nodes, columns), from V, (measured, columns)."""
        return np.asarray(self._sparse_weights.T @ V)

    def energy_of(self, V: Array) -> Array:
        """``V G``, (rows, nodes), from V, (rows, nodes); G is symmetric."""
        return np.asarray((self._sparse_energy @ V.T).T)

    def in_units(self, unit: float) -> Self:
        """The same if outcomes are ``unit`` times a rate.

        Their means grow with the unit, and so do the variances about these, as those of counts
        do.
        """
        fixed, scatter = self.fixed_gram, self.scatter
        return replace(
            self,
            weights=unit * self.weights,
            noise_gram=unit * self.noise_gram,
            residual_gram=unit**2 * self.residual_gram,
            energy_total=unit * self.energy_total,
            energy_gram=unit * self.energy_gram,
            energy_cross=unit * self.energy_cross,
            energy_noise_gram=unit * self.energy_noise_gram,
            fixed_gram=None if fixed is None else unit**2 * fixed,
            scatter=None if scatter is None else unit * scatter,
        )

    def add_up(self, groups: Integers) -> Self:
        """The same of the sums of numbers that are in one group. ``groups``: (measured,); of public inputs."""
        return replace(
            self,
            weights=add_rows(self.weights, groups),
            noise_gram=_add_both(self.noise_gram, groups),
            residual_gram=_add_both(self.residual_gram, groups),
            energy_cross=add_rows(self.energy_cross.T, groups).T,
            energy_noise_gram=_add_both(self.energy_noise_gram, groups),
        )

    def join_nodes(self, groups: Integers) -> Self:
        """About the same with one node in place of those in one group, at the mean of them. ``groups``: (nodes,)."""
        mass = np.maximum(np.abs(self.weights).sum(axis=0), 1e-300)
        places = add_rows(mass[:, None] * self.nodes, groups) / add_rows(mass, groups)[:, None]
        return replace(
            self,
            nodes=places,
            weights=add_rows(self.weights.T, groups).T,
            energy_gram=_add_both(self.energy_gram, groups),
            energy_cross=add_rows(self.energy_cross, groups),
        )

    def average_variances(self, K: Array) -> Array:
        """The variances v of f's averages over the bins, (bins,), from K, (nodes, nodes)."""
        assert self.shares is not None
        parts = len(self.shares)
        blocks = K.reshape(len(K) // parts, parts, -1, parts)
        each = np.arange(len(blocks))
        return np.asarray(
            np.einsum("iab,a,b->i", blocks[each, :, each, :], self.shares, self.shares)
        )

    def average_pull(self, G: Array, slope: Array) -> None:
        """Add to G what a gradient by the averages' variances contributes, in place.

        Parameters
        ----------
        G
            (nodes, nodes), the gradient with respect to K.
        slope
            (bins,), the gradient with respect to v.

        """
        assert self.shares is not None
        parts = len(self.shares)
        blocks = G.reshape(len(G) // parts, parts, -1, parts)
        each = np.arange(len(blocks))
        blocks[each, :, each, :] += slope[:, None, None] * np.outer(self.shares, self.shares)


Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Measurement:
    """Measured numbers, in units of y about the middle of its bounds. Public once it exists.

    Attributes
    ----------
    values : (measured,), B s plus noise
    noise_std : std of the noise on each value
    energy : the weighted sum of squared outputs plus noise, or None
    energy_noise_std : its noise
    counts : (measured,), B times the records per bin plus noise, if inputs are private
    is_laplace : whether the noise on ``values`` is Laplace noise, not normal; one answer for all
        of them, or one for each
    gram : (measured, measured), the sums of products of two features plus noise, if inputs are
        private and many
    centre : number that was subtracted from every outcome with a link before it was summed;
        None: the usual one of their kind

    """

    values: Annotated[Array, "measured"]
    noise_std: Positive
    energy: float | None
    energy_noise_std: NotNegative
    counts: Annotated[Array, "measured"] | None = None
    is_laplace: bool | tuple[bool, ...] = added_field(False)
    gram: Annotated[Array, "measured measured"] | None = added_field(None)
    centre: float | None = added_field(None)

    def check(self) -> None:
        """Refuse another number of answers than of values, as only a file can have it."""
        if isinstance(self.is_laplace, tuple) and len(self.is_laplace) != len(self.values):
            raise ValueError("is_laplace must be one answer, or one for each value.")

    def parts(self, count: int) -> tuple[Measurement, ...]:
        """The values of each of ``count`` functions, which stand one after the other."""
        return tuple(replace(self, values=values) for values in np.split(self.values, count))

    @property
    def laplace(self) -> Flags:
        """Whether the noise on each of the values is Laplace noise, (measured,)."""
        return np.broadcast_to(np.array(self.is_laplace, dtype=bool), len(self.values))


def average(again: Sequence[Measurement]) -> Measurement:
    """The same numbers measured several times, as one measurement.

    Their means, weighted by one over the variances of their noise; energies are left out.
    """
    precisions = np.array([each.noise_std**-2.0 for each in again])
    weights = precisions / precisions.sum()
    return _weigh_sums(again, weights, float(precisions.sum() ** -0.5))


def add(parts: Sequence[Measurement]) -> Measurement:
    """The same sums of different records, as one measurement of all of them, without an energy."""
    std = float(np.linalg.norm([each.noise_std for each in parts]))
    return _weigh_sums(parts, np.ones(len(parts)), std)


def _weigh_sums(each: Sequence[Measurement], weights: Array, std: float) -> Measurement:
    """Weighted sums of values, counts and Gram matrices, without an energy."""
    if len(each) == 1:
        return replace(each[0], energy=None, energy_noise_std=0.0)

    def total(parts: list[Array | None]) -> Array | None:
        known = [part for part in parts if part is not None]
        return np.tensordot(weights, known, 1) if known else None

    values = total([one.values for one in each])
    assert values is not None
    counts, gram = total([one.counts for one in each]), total([one.gram for one in each])
    return Measurement(values, std, None, 0.0, counts, gram=gram, centre=each[0].centre)


SHARES = (0.9,) * 6 + (0.5,) * 10 + (0.2,) * 20  # of the way, step by step
CLOSE = 0.01
LEAST = 1e-6  # times 1 / b^2: the precision of a number that all others contradict
_LOG_ROOT = 0.5 * np.log(2.0 * np.pi)


@dataclass(frozen=True)
class Sites:
    """Normal observations that represent the measured ones.

    Attributes
    ----------
    values, variances : (measured,), the numbers and their noise
    factor : lower Cholesky factor of their covariance
    log_evidence : log evidence of the measured numbers

    """

    values: Array
    variances: Array
    factor: Array
    log_evidence: float


def find_sites(
    signal: Array, t: Array, noise_std: float, laplace: NDArray[np.bool_] | None = None
) -> Sites:
    """Sites of ``t = g + noise`` with g normal and Laplace noise.

    Parameters
    ----------
    signal
        (measured, measured), the covariance of g.
    t
        (measured,), the numbers.
    noise_std
        std of the noise on each.
    laplace
        (measured,), where the noise is Laplace noise, everywhere by default; numbers with
        normal noise are their own sites.

    Notes
    -----
    If expectation propagation has not settled, all noise is taken for normal: that costs
    accuracy, never privacy, as everything here is post-processing.

    """
    laplace = np.ones(len(t), dtype=bool) if laplace is None else laplace
    b = noise_std / np.sqrt(2.0)
    values, variances = t.copy(), np.full(len(t), noise_std**2)
    change = np.inf
    for share in SHARES:
        factor, mean, spread = _posterior(signal, values, variances)
        cavity, centre = _cavity(mean, spread, values, variances)
        _, slope, bend = _log_normaliser(t, centre, cavity, b)
        left = 1.0 + cavity * bend  # tilted variance over the cavity's
        precision = np.maximum(-bend / left, LEAST / b**2)
        shift = precision * centre + slope / left
        new = (1.0 - share) / variances + share * precision
        moved = ((1.0 - share) * values / variances + share * shift) / new
        change = np.abs(new * variances - 1.0)[laplace].max()
        values = np.where(laplace, moved, values)
        variances = np.where(laplace, 1.0 / new, variances)
        if change < CLOSE:
            break
    if not change < 10.0 * CLOSE:  # as normal noise, then
        values, variances = t, np.full(len(t), noise_std**2)
    factor, mean, spread = _posterior(signal, values, variances)
    cavity, centre = _cavity(mean, spread, values, variances)
    log_norm = _log_normaliser(t, centre, cavity, b)[0]
    both = cavity + variances
    half = cho_solve((factor, True), values, check_finite=False)
    evidence = -0.5 * float(values @ half) - float(np.log(np.diag(factor)).sum())
    evidence -= len(t) * _LOG_ROOT
    each = log_norm + _LOG_ROOT + 0.5 * np.log(both) + 0.5 * (centre - values) ** 2 / both
    evidence += float(np.sum(each[laplace]))
    return Sites(values, variances, factor, evidence)


def _posterior(signal: Array, values: Array, variances: Array) -> tuple[Array, Array, Array]:
    """The factor of cov(values), and mean and variance of every g given all of them."""
    S = signal.copy()
    S.flat[:: len(S) + 1] += variances
    factor = cholesky(S, lower=True, overwrite_a=True, check_finite=False)
    inverse = dpotri(factor, lower=1)[0]  # its lower half
    mean = values - variances * cho_solve((factor, True), values, check_finite=False)
    spread = variances - variances**2 * np.diag(inverse)
    return factor, mean, np.clip(spread, 1e-9 * variances, (1.0 - 1e-9) * variances)


def _cavity(mean: Array, spread: Array, values: Array, variances: Array) -> tuple[Array, Array]:
    """Variance and mean of every g given all the others."""
    cavity = 1.0 / (1.0 / spread - 1.0 / variances)
    return cavity, cavity * (mean / spread - values / variances)


def _log_normaliser(t: Array, centre: Array, cavity: Array, b: float) -> tuple[Array, Array, Array]:
    """Log of ``Z = E Laplace(t - g; b)`` for normal g, and its first two derivatives by the centre."""
    s = np.sqrt(cavity)
    d = t - centre
    alpha, beta = (d - cavity / b) / s, (-d - cavity / b) / s
    below, above = -d / b + log_ndtr(alpha), d / b + log_ndtr(beta)
    both = np.logaddexp(below, above)
    w = np.exp(below - both)
    root = np.sqrt(0.5)  # normal density over distribution function: no squares, which overflow
    hazard = (1.0 / erfcx(-root * alpha) + 1.0 / erfcx(-root * beta)) / (s * np.sqrt(0.5 * np.pi))
    log_norm = both + 0.5 * cavity / b**2 - np.log(2.0 * b)
    bend = 2.0 / b * w * (1.0 - w) * (2.0 / b - hazard)
    bend = np.clip(bend, -(1.0 - 1e-6) / cavity, 0.0)
    return log_norm, (2.0 * w - 1.0) / b, bend
