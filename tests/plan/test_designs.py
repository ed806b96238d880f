"""Designs: private whatever the solver does, correct as linear algebra, and provably near the best."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import cho_factor, cho_solve, circulant
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from privgp.plan.designs import OBJECTIVES, Design, design
from privgp.types import Array

SEEDS = range(20)
KERNELS = {
    "rbf": lambda d: np.exp(-0.5 * d**2),
    "matern12": lambda d: np.exp(-d),
    "matern52": lambda d: (1 + 5**0.5 * d + 5 / 3 * d**2) * np.exp(-(5**0.5) * d),
}


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Small matrices are slower on two threads, far slower when the machine is busy."""
    with threadpool_limits(1):
        yield


def kernel(name: str, lengthscale: float, X: Array, Y: Array) -> Array:
    squares = np.square(X).sum(axis=1)[:, None] + np.square(Y).sum(axis=1) - 2 * X @ Y.T
    return np.asarray(KERNELS[name](np.sqrt(np.maximum(squares, 0.0)) / lengthscale))


def smoother(name: str, lengthscale: float, targets: Array, X: Array, inducing: int = 300) -> Array:
    """Weights of a GP posterior mean; through inducing inputs when there are many rows."""
    Z = X[:inducing]
    cross = kernel(name, lengthscale, Z, X)
    core = 0.1 * kernel(name, lengthscale, Z, Z) + cross @ cross.T
    core.flat[:: len(core) + 1] += 1e-8 * np.trace(core)
    factor = cho_factor(core)
    return kernel(name, lengthscale, targets, Z) @ cho_solve(factor, cross)


