"""How far one record moves a posterior: every bound against 30 digits, and under attack."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    Matern,
)

from privgp.gp.kernels.evaluate import variance
from privgp.gp.kernels.proved import exponential_rate
from privgp.privacy import posterior_mean as pm
from privgp.privacy.posterior_mean import PosteriorShape, mean_sensitivity, posterior_shape

mp.mp.dps = 30
FORMS = ("generic", "exponential", "constant")


def shapes(count: int, seed: int) -> list[PosteriorShape]:
    rng = np.random.default_rng(seed)
    return [
        PosteriorShape(
            float(10 ** rng.uniform(-2.5, 4)),
            int(10 ** rng.uniform(0, 5)),
            1.0 if form == "constant" else float(rng.choice([0.0, rng.random(), 0.99])),
            form,
        )
        for form in rng.choice(FORMS, count)
    ]


def exact(shape: PosteriorShape) -> dict[str, mp.mpf]:
    """All bounds by other formulas, in 30 digits; suprema by dense search and golden section."""
    r2, n, k = mp.mpf(shape.ridge), shape.records, mp.mpf(shape.least)
    V = 1 - k**2 * mp.mpf(n - 1) / (n - 1 + r2)
    low = min(1 / (1 + (n - 1) / r2), V)

    def top(f, a, b):
        """The top by ever finer grids of floats, its height in 30 digits."""
        a, b = float(a), float(b)
        for points in (2000, 40, 40, 40, 40, 40, 40):
            v = np.union1d(np.linspace(a, b, points), np.geomspace(a, b, points))
            best = int(np.argmax(f(np, v)))
            a, b = v[max(best - 2, 0)], v[min(best + 2, len(v) - 1)]
        return max(f(mp, mp.mpf(end)) for end in (a, v[best], b))

    def P(v):
        return mp.sqrt(v) / (v + r2)

    def joint(m, v):
        ridge = shape.ridge if m is np else r2
        rest = abs((n - 1) * v * (1 - v) / ridge)
        return m.sqrt(v) / (v + ridge) * (1 + m.sqrt(rest))

    def markov(m, v):
        ridge = shape.ridge if m is np else r2
        return m.sqrt((1 + m.sqrt(abs(1 - v * v))) * v) / (v + ridge)

    def phi(a):
        return P(min(max(r2, a), V))

    if shape.form == "constant":
        return {"constant": 2 * mp.sqrt(r2 + n - 1) / (mp.sqrt(r2) * (r2 + n))}
    c = mp.sqrt((n - 1) / r2)
    out = {
        "generic_paper": 2 * (1 + c) * phi(0),
        "generic_joint": 2 * top(joint, low, V),
        "generic_split": 2 * phi(low) + c * min(V / (V + r2), 1 / (2 * (low + r2))),
    }
    if shape.form == "exponential":
        out["exponential_paper"] = 4 * phi(0)
        out["exponential"] = 2 * top(markov, low, V)
    return out


def test_every_bound_equals_an_independent_evaluation_and_is_never_below_it():
    for shape in shapes(500, seed=1):
        for name, value in exact(shape).items():
            found = getattr(pm, name)(shape).value
            assert value * (1 - mp.mpf(10) ** -13) <= found <= value * (1 + mp.mpf(10) ** -9), name


def test_automatic_is_the_least_and_the_paper_is_never_less():
    for shape in shapes(60, seed=2):
        values = {name: float(value) for name, value in exact(shape).items()}
        assert mean_sensitivity(shape).value == pytest.approx(min(values.values()), rel=1e-9)
        assert mean_sensitivity(shape).value <= mean_sensitivity(shape, "paper").value * (1 + 1e-9)


@given(
    r=st.floats(1e-2, 1e3), n=st.integers(1, 10**6), least=st.floats(0, 1), up=st.floats(1.0, 10.0)
)
@settings(max_examples=200, deadline=None)
def test_more_regularisation_moves_less(r, n, least, up):
    for form in ("generic", "exponential"):
        here = PosteriorShape(r * r, n, least, form)
        more = PosteriorShape(min(r * r * up, 1e6), n, least, form)
        if more.ridge < here.ridge:
            continue
        assert mean_sensitivity(more).value <= mean_sensitivity(here).value * (1 + 1e-9)
        assert more.influence <= here.influence * (1 + 1e-9)
    assert 0 < here.least_variance <= here.largest_variance * (1 + 1e-12) <= 1 + 1e-12


def moved(K, r2):
    """The largest norm of the change over outputs of +-1, given k at (core, x, x')."""
    core = len(K) - 2
    B = np.linalg.solve(K[:core, :core] + r2 * np.eye(core), K[:core, core:])
    S = K[core:, core:] - K[:core, core:].T @ B
    T = np.diag([1.0, -1.0] / (np.diag(S) + r2)) @ np.hstack([-B.T, np.eye(2)])
    G = T.T @ S @ T
    signs = 2.0 * (np.arange(2 ** len(K))[:, None] >> np.arange(len(K)) & 1) - 1.0
    return math.sqrt(max(np.einsum("ij,jk,ik->i", signs, G, signs).max(), 0.0))


def attacked(kernel_of, size, r2, rng, starts=2):
    found = 0.0
    for _ in range(starts):
        result = minimize(
            lambda z: -moved(kernel_of(z), r2), rng.normal(size=size) * 2, method="Nelder-Mead",
            options={"maxfev": 250},
        )  # fmt: skip
        found = max(found, -result.fun)
    return found


@pytest.mark.parametrize("r", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_no_dataset_moves_the_mean_further_than_the_exponential_bound(n, r):
    length = 3.0

    def kernel_of(z):
        x = length / (1.0 + np.exp(-np.clip(z, -30, 30)))
        return np.exp(-np.abs(x[:, None] - x))

    shape = PosteriorShape(r * r, n, math.exp(-length), "exponential")
    found = attacked(kernel_of, n + 1, r * r, np.random.default_rng(n))
    assert 0.6 * pm.exponential(shape).value < found <= pm.exponential(shape).value


@pytest.mark.parametrize("r", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_no_kernel_at_all_moves_the_mean_further_than_the_generic_bounds(n, r):
    def kernel_of(z):
        F = z.reshape(n + 1, 3)
        F = F / np.linalg.norm(F, axis=1, keepdims=True)
        return F @ F.T

    shape = PosteriorShape(r * r, n)
    found = attacked(kernel_of, 3 * (n + 1), r * r, np.random.default_rng(n))
    least = min(pm.generic_joint(shape).value, pm.generic_split(shape).value)
    assert 0.6 * least < found <= least


@pytest.mark.parametrize("n", [1, 5, 50])
def test_the_constant_bound_is_attained(n):
    # outputs of the records that stay do not matter: the means at x and x' are one number
    K = np.ones((n + 1, n + 1))
    B = np.linalg.solve(K[: n - 1, : n - 1] + 2.25 * np.eye(n - 1), K[: n - 1, n - 1 :])
    v = (1.0 - K[: n - 1, n - 1] @ B[:, 0]) if n > 1 else 1.0
    shape = PosteriorShape(2.25, n, 1.0, "constant")
    assert pm.constant(shape).value == pytest.approx(2.0 * math.sqrt(v) / (v + 2.25))


@pytest.mark.parametrize("r", [0.1, 0.5, 0.9, 1.0, 1.5, 4.0])
def test_the_diagonal_bounds_hold_and_are_nearly_attained(r):
    """By enumeration: m records at x and m' at x', all outputs at an end, and one record moves."""
    shape = PosteriorShape(r * r, 40, 0.0, "diagonal")
    most = 0.0
    for q in (1.0, 0.6, 0.2):
        for m in range(30):
            v = q * r * r / (r * r + m * q)
            P = math.sqrt(v) / (v + r * r)
            away = (1.0 + m * q / (r * r + m * q)) * P  # from the mean of m outputs of -1 to 1
            most = max(most, math.sqrt(2.0) * away, 2.0 * P)
    sharp, papers = mean_sensitivity(shape).value, mean_sensitivity(shape, "paper").value
    assert 0.9 * sharp <= most <= sharp <= papers
    with pytest.raises(ValueError, match="diagonal kernel only"):
        pm.diagonal(PosteriorShape(1.0, 3))


def test_the_generic_bound_over_root_two_is_false():
    """Scripts that go with the paper divide the generic bound by root two."""
    shape = PosteriorShape(1.0, 1, 1.0, "constant")
    attained = moved(np.ones((2, 2)), 1.0)
    claimed = pm.generic_paper(PosteriorShape(1.0, 1)).value / math.sqrt(2.0)
    assert attained == pytest.approx(1.0)
    assert claimed == pytest.approx(0.7071, abs=1e-4)
    assert mean_sensitivity(shape).value >= attained


@pytest.mark.parametrize("r", [0.1, 1.0, 3.0, 30.0])
@pytest.mark.parametrize("n", [2, 10, 1000])
def test_no_generic_bound_is_below_what_lemma_b2_attains(n, r):
    attained = (1 + r**2 + math.sqrt(n - 1)) / (r * math.sqrt(1 + r**2) * (2 + r**2))
    shape = PosteriorShape(r * r, n)
    assert mean_sensitivity(shape).value >= attained
    if n <= 10:  # the lemma's own kernel; x' tells nothing, so it stands far from everything
        K = np.eye(n + 1)
        K[n - 1, : n - 1] = K[: n - 1, n - 1] = 1.0 / math.sqrt(n - 1)
        K[n, n] = 0.0
        core = np.linalg.solve(K[: n - 1, : n - 1] + r * r * np.eye(n - 1), K[: n - 1, n - 1])
        v = 1.0 - K[: n - 1, n - 1] @ core
        assert (1 + core.sum()) * math.sqrt(v) / (v + r * r) == pytest.approx(attained)


@pytest.mark.parametrize("r", [0.1, 1.0, 3.0, 30.0])
@pytest.mark.parametrize("n", [1, 10, 1000])
@pytest.mark.parametrize("length", [0.1, 1.0, 5.0])
def test_no_exponential_bound_is_below_what_lemma_b3_attains(n, r, length):
    k = math.exp(-length)
    attained = math.sqrt(1 - k * k) / (1 + r * r)
    shape = PosteriorShape(r * r, n, k, "exponential")
    assert mean_sensitivity(shape).value >= attained


def test_the_bound_for_one_function():
    shape = PosteriorShape(4.0, 10, 0.5)
    V = shape.largest_variance
    assert pm.sensitivity_for_norm(shape, 3.0).value == pytest.approx(6.0 * V / (V + 4.0))
    for norm in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="norm"):
            pm.sensitivity_for_norm(shape, norm)


def test_the_shape_knows_the_exponential_and_the_constant_kernel():
    one, two = np.array([1.0]), np.array([1.0, 1.0])
    scaled = ConstantKernel(4.0) * Matern(0.5, nu=0.5)
    assert exponential_rate(scaled) == 2.0
    shape = posterior_shape(scaled, 2.0, one, 9)
    assert (shape.form, shape.ridge, shape.records) == ("exponential", 0.5, 9)
    assert shape.least == pytest.approx(math.exp(-2.0))
    assert posterior_shape(scaled, 2.0, two, 9).form == "generic"
    assert (
        posterior_shape(ConstantKernel(3.0) + ConstantKernel(1.0), 2.0, two, 9).form == "constant"
    )
    for other in (RBF(1.0), Matern(1.0, nu=1.5), scaled + ConstantKernel(1.0), scaled * RBF(1.0)):
        assert posterior_shape(other, 1.0, one, 9).form == "generic"
        assert posterior_shape(other, 1.0, one, 9).ridge == pytest.approx(1.0 / variance(other))


@pytest.mark.parametrize(
    "wrong",
    [{"ridge": 0.0}, {"ridge": math.nan}, {"ridge": math.inf}, {"records": 0}, {"least": -0.1},
        {"least": 1.1}, {"least": math.nan}, {"form": "square"}],
)  # fmt: skip
def test_shapes_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match="must"):
        PosteriorShape(**{"ridge": 1.0, "records": 5, **wrong})
    with pytest.raises(ValueError, match="only"):
        pm.exponential(PosteriorShape(1.0, 5))
