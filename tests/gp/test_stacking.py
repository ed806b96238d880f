"""Several measurements as one: covariances as written out row by row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from privgp import PrivateGPRegressor
from privgp.gp.inference.evidence import condition
from privgp.gp.measurement import Functionals, Measurement, find_sites
from privgp.gp.priors import Hyperparameters
from privgp.gp.stacking import MOST_NODES, Stacked, _interpolation, on_common_nodes, sums_behind

KERNEL = ConstantKernel(400.0) * Matern(15.0, nu=2.5) + ConstantKernel(100.0)
ROWS, NEW = 60, 30


def measured(law: str, people: bool) -> tuple[PrivateGPRegressor, list[Any], np.ndarray]:
    """Fitted, updated and refined on the first rows; its strategies, and all inputs."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 40, (ROWS, 1)).astype(float)
    Z = rng.integers(0, 40, (NEW, 1)) + 0.5
    groups = rng.integers(0, 35, ROWS) if people else None
    others = np.arange(NEW) // 2 if people else None
    y, z = rng.uniform(60, 200, ROWS), rng.uniform(60, 200, NEW)
    model = PrivateGPRegressor(y_bounds=(60, 200), delta=1e-5, mechanism=law, random_state=1)
    strategies = []
    model.fit(X, y, groups=groups)
    strategies.append(model.plan_.strategy)
    model.update(Z, z, groups=others)
    strategies.append(model.plan_.strategy)
    model.refine(X, y, 0.7, 1e-5, groups=groups)
    strategies.append(model.plan_.strategy)
    return model, strategies, np.vstack([X, Z])


@pytest.mark.parametrize("people", [False, True])
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_stacked_covariances_are_those_of_the_rows(law, people, monkeypatch):
    """Two of three measurements are of the same rows: what outputs scatter is in both."""
    # what is learned does not matter
    monkeypatch.setattr(
        "privgp.release.learn.learn", lambda f, t, priors, rough: (priors[0].start,)
    )
    model, strategies, X = measured(law, people)
    rows = [s.matrix[:, s.index] * s.row_weights for s in strategies]
    W = np.zeros((sum(map(len, rows)), len(X)))
    m1, m2 = len(rows[0]), len(rows[0]) + len(rows[1])
    W[:m1, :ROWS], W[m1:m2, ROWS:], W[m2:, :ROWS] = rows
    stds = [each.noise_std for each in model.measurements_]
    W *= np.repeat([stds[0] / std for std in stds], list(map(len, rows)))[:, None]
    f, s2 = model.functionals_, 30.0
    K, inner = Hyperparameters(KERNEL, s2).covariance(X), KERNEL(f.nodes)
    with_y = W @ (K + s2 * np.eye(len(X)))
    A = f.weights
    assert_allclose(A @ inner @ A.T + s2 * f.noise_gram, with_y @ W.T, rtol=1e-9, atol=1e-6)
    e = np.concatenate([strategies[0].energy_shares, strategies[1].energy_shares])
    cross = A @ inner @ f.energy_cross
    found = A @ inner @ f.energy_gram @ inner @ A.T + s2 * (cross + cross.T)
    found += s2**2 * f.energy_noise_gram
    exact = (with_y * e) @ with_y.T
    assert_allclose(found, exact, rtol=1e-9, atol=1e-12 * np.abs(exact).max())
    assert f.energy_total == pytest.approx(e.sum())
    lag = f.noise_gram[m2:, :m1]
    assert np.abs(lag).max() > 0.1 * np.diag(f.noise_gram).max()  # and is not forgotten
    assert not np.any(f.noise_gram[m1:m2, :m1])


def some_functionals(nodes: np.ndarray, count: int, seed: int) -> Functionals:
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(count, len(nodes)))
    gram, zero = B @ B.T, np.zeros((count, count))
    return Functionals(nodes, B, gram, zero, float(len(nodes)), np.eye(len(nodes)), B.T, gram)


