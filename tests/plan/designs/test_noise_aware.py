"""The noise-aware design: its gradient, its concavity, and a floor that nothing beats."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from privgp import PrivateGPRegressor
from privgp.gp.priors import Hyperparameters
from privgp.plan.designs.noise_aware import (
    Certificate,
    Hypothesis,
    aware_design,
    certify,
    exact_certificate,
    gain,
    hypotheses_for,
    residual_factors,
)
from privgp.plan.strategy import strategy_for_rows
from tests.conftest import real_data

NOISE = 0.7
INPUTS = 6


def example(seed=0, count=2, rank=INPUTS) -> list[Hypothesis]:
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        reach = rng.standard_normal((5, rank))
        gram = (reach.T * rng.uniform(0.2, 2, size=5)) @ reach
        out.append(
            Hypothesis(
                factor=rng.standard_normal((INPUTS, rank)),
                noise=rng.uniform(0.1, 1, size=INPUTS),
                gram=gram,
                total=float(np.trace(gram)),
                weight=float(rng.uniform(0.2, 1)),
            )
        )
    return out


def unit(B):
    return B / np.linalg.norm(B, axis=0)


def total(hypotheses):
    return sum(h.weight * h.total for h in hypotheses)


def certified(B, hypotheses, noise=NOISE) -> Certificate:
    E = residual_factors(B, hypotheses, noise)
    error = total(hypotheses) - gain(B, hypotheses, noise)[0]
    return certify(B, error, E.T @ E, noise)


def explained(B, h, noise=NOISE):
    """The gain by its definition: prior minus posterior variance of the targets."""
    K = h.factor @ h.factor.T + np.diag(h.noise)
    S = B @ K @ B.T + noise * np.eye(len(B))
    cross = B @ h.factor
    return np.trace(cross.T @ np.linalg.solve(S, cross) @ h.gram)


def test_the_gain_is_the_variance_that_the_measurement_explains():
    hypotheses = example()
    B = np.random.default_rng(1).standard_normal((3, INPUTS))
    expected = sum(h.weight * explained(B, h) for h in hypotheses)
    assert gain(B, hypotheses, NOISE)[0] == pytest.approx(expected, rel=1e-12)


def test_the_gradient_agrees_with_finite_differences():
    hypotheses = example(3, count=3)
    B = np.random.default_rng(2).standard_normal((3, INPUTS))
    gradient = gain(B, hypotheses, NOISE)[1]
    numeric = np.zeros_like(B)
    for place in np.ndindex(B.shape):
        step = np.zeros_like(B)
        step[place] = 1e-5
        numeric[place] = (
            gain(B + step, hypotheses, NOISE)[0] - gain(B - step, hypotheses, NOISE)[0]
        ) / 2e-5
    assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-8)


def test_the_gradient_is_twice_b_times_the_unexplained_part():
    """Grad F = (2 / lambda) B E^T E, the form in which the certificate uses it."""
    (h,) = example(4, count=1)
    B = np.random.default_rng(5).standard_normal((3, INPUTS))
    K = h.factor @ h.factor.T + np.diag(h.noise)
    root = np.linalg.cholesky(h.gram).T
    cross = root @ h.factor.T
    W = cross @ B.T @ np.linalg.solve(B @ K @ B.T + NOISE * np.eye(3), B)
    E = cross - W @ K
    gradient = gain(B, [h], NOISE)[1]
    assert_allclose(gradient, 2 * h.weight / NOISE * B @ E.T @ E, rtol=1e-9, atol=1e-12)


def test_the_gain_depends_on_the_gram_matrix_of_the_strategy_alone():
    hypotheses = example()
    rng = np.random.default_rng(0)
    B = rng.standard_normal((4, INPUTS))
    Q = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    padded = np.vstack([Q @ B, np.zeros((2, INPUTS))])
    value = gain(B, hypotheses, NOISE)[0]
    assert gain(padded, hypotheses, NOISE)[0] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_the_gain_is_concave_along_segments(seed):
    hypotheses = example(seed)
    rng = np.random.default_rng(seed)
    ends = [unit(rng.standard_normal((m, INPUTS))) for m in (1, 4)]

    def value(share):
        P = (1 - share) * ends[0].T @ ends[0] + share * ends[1].T @ ends[1]
        values, vectors = np.linalg.eigh(P)
        return gain((vectors * np.sqrt(np.maximum(values, 0))).T, hypotheses, NOISE)[0]

    along = np.array([value(share) for share in np.linspace(0, 1, 21)])
    assert np.all(np.diff(along, 2) <= 1e-10)


def test_louder_measurements_explain_more():
    hypotheses = example()
    B = unit(np.random.default_rng(0).standard_normal((3, INPUTS)))
    assert gain(1.1 * B, hypotheses, NOISE)[0] > gain(B, hypotheses, NOISE)[0]


def best_found(hypotheses, noise, seed, rows=INPUTS):
    """The best gain over strategies with unit columns, by climbing from random starts."""
    rng = np.random.default_rng(seed)
    inputs = len(hypotheses[0].noise)

    def descend(flat):
        V = flat.reshape(rows, inputs)
        norms = np.linalg.norm(V, axis=0)
        B = V / norms
        value, gradient = gain(B, hypotheses, noise)
        gradient = (gradient - B * (gradient * B).sum(axis=0)) / norms
        return -value, -gradient.ravel()

    starts = rng.standard_normal((4, rows * inputs))
    return max(-minimize(descend, start, jac=True, method="L-BFGS-B").fun for start in starts)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("noise", [0.05, 0.7, 10.0])
def test_no_strategy_beats_the_floor_wherever_it_was_certified(seed, noise):
    hypotheses = example(seed)
    rng = np.random.default_rng(seed)
    least = total(hypotheses) - best_found(hypotheses, noise, seed)
    tried = [unit(rng.standard_normal((m, INPUTS))) for m in (1, 2, 6, 12) for _ in range(25)]
    tried += [np.eye(INPUTS), np.ones((1, INPUTS))]
    errors = [total(hypotheses) - gain(B, hypotheses, noise)[0] for B in tried]
    least = min(least, *errors)
    best = aware_design(hypotheses, noise, INPUTS)
    nearby = [unit(best + scale * rng.standard_normal(best.shape)) for scale in (0.01, 0.1, 0.3)]
    for B in [*tried[::10], *nearby]:
        certificate = certified(B, hypotheses, noise)
        assert certificate.floor <= least * (1 + 1e-9)
        assert certificate.error >= certificate.floor
    reached = certified(best, hypotheses, noise)
    assert reached.floor <= least * (1 + 1e-9)
    assert reached.gap < 0.01
    assert reached.error <= 1.001 * least


def test_the_slope_and_its_root_certify_the_same_floor():
    hypotheses = example(2)
    for m in (1, 3):
        B = unit(np.random.default_rng(m).standard_normal((m, INPUTS)))
        error = total(hypotheses) - gain(B, hypotheses, NOISE)[0]
        root = certify(B, error, residual_factors(B, hypotheses, NOISE), NOISE, is_root=True)
        assert root.floor == pytest.approx(certified(B, hypotheses).floor, rel=1e-9)


def test_a_root_that_happens_to_be_square_certifies_the_same_floor():
    hypotheses = example(2, count=1)
    B = unit(np.random.default_rng(1).standard_normal((3, INPUTS)))
    error = total(hypotheses) - gain(B, hypotheses, NOISE)[0]
    E = residual_factors(B, hypotheses, NOISE)
    assert E.shape == (INPUTS, INPUTS)
    floor = certify(B, error, E, NOISE, is_root=True).floor
    assert floor == pytest.approx(certified(B, hypotheses).floor, rel=1e-9)


def test_a_measurement_that_explains_nothing_is_not_certified_as_the_best():
    """The difference of two inputs says nothing about their sum."""
    gram = np.array([[1.0]])
    h = Hypothesis(np.array([[1.0], [1.0]]), np.full(2, 0.1), gram, 1.0)
    assert gain(np.array([[1.0, 1.0]]), [h], NOISE)[0] > 0.5
    assert certified(np.array([[1.0, -1.0]]), [h]).floor < 0.5


@pytest.mark.parametrize("seed", range(4))
def test_the_design_has_unit_columns(seed):
    B = aware_design(example(seed), NOISE, 4)
    assert_allclose(np.linalg.norm(B, axis=0), 1.0, rtol=1e-12)


def test_a_floor_from_a_low_rank_factor_holds_for_the_whole_prior():
    """Twelve rough inputs through four nodes: the floor is low but no strategy goes below it."""
    inputs = np.linspace(0, 1, 12)[:, None]
    index = np.arange(12)
    models = [Hyperparameters(ConstantKernel(2.0) * RBF(scale), 0.1) for scale in (0.08, 0.3)]
    weights = np.ones(12)
    unit_rows = strategy_for_rows(np.ones((1, 12)), index, None, energy=False, equal_weights=False)
    few = hypotheses_for(models, inputs, np.array([0, 4, 7, 11]), unit_rows, inputs, weights)
    whole = hypotheses_for(models, inputs, index, unit_rows, inputs, weights)
    B = aware_design(whole, NOISE, 12)
    strategy = strategy_for_rows(B, index, None, energy=False, equal_weights=False)
    best, slope = exact_certificate(models, inputs, strategy, inputs, weights, NOISE)
    full_floor = certify(B, best, slope, NOISE).floor
    low_floor = certified(B, few).floor
    assert certified(B, whole).floor == pytest.approx(full_floor, rel=1e-6)
    assert low_floor <= full_floor * (1 + 1e-6)
    assert full_floor <= best <= 1.02 * full_floor
    rng = np.random.default_rng(0)
    for m in (1, 4, 12):
        other = strategy_for_rows(
            unit(rng.standard_normal((m, 12))), index, None, energy=False, equal_weights=False
        )
        assert exact_certificate(models, inputs, other, inputs, weights, NOISE)[0] >= full_floor


def test_measuring_every_row_on_its_own_column_is_no_better_than_sharing_them():
    """Rows at one input share a column; giving each its own does not beat the shared floor."""
    h = example(1, count=1)[0]
    copies = np.repeat(np.arange(INPUTS), 3)
    split = Hypothesis(h.factor[copies], h.noise[copies], h.gram, h.total)
    shared = Hypothesis(3 * h.factor, 3 * h.noise, h.gram, h.total)
    floor = certified(aware_design([shared], NOISE, INPUTS), [shared]).floor
    found = split.total - best_found([split], NOISE, 0, rows=8)
    assert floor <= found * (1 + 1e-9)
    assert found <= 1.02 * floor


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
def test_the_default_plan_for_kung_ages_is_within_a_percent_of_the_floor(kung, epsilon):
    """Of one stage: two stages are not certified."""
    model = PrivateGPRegressor(y_bounds=(60, 200), epsilon=epsilon, delta=0.01, residuals="never")
    assert 0 <= model.plan(kung[0]).gap < 0.01


def test_one_target_among_kung_ages_is_within_two_percent_of_the_floor(kung):
    model = PrivateGPRegressor(y_bounds=(60, 200), epsilon=1.0, delta=0.01, targets=[[20.0]])
    assert 0 <= model.plan(kung[0]).gap < 0.02


def test_the_gap_of_a_plan_for_people_with_several_rows_is_a_true_floor():
    """Forty people with a row at 0 and one far away; only 0 is asked about.

    Measuring the rows at 0 alone needs no smaller weights, keeps the same sensitivity and beats the
    certified floor.
    """
    X = np.tile([[0.0], [100.0]], (40, 1))
    groups = np.repeat(np.arange(40), 2)
    model = PrivateGPRegressor(
        ConstantKernel(0.0625) * RBF(1.0),
        0.0225,
        y_bounds=(0, 1),
        epsilon=1.0,
        delta=1e-5,
        targets=[[0.0]],
        hyperparameters="fixed",
        mechanism="gaussian",
    )
    plan = model.plan(X, groups=groups)
    index = np.arange(80) % 2
    rival = strategy_for_rows(
        np.array([[1.0, 0.0]]), index, groups, energy=False, equal_weights=False
    )
    assert rival.sensitivity() <= plan.strategy.sensitivity() * (1 + 1e-9)
    noise = plan.measured_noise_std**2
    error, _ = exact_certificate(
        [plan.start], plan.inputs, rival, plan.targets, plan.target_weights, noise
    )
    assert plan.expected_error() / (1 + plan.gap) <= np.sqrt(error) * (1 + 1e-6)


def test_a_thousand_citi_bike_trips_are_within_a_percent_of_the_floor():
    table = pl.read_csv(real_data("citibike_201706.csv.gz")).filter(pl.col("subscriber") == 1)
    X = table.select("start_lat", "start_lon", "end_lat", "end_lon").to_numpy()[:1000]
    model = PrivateGPRegressor(y_bounds=(0, 2000), epsilon=1.0, delta=0.01, residuals="never")
    assert 0 <= model.plan(X).gap < 0.01
