"""Designs are provably near the best: against dual bounds, known optima and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import circulant
from scipy.optimize import minimize

from privgp.plan.designs.workload import OBJECTIVES, design
from privgp.types import Array
from tests.plan.designs.problems import (
    SEEDS,
    basis,
    log_volume,
    measure,
    problem,
    smoother,
    solved,
    triangle,
    variances,
)

pytestmark = pytest.mark.usefixtures("one_thread")


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