def test_many_nodes_are_thinned_out_and_little_is_lost():
    one = np.linspace(0.0, 1.0, 400)[:, None]
    first, second = some_functionals(one, 5, 0), some_functionals(one + 1e-3, 4, 1)
    start = Hyperparameters(ConstantKernel(2.0) * Matern(0.4, nu=2.5), 1.0)
    thin = on_common_nodes(first, second, start)
    assert len(thin[0].nodes) <= MOST_NODES < 800
    K = start.covariance(thin[0].nodes)
    for whole, less in zip((first, second), thin, strict=True):
        exact = whole.weights @ start.covariance(whole.nodes) @ whole.weights.T
        found = less.weights @ K @ less.weights.T + 2.0 * less.residual_gram
        assert_allclose(found, exact, rtol=1e-3, atol=1e-4 * np.diag(exact).max())


def test_numbers_with_other_noise_are_scaled_to_one_std():
    nodes = np.linspace(0.0, 1.0, 6)[:, None]
    one, two = some_functionals(nodes, 3, 0), some_functionals(nodes, 2, 1)
    t = Measurement(np.arange(3.0), 2.0, 5.0, 3.0)
    u = Measurement(np.array([4.0, 6.0]), 0.5, 7.0, 4.0, None, True)
    start = Hyperparameters(RBF(0.5), 1.0)
    both = Stacked(one, t).with_another(two, u, start)
    assert both.measurement.values.tolist() == [0.0, 1.0, 2.0, 16.0, 24.0]
    assert both.measurement.noise_std == 2.0
    assert both.measurement.laplace.tolist() == [False, False, False, True, True]
    assert (both.measurement.energy, both.measurement.energy_noise_std) == (12.0, 5.0)
    assert_allclose(both.functionals.noise_gram[3:, 3:], 16.0 * two.noise_gram)


def test_sums_are_found_from_what_they_are_of_the_function():
    """Exactly if all inputs are nodes; else their smooth part."""
    rng = np.random.default_rng(0)
    inputs, mass = np.linspace(0.0, 1.0, 40)[:, None], rng.uniform(1.0, 3.0, 40)
    start = Hyperparameters(RBF(0.3), 1.0)
    B = rng.normal(size=(3, 40))
    assert_allclose(sums_behind(B * mass, inputs, inputs, mass, start), B, rtol=1e-9)
    smooth = np.cos(np.outer([2.0, 3.0], inputs[:, 0]))
    nodes = inputs[::3]
    J = _interpolation(nodes, inputs, start)
    found = sums_behind((smooth * mass) @ J.T, nodes, inputs, mass, start)
    assert_allclose(found, smooth, atol=1e-3)


def test_normal_noise_among_laplace_noise_is_exact():
    """Sites of numbers with normal noise are the numbers themselves."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    signal, t = root @ root.T, rng.normal(size=6)
    none = find_sites(signal, t, 0.7, np.zeros(6, dtype=bool) | (np.arange(6) == 5))
    assert_allclose(none.values[:5], t[:5])
    assert_allclose(none.variances[:5], 0.49)
    assert none.variances[5] != pytest.approx(0.49, rel=1e-3)


def test_one_laplace_number_agrees_with_quadrature():
    """The evidence of one number with Laplace noise beside one with normal noise."""
    signal, t, std = np.array([[2.0, 1.2], [1.2, 1.5]]), np.array([0.8, -1.0]), 0.9
    sites = find_sites(signal, t, std, np.array([False, True]))
    grid = np.linspace(-12.0, 12.0, 4001)
    density = np.exp(-np.abs(t[1] - grid) * np.sqrt(2.0) / std) / (np.sqrt(2.0) * std)
    S = signal + np.diag([std**2, 0.0])
    points = np.column_stack([np.full(len(grid), t[0]), grid])
    quadratic = np.einsum("ij,jk,ik->i", points, np.linalg.inv(S), points)
    normal = np.exp(-0.5 * quadratic) / (2.0 * np.pi * np.sqrt(np.linalg.det(S)))
    exact = np.log(np.sum(density * normal) * (grid[1] - grid[0]))
    assert sites.log_evidence == pytest.approx(exact, abs=1e-3)


def test_one_answer_for_all_is_the_same_as_one_for_each():
    nodes = np.linspace(0.0, 1.0, 6)[:, None]
    f, model = some_functionals(nodes, 3, 0), Hyperparameters(RBF(0.5), 0.1)
    t = Measurement(np.array([1.0, -3.0, 0.4]), 2.0, None, 0.0, None, True)
    each = replace(t, is_laplace=(True,) * 3)
    assert condition(f, t, model).log_evidence == condition(f, each, model).log_evidence
