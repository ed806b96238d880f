"""Inducing inputs: dense formulas, the exact limit, and sensitivities against brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from privgp.engine.local import Serial
from privgp.gp.input_maps import collapse
from privgp.gp.kernels.evaluate import evaluate, variance
from privgp.gp.smoothers import exact_smoother, node_smoother
from privgp.plan import accuracy
from privgp.plan.build import Budget, Question, make_part
from privgp.plan.inputs.rows import ArrayRows, sample
from privgp.plan.streamed.columns import Columns, residual_gram
from privgp.plan.streamed.sketch import choose_inducing_inputs, sketch_plan
from privgp.plan.streamed.sums import strategy_of_columns

KERNEL, NOISE = ConstantKernel(4.0) * Matern(0.7, nu=2.5), 0.3
BOUNDS = (-3.0, 3.0)


def question(**settings) -> Question:
    usual = {"kernel": KERNEL, "noise_variance": NOISE, "mechanism": "gaussian"}
    return Question(**{"y_bounds": BOUNDS, **usual, **settings})


def streamed(X, inducing, size=64, **settings):
    sketch = sketch_plan(ArrayRows(X), question(**settings), Budget(1.0, 1e-3), inducing)
    return sketch, sketch.finish(sketch.columns.totals(ArrayRows(X, size=size)))


def dtc_smoother(kernel, noise_variance, X, counts, targets, nodes):
    """Weights of the rows' outputs and the variance left: only the function at the nodes is unknown."""
    return dense(kernel, np.full(len(X), noise_variance), X, counts, targets, nodes)


def fitc_smoother(kernel, noise_variance, X, counts, targets, nodes):
    """The same with the variance that the nodes leave out added to every output's noise."""
    K = evaluate(kernel, nodes, X)
    half = np.linalg.solve(np.linalg.cholesky(evaluate(kernel, nodes)), K)
    left_out = np.maximum(variance(kernel) - np.square(half).sum(axis=0), 0.0)
    return dense(kernel, noise_variance + left_out, X, counts, targets, nodes)


def dense(kernel, noise_variances, X, counts, targets, nodes):
    K = evaluate(kernel, nodes, X)
    weighed = K / noise_variances
    smoother = node_smoother(kernel, nodes, (weighed * counts) @ K.T, targets)
    return replace(smoother, weights=smoother.weights @ weighed)


@pytest.fixture(scope="module")
def X():
    """Not on a grid, and no two so near that rounding errors matter."""
    return (np.linspace(0, 12, 60) + np.random.default_rng(0).uniform(0, 0.1, size=60))[:, None]


@pytest.mark.parametrize("smoother", [dtc_smoother, fitc_smoother])
def test_smoothers_are_the_dense_formulas(X, smoother):
    Z, goal = X[::7], np.linspace(0, 12, 9)[:, None]
    counts = np.random.default_rng(1).integers(1, 4, size=len(X)).astype(float)
    Kzz, Kzx = evaluate(KERNEL, Z), evaluate(KERNEL, Z, X)
    q = np.einsum("ij,ij->j", Kzx, np.linalg.solve(Kzz, Kzx))
    lam = np.full(len(X), NOISE) + (variance(KERNEL) - q) * (smoother is fitc_smoother)
    inner = np.linalg.inv(Kzz + (Kzx * counts / lam) @ Kzx.T)
    cross = evaluate(KERNEL, goal, Z)
    found = smoother(KERNEL, NOISE, X, counts, goal, Z)
    assert_allclose(found.weights, cross @ inner @ Kzx / lam, atol=1e-8)
    left = variance(KERNEL) - np.einsum("ij,ij->i", cross @ np.linalg.inv(Kzz), cross)
    assert_allclose(found.variance, left + np.einsum("ij,ij->i", cross @ inner, cross), atol=1e-8)


@pytest.mark.parametrize("smoother", [dtc_smoother, fitc_smoother])
def test_with_all_inputs_inducing_the_smoother_is_exact(X, smoother):
    ones, goal = np.ones(len(X)), np.linspace(0, 12, 9)[:, None]
    exact = exact_smoother(KERNEL, NOISE, X, ones, goal)
    found = smoother(KERNEL, NOISE, X, ones, goal, X)
    assert_allclose(found.weights, exact.weights, atol=1e-6)
    assert_allclose(found.variance, exact.variance, atol=1e-6)


@pytest.mark.parametrize("objective", ["posterior", "trace"])
def test_with_all_inputs_inducing_the_plan_is_that_of_the_exact_model(X, objective):
    X = np.vstack([X, X[:20]])  # some inputs twice
    asked = question(objective=objective, learned=False)
    exact = make_part(X, asked, Budget(1.0, 1e-3))
    _, plan = streamed(X, collapse(X)[0], objective=objective, learned=False)
    goal = np.linspace(-1, 13, 25)[:, None]
    ours, theirs = (accuracy.expected_std(part, goal, None) for part in (plan, exact))
    assert_allclose(ours, theirs, rtol=1e-6)
    assert_allclose(plan.noise.std, exact.noise.std, rtol=1e-6)
    assert np.abs(plan.functionals.residual_gram).max() < 1e-6


def test_unbiased_columns_reconstruct_the_smoother(X):
    goal, Z = np.linspace(0, 12, 9)[:, None], np.linspace(0, 12, 12)[:, None]
    sketch, plan = streamed(X, Z, targets=goal, objective="max", reconstruct="unbiased")
    C = dtc_smoother(KERNEL, NOISE, X, np.ones(len(X)), goal, Z)
    B = sketch.columns.at(X)[0]
    assert_allclose(plan.unbiased.reconstruction @ B, C.weights, atol=1e-8)
    assert_allclose(plan.unbiased.variance, C.variance)
    assert plan.gap < 0.02


