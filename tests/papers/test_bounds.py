"""Figure 1: its bounds against brute force, and its caption."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from papers.attack.bounds import FUNCTION, GENERIC, RIDGES, Bound, factors, one_function
from privgp.privacy.posterior_mean import posterior_shape, sensitivity_for_norm


def largest_move(kernel, ridge, common, x, other):
    """The most that the mean moves when x becomes other, over all functions f of norm 1.

    Residuals are <f, k_(x)>, so with G the Gram matrix of k_(x), k_(other) in the space of k, A runs
    over G^(1/2) z, |z| <= 1; the move is sqrt(A' W C W A), C the posterior covariance.
    """
    both = np.array([[x], [other]])
    K, cross = kernel(common), kernel(common, both)
    a = np.linalg.solve(K + ridge * np.eye(len(common)), cross)
    C = kernel(both) - cross.T @ a
    G = C - ridge * a.T @ a
    W = np.diag([1.0, -1.0] / (np.diag(C) + ridge))
    return math.sqrt(np.linalg.eigvals(G @ W @ C @ W).real.max())


def test_half_of_lemma_b8_bounds_every_function_and_is_nearly_attained():
    rng = np.random.default_rng(0)
    tightest = 0.0
    for _ in range(400):
        ridge, length = 10.0 ** rng.uniform(-2, 2), 10.0 ** rng.uniform(-2, 1)
        kernel = RBF(length) if rng.random() < 0.5 else Matern(length, nu=0.5)
        common = rng.random((int(rng.integers(1, 12)), 1)) * rng.choice([1.0, 0.05])
        moved = largest_move(kernel, ridge, common, *rng.random(2))
        shape = posterior_shape(kernel, ridge, np.ones(1), len(common) + 1)
        assert moved <= one_function(shape, 1.0) * (1 + 1e-9)
        tightest = max(tightest, moved / one_function(shape, 1.0))
    assert tightest > 0.999
    assert sensitivity_for_norm(shape, 3.0).value == pytest.approx(2.0 * one_function(shape, 3.0))


def test_ours_is_never_above_the_papers_and_falls_with_the_ridge():
    for bound in (Bound(5.0), Bound(1.0, FUNCTION), Bound(1.0, FUNCTION, noisy=True)):
        printed, ours = ([bound.epsilon(r, paper=p) for r in RIDGES[::5]] for p in (True, False))
        assert all(a < b for a, b in zip(ours, printed, strict=True))
        assert printed == sorted(printed, reverse=True)


@pytest.mark.parametrize("model", [GENERIC, FUNCTION])
def test_the_caption_holds_from_two_fifths_on(model):
    """It says 1 to 10, most at small r; below r = 0.39 extra noise divides epsilon by more."""
    for found in factors(model, paper=True).values():
        assert np.argmax(found) == 0
        assert found[0] > 50
        assert min(found) >= 1.0
        assert max(f for f, r in zip(found, RIDGES, strict=True) if r > 0.39) <= 10.0
