"""A .privgp file: the same model to the last bit, and nothing private."""

from __future__ import annotations

import hashlib
import os
import struct
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)
from threadpoolctl import threadpool_info

from privgp import PrivateGPRegressor, load
from privgp.gp.arithmetic import one_thread
from privgp.models.load import NOTICE
from privgp.release.certificate import certificate
from privgp.storage.archive import unpack


def some_data(rows: int = 24, columns: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(rows + columns)
    X = rng.uniform(0, 10, size=(rows, columns))
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(rows)


def fitted(columns: int = 1, groups=None, **settings) -> PrivateGPRegressor:
    X, y = some_data(columns=columns)
    settings = {"y_bounds": (-2, 2), "epsilon": 2.0, "random_state": 0, **settings}
    return PrivateGPRegressor(**settings).fit(X, y, groups=groups)


def reloaded(model: PrivateGPRegressor, folder: Path) -> PrivateGPRegressor:
    model.save(folder / "model.privgp", overwrite=True)
    return load(folder / "model.privgp")


def answers(model: PrivateGPRegressor, X) -> list[np.ndarray]:
    asks = ({"return_std": True}, {"return_cov": True}, {"return_std": True, "observation": True})
    return [model.predict(X), *(part for ask in asks for part in model.predict(X, **ask))]


def assert_same_predictions(one: PrivateGPRegressor, two: PrivateGPRegressor, X) -> None:
    for a, b in zip(answers(one, X), answers(two, X), strict=True):
        assert_array_equal(a, b, strict=True)


KERNELS = {
    "rbf": 2.0 * RBF(3.0) + WhiteKernel(0.1),
    "rbf per column": 2.0 * RBF([3.0, 4.0]),
    "matern": Matern(2.0, nu=1.5),
    "matern of no closed form": Matern([2.0, 3.0], (1e-3, 1e3), nu=1.7),
    "matern without limit": Matern(2.0, (1e-3, np.inf), nu=np.inf),
    "rational quadratic": RationalQuadratic(2.0, 0.7, alpha_bounds="fixed"),
    "bounds per column": Matern([2.0, 3.0], [(0.1, 10.0), (0.2, 20.0)], nu=2.5),
    "nested": (RBF(2.0) + RationalQuadratic(3.0, 1.0)) * ConstantKernel(0.4) + ConstantKernel(1.0),
}
PERIODIC = ConstantKernel(0.5, "fixed") * ExpSineSquared(1.0, 6.0) + WhiteKernel(0.2, "fixed")
CASES = {
    "default": {},
    "two columns": {"columns": 2},
    "unbiased": {"reconstruct": "unbiased", "columns": 2},
    "unbiased at targets": {"reconstruct": "unbiased", "targets": [1.0, 5.0, 2.0]},
    "groups": {"groups": np.repeat(np.arange(8), 3)},
    "fixed": {"hyperparameters": "fixed", "noise_variance": 1},
    "targets": {"targets": np.linspace(0, 10, 5), "objective": "max"},
    **{
        name: {"kernel": kernel, "columns": 2, "hyperparameters": "fixed"}
        for name, kernel in KERNELS.items()
    },
    "learned": {"kernel": KERNELS["nested"], "columns": 2},
    "periodic": {"kernel": PERIODIC},  # a valid covariance in one dimension only
}


@cache
def fitted_case(case: str) -> PrivateGPRegressor:
    return fitted(**CASES[case])


@pytest.mark.parametrize("case", CASES)
def test_a_loaded_model_is_the_saved_one(case, tmp_path):
    model = fitted_case(case)
    again = reloaded(model, tmp_path)
    X = (
        model.release_.released.targets
        if "unbiased" in case
        else some_data(50, model.n_features_in_)[0]
    )
    assert_same_predictions(model, again, X)
    for name in ("guarantee_", "noise_variance_", "kernel_", "n_features_in_", "released_at_"):
        assert getattr(model, name) == getattr(again, name)
    assert again.plan_summary_ == model.plan_.summary()
    assert not hasattr(again, "plan_")
    assert not hasattr(again, "feature_names_in_")
    assert certificate(again) == certificate(model)
    assert_array_equal(again.measurements_[0].values, model.measurements_[0].values)
    assert again.release_.noise_variance == model.release_.noise_variance
    given, kept = model.get_params(deep=False), again.get_params(deep=False)
    assert kept.pop("random_state") is None
    assert kept["kernel"] == given["kernel"]
    assert kept["y_bounds"] == (-2.0, 2.0)
    clone(again)


@pytest.mark.parametrize("case", ["default", "unbiased", "matern without limit"])
def test_equal_models_give_equal_bytes_also_after_loading(case, tmp_path):
    model = fitted_case(case)
    first, second, third = (tmp_path / f"{k}.privgp" for k in range(3))
    model.save(first)
    model.save(second)
    load(first).save(third)
    assert first.read_bytes() == second.read_bytes() == third.read_bytes()


def test_a_real_release_and_its_column_names_survive(tmp_path):
    X, y = some_data(columns=2)
    table = pd.DataFrame(X, columns=["age", "gewicht (kg), ü"])
    model = PrivateGPRegressor(y_bounds=(-2, 2), hyperparameters="fixed").fit(table, y)
    again = reloaded(model, tmp_path)
    assert list(again.feature_names_in_) == list(table.columns)
    assert not again.guarantee_.is_simulation
    assert_same_predictions(model, again, table)
    with pytest.raises(ValueError, match="feature names"):
        again.predict(table[table.columns[::-1]])


QUERY = """
import hashlib, sys, numpy as np, privgp
X = np.random.default_rng(7).uniform(0, 10, size=(2000, 2))
model = privgp.load(sys.argv[1])
mean, std = model.predict(X, return_std=True)
covariance = model.predict(X[:400], return_cov=True)[1]
print(hashlib.sha256(mean.tobytes() + std.tobytes() + covariance.tobytes()).hexdigest())
"""


def test_another_process_with_another_thread_count_predicts_the_same_bits(tmp_path):
    X, y = some_data(40, 2)
    fixed = {"y_bounds": (-2, 2), "hyperparameters": "fixed", "random_state": 0}
    model = PrivateGPRegressor(**fixed).fit(X, y)
    model.save(tmp_path / "model.privgp")
    X = np.random.default_rng(7).uniform(0, 10, size=(2000, 2))
    mean, std = model.predict(X, return_std=True)
    covariance = model.predict(X[:400], return_cov=True)[1]
    here = hashlib.sha256(mean.tobytes() + std.tobytes() + covariance.tobytes()).hexdigest()
    threads = "1" if os.environ.get("OPENBLAS_NUM_THREADS") == "2" else "2"
    environment = os.environ | {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
    command = [sys.executable, "-c", QUERY, str(tmp_path / "model.privgp")]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == here


def test_a_new_fit_forgets_the_file(tmp_path):
    model = reloaded(fitted(hyperparameters="fixed"), tmp_path)
    X, y = some_data(30)
    model.fit(X, y)
    assert model.plan_summary_ == model.plan_.summary()
    assert certificate(model)["data"]["rows"] == 30


def test_what_was_released_is_saved_even_if_parameters_were_changed_since(tmp_path):
    model = fitted(hyperparameters="fixed")
    before = model.predict(some_data()[0])
    model.set_params(y_bounds=(0, 1), epsilon=0.1)
    again = reloaded(model, tmp_path)
    assert again.y_bounds == (-2.0, 2.0)
    assert again.epsilon == 2.0
    assert_array_equal(again.predict(some_data()[0]), before)


@pytest.mark.parametrize("reconstruct", ["posterior", "unbiased"])
def test_the_file_holds_no_private_value(reconstruct, tmp_path):
    X, _ = some_data()
    y = 123.456789012345 + np.arange(len(X)) * 1.000000119
    model = PrivateGPRegressor(y_bounds=(100, 200), epsilon=0.5, reconstruct=reconstruct).fit(X, y)
    model.save(tmp_path / "model.privgp")
    data = (tmp_path / "model.privgp").read_bytes()
    parts = [data, *unpack(data).values()]
    u = (y - 150.0) / 50.0
    for value in [*y, *(y - 150.0), *u, *y.astype(np.float32)]:
        codes = [struct.pack(order + size, value) for order in "<>" for size in "fd"]
        codes += [repr(float(value)).encode(), f"{value:.6f}".encode()]
        assert not any(code in part for code in codes for part in parts)
    assert struct.pack("<d", X[0, 0]) in data  # inputs are there, as the notice says


def test_saving_needs_a_fitted_model_and_its_ending(tmp_path):
    with pytest.raises(NotFittedError):
        PrivateGPRegressor().save(tmp_path / "model.privgp")
    model = fitted(hyperparameters="fixed")
    for name in ("model.pkl", "model", ".privgp", "model.privgp.zip"):
        with pytest.raises(ValueError, match=r"must end in '\.privgp'"):
            model.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_missing_files_and_folders_are_named_as_such(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.privgp")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)
    with pytest.raises(FileNotFoundError):
        fitted(hyperparameters="fixed").save(tmp_path / "none" / "model.privgp")


def test_the_notice_says_that_inputs_are_inside():
    assert "contains the inputs" in NOTICE


def blas_threads() -> set[int]:
    return {info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"}


def test_one_blas_thread_while_anybody_needs_it_and_as_many_as_before_after():
    before, entered, leave = blas_threads(), threading.Event(), threading.Event()
    seen = []

    def linger():
        with one_thread():
            entered.set()
            leave.wait(10)
            seen.append(blas_threads())

    other = threading.Thread(target=linger)
    with one_thread():
        other.start()
        entered.wait(10)
    assert blas_threads() == {1}  # the other one is still inside
    leave.set()
    other.join(10)
    assert seen == [{1}]
    assert blas_threads() == before


def test_predictions_are_made_on_one_thread(monkeypatch):
    model, seen = fitted(hyperparameters="fixed"), []
    real = type(model.release_).mean_at

    def watched(self, X):
        seen.append(blas_threads())
        return real(self, X)

    monkeypatch.setattr(type(model.release_), "mean_at", watched)
    model.predict(some_data()[0])
    assert seen == [{1}]