@cache
def problem(seed: int) -> Array:
    """20 workloads, 1 to 300 targets and 1 to 5000 rows, smoothers and Gaussian noise."""
    rng = np.random.default_rng(seed)
    P = int(np.exp(rng.uniform(0, np.log(300))))
    n = int(np.exp(rng.uniform(0, np.log(5000))))
    P, n = {0: (300, 5000), 1: (1, 5000), 2: (300, 1), 3: (100, 2000)}.get(seed, (P, n))
    if seed % 5 == 4:
        return rng.standard_normal((P, n))
    dimension = 1 + seed % 4
    targets, X = rng.random((P, dimension)), rng.random((n, dimension))
    name = ("rbf", "matern52", "matern12")[seed % 3]
    return smoother(name, (0.05, 0.3, 2.0)[seed // 3 % 3], targets, X)


@cache
def solved(seed: int, objective: str) -> Design:
    return design(problem(seed), objective)


def variances(d: Design) -> Array:
    return np.asarray(np.square(d.reconstruction).sum(axis=1))


def column_norm(d: Design) -> float:
    return float(np.linalg.norm(d.strategy, axis=0).max(initial=0.0))


def relative_error(d: Design, C: Array) -> float:
    return float(np.abs(d.reconstruction @ d.strategy - C).max() / np.abs(C).max())


def triangle(X: Array) -> Array:
    return np.asarray(np.linalg.qr(X, mode="r"))


@cache
def basis(seed: int) -> Array:
    """Orthonormal basis of the space of targets that problem ``seed`` reaches."""
    C = problem(seed)
    square = triangle(C.T).T if C.shape[1] > C.shape[0] else C
    U, S, _ = np.linalg.svd(square, full_matrices=False)
    return np.asarray(U[:, S / S[0] > 1e-10])


def log_volume(d: Design, basis: Array) -> float:
    """The log det of the noise covariance in the kept space, spanned by the orthonormal ``basis``."""
    return 2 * float(np.linalg.slogdet(basis.T @ d.reconstruction)[1])


def nuclear_norm(X: Array) -> float:
    if X.shape[1] > X.shape[0]:
        X = triangle(X.T)
    return float(np.linalg.svd(X, compute_uv=False).sum())


def proof_of_trace(C: Array, value: float, slack: float, steps: int = 300) -> float:
    """A lower bound of the total variance from a feasible dual v, sought until it proves ``value``."""
    v, bound = np.full(C.shape[1], 1 / C.shape[1]), 0.0
    for _ in range(steps):
        squares, U = np.linalg.eigh((C * v) @ C.T)
        s = np.sqrt(np.maximum(squares, 1e-16 * squares[-1]))
        if s.sum() ** 2 * slack >= value:
            bound = nuclear_norm(C * np.sqrt(v)) ** 2
            if bound * slack >= value:
                return bound
        L = np.square((U / np.sqrt(s)).T @ C).sum(axis=0)
        v = v * L**3 + 1e-4 * (v @ L**3) / len(v)
        v /= v.sum()
    return bound


def proof_of_max(C: Array, value: float, slack: float, steps: int = 300) -> float:
    """A lower bound of the largest variance from feasible dual v and omega, sought likewise."""
    P, n = C.shape
    v, omega, bound = np.full(n, 1 / n), np.full(P, 1 / P), 0.0
    for _ in range(steps):
        X = np.sqrt(omega)[:, None] * C * np.sqrt(v)
        squares, U = np.linalg.eigh(X @ X.T)
        s = np.sqrt(np.maximum(squares, 1e-16 * squares[-1]))
        if s.sum() ** 2 * slack >= value:
            bound = nuclear_norm(X) ** 2
            if bound * slack >= value:
                return bound
        mass_v = np.square((U / np.sqrt(s)).T @ X).sum(axis=0)
        mass_omega = np.square(U * np.sqrt(s)).sum(axis=1)
        v = 0.9999 * mass_v / mass_v.sum() + 1e-4 / n
        omega = 0.9999 * mass_omega / mass_omega.sum() + 1e-4 / P
    return bound


def proof_of_volume(A: Array, value: float, slack: float, steps: int = 2000) -> float:
    """A lower bound of log det M from dual weights w: ``log det(r sum w a a^T)``, sought likewise."""
    r = len(A)
    Q, T = np.linalg.qr(A.T)
    offset = 2 * np.log(np.abs(np.diag(T))).sum() + r * np.log(r)
    w, bound = np.full(len(Q), 1 / len(Q)), -np.inf
    for _ in range(steps):
        G = (Q.T * w) @ Q
        bound = max(bound, offset + float(np.linalg.slogdet(G)[1]))
        if bound + slack >= value:
            break
        w = w * (np.einsum("ij,ji->i", Q, np.linalg.solve(G, Q.T)) / r) ** 1.5
        w /= w.sum()
    return bound


@pytest.mark.parametrize("seed", SEEDS)
def test_total_variance_is_within_one_percent_of_the_dual_bound_and_never_below(seed: int) -> None:
    C, d = problem(seed), solved(seed, "trace")
    value = float(variances(d).sum())
    bound = proof_of_trace(basis(seed).T @ C, value, 1.01)
    assert bound * (1 - 1e-6) <= value <= bound * 1.01
    assert d.gap <= np.sqrt(1.01) - 1
    random = np.random.default_rng(seed).dirichlet(np.ones(C.shape[1]))
    assert nuclear_norm(C * np.sqrt(random)) ** 2 <= value * (1 + 1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_largest_variance_is_within_one_percent_of_the_dual_bound_and_never_below(
    seed: int,
) -> None:
    C, d = problem(seed), solved(seed, "max")
    value = float(variances(d).max())
    bound = proof_of_max(C, value, 1.01)
    assert bound * (1 - 1e-6) <= value <= bound * 1.01
    assert d.gap <= np.sqrt(1.01) - 1


@pytest.mark.parametrize("seed", SEEDS)
def test_volume_is_certified_to_a_hundredth_of_a_nat(seed: int) -> None:
    assert 0 <= solved(seed, "logdet").gap <= 0.01


@pytest.mark.parametrize("seed", [1, 2, 5, 6, 9])
def test_volume_is_within_a_hundredth_of_a_nat_of_its_dual_bound_and_never_below(
    seed: int,
) -> None:
    value = log_volume(solved(seed, "logdet"), basis(seed))
    bound = proof_of_volume(basis(seed).T @ problem(seed), value, 0.01)
    assert bound - 1e-5 <= value <= bound + 0.01


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_reconstructed_strategy_is_the_workload(seed: int, objective: str) -> None:
    d = solved(seed, objective)
    assert relative_error(d, problem(seed)) < 1e-8
    assert 1 - 1e-12 <= column_norm(d) <= 1 + 1e-12


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("iterations", [1, 2, 16, 18])
def test_privacy_never_depends_on_convergence(objective: str, iterations: int) -> None:
    for seed in (3, 4, 5, 9, 11):
        d = design(problem(seed), objective, max_iterations=iterations)
        assert column_norm(d) <= 1 + 1e-12
        assert relative_error(d, problem(seed)) < 1e-8


@pytest.mark.parametrize("seed", [3, 7, 9, 11])
def test_the_gap_of_an_unfinished_design_is_honest(seed: int) -> None:
    C = problem(seed)
    for objective, reduce in (("trace", np.sum), ("max", np.max)):
        early = design(C, objective, max_iterations=1)
        ratio = np.sqrt(reduce(variances(early)) / reduce(variances(solved(seed, objective))))
        assert ratio - 1 <= early.gap + 1e-9
    early = design(C, "logdet", max_iterations=1)
    loss = log_volume(early, basis(seed)) - log_volume(solved(seed, "logdet"), basis(seed))
    assert loss <= early.gap + 1e-6


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_one_target_with_a_thousand_rows_gets_the_noise_it_needs(objective: str) -> None:
    c = np.random.default_rng(0).standard_normal((1, 1000))
    d = design(c, objective)
    assert d.strategy.shape == (1, 1000)
    np.testing.assert_allclose(np.abs(d.reconstruction), np.abs(c).max(), rtol=1e-12)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_workload_of_zeros_needs_no_measurement(objective: str) -> None:
    d = design(np.zeros((3, 4)), objective)
    assert d.strategy.shape == (0, 4)
    assert d.reconstruction.shape == (3, 0)
    assert d.gap == 0.0
    assert (d.reconstruction @ d.strategy == 0).all()


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_zero_columns_and_zero_rows_are_harmless(objective: str) -> None:
    C = np.random.default_rng(1).standard_normal((4, 30))
    padded = np.zeros((5, 60))
    padded[:4, ::2] = C
    plain, d = design(C, objective), design(padded, objective)
    assert not d.strategy[:, 1::2].any()
    np.testing.assert_allclose(variances(d)[4], 0.0, atol=1e-20)
    assert measure(d, objective) == pytest.approx(measure(plain, objective), abs=0.011)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", [5, 9, 10])
def test_duplicated_columns_change_nothing(seed: int, objective: str) -> None:
    C = problem(seed)
    repeated = np.repeat(C, 1 + np.arange(C.shape[1]) % 3, axis=1)
    d = design(repeated, objective)
    expected = measure(solved(seed, objective), objective)
    assert measure(d, objective) == pytest.approx(expected, abs=0.011)
    same = np.repeat(np.arange(C.shape[1]), 1 + np.arange(C.shape[1]) % 3)
    _, first = np.unique(same, return_index=True)
    np.testing.assert_allclose(d.strategy, d.strategy[:, first[same]], atol=1e-9)


def test_nearly_dependent_targets_are_released_together() -> None:
    C = np.random.default_rng(2).standard_normal((3, 200))
    C = np.vstack([C, C[0] + C[1], C[2] * (1 + 1e-14)])
    for objective in OBJECTIVES:
        d = design(C, objective)
        assert d.strategy.shape[0] == 3
        assert relative_error(d, C) < 1e-12


def measure(d: Design, objective: str) -> float:
    """Twice the logarithm of the noise std, or of the volume, whichever the objective minimises."""
    if objective == "trace":
        return float(np.log(variances(d).sum()))
    if objective == "max":
        return float(np.log(variances(d).max()))
    return 2 * float(np.log(np.linalg.svd(d.reconstruction, compute_uv=False)).sum())


workloads = st.tuples(st.integers(1, 6), st.integers(1, 40), st.integers(0, 10**6))


def drawn(shape: tuple[int, int, int]) -> Array:
    P, n, seed = shape
    rng = np.random.default_rng(seed)
    return rng.standard_normal((P, n)) * np.exp(rng.standard_normal(n))


@given(workloads, st.sampled_from(OBJECTIVES))
@settings(max_examples=40, deadline=None)
def test_the_order_of_columns_does_not_matter(shape: tuple[int, int, int], objective: str) -> None:
    C = drawn(shape)
    order = np.random.default_rng(0).permutation(C.shape[1])
    plain, permuted = design(C, objective), design(C[:, order], objective)
    assert measure(permuted, objective) == pytest.approx(measure(plain, objective), abs=0.011)


@given(workloads, st.sampled_from(OBJECTIVES), st.floats(-60, 60))
@settings(max_examples=40, deadline=None)
def test_noise_scales_with_the_workload(
    shape: tuple[int, int, int], objective: str, exponent: float
) -> None:
    C, scale = drawn(shape), 10.0**exponent
    plain, scaled = design(C, objective), design(scale * C, objective)
    total = np.sqrt(variances(plain).sum())
    assert np.sqrt(variances(scaled).sum()) == pytest.approx(scale * total, rel=0.01)
    assert relative_error(scaled, scale * C) < 1e-9


@given(workloads, st.sampled_from(OBJECTIVES), st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_every_column_has_norm_at_most_one(
    shape: tuple[int, int, int], objective: str, iterations: int
) -> None:
    d = design(drawn(shape), objective, max_iterations=iterations)
    assert column_norm(d) <= 1 + 1e-12
    assert 0 <= d.gap < np.inf


@pytest.mark.parametrize("objective", ["trace", "max"])
def test_weights_are_rows_scaled_by_their_roots(objective: str) -> None:
    C = problem(9)[:20]
    weights = np.linspace(0.2, 5.0, len(C))
    d = design(C, objective, weights)
    scaled = design(np.sqrt(weights)[:, None] * C, objective)
    np.testing.assert_allclose(weights * variances(d), variances(scaled), rtol=1e-9)
    assert relative_error(d, C) < 1e-10
    plain = design(C, objective)
    reduce = np.sum if objective == "trace" else np.max
    assert reduce(weights * variances(d)) <= 1.01 * reduce(weights * variances(plain))


def test_weights_leave_the_volume_design_alone() -> None:
    C = np.random.default_rng(3).standard_normal((5, 80))
    weighted = design(C, "logdet", np.geomspace(1e-3, 1e3, 5))
    expected = measure(design(C, "logdet"), "logdet")
    assert measure(weighted, "logdet") == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("seed", [3, 5, 7, 8, 9, 14])
def test_every_design_wins_on_its_own_objective(seed: int) -> None:
    trace, largest, volume = (solved(seed, objective) for objective in OBJECTIVES)
    total = {d.objective: variances(d).sum() for d in (trace, largest, volume)}
    peak = {d.objective: variances(d).max() for d in (trace, largest, volume)}
    size = {d.objective: log_volume(d, basis(seed)) for d in (trace, largest, volume)}
    assert total["trace"] <= 1.01 * min(total.values())
    assert peak["max"] <= 1.01 * min(peak.values())
    assert size["logdet"] <= min(size.values()) + 0.01


def test_trace_needs_less_noise_than_the_papers_when_targets_are_alike() -> None:
    X = np.linspace(0, 1, 400)[:, None]
    C = smoother("matern52", 1.0, X[::8], X)
    trace, volume = design(C, "trace"), design(C, "logdet")
    assert np.sqrt(variances(trace).sum() / variances(volume).sum()) < 0.6


@pytest.mark.parametrize("n", [2, 7, 64])
def test_a_circulant_workload_has_the_known_optimum(n: int) -> None:
    """By symmetry uniform dual weights are optimal, so the bound is |C|_*^2 / n and is attained."""
    C = circulant(np.exp(-np.arange(n) / 5.0))
    exact = np.abs(np.fft.fft(C[:, 0])).sum()
    assert variances(design(C, "trace")).sum() == pytest.approx(exact**2 / n, rel=1e-9)
    assert variances(design(C, "max")).max() == pytest.approx(exact**2 / n**2, rel=1e-9)


def best_by_brute_force(C: Array, objective: str, seed: int) -> float:
    """Least objective over all noise covariances M = T T^T, scaled to satisfy the constraints."""
    P = len(C)
    lower = np.tril_indices(P)

    def value(theta: Array, sharpness: float) -> float:
        T = np.zeros((P, P))
        T[lower] = theta
        T[np.diag_indices(P)] = np.exp(np.diag(T))
        columns = np.square(np.linalg.solve(T, C)).sum(axis=0)
        M = T @ T.T
        need = _soft_max(np.log(columns), sharpness)
        if objective == "trace":
            return float(np.log(np.trace(M)) + need)
        if objective == "max":
            return float(_soft_max(np.log(np.diag(M)), sharpness) + need)
        return float(np.linalg.slogdet(M)[1] + P * need)

    best = np.inf
    rng = np.random.default_rng(seed)
    for _ in range(3):
        theta = 0.3 * rng.standard_normal(len(lower[0]))
        for sharpness in (10.0, 100.0, 1000.0, 10000.0):
            theta = minimize(value, theta, (sharpness,), method="BFGS").x
        best = min(best, value(theta, np.inf))
    return best


def _soft_max(x: Array, sharpness: float) -> float:
    top = float(x.max())
    if np.isinf(sharpness):
        return top
    return top + float(np.log(np.exp(sharpness * (x - top)).sum())) / sharpness


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(("P", "n", "seed"), [(2, 3, 0), (2, 12, 1), (3, 4, 2), (3, 9, 3)])
def test_small_designs_agree_with_brute_force(P: int, n: int, seed: int, objective: str) -> None:
    C = np.random.default_rng(seed).standard_normal((P, n))
    found = measure(design(C, objective, tolerance=1e-4), objective)
    best = best_by_brute_force(C, objective, seed)
    assert found <= best + 2e-4
    assert found >= best - 5e-3


def test_an_exact_answer_is_found_to_the_tolerance_asked_for() -> None:
    C = np.random.default_rng(4).standard_normal((10, 100))
    for objective in OBJECTIVES:
        gaps = [design(C, objective, tolerance=t).gap for t in (0.1, 0.01, 1e-3, 1e-4)]
        assert all(gap <= t for gap, t in zip(gaps, (0.1, 0.01, 1e-3, 1e-4), strict=True))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((np.ones(3), "trace"), "matrix"),
        ((np.ones((2, 0)), "trace"), "at least one"),
        ((np.array([[1.0, np.nan]]), "max"), "not finite"),
        ((np.array([[1.0, np.inf]]), "logdet"), "not finite"),
        ((np.ones((2, 2)), "volume"), "objective must be one of"),
        ((np.ones((2, 2)), "trace", [1.0]), "shape"),
        ((np.ones((2, 2)), "trace", [1.0, -1.0]), "positive"),
        ((np.ones((2, 2)), "trace", [1.0, 0.0]), "positive"),
        ((np.ones((2, 2)), "trace", [1.0, np.nan]), "finite"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(arguments: tuple[object, ...], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        design(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{"tolerance": 0.0}, {"max_iterations": 0}])
def test_senseless_options_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        design(np.ones((2, 2)), "trace", **options)  # type: ignore[arg-type]
