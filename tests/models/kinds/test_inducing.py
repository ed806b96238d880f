"""PrivateGPRegressor with inducing inputs: what users see."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from privgp import PrivateGPRegressor, load
from privgp.release.certificate import certificate

KERNEL = ConstantKernel(1.0) * Matern(1.0, nu=2.5)


def private(**settings) -> PrivateGPRegressor:
    given = {"y_bounds": (-2, 2), "epsilon": 4.0, "delta": 1e-3, "random_state": 0}
    return PrivateGPRegressor(**{**given, "inducing": 15, **settings})


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = (np.linspace(0, 10, 80) + rng.uniform(0, 0.05, size=80))[:, None]
    return X, np.sin(X[:, 0]) + 0.2 * rng.standard_normal(80)


@pytest.fixture(scope="module")
def fitted(data):
    return private().fit(*data)


@pytest.mark.parametrize("settings", [{}, {"reconstruct": "unbiased"}, {"objective": "logdet"}])
def test_with_all_inputs_inducing_the_release_is_that_of_the_exact_model(data, settings):
    """Same seed, so same noise: equal to 1e-6."""
    X, y = data
    fixed = {"kernel": KERNEL, "noise_variance": 0.1, "hyperparameters": "fixed", **settings}
    exact = private(**fixed, inducing=None, mechanism="gaussian").fit(X, y)
    found = private(**fixed, inducing=X, mechanism="gaussian").fit(X, y)
    assert_allclose(
        found.predict(X, return_std=True)[1], exact.predict(X, return_std=True)[1], rtol=1e-6
    )
    if not settings:
        assert_allclose(found.predict(X), exact.predict(X), atol=1e-6)


def test_it_learns_and_predicts(data, fitted):
    X = data[0]
    mean, std = fitted.predict(X, return_std=True)
    assert np.sqrt(np.mean((mean - np.sin(X[:, 0])) ** 2)) < 0.4
    assert (std > 0).all()
    assert fitted.plan_.strategy.rows == 80
    assert "80 rows at 80 distinct inputs" in fitted.plan_.describe()
    assert fitted.functionals_.nodes.shape == (15, 1)
    plan = private().plan(X)
    assert plan.noise == fitted.plan_.noise
    assert plan.expected_error(8.0) < plan.expected_error()


def test_files_hold_inducing_inputs_and_no_rows(data, fitted, tmp_path):
    X, y = data
    for model in (fitted, private(inducing=X[::6], hyperparameters="fixed").fit(X, y)):
        with pytest.warns(UserWarning, match="inducing inputs"):
            model.save(tmp_path / "m.privgp", overwrite=True)
        loaded = load(tmp_path / "m.privgp")
        assert np.array_equal(loaded.predict(X), model.predict(X))
        assert np.array_equal(np.shape(loaded.inducing), np.shape(model.inducing))
        contents = (tmp_path / "m.privgp").read_bytes()
        assert not any(value.tobytes() in contents for value in y)
    assert np.array_equal(loaded.inducing, X[::6])
    told = certificate(fitted)
    assert told["data"]["rows"] == 80
    assert told["data"]["distinct_inputs"] == 80


def test_nothing_of_the_outputs_remains(data, fitted):
    kept = pickle.dumps(vars(fitted))
    assert not any(value.tobytes() in kept for value in data[1])


def test_pictures(fitted):
    assert fitted.plot() is not None
    assert fitted.plan_.plot() is not None


@pytest.mark.parametrize(
    ("inducing", "problem"),
    [
        (0, "at least 1"),
        (-3, "at least 1"),
        (10**9, "at most"),
        (True, "whole number"),
        (2.5, "whole number"),
        ("ten", "whole number"),
        (np.nan, "whole number"),
        ([], "like X"),
        ([[np.nan]], "NaN or infinity"),
        ([[1.0, 2.0]], "1 columns"),
        ([["a"]], "numbers"),
    ],
)
def test_bad_inducing_inputs_are_refused(data, inducing, problem):
    for call in (lambda m: m.plan(data[0]), lambda m: m.fit(*data)):
        with pytest.raises(ValueError, match=problem) as caught:
            call(private(inducing=inducing))
        assert "inducing" in str(caught.value)


def test_more_than_there_are_rows_means_all_of_them(data):
    X, y = data
    fixed = {"hyperparameters": "fixed"}
    model = private(inducing=500, **fixed).fit(X, y)
    assert len(model.plan_.inputs) == 80
    assert len(private(inducing=5, **fixed).fit(np.ones((30, 1)), y[:30]).plan_.inputs) == 1
    assert np.isfinite(private(inducing=3, **fixed).fit(X[:1], y[:1]).predict(X)).all()


def test_what_does_not_go_together_is_said(data, monkeypatch):
    X, y = data
    with monkeypatch.context() as patched:
        patched.setattr("privgp.models.rows.fit.STREAMED", 10)
        with pytest.raises(ValueError, match=r"groups .* objective='posterior'"):
            private(objective="trace").fit(X, y, groups=np.arange(80) // 2)
    with pytest.raises(ValueError, match=r"inducing does not go with protect='records'"):
        private(protect="records", x_bounds=(0, 10), inducing=X[:5]).fit(X, y)
    y = y.copy()
    y[-1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        private().fit(X, y)
    X = X.copy()
    X[-1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        private().fit(X, y)


def test_huge_and_tiny_inputs(data, fitted):
    X, y = data
    plain = fitted.predict(X)
    for scale in (1e-12, 1e12):
        assert_allclose(private().fit(X * scale, y).predict(X * scale), plain, atol=1e-3)


BIG = """
import resource, os, numpy as np, warnings
from privgp import PrivateGPRegressor
rng = np.random.default_rng(0)
X = rng.normal(size=(150_000, 1)); y = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(150_000)
model = PrivateGPRegressor(y_bounds=(-3, 3), inducing=100, hyperparameters="fixed")
small = X[:50_000], y[:50_000]
model.fit(*small)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model.fit(X, y)
used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
warnings.simplefilter("ignore")
model.save(os.sys.argv[1])
print(used / 1024, os.path.getsize(os.sys.argv[1]) / 2**20)
"""


def test_memory_and_files_do_not_grow_with_the_rows(tmp_path):
    """100,000 more rows by 100 kernel values alone would be 80 MB."""
    path = tmp_path / "big.privgp"
    done = subprocess.run([sys.executable, "-c", BIG, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    used, size = map(float, done.stdout.split())
    assert used < 40  # MB
    assert size < 1
