"""What rounding does to sample paths: every bound against 50 digits, every inequality by search."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    ExpSineSquared,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
)

from privgp.gp.arithmetic import UNIT_ROUNDOFF, rounding
from privgp.gp.growing import cholesky_by_blocks, multiply_by_blocks, solve_by_blocks, sum_error
from privgp.gp.kernels.evaluate import variance
from privgp.gp.kernels.proved import rounding_error
from privgp.plan.functions.paths import PathModel
from privgp.privacy.path_rounding import (
    MOST_SPREAD,
    PathPrecision,
    PathSizes,
    column_error,
    entry_error,
    gram_error,
    mean_error,
    path_precision,
    solve_error,
    spread_error,
)
from privgp.privacy.rdp import PathCurve, epsilon_for
from privgp.storage.archive import Triangle
from privgp.vault.states.paths import PathSampler, first_path_draws

PERIODIC = ExpSineSquared(0.8, 0.3) * RBF(0.7) + 0.2 * Matern(0.1, nu=0.5)


@dataclass(frozen=True, eq=False)
class Case:
    """Records and questions of one layout, whose kernel has this variance."""

    kernel: Any
    layout: str
    ridge: float
    records: int = 6
    points: int = 8
    columns: int = 1
    extra: float = 0.0
    reach: float = 1.0
    scale: float = 1.0
    restart: bool = False


CASES = [
    Case(RBF(0.3), "spread", 1e-6),
    Case(RBF(0.3), "equal", 1e-6, reach=1e6),
    Case(RBF(0.3), "clustered", 1e6, extra=1e6),
    Case(Matern(0.2, nu=0.5), "clustered", 1e-6, scale=1e-80),
    Case(Matern(0.2, nu=1.5), "spread", 1e-3, columns=3, scale=1e80, extra=0.3),
    Case(Matern(0.2, nu=2.5), "clustered", 1e-4, columns=2, restart=True),
    Case(RationalQuadratic(0.2, 1e8), "equal", 1.0, extra=1e-9),
    Case(PERIODIC, "spread", 25.0, restart=True),
    Case(RBF(50.0), "spread", 1e-6, restart=True),  # all but constant
    Case(RBF(1e-9), "clustered", 1e-6),
    Case(RBF(0.3), "spread", 0.1, records=1, points=1),
    Case(RBF(0.3), "equal", 1e-6, records=70, points=3),
    Case(Matern(0.2, nu=1.5), "clustered", 1e-5, records=30, points=70, restart=True),
]


def inputs(case: Case, count: int, rng: np.random.Generator) -> np.ndarray:
    """Places in the unit cube, no two questions alike."""
    if case.layout == "spread":
        return rng.uniform(0, 1, (count, case.columns))
    middle = np.full(case.columns, 0.7)
    if case.layout == "equal":
        return np.tile(middle, (count, 1))
    return middle + rng.choice([0.0, 1e-16, 1e-12, 1e-8, 0.3], (count, case.columns))


def exactly(kernel: Any, x: Any, z: Any) -> Any:
    """One kernel value, from the floats as they are."""
    if isinstance(kernel, Sum):
        return exactly(kernel.k1, x, z) + exactly(kernel.k2, x, z)
    if isinstance(kernel, Product):
        return exactly(kernel.k1, x, z) * exactly(kernel.k2, x, z)
    if isinstance(kernel, ConstantKernel):
        return mp.mpf(float(kernel.constant_value))
    d = [mp.mpf(float(a)) - mp.mpf(float(b)) for a, b in zip(x, z, strict=True)]
    length = mp.mpf(float(kernel.length_scale))
    if isinstance(kernel, ExpSineSquared):
        return mp.exp(-2 * (mp.sin(mp.pi * d[0] / mp.mpf(kernel.periodicity)) / length) ** 2)
    s = mp.fsum(a * a for a in d) / length**2
    if isinstance(kernel, RationalQuadratic):
        alpha = mp.mpf(kernel.alpha)
        return mp.exp(-alpha * mp.log1p(s / (2 * alpha)))
    nu = kernel.nu if isinstance(kernel, Matern) else np.inf
    t = mp.sqrt({0.5: 1, 1.5: 3, 2.5: 5}.get(nu, 1) * s)
    if nu == np.inf:
        return mp.exp(-s / 2)
    return {0.5: 1, 1.5: 1 + t, 2.5: 1 + t + t * t / 3}[nu] * mp.exp(-t)


def table(values: np.ndarray) -> list[list[Any]]:
    return [[mp.mpf(float(v)) for v in row] for row in values]


def dot(a: Any, b: Any) -> Any:
    return mp.fdot(zip(a, b, strict=False))  # the shorter one decides: rows of a triangle


def solved(lower: Any, b: Any) -> list[Any]:
    """``lower^-1 b``."""
    out: list[Any] = []
    for row, value in zip(lower, b, strict=True):
        out.append((value - dot(row[: len(out)], out)) / row[len(out)])
    return out


def factored(matrix: Any) -> list[list[Any]]:
    """The Cholesky factor, its rows without the zeros."""
    out: list[list[Any]] = []
    for i, row in enumerate(matrix):
        line = solved(out, row[:i])
        out.append([*line, mp.sqrt(row[i] - dot(line, line))])
    return out


def norm(values: Any) -> float:
    return float(mp.sqrt(mp.fsum(v * v for v in values)))


@dataclass(frozen=True)
class Found:
    """Errors of what the sampler computed, in the units of the bounds."""

    sizes: PathSizes
    precision: PathPrecision
    gram: float
    solve: float
    column: float
    entry: float
    mean: float
    whitened_mean: np.ndarray
    relative: np.ndarray  # G
    change: np.ndarray  # F
    value: float  # over its bound


@cache
def found(case: Case) -> Found:
    """The real sampler beside exact arithmetic."""
    with mp.workdps(50):
        return _found(case)


def _found(case: Case) -> Found:
    rng = np.random.default_rng(5)
    kernel = ConstantKernel(case.scale) * case.kernel
    v = variance(kernel)
    std, noise = math.sqrt(v), case.ridge * v
    X = inputs(case, case.records, rng)
    Z = np.unique(np.vstack([X[:1], inputs(case, 9 * case.points, rng)]), axis=0)
    Z = np.vstack([Z, rng.uniform(0, 1, (case.points, case.columns))])[: case.points]
    rng.shuffle(Z)
    y = case.reach * std * rng.choice([-1.0, 0.3, 1.0], case.records)
    sizes = PathSizes(
        case.records, case.points, 1, noise / v, case.extra, case.reach,
        rounding_error(kernel, np.ones(case.columns)),
    )  # fmt: skip
    precision = path_precision(sizes)
    reach = case.reach * std
    model = PathModel(
        kernel, noise, ((0.0, 1.0),) * case.columns, (-reach, reach), paths=1, extra_noise=0.0,
        delta=1e-3, sensitivity="auto", max_points=case.points,
    )  # fmt: skip
    draws = first_path_draws(X, y, model, None)
    assert np.array_equal(draws.inputs, X)
    y, factor = draws.outputs, draws.factor
    sampler = PathSampler(X, y, factor, kernel, case.extra, precision.nugget)
    lower = Triangle()
    for start in range(0, len(Z), 3):
        if case.restart:
            sampler = PathSampler(X, y, factor, kernel, case.extra, precision.nugget)
        sampler.catch_up(Z[:start], lower)
        lower = lower.grow(sampler.extend(Z[start : start + 3]))
    m = len(Z)
    means = sampler.values(np.zeros((1, m)), 0)[0]
    normals = rng.standard_normal((4, m)) * np.array([[1.0], [1e3], [1e-3], [0.0]])
    values = sampler.values(normals, 0)

    R, L_drawn = table(factor), [[mp.mpf(float(a)) for a in row] for row in lower.rows]
    K = [[exactly(kernel, a, b) for b in X] for a in X]
    for i, row in enumerate(K):
        row[i] += mp.mpf(noise)
    off = [[dot(R[i], R[j][: j + 1]) - K[i][j] for j in range(len(X))] for i in range(len(X))]
    gram = np.linalg.norm(np.array(off, dtype=float) / noise, 2)
    outputs = [mp.mpf(float(a)) for a in y]
    weights = solved(R, outputs)
    computed = [mp.mpf(float(a)) for a in sampler._weights[:, 0]]
    solve = norm(a - b for a, b in zip(weights, computed, strict=True)) / norm(computed)
    seen = [[exactly(kernel, x, z) for x in X] for z in Z]
    halves = [solved(R, k) for k in seen]
    column = max(
        norm(a - mp.mpf(float(b)) for a, b in zip(h, sampler._half[:, j], strict=True)) / std
        for j, h in enumerate(halves)
    )
    total, nugget = 1 + mp.mpf(case.extra), mp.mpf(precision.nugget * v)
    prior = [[total * exactly(kernel, a, b) for b in Z[: i + 1]] for i, a in enumerate(Z)]
    for row in prior:
        row[-1] += nugget
    exact_factor = factored(K)
    exact_halves = [solved(exact_factor, k) for k in seen]
    exact_weights = solved(exact_factor, outputs)
    drawn = [[dot(L_drawn[i], L_drawn[j]) for j in range(i + 1)] for i in range(m)]
    entry = max(
        abs(drawn[i][j] - prior[i][j] + dot(halves[i], halves[j]))
        for i in range(m) for j in range(i + 1)
    )  # fmt: skip
    T = [
        [prior[i][j] - dot(exact_halves[i], exact_halves[j]) for j in range(i + 1)]
        for i in range(m)
    ]
    L = factored(T)
    # F = L^-1 (L_drawn - L), column by column; G = F + F^T + F F^T.
    change = np.zeros((m, m))
    for j in range(m):
        below = [row[j] - exact[j] for row, exact in zip(L_drawn[j:], L[j:], strict=True)]
        change[j:, j] = [float(a) for a in solved([row[j:] for row in L[j:]], below)]
    off_means = [
        mp.mpf(float(a)) - dot(h, exact_weights) for a, h in zip(means, exact_halves, strict=True)
    ]
    worst = 0.0
    for z, line in zip(normals, values, strict=True):
        exact_z = [mp.mpf(float(a)) for a in z]
        for i, value in enumerate(line):
            error = abs(mp.mpf(float(value)) - mp.mpf(float(means[i])) - dot(L_drawn[i], exact_z))
            bound = rounding(case.points + 8) * norm(L_drawn[i]) * norm(exact_z)
            bound += 4 * UNIT_ROUNDOFF * math.sqrt(case.records / case.ridge) * case.reach * std
            worst = max(worst, float(error) / bound)
    return Found(
        sizes, precision, float(gram), solve, column, float(entry / v),
        float(max(abs(a) for a in off_means)) / std,
        np.array([float(a) for a in solved(L, off_means)]),
        change + change.T + change @ change.T, change, worst,
    )  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.kernel}-{c.layout}-{c.records}")
def test_no_error_exceeds_its_bound(case):
    f = found(case)
    assert f.precision.charge < math.inf
    assert f.gram <= gram_error(f.sizes)
    assert f.solve <= solve_error(f.sizes)
    assert f.column <= column_error(f.sizes)
    assert f.entry <= entry_error(f.sizes)
    assert f.mean <= mean_error(f.sizes)
    assert f.value <= 1.0
    nugget = f.precision.nugget
    spread = spread_error(f.sizes, nugget)
    assert np.linalg.norm(f.relative) <= spread <= MOST_SPREAD
    assert np.linalg.norm(f.change) <= spread
    most = math.sqrt(f.sizes.points / nugget) * mean_error(f.sizes)
    assert np.linalg.norm(f.whitened_mean) <= most


def test_the_errors_are_there_and_the_bounds_are_not_idle():
    cases = [found(case) for case in CASES]
    assert max(f.gram / gram_error(f.sizes) for f in cases) > 1e-3
    assert max(f.solve / solve_error(f.sizes) for f in cases) > 1e-3
    assert max(f.column / column_error(f.sizes) for f in cases) > 1e-3
    assert max(f.entry / entry_error(f.sizes) for f in cases) > 1e-3
    assert max(f.mean / mean_error(f.sizes) for f in cases) > 1e-4
    assert max(f.value for f in cases) > 1e-2


def whole(values: np.ndarray) -> np.ndarray:
    """The same numbers times 2^400, as whole numbers of any size."""
    return np.vectorize(lambda a: int(math.ldexp(a, 400)), otypes=[object])(values)


def shares(left: Any, right: Any, whole_off: Any) -> float:
    """The largest error of a product, whose exact values are times 2^800, over the sums of sizes."""
    sizes = np.abs(left) @ np.abs(right)
    return float(np.max(np.abs(whole_off / 2**800).astype(float) / sizes))


@pytest.mark.parametrize("n", [1, 63, 64, 65, 150])
def test_blocked_sums_err_by_no_more_than_a_run_and_the_number_of_runs(n):
    rng = np.random.default_rng(n)
    A, B = rng.standard_normal((7, n)), rng.standard_normal((n, 5))
    A[0], B[:, 0] = 1.0 + rng.uniform(0, 1, n), 1.0 + rng.uniform(0, 1, n)  # no cancelling
    off = whole(A) @ whole(B) - whole(multiply_by_blocks(A, B)) * 2**400
    worst = [shares(A, B, off)]
    K = np.exp(-3.0 * np.abs(np.subtract.outer(A[1], A[1]))) + 1e-6 * np.eye(n)
    R = cholesky_by_blocks(K)
    assert np.array_equal(R, np.tril(R))
    worst.append(shares(R, R.T, whole(R) @ whole(R).T - whole(K) * 2**400))
    H = solve_by_blocks(R, B)
    worst.append(shares(R, H, whole(R) @ whole(H) - whole(B) * 2**400))
    assert max(worst) <= sum_error(n)
    assert n == 1 or min(worst) > 0.1 * UNIT_ROUNDOFF


def divergence(order: Any, mean: Any, first: Any, second: Any) -> Any:
    """D_order(N(mean, first^2) || N(0, second^2)); infinite where it is."""
    mixed = order * second**2 + (1 - order) * first**2
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.log(second / first) + np.log(second**2 / mixed) / (2 * (order - 1))
        return np.where(mixed > 0, order * mean**2 / (2 * mixed) + spread, np.inf)


def test_one_step_costs_what_the_page_says():
    f = np.linspace(-1, 1, 401)[:, None] / np.geomspace(64, 1e4, 30)[None, :]
    for order in np.geomspace(2, 1.21 * 3e3, 60):
        step = f[np.abs(f) * order <= 1 / 16]
        for first, second in ((1 + step, 1.0), (1.0, 1 + step)):
            spread = divergence(order, 0.0, first, second)
            assert np.all(spread <= 1.4 * order * step**2 + 1e-15)
            mean = divergence(order, 1.0, first, second) - spread
            assert np.all(mean <= 0.67 * order)
    # The constants are not idle: without the limit on the order they fail.
    assert divergence(1e3, 0.0, 1 + 4e-4, 1.0) > 1.4 * 1e3 * 4e-4**2


def test_a_normal_number_squared_has_the_moments_of_the_page():
    t = np.linspace(1e-4, 1 / 16, 500)
    assert np.all(-0.5 * np.log1p(-2 * t) <= 1.07 * t)
    assert -0.5 * math.log1p(-2 / 12) > 1.07 / 12
    largest = 1.1 * 0.05  # in units of 1 / sqrt(w); 1.1: the step to the lattices
    assert 1.2 * 11 * 1.1 * largest**2 <= 1 / 16
    assert 1.1 * largest / math.sqrt(2) <= 1 / 16
    for order in np.geomspace(2, 1e6, 200):
        to_exact = 1.1 * order - 0.1
        back = 1.1 * order
        grown = (1.1 * to_exact - 1) / (to_exact - 1) * to_exact
        assert grown <= 1.5 * order
        grown = (order - 1 / 1.1) / (order - 1) * (1.1 * back - 1) / (back - 1) * back
        assert grown <= 1.5 * order


def cost(spread: float, mean: float, points: int) -> float:
    """C of the theorem, for one path whose values are not rounded."""
    return 1.5 * (1.3 * 2 * spread**2 * points + 3 * mean**2 + 2 * spread**2)


def both_ways(order: float, relative: np.ndarray, mean: np.ndarray) -> tuple[float, float]:
    """The divergence between N(mean, I + relative) and N(0, I), and back."""
    g, axes = np.linalg.eigh(relative)
    shift, step = (axes.T @ mean) ** 2, order - 1
    there = 0.5 * order * shift / (1 - step * g) - 0.5 * np.log1p(g)
    there -= np.log1p(-step * g) / (2 * step)
    back = 0.5 * order * shift / (1 + order * g)
    back -= (np.log1p(order * g) - order * np.log1p(g)) / (2 * step)
    return float(there.sum()), float(back.sum())


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.kernel}-{c.layout}-{c.records}")
def test_what_is_drawn_is_as_near_as_is_charged(case):
    f = found(case)
    for order in np.geomspace(2, f.precision.charge_limit, 9):
        drawn = both_ways(order, f.relative, f.whitened_mean)
        assert 0 <= max(drawn) <= order * f.precision.charge


def test_the_theorem_holds_for_any_errors_of_these_sizes():
    rng = np.random.default_rng(3)
    worst = 0.0
    for _ in range(2000):
        m = int(rng.integers(1, 6))
        spread = 10.0 ** rng.uniform(-5, math.log10(MOST_SPREAD))
        F = np.tril(rng.standard_normal((m, m)) * rng.choice([1.0, 0.0], (m, m)))
        F[0, 0] += 1e-3
        F *= spread / np.linalg.norm(F)
        mean = rng.standard_normal(m) * 10.0 ** rng.uniform(-8, 0)
        order = rng.uniform(2, 0.05 / math.sqrt(2 * spread**2))
        drawn = both_ways(order, F + F.T + F @ F.T, mean)
        worst = max(worst, max(drawn) / (order * cost(spread, np.linalg.norm(mean), m)))
    assert 0.05 < worst <= 1.0


def test_the_theorem_holds_when_the_second_question_depends_on_the_first_answer():
    z = np.linspace(-14, 14, 20_001)
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
    for spread in (1e-3, MOST_SPREAD):
        limit = 0.05 / math.sqrt(2 * spread**2)
        for order in (2.0, 0.5 * limit, limit):
            for bold in (np.abs(z) > 2, z > 0, np.abs(z) > 5, z < 99):
                first = spread / 2
                # where the answer is bold, all that is left goes into the row of the second
                row = np.where(bold, math.sqrt(spread**2 - first**2), 0.0)
                for sign in (1.0, -1.0):
                    f = 1 + sign * first
                    # from drawn to exact: under the exact law the first number is z = z* / f
                    ratio = np.exp(-0.5 * (z / f) ** 2 + 0.5 * z**2) / f
                    late = np.exp((order - 1) * divergence(order, row * z / f, 1.0, 1.0))
                    there = math.log(np.sum(density * ratio**order * late)) / (order - 1)
                    # and back: under the drawn law z is normal
                    ratio = np.exp(-0.5 * (z * f) ** 2 + 0.5 * z**2) * f
                    late = np.exp((order - 1) * divergence(order, row * z, 1.0, 1.0))
                    back = math.log(np.sum(density * ratio**order * late)) / (order - 1)
                    assert max(there, back) <= order * cost(spread, 0.0, 2)


def test_two_weak_triangle_inequalities_in_a_row():
    rng = np.random.default_rng(8)

    def between(order: float, a: tuple[float, float], b: tuple[float, float]) -> float:
        return float(divergence(order, a[0] - b[0], a[1], b[1]))

    tight = 0.0
    for _ in range(3000):
        near = lambda law: (law[0] + rng.normal(0, 0.02), law[1] * math.exp(rng.normal(0, 0.02)))  # noqa: E731
        P, Q = (0.0, 1.0), (rng.normal(0, 0.3), math.exp(rng.normal(0, 0.1)))
        drawn_P, drawn_Q = near(P), near(Q)
        order, step = 1 + 10 ** rng.uniform(-1.5, 0.7), 10 ** rng.uniform(-2, 0.6)
        second = order + step * (order - 1)
        main = (1 + step) * second
        bound = (order - step / (1 + step)) / (order - 1)
        bound *= between(order * (1 + step) / step, drawn_P, P)
        bound += (1 + step / ((1 + step) * (second - 1))) * between(main, P, Q)
        bound += between((main - 1) / step, Q, drawn_Q)
        real = between(order, drawn_P, drawn_Q)
        assert real <= bound * (1 + 1e-9)
        tight = max(tight, real / bound)
    assert tight > 0.5


@pytest.mark.parametrize("shift", [1e-3, 0.1, 2.0])
def test_the_charged_curve_covers_laws_that_were_moved(shift):
    # Normal laws moved by ``off`` each: their divergence is order * off^2 / 2.
    plain = PathCurve(1e-6, shift)
    for off in (1e-6, 1e-3, 0.05):
        curve = PathCurve(1e-6, shift, charge=off**2 / 2, charge_limit=1e12)
        for order in (1.01, 1.5, 2.0, 8.0, 100.0):
            assert curve.at(order) >= order * (shift + 2 * off) ** 2 / 2
            assert curve.at(order) >= plain.at(order)
    cheap = PathCurve(1e-6, shift, charge=1e-30)
    assert cheap.at(3.0) == pytest.approx(plain.at(3.0), rel=1e-4)
    charges = [PathCurve(1e-6, shift, charge=c).at(3.0) for c in np.geomspace(1e-12, 1e-2, 200)]
    assert np.all(np.diff(charges) > 0)
    assert np.max(np.diff(np.log(charges))) < 0.2


def test_the_charge_is_used_at_its_own_orders_only():
    curve = PathCurve(0.01, 0.1, charge=1e-3, charge_limit=50.0)
    # From order 2 on: at 1.25 * 1.1 the charge is that of order 2.
    step, order = 4.0, 1.1
    before = (order - step / (1 + step)) / (order - 1) * 2.0 * curve.charge
    assert curve._triangle_limit(order, step) >= before
    assert curve._triangle_limit(20.0, 0.1) == math.inf  # would need orders of 220
    assert curve._triangle_limit(3.0, 1.0) < math.inf
    assert curve.at(49.0) == math.inf
    with pytest.raises(ValueError, match="order"):
        curve.at(50.0)
    assert PathCurve(0.01, 0.1, charge=1e-3, charge_limit=1.9).at(1.5) == math.inf
    assert epsilon_for([PathCurve(0.01, 0.1, charge=math.inf, charge_limit=0.0)], 1e-5) == math.inf


def test_what_cannot_be_bounded_is_refused():
    ordinary = PathSizes(100, 200, 1, 25.0, 0.0, 1.0, 1e-15)
    assert path_precision(ordinary).charge < 1e-6
    for wrong in (
        {"ridge": 1e-12}, {"records": 10**9}, {"records": 10**18}, {"kernel_error": 1e-8},
        {"reach": 1e200}, {"extra": math.inf},
    ):  # fmt: skip
        sizes = PathSizes(**(vars(ordinary) | wrong))
        assert path_precision(sizes).charge == math.inf
