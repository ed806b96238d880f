"""Kernels: scikit-learn's values at BLAS speed, gradients against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from privgp.gp.kernels import evaluate as kernels
from privgp.gp.kernels.evaluate import evaluate, value_and_pullback, variance
from privgp.gp.kernels.noise import split_noise

KERNELS = [
    RBF(2.0),
    RBF([1.0, 2.0, 3.0]),
    Matern(2.0, nu=0.5),
    Matern([1.0, 2.0, 3.0], nu=0.5),
    Matern([1.0, 2.0, 3.0], nu=1.5),
    Matern([1.0, 2.0, 3.0], nu=2.5),
    Matern(2.0, nu=np.inf),
    Matern(2.0, nu=3.2),
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


def test_blocks_make_no_difference(monkeypatch):
    X, Z = points(3)
    kernel = KERNELS[5]
    whole = evaluate(kernel, X), evaluate(kernel, X, Z)
    monkeypatch.setattr(kernels, "BLOCK_ENTRIES", 7)
    assert_allclose(evaluate(kernel, X), whole[0], atol=1e-12)
    assert_allclose(evaluate(kernel, X, Z), whole[1], atol=1e-12)


@given(st.floats(-1e6, 1e6), st.floats(0.01, 100.0))
def test_only_differences_of_inputs_matter(shift, scale):
    X, Z = points(4)
    moved = evaluate(Matern(2.0 * scale, nu=2.5), (X + shift) * scale, (Z + shift) * scale)
    assert_allclose(moved, evaluate(Matern(2.0, nu=2.5), X, Z), atol=1e-6)


def test_a_white_kernel_of_the_top_level_sum_is_the_noise():
    kernel, white = split_noise(RBF(1.0) + WhiteKernel(2.0) + ConstantKernel(3.0))
    assert white == WhiteKernel(2.0)
    assert kernel == RBF(1.0) + ConstantKernel(3.0)
    assert split_noise(RBF(1.0)) == (RBF(1.0), None)
    assert split_noise(WhiteKernel(1.0))[0] is None