def test_functionals_are_sums_over_the_rows(X):
    """Against the matrices that are never formed."""
    Z = np.linspace(0, 12, 10)[:, None]
    sketch, plan = streamed(X, Z)
    B, K = sketch.columns.at(X)
    J = np.linalg.solve(evaluate(KERNEL, Z), K)
    f = plan.functionals
    assert_allclose(f.weights, B @ J.T, atol=1e-7)
    assert_allclose(f.noise_gram, B @ B.T, atol=1e-10)
    assert_allclose(f.energy_gram, J @ J.T, atol=1e-7)
    left = evaluate(KERNEL, X) - K.T @ J
    assert_allclose(f.residual_gram, B @ left @ B.T / variance(KERNEL), atol=1e-7)
    assert f.energy_total == 60


def test_what_is_left_out_is_estimated_from_sampled_pairs(X, monkeypatch):
    """Over all samples of 2 of 6 rows, of equal chance, the estimate (before it is made positive
    semidefinite, which one number, 1 by 1, seldom needs) is right on average."""
    columns = Columns(KERNEL, X[:3], np.array([[1.0, 2.0, 0.5]]), unit=False)
    rows = X[10:16]
    totals = columns.totals(ArrayRows(rows))
    exact = residual_gram(columns, rows, totals)
    pairs = [rows[[i, j]] for i in range(6) for j in range(i)]
    found = [residual_gram(columns, pair, totals) for pair in pairs]
    assert min(value[0, 0] for value in found) > 0
    assert_allclose(np.mean(found, axis=0), exact, rtol=1e-9)


@settings(max_examples=30)
@given(
    rows=st.integers(1, 40),
    nodes=st.integers(1, 8),
    unit=st.booleans(),
    energy=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_no_change_of_one_output_moves_the_measurement_further(rows, nodes, unit, energy, seed):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(rows, 2)), rng.normal(size=(nodes, 2))
    columns = Columns(RBF(1.0), Z, 3.0 * rng.standard_normal((3, nodes)), unit)
    totals = columns.totals(ArrayRows(X, size=7))
    strategy = strategy_of_columns(columns, totals, energy=energy)
    B, w = columns.at(X)[0], strategy.energy_weight
    grid = np.linspace(-1, 1, 9)
    moved = max(
        np.hypot((u - v) * np.linalg.norm(b), w * (u * u - v * v))
        for b in B.T for u in grid for v in grid
    )  # fmt: skip
    bound = strategy.sensitivity()
    assert moved <= bound <= 1.0001 * moved
    low, high = strategy.worst_neighbours()
    assert np.linalg.norm(high - low) == pytest.approx(bound, rel=1e-9)
    assert strategy.size == len(low) == 3 + energy


def test_blocks_change_nothing_but_last_bits_and_bounds_hold_for_each():
    X = np.random.default_rng(2).normal(size=(500, 3))
    sketch = sketch_plan(ArrayRows(X), question(kernel=None), Budget(1.0, 1e-3), 30)
    plans = [sketch.finish(sketch.columns.totals(ArrayRows(X, size=size))) for size in (1, 37, 500)]
    for plan in plans[:2]:
        assert plan.noise.std == pytest.approx(plans[2].noise.std, rel=1e-9)
        assert_allclose(plan.functionals.weights, plans[2].functionals.weights, rtol=1e-6)
        assert_allclose(plan.functionals.energy_gram, plans[2].functionals.energy_gram, rtol=1e-6)
    B = sketch.columns.at(X)[0]
    for plan in plans:
        assert np.linalg.norm(B, axis=0).max() <= plan.strategy.largest * (1 + 1e-12)
        assert_allclose(plan.strategy.absolute, np.abs(B).sum(axis=1), rtol=1e-9)


def test_columns_far_from_all_inducing_inputs_are_small_not_arbitrary():
    columns = Columns(RBF(0.1), np.zeros((1, 1)), np.ones((1, 1)), unit=True)
    B, _ = columns.at(np.array([[0.0], [0.15], [50.0]]))
    assert_allclose(B[0, :2], 1.0)
    assert B[0, 2] == 0.0


def test_columns_that_are_not_finite_are_refused():
    columns = Columns(RBF(1.0), np.zeros((1, 1)), np.array([[1e200]]), unit=False)
    with pytest.raises(ValueError, match="not finite"):
        columns.totals(ArrayRows(np.zeros((3, 1))))


def test_inducing_inputs_are_centres_and_the_same_every_time():
    X = np.random.default_rng(3).normal(size=(400, 2)) * [1.0, 1000.0] + 1e6
    Z = choose_inducing_inputs(X, 25)
    assert Z.shape == (25, 2)
    assert np.array_equal(Z, choose_inducing_inputs(X.copy(), 25))
    assert (X.min(axis=0) <= Z).all()
    assert (X.max(axis=0) >= Z).all()
    few = np.repeat(X[:4], 30, axis=0)
    assert_allclose(choose_inducing_inputs(few, 10), collapse(few)[0])
    spread = Z.std(axis=0) / X.std(axis=0)
    assert (spread > 0.6).all()


def test_a_sample_is_all_rows_or_some_of_them_in_order():
    X = np.arange(100.0)[:, None]
    assert np.array_equal(sample(ArrayRows(X), 100, Serial()), X)
    some = sample(ArrayRows(X), 30, Serial())
    assert len(some) == len(np.unique(some)) == 30
    assert (np.diff(some[:, 0]) > 0).all()
    assert np.array_equal(some, sample(ArrayRows(X), 30, Serial()))
