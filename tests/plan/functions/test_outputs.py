"""How far one output moves a whole function, and coordinates that grow point by point."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, RationalQuadratic

from privgp.gp.growing import Coordinates, GrowingFactor
from privgp.gp.kernels.evaluate import evaluate, variance
from privgp.gp.priors import collapse
from privgp.plan.functions.outputs import FunctionModel, inverse_covariance, papers_bounds

KERNELS = {
    "rbf": lambda v, scale: ConstantKernel(v) * RBF(scale),
    "matern12": lambda v, scale: ConstantKernel(v) * Matern(scale, nu=0.5),
    "matern52": lambda v, scale: ConstantKernel(v) * Matern(scale, nu=2.5),
    "sum": lambda v, scale: ConstantKernel(v) * RBF(scale) + RationalQuadratic(scale, 1.5),
}


def model_of(kernel, noise_variance, X, nodes=None):
    inputs, index = collapse(np.asarray(X, float))
    return FunctionModel(kernel, noise_variance, inputs, np.bincount(index).astype(float), nodes)


@given(
    name=st.sampled_from(sorted(KERNELS)),
    v=st.floats(0.01, 100.0),
    scale=st.floats(0.1, 5.0),
    noise=st.floats(0.01, 10.0),
    rows=st.integers(1, 30),
    seed=st.integers(0, 2**31),
)
def test_the_exact_sensitivity_is_the_largest_norm_that_brute_force_finds(
    name, v, scale, noise, rows, seed
):
    """||k(., X) K^-1 (y - y')||^2 = (y - y')^T K^-1 K' K^-1 (y - y'), one output at a time."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(rows, 2)), 1)  # some rows are equal
    kernel = KERNELS[name](v, scale)
    prior = kernel(X)
    norms = []
    for j in range(rows):
        change = np.zeros(rows)
        change[j] = 1.0
        weights = np.linalg.solve(prior + noise * np.eye(rows), change)
        norms.append(np.sqrt(weights @ prior @ weights))
    model = model_of(kernel, noise, X)
    assert model.norm("exact") == pytest.approx(max(norms), rel=1e-9)
    assert model.norm("exact") <= model.norm("nonnegative") * (1 + 1e-9)
    assert model.norm("nonnegative") <= model.norm("infinity") * (1 + 1e-12)


def test_without_the_root_of_the_variance_the_papers_bounds_would_be_too_small():
    model = model_of(100.0 * RBF(1.0), 1e-4, np.array([[0.0]]))
    infinity, b = papers_bounds(inverse_covariance(model))
    assert max(infinity, b) < 0.2 * model.norm("exact")
    assert model.norm("nonnegative") >= model.norm("exact")


def test_the_papers_scale_on_the_kung_heights_is_theirs_to_the_digit(kung):
    """RBF of lengthscale 25, variance 1, noise variance 0.3, d = 100, epsilon 50, delta 0.01."""
    model = model_of(RBF(25.0), 0.3, kung[0])
    infinity, b = papers_bounds(inverse_covariance(model))
    hall = np.sqrt(2 * np.log(2 / 0.01)) / 50
    assert f"{100 * b * hall:.2f}" == "28.53"
    assert model.norm("exact") == pytest.approx(0.498674305, abs=1e-6)
    assert b / model.norm("exact") == pytest.approx(8.8, abs=0.05)
    assert infinity == pytest.approx(8.447, abs=1e-3)


def test_a_factor_that_grew_in_any_steps_is_the_factor():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(300, 300))
    L = np.linalg.cholesky(A @ A.T + 300 * np.eye(300))
    factor, at = GrowingFactor(), 0
    for step in (1, 1, 126, 2, 100, 70):
        factor.append(L[at : at + step, : at + step])
        at += step
    right = rng.normal(size=(300, 3))
    assert np.allclose(L @ factor.solve(right), right, atol=1e-11)
    assert np.allclose(L @ factor.solve(right[:, :1]), right[:, :1], atol=1e-11)
    assert np.allclose(factor.times(right), L @ right, atol=1e-11)
    assert GrowingFactor().times(right[:0]).shape == (0, 3)


@pytest.mark.parametrize("steps", [[60], [1] * 60, [20, 1, 39]])
def test_coordinates_and_their_factor_give_back_the_function(steps):
    rng = np.random.default_rng(1)
    X, points = rng.uniform(0, 10, (25, 1)), rng.uniform(-2, 12, (60, 1))
    model = model_of(4.0 * Matern(2.0, nu=2.5), 0.5, X)
    grown, rows, lower = Coordinates(model.kernel, model.inputs, model.coefficients), [], []
    at = 0
    for step in steps:
        extension = grown.propose(points[at : at + step])
        grown.accept(extension)
        rows.append(extension.rows)
        lower += [np.pad(row, (0, 60 - len(row))) for row in extension.lower]
        at += step
    L, B = np.array(lower), np.vstack(rows)
    noisy = evaluate(model.kernel, points) + 1e-8 * variance(model.kernel) * np.eye(60)
    assert np.allclose(L @ L.T, noisy, atol=1e-12)
    wanted = evaluate(model.kernel, points, model.inputs) @ model.coefficients
    assert np.allclose(L @ B, wanted, atol=1e-9)
    assert np.all(np.linalg.norm(B, axis=0) <= model.exact_norms() * (1 + 1e-6))


def test_inducing_inputs_at_every_row_are_the_exact_posterior_mean():
    rng = np.random.default_rng(2)
    X, s = rng.uniform(0, 10, (15, 1)), rng.normal(size=15)
    points = rng.uniform(0, 10, (8, 1))
    kernel = 2.0 * Matern(1.5, nu=1.5)
    exact = model_of(kernel, 0.3, X)
    sparse = model_of(kernel, 0.3, X, nodes=exact.inputs)
    wanted = evaluate(kernel, points, exact.inputs) @ exact.coefficients @ s
    assert np.allclose(sparse.node_values(points, sparse.node_rows @ s), wanted, atol=1e-8)
    assert sparse.norm("exact") == pytest.approx(exact.norm("exact"), rel=1e-8)


def test_the_sensitivity_through_inducing_inputs_is_that_of_the_formula():
    rng = np.random.default_rng(3)
    X, Z = rng.uniform(0, 10, (30, 1)), np.linspace(0, 10, 6)[:, None]
    kernel, noise = 2.0 * RBF(1.5), 0.4
    KZZ, KZX = kernel(Z), kernel(Z, X)
    alpha = np.linalg.solve(noise * KZZ + KZX @ KZX.T, KZX)
    wanted = np.sqrt(np.einsum("ij,ij->j", alpha, KZZ @ alpha)).max()
    assert model_of(kernel, noise, X, Z).norm("exact") == pytest.approx(wanted, rel=1e-9)
