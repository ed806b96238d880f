"""Kernels: scikit-learn's values at BLAS speed, gradients against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from privgp.gp.kernels import evaluate as kernels
from privgp.gp.kernels.evaluate import check_kernel, evaluate, value_and_pullback, variance
from privgp.gp.priors import Hyperparameters, prior_about
from tests.gp.kernels.rows import ROWS

KERNELS = [
    *(row.make(2.0, row.middle) for row in ROWS),
    *(row.make(np.array([1.0, 2.0, 3.0]), row.middle) for row in ROWS if len(row.shapes) > 1),
    RationalQuadratic(2.0, 0.7),
    ExpSineSquared(2.0, 5.0),
    3.0 * Matern(2.0, nu=2.5) * RBF([1.0, 2.0, 3.0]) + ConstantKernel(0.3),
    ConstantKernel(2.0, "fixed") * RBF(1.0, "fixed") + RationalQuadratic(1.0, 2.0, alpha_bounds="fixed"),
]  # fmt: skip


def points(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(1e3, 3.0, size=(9, 3)), rng.normal(1e3, 3.0, size=(5, 3))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_values_are_scikit_learns(kernel):
    X, Z = points(0)
    assert_allclose(evaluate(kernel, X, Z), kernel(X, Z), atol=1e-9)
    assert_allclose(evaluate(kernel, X), kernel(X), atol=1e-9)
    assert_allclose(kernels.diagonal(kernel, X), kernel.diag(X))
    assert variance(kernel) == pytest.approx(kernel.diag(X)[0])


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("square", [True, False])
def test_pullback_is_the_gradient(kernel, square):
    X, Z = points(1)
    other = None if square else Z
    K, pull = value_and_pullback(kernel, X, other)
    G = np.random.default_rng(2).standard_normal(K.shape)
    step = 1e-6
    numeric = [
        np.vdot(
            G,
            evaluate(kernel.clone_with_theta(kernel.theta + step * axis), X, other)
            - evaluate(kernel.clone_with_theta(kernel.theta - step * axis), X, other),
        )
        / (2 * step)
        for axis in np.eye(len(kernel.theta))
    ]
    assert_allclose(pull(G), np.array(numeric).reshape(-1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_weights_are_carried_as_by_the_whole_matrix(kernel, monkeypatch):
    """Also where the rows come in parts, and parts of these."""
    X, Z = points(3)
    weights = np.random.default_rng(4).standard_normal((len(Z), 3))
    expected = evaluate(kernel, X, Z) @ weights
    assert_allclose(kernels.carry(kernel, X, Z, weights)[0], expected, rtol=1e-12, atol=1e-12)
    monkeypatch.setattr(kernels, "CARRIED_ROWS", 4)
    monkeypatch.setattr(kernels, "CACHED_ENTRIES", 3 * len(Z))
    alone, _ = kernels.carry(kernel, X, Z, weights, weights[:, :1])
    assert_allclose(alone, expected, rtol=1e-12, atol=1e-12)


def test_blocks_make_no_difference(monkeypatch):
    X, Z = points(3)
    kernel = Matern([1.0, 2.0, 3.0], nu=2.5)
    whole = evaluate(kernel, X), evaluate(kernel, X, Z)
    monkeypatch.setattr(kernels, "BLOCK_ENTRIES", 7)
    assert_allclose(evaluate(kernel, X), whole[0], atol=1e-12)
    assert_allclose(evaluate(kernel, X, Z), whole[1], atol=1e-12)


@given(st.floats(-1e6, 1e6), st.floats(0.01, 100.0))
def test_only_differences_of_inputs_matter(shift, scale):
    X, Z = points(4)
    moved = evaluate(Matern(2.0 * scale, nu=2.5), (X + shift) * scale, (Z + shift) * scale)
    assert_allclose(moved, evaluate(Matern(2.0, nu=2.5), X, Z), atol=1e-6)


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (CompoundKernel([RBF(1.0)]), "must be a kernel"),
        (RBF(1.0) * DotProduct(0.0), "sigma_0 must be positive"),
        (Exponentiation(WhiteKernel(1.0), 2.0), "WhiteKernel inside another kernel"),
        (RBF(1.0) * WhiteKernel(1.0), "inside a product"),
        (RBF([1.0, 2.0, 3.0]), "3 lengthscales but the inputs have 2"),
        (2.0 * ExpSineSquared(1.0, 1.0), "one input only"),
        (RBF(-1.0), "length_scale must be positive"),
        (RationalQuadratic(1.0, np.inf), "alpha must be positive and finite"),
        (Matern(1.0, nu=0.0), "nu must be positive"),
    ],
    ids=str,
)
def test_a_kernel_that_cannot_be_evaluated_is_refused(kernel, words):
    with pytest.raises(ValueError, match=words):
        check_kernel(RBF(1.0) + kernel, 2)


@pytest.mark.parametrize("nu", [0.5, 2.5, np.inf])
def test_a_prior_moves_a_kernel_as_scikit_learn_does(nu):
    kernel = ConstantKernel(2.0) * Matern([1.0, 3.0], nu=nu) + ConstantKernel(1.0, "fixed") * RBF()
    prior = prior_about(Hyperparameters(kernel, 0.1), noise_free=True)
    z = np.random.default_rng(0).standard_normal(prior.size)
    expected = kernel.clone_with_theta((prior.centre + prior.root @ z)[:-1])
    assert prior.at(z).kernel == expected
    assert kernel.theta.tolist() == prior.centre[:-1].tolist()
