"""Kernels that are not stationary, from the estimators to files: taken, saved, or refused in time."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Exponentiation

import privgp
from privgp import (
    Ledger,
    PosteriorPaths,
    PrivateFunction,
    PrivateGPClassifier,
    PrivateGPRegressor,
    VaryingLengthscale,
)
from tests.gp.kernels.test_general import Brownian

X = np.linspace(0.05, 1.0, 25)[:, None]
y = np.clip(1.5 * X[:, 0] - 0.7, -1.0, 1.0)
LAW = {"y_bounds": (-1, 1), "epsilon": 4.0, "delta": 1e-3}
KERNELS = [
    ConstantKernel(0.5) * DotProduct(0.5),
    VaryingLengthscale(0.4, places=[[0.0], [1.0]], factors=[0.5, 2.0]),
    Brownian(1.0),
    Exponentiation(RBF(0.5), 2.0) * DotProduct(0.5),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("reconstruct", ["posterior", "unbiased"])
def test_releases_of_outputs_take_any_kernel(kernel, reconstruct):
    model = PrivateGPRegressor(
        kernel, 0.05, reconstruct=reconstruct, hyperparameters="fixed", random_state=0, **LAW
    )
    plan = model.plan(X)
    assert 0.0 < plan.expected_error() < 2.0
    mean, std = model.fit(X, y, plan=plan).predict(X, return_std=True)
    assert np.all(np.abs(mean - y) < 5.0 * std + 0.1)


def test_hyperparameters_of_any_kernel_are_learned():
    model = PrivateGPRegressor(Brownian(1.0), random_state=0, **LAW).fit(X, y)
    assert isinstance(model.kernel_, Brownian)
    assert model.kernel_.size != 1.0


@pytest.mark.parametrize("kernel", KERNELS[:2], ids=str)
def test_a_kernel_of_the_registry_is_saved(kernel, tmp_path):
    model = PrivateGPRegressor(kernel, 0.05, random_state=0, **LAW).fit(X, y)
    with pytest.warns(UserWarning, match="contains"):
        model.save(tmp_path / "m.privgp")
    assert np.array_equal(privgp.load(tmp_path / "m.privgp").predict(X), model.predict(X))


def test_a_class_of_ones_own_is_refused_by_files_before_anything_is_spent(tmp_path):
    account = Ledger(f"sqlite:///{tmp_path}/budget.db").open("t", epsilon=8, delta=1e-2)
    function = PrivateFunction(Brownian(1.0), 0.05, ledger=account, **LAW)
    with pytest.raises(
        ValueError, match="Brownian cannot be saved: files hold numbers and no code"
    ):
        function.fit(X, y, state=tmp_path / "f.private-state")
    assert account.entries() == []
    model = PrivateGPRegressor(Brownian(1.0), 0.05, random_state=0, **LAW).fit(X, y)
    with pytest.raises(ValueError, match="Brownian cannot be saved"):
        model.save(tmp_path / "m.privgp")
    assert not (tmp_path / "m.privgp").exists()


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("sensitivity", ["exact", "nonnegative", "infinity"])
def test_the_norm_bounds_every_function_that_one_output_adds(kernel, sensitivity):
    """By brute force: the squared norm of k(., X) K^-1 e_j, from the matrices themselves."""
    made = PrivateFunction(kernel, 0.05, sensitivity=sensitivity, random_state=0, **LAW).fit(X, y)
    K = kernel(X)
    inverse = np.linalg.inv(K + 0.05 * np.eye(len(X)))
    moved = 2.0 * np.sqrt(np.diag(inverse @ K @ inverse).max())
    assert made.sensitivity_ >= moved * (1.0 - 1e-9)
    if sensitivity == "exact":
        assert made.sensitivity_ == pytest.approx(moved, rel=1e-6)
    assert np.array_equal(made.release(X[:3])[::-1], made.release(X[2::-1]))


def test_the_noise_of_a_function_has_the_shape_of_its_kernel():
    """Answers of a function of nothing: noise alone, whose variance grows with k(x, x)."""
    at = np.array([[0.0], [1.0], [10.0]])
    drawn = [
        PrivateFunction(DotProduct(0.5), 0.05, random_state=seed, **LAW)
        .fit(X, np.zeros(len(X)))
        .release(at)
        for seed in range(400)
    ]
    found = np.std(drawn, axis=0) / np.sqrt(DotProduct(0.5).diag(at))
    assert found / found[0] == pytest.approx(1.0, abs=0.25)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_what_rests_on_proved_values_refuses_them(kernel):
    with pytest.raises(ValueError, match="not available here"):
        PrivateFunction(kernel, 0.5, protect="records", domain=(0, 1), **LAW).fit(X, y)
    with pytest.raises(ValueError, match="not available here"):
        PosteriorPaths(kernel, 0.5, domain=(0, 1), y_bounds=(-1, 1), delta=1e-3).fit(X, y)


def test_labels_take_any_kernel():
    model = PrivateGPClassifier(
        Brownian(4.0), classes=(0, 1), epsilon=4.0, delta=1e-3, random_state=0
    ).fit(X, (X[:, 0] > 0.5).astype(int))
    assert model.predict_proba(X)[-1, 1] > model.predict_proba(X)[0, 1]
