"""Varah's bound against the inverse itself, and a dominance that is declared without inputs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, Matern

from papers.shared.varah import separated_dominance
from privgp.gp.priors import collapse
from privgp.plan.functions.outputs import (
    FunctionModel,
    dominance,
    inducing_limit,
    varah_limit,
)


@given(
    seed=st.integers(0, 2**31),
    rows=st.integers(1, 25),
    scale=st.floats(0.05, 1.0),
    noise=st.floats(0.1, 5.0),
    v=st.floats(0.1, 10.0),
)
def test_the_bound_is_never_below_the_infinity_norm_of_the_inverse(seed, rows, scale, noise, v):
    X = np.round(np.random.default_rng(seed).uniform(0, 10, (rows, 1)), 1)  # some are equal
    kernel = v * Matern(scale, nu=1.5)
    inputs, index = collapse(X)
    counts = np.bincount(index).astype(float)
    least = dominance(kernel, noise, inputs, counts)
    K = kernel(X) + noise * np.eye(rows)
    by_hand = (2 * np.diag(K) - np.abs(K).sum(axis=1)).min()
    assert least == pytest.approx(by_hand, abs=1e-9 * (v + noise))
    assume(least > 1e-6)
    norm = np.abs(np.linalg.inv(K)).sum(axis=1).max()
    assert varah_limit(least) >= norm * (1 - 1e-12)
    model = FunctionModel(kernel, noise, inputs, counts)
    assert model.norm("varah") >= model.norm("infinity") * (1 - 1e-12) >= 0
    assert model.norm("infinity") >= model.norm("exact") * (1 - 1e-9)


@given(
    seed=st.integers(0, 2**31),
    rows=st.integers(1, 20),
    apart=st.floats(0.5, 3.0),
    name=st.sampled_from(["rbf", "matern"]),
)
def test_separated_inputs_have_the_dominance_that_was_declared(seed, rows, apart, name):
    kernel = 2.0 * (RBF(0.7) if name == "rbf" else Matern(0.7, nu=0.5))
    rng = np.random.default_rng(seed)
    gaps = apart * (1.0 + rng.exponential(0.1, rows) * rng.integers(0, 2, rows))
    X = np.cumsum(gaps)[:, None]
    declared = separated_dominance(kernel, 0.5, apart, rows)
    actual = dominance(kernel, 0.5, X, np.ones(rows))
    assert declared <= actual
    even = apart * np.arange(rows)[:, None]
    assert declared == pytest.approx(dominance(kernel, 0.5, even, np.ones(rows)), abs=1e-8)


@given(
    seed=st.integers(0, 2**31),
    rows=st.integers(1, 12),
    noise=st.floats(1e-3, 50.0),
    v=st.floats(0.1, 9),
)
def test_inducing_inputs_need_no_dominance_and_no_input(seed, rows, noise, v):
    """Against the exact norms, for any rows and inducing inputs; Varah's way is never less."""
    rng = np.random.default_rng(seed)
    X, Z = rng.uniform(0, 3, (rows, 1)), rng.uniform(0, 3, (4, 1))
    kernel = v * RBF(0.5)
    inputs, index = collapse(X)
    model = FunctionModel(kernel, noise, inputs, np.bincount(index).astype(float), Z)
    bound = model.norm("varah")
    assert bound == inducing_limit(v, noise)
    assert model.norm("exact") <= bound
    alone = dominance(kernel, 1e-12, Z, np.ones(4))
    if alone > 0:
        assert np.square(kernel(Z, Z)).sum(axis=0).max() / alone >= v * (1 - 1e-9)


def test_one_row_nearly_attains_the_bound_of_inducing_inputs():
    model = FunctionModel(RBF(1.0), 100.0, np.zeros((1, 1)), np.ones(1), np.zeros((1, 1)))
    assert model.norm("exact") == pytest.approx(model.norm("varah"), rel=0.01)


def test_what_is_not_dominant_is_refused():
    close = FunctionModel(RBF(1.0), 0.1, np.array([[0.0], [0.1], [0.2]]), np.ones(3))
    with pytest.raises(ValueError, match="not strictly diagonally dominant"):
        close.norm("varah")
    far = FunctionModel(RBF(1.0), 0.1, np.array([[0.0], [9.0]]), np.ones(2))
    assert far.norm("varah", declared=0.5) == pytest.approx(2.0)
    with pytest.raises(ValueError, match="closer together"):
        far.norm("varah", declared=1.2)
    for wrong in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="separation"):
            separated_dominance(RBF(1.0), 0.1, wrong, 3)
    with pytest.raises(ValueError, match="fall"):
        separated_dominance(2.0 * RBF(1.0) * ExpSineSquared(), 0.1, 1.0, 3)
    with pytest.raises(ValueError, match="rows"):
        separated_dominance(RBF(1.0), 0.1, 1.0, 0)
