"""Kernels of which only values are known: scikit-learn's others, a user's own, and our varying one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    Hyperparameter,
    Kernel,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
)

from privgp.gp.kernels.evaluate import (
    check_kernel,
    constant_variance,
    diagonal,
    evaluate,
    mean_variance,
    total_variance,
    value_and_pullback,
    variance,
)
from privgp.gp.kernels.proved import least_value, rounding_error, values_by_differences
from privgp.gp.kernels.varying import VaryingLengthscale


class Brownian(Kernel):
    """A user's own: min(x, z), times a variance."""

    def __init__(self, size: float = 1.0, size_bounds: object = (1e-5, 1e5)) -> None:
        self.size, self.size_bounds = size, size_bounds

    @property
    def hyperparameter_size(self) -> Hyperparameter:
        return Hyperparameter("size", "numeric", self.size_bounds)

    def __call__(self, X, Y=None, eval_gradient=False):
        Z = X if Y is None else Y
        return self.size * np.minimum.outer(X[:, 0], Z[:, 0])

    def diag(self, X):
        return self.size * X[:, 0]

    def is_stationary(self):
        return False


class DoubledRBF(RBF):
    """Derived from a kernel that is known, with its own values."""

    def __call__(self, X, Y=None, eval_gradient=False):
        return 2.0 * super().__call__(X, Y)

    def diag(self, X):
        return np.full(len(X), 2.0)


VARYING = VaryingLengthscale(0.4, places=[[0.0], [0.5], [1.0]], factors=[0.3, 1.0, 3.0])
GENERAL = [
    DotProduct(0.7),
    RBF(0.3) * DotProduct(0.7) + ConstantKernel(0.1),
    Exponentiation(DotProduct(0.7) + RBF(0.2), 2.0),
    Exponentiation(RationalQuadratic(0.4, 1.5), 2.0) * ExpSineSquared(1.0, 0.5),
    PairwiseKernel(metric="rbf", gamma=2.0),
    Brownian(2.0),
    DoubledRBF(0.3),
    1.5 * VARYING + DotProduct(1.0, "fixed"),
]


def points() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.uniform(0.05, 1.0, (7, 1)), rng.uniform(0.05, 1.0, (4, 1))


@pytest.mark.parametrize("kernel", GENERAL, ids=str)
def test_values_and_gradients_are_those_of_the_class(kernel):
    X, Z = points()
    check_kernel(kernel, 1)
    assert_allclose(evaluate(kernel, X), kernel(X), atol=1e-12)
    assert_allclose(evaluate(kernel, X, Z), kernel(X, Z), atol=1e-12)
    assert_allclose(values_by_differences(kernel, X, Z), kernel(X, Z), atol=1e-12)
    assert_allclose(diagonal(kernel, X), kernel.diag(X), atol=1e-12)
    K, pull = value_and_pullback(kernel, X)
    G = np.random.default_rng(1).standard_normal(K.shape)
    for place, axis in enumerate(np.eye(len(kernel.theta))):
        ends = [kernel.clone_with_theta(kernel.theta + step * axis)(X) for step in (1e-6, -1e-6)]
        expected = np.vdot(G, ends[0] - ends[1]) / 2e-6
        assert pull(G)[place] == pytest.approx(expected, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("kernel", GENERAL, ids=str)
def test_what_needs_a_proved_error_refuses_them(kernel):
    for function in (rounding_error, least_value):
        with pytest.raises(ValueError, match="is not available here, as the error of its values"):
            function(kernel, np.ones(1))


def test_a_variance_that_varies_is_averaged_and_never_taken_for_one_number():
    X, _ = points()
    kernel = 2.0 * DotProduct(0.7)
    assert constant_variance(kernel) is None
    with pytest.raises(ValueError, match="varies with the input"):
        variance(kernel)
    weights = np.arange(1.0, 8.0)
    assert mean_variance(kernel, X, weights) == pytest.approx(
        np.average(kernel.diag(X), weights=weights)
    )
    assert total_variance(kernel, X, weights) == pytest.approx(weights @ kernel.diag(X))
    assert constant_variance(3.0 * VARYING) == 3.0


class Broken(Brownian):
    def __call__(self, X, Y=None, eval_gradient=False):
        return np.subtract.outer(X[:, 0], (X if Y is None else Y)[:, 0])


class Wrong(Brownian):
    def diag(self, X):
        return np.zeros(len(X))


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (Broken(), "not symmetric"),
        (Wrong(), "diag"),
        (DotProduct(-1.0), "sigma_0 must be positive"),
    ],
    ids=["broken", "wrong", "negative"],
)
def test_a_class_that_is_no_covariance_is_refused(kernel, words):
    with pytest.raises(ValueError, match=words):
        check_kernel(kernel, 1)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, np.inf])
@pytest.mark.parametrize("scale", [0.4, np.array([0.4, 0.9])])
def test_a_varying_lengthscale_is_a_covariance_with_its_gradient(nu, scale):
    rng = np.random.default_rng(2)
    X, places = rng.uniform(size=(60, 2)), rng.uniform(size=(5, 2))
    kernel = VaryingLengthscale(scale, places=places, factors=[0.2, 0.5, 1.0, 2.0, 5.0], nu=nu)
    check_kernel(kernel, 2)
    K, gradient = kernel(X, eval_gradient=True)
    assert np.linalg.eigvalsh(K).min() > -1e-10
    assert_allclose(K, K.T)
    assert_allclose(kernel.lengthscales(places)[:2] * 1.0, np.outer([0.2, 0.5], scale).squeeze())
    for place, axis in enumerate(np.eye(len(kernel.theta))):
        ends = [kernel.clone_with_theta(kernel.theta + step * axis)(X) for step in (1e-6, -1e-6)]
        assert_allclose(gradient[:, :, place], (ends[0] - ends[1]) / 2e-6, atol=1e-8)
    assert clone(kernel) == kernel


def test_equal_factors_make_the_matern_kernel():
    X, Z = np.random.default_rng(3).uniform(size=(2, 6, 2))
    kernel = VaryingLengthscale([0.3, 0.6], places=[[0.0, 0.0], [1.0, 1.0]], factors=[1.0, 1.0])
    assert_allclose(kernel(X, Z), Matern([0.3, 0.6], nu=2.5)(X, Z), atol=1e-14)


def test_lengthscales_follow_the_density_of_public_inputs():
    rng = np.random.default_rng(4)
    X = np.vstack([rng.normal(0.0, 0.05, (200, 2)), rng.uniform(-3.0, 3.0, (60, 2))])
    kernel = VaryingLengthscale.for_inputs(X, 0.5)
    inside, outside = kernel.lengthscales([[0.0, 0.0], [2.5, -2.5]])
    assert inside < 0.5 * outside
    check_kernel(kernel, 2)
    for wrong in ([[1.0]], [1.0, 2.0], [[np.nan], [1.0]]):
        with pytest.raises(ValueError, match="X must be"):
            VaryingLengthscale.for_inputs(wrong)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"places": [[0.0, 1.0]]}, "places of shape"),
        ({"places": [[0.0], [1.0]]}, "one factor"),
        ({"factors": [0.0]}, "factors between"),
        ({"places": [[np.inf]]}, "finite places"),
        ({"places": "here"}, "of numbers"),
        ({"nu": 0.0}, "nu must be positive"),
    ],
    ids=str,
)
def test_places_and_factors_must_fit(arguments, words):
    with pytest.raises(ValueError, match=words):
        check_kernel(VaryingLengthscale(1.0, **arguments), 1)
