"""How far one record moves a function, by search; and what rounding can add."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    Matern,
    RationalQuadratic,
)

from privgp.plan.functions.records import NUGGET, CheckedFactor, RecordsModel, prior_norm_limit
from privgp.privacy.posterior_mean import PosteriorShape
from privgp.vault.states.records import first_record_draws, grow_records
from tests.gp.kernels.rows import exactly

KERNELS = {
    "rbf": lambda v, scale: ConstantKernel(v) * RBF(scale),
    "exponential": lambda v, scale: ConstantKernel(v) * Matern(scale, nu=0.5),
    "matern52": lambda v, scale: ConstantKernel(v) * Matern(scale, nu=2.5),
    "sum": lambda v, scale: ConstantKernel(v) * RBF(scale) + RationalQuadratic(scale, 1.5),
    "constant": lambda v, scale: ConstantKernel(v),
}


def change(kernel, noise, X, y, X2, y2) -> float:
    """The norm of the difference of two posterior means, from the Gram matrix of all their inputs."""
    weights = [
        np.linalg.solve(kernel(A) + noise * np.eye(len(A)), b) for A, b in ((X, y), (X2, y2))
    ]
    both = np.concatenate([weights[0], -weights[1]])
    return float(np.sqrt(max(both @ kernel(np.vstack([X, X2])) @ both, 0.0)))


def worst_change(kernel, noise, records, seed, starts=2):
    """Climb over all records and one neighbour, inputs in [0, 1] and outputs in [-1, 1].

    The first start has all inputs in one place.
    """
    rng = np.random.default_rng(seed)

    def parts(z):
        x, y = z[: records + 1], np.clip(z[records + 1 :], -1, 1)
        x = np.clip(x, 0, 1)[:, None]
        core = np.arange(records - 1)
        one, two = [*core, records - 1], [*core, records]
        return x[one], y[one], x[two], y[two]

    best, at = 0.0, None
    for start in range(starts):
        inputs = rng.uniform(0, 1, records + 1) if start else np.full(records + 1, 0.5)
        z = np.concatenate([inputs, rng.choice([-1.0, 1.0], records - 1), [1.0, -1.0]])
        found = minimize(
            lambda z: -change(kernel, noise, *parts(z)), z, method="Powell", options={"maxiter": 3}
        )
        if -found.fun > best:
            best, at = -float(found.fun), parts(found.x)
    return best, at


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("records", [1, 3, 6])
def test_no_record_moves_the_function_further_than_the_bound(name, records):
    for seed, (noise, v, scale) in enumerate([(0.05, 1.0, 0.3), (3.0, 0.5, 2.0)]):
        kernel = KERNELS[name](v, scale)
        bound = 2.0 * RecordsModel(kernel, noise, ((0.0, 1.0),), records).norm("exact")
        found, _ = worst_change(kernel, noise, records, seed)
        assert found <= bound * (1 + 1e-9)
        if records == 1 or name == "constant":  # attained, so the search can find a fault
            assert found > 0.99 * bound


@given(
    records=st.integers(1, 10**6),
    ridge=st.floats(1e-6, 1e6),
    least=st.floats(0.0, 1.0),
    v=st.floats(0.0, 1.0),
    t=st.floats(0.0, 1.0),
)
def test_the_bound_by_cells_is_above_every_point_of_them(records, ridge, least, v, t):
    shape = PosteriorShape(ridge, records, least)
    low, high = shape.least_variance, shape.largest_variance
    v = min(low, high) + v * max(high - low, 0.0)
    t = t * np.sqrt(max(v * (1 - v), 0.0))
    c = np.sqrt((records - 1) / ridge)
    value = 2 * (1 + c * t) * np.sqrt(max(v - t * t, 0.0)) / (v + ridge)
    assert value <= prior_norm_limit(shape)


@pytest.mark.parametrize(("n", "r2"), [(2, 0.1), (300, 0.3), (300, 30.0), (10**5, 5.0)])
def test_the_bound_by_cells_is_hardly_more_than_the_largest(n, r2):
    shape = PosteriorShape(r2, n)
    v, share = np.meshgrid(np.linspace(shape.least_variance, 1, 2000), np.linspace(0, 1, 2000))
    t = share * np.sqrt(v * (1 - v))
    values = 2 * (1 + np.sqrt((n - 1) / r2) * t) * np.sqrt(v - t * t) / (v + r2)
    assert values.max() <= prior_norm_limit(shape) <= values.max() * 1.01


def test_kernels_of_so_many_parts_that_their_error_is_large_are_refused():
    many = Matern(1.0, nu=2.5)
    for _ in range(10):
        many = many * many
    with pytest.raises(ValueError, match="too many parts"):
        CheckedFactor(many, np.ones(1))


@pytest.mark.parametrize("kernel", [RBF(3.0), 5.0 * Matern(0.5, nu=0.5)], ids=str)
def test_the_factor_is_never_below_the_kernel(kernel):
    """With points so near each other that the kernel matrix is singular to working precision."""
    rng = np.random.default_rng(1)
    points = np.sort(rng.uniform(0, 1, (150, 1)), axis=0)
    points[1::3] = points[0::3] + 1e-9
    factor, rows = CheckedFactor(kernel, np.ones(1)), []
    for part in np.split(rng.permutation(points), [1, 2, 60, 61, 100]):
        proposed = factor.propose(part)
        factor.accept(proposed)
        rows += [np.pad(row, (0, 150 - len(row))) for row in proposed.lower]
    L = np.array(rows)
    v = float(kernel.diag(points[:1])[0])
    assert np.linalg.eigvalsh(L @ L.T - kernel(factor.points)).min() > 0.5 * NUGGET * v
    assert np.sqrt(proposed.residual) < 1e-4 * NUGGET * v
    with pytest.raises(ValueError, match="too far"), np.errstate(all="ignore"):
        factor.propose(np.array([[np.inf]]))


def test_coordinates_err_no_more_than_was_added_to_the_sensitivity():
    """In 40 digits, from the rows of L as they are stored."""
    rng = np.random.default_rng(2)
    kernel, noise = 2.0 * RBF(0.4), 0.05
    model = RecordsModel(kernel, noise, ((0.0, 1.0),), 12)
    X, y = rng.uniform(0, 1, (12, 1)), rng.choice([0.0, 1.0], 12)
    lattice = model.noise(1.0, 1e-5, model.norm("exact"))
    draws = first_record_draws(X, y, model, (0.0, 1.0), lattice, 0)
    factor, points = CheckedFactor(kernel, np.ones(1)), np.linspace(0, 1, 20)[:, None]
    for part in np.split(points, [1, 12]):
        rows = factor.propose(part)
        draws = grow_records(draws, kernel, part, rows.lower, rows.residual)
        factor.accept(rows)
    with mpmath.workdps(40):
        K = mpmath.matrix(12, 12)
        for i in range(12):
            for j in range(12):
                K[i, j] = exactly(kernel, X[i], X[j]) + (mpmath.mpf(noise) if i == j else 0)
        weights = mpmath.lu_solve(K, mpmath.matrix([2 * int(value) - 1 for value in y]))
        exact = []
        for i in range(20):
            value = sum(exactly(kernel, points[i], X[j]) * weights[j] for j in range(12))
            value -= sum(
                mpmath.mpf(float(a)) * b for a, b in zip(draws.lower.rows[i], exact, strict=False)
            )
            exact.append(value / mpmath.mpf(float(draws.lower.rows[i][-1])))
        error = mpmath.sqrt(
            sum((a - mpmath.mpf(float(b))) ** 2 for a, b in zip(exact, draws.exact, strict=True))
        )
    assert 0 < float(error) <= model.float_error() < 1e-3 * model.norm("exact")


def test_two_neighbours_are_no_further_apart_in_coordinates_than_in_norm():
    kernel, noise = RBF(0.3), 0.2
    _, (X, y, X2, y2) = worst_change(kernel, noise, 4, seed=5, starts=2)
    bound = 2.0 * RecordsModel(kernel, noise, ((0.0, 1.0),), 4).norm("exact")
    rows = CheckedFactor(kernel, np.ones(1)).propose(np.linspace(-0.5, 1.5, 40)[:, None])
    values = [
        kernel(rows.points, A) @ np.linalg.solve(kernel(A) + noise * np.eye(4), b)
        for A, b in ((X, y), (X2, y2))
    ]
    moved = np.linalg.norm(solve_triangular(rows.lower, values[0] - values[1], lower=True))
    exact = change(kernel, noise, X, y, X2, y2)
    assert 0.95 * exact < moved <= exact * (1 + 1e-9) <= bound


def test_too_little_noise_for_exact_weights_is_refused():
    with pytest.raises(ValueError, match="noise_variance is too small"):
        RecordsModel(RBF(1.0), 1e-9, ((0.0, 1.0),), 5000).float_error()
