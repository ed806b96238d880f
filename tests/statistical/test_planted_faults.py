"""Faults planted on purpose: every audit finds its own, and accuses nothing that is sound.

Bounds are wrong with probability at most 1e-6 a test, and every fault lies many standard errors
beyond what is allowed; draws are stated in each test.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from privgp import Guarantee, PrivateGPRegressor, compose
from privgp.audit import path_promise, trade_off
from privgp.audit.promises import Promise, renyi_curve
from privgp.gp.smoothers import exact_smoother
from privgp.privacy.budget import gaussian_multiplier
from privgp.vault.measure import measure

pytestmark = pytest.mark.statistical(failure=1e-6)

EPSILON, DELTA = 4.0, 1e-2
MULTIPLIER = gaussian_multiplier(EPSILON, DELTA)
PROMISE = Promise(mu=1.0 / MULTIPLIER)


def cloaked(C, root, scale):
    """The papers' release ``C y + scale M^1/2 z`` for outputs in [0, 1], as a batch."""

    def release(y, rng, count):
        return C @ y + scale * rng.standard_normal((count, root.shape[1])) @ root.T

    return release


def worst_pair(C, M):
    """All outputs in the middle, but the one that moves the release most at either end."""
    moved = np.einsum("ij,ij->j", C, np.linalg.pinv(M) @ C)
    low = np.full(C.shape[1], 0.5)
    high = low.copy()
    low[np.argmax(moved)], high[np.argmax(moved)] = 0.0, 1.0
    return low, high, float(moved.max())


def attack(release, data, neighbour, **options):
    given = {"promise": PROMISE, "batch": True, "draws": 20_000, "random_state": 0, **options}
    return trade_off(release, data, neighbour, **given)


def smoother(rows, targets):
    X = np.random.default_rng(0).uniform(size=(rows, 1))
    goal = np.asarray(targets, dtype=float)[:, None]
    return exact_smoother(RBF(0.2), 0.1, X, np.ones(rows), goal).weights


def test_noise_that_is_a_fifth_too_small():
    """20,000 draws a side, trained attack: mu is 1.25 times the guarantee, ten standard errors."""
    C = smoother(30, [0.2, 0.5, 0.8])
    M = C @ C.T
    low, high, square = worst_pair(C, M)
    root = np.linalg.cholesky(M)
    sound = attack(cloaked(C, root, MULTIPLIER * math.sqrt(square)), low, high)
    assert sound.holds, sound.describe()
    assert sound.is_tight, sound.describe()
    faulty = attack(cloaked(C, root, 0.8 * MULTIPLIER * math.sqrt(square)), low, high)
    assert not faulty.holds, faulty.describe()


def test_a_sensitivity_without_its_square_root():
    """The papers' CalcDelta: max c'M^-1 c instead of its root. With M four times too large the
    right scale is 1/2 and theirs 1/4: half the noise."""
    C = smoother(30, [0.2, 0.5, 0.8])
    M = C @ C.T
    M *= 4.0 * worst_pair(C, M)[2]
    low, high, square = worst_pair(C, M)
    assert square == pytest.approx(0.25)
    root = np.linalg.cholesky(M)
    assert attack(cloaked(C, root, MULTIPLIER * math.sqrt(square)), low, high).holds
    assert not attack(cloaked(C, root, MULTIPLIER * square), low, high).holds


@pytest.mark.parametrize("targets", [[0.5], [0.5, 0.5001, 0.9]], ids=["one target", "three"])
def test_a_forgotten_dropped_direction(targets):
    """1,000 rows; a cut-off drops the smallest direction from M but not from C y, which is then
    released without noise. With one target that is everything."""
    C = smoother(1000, targets)
    M = C @ C.T
    values, vectors = np.linalg.eigh(M)
    low, high, square = worst_pair(C, M)
    scale = MULTIPLIER * math.sqrt(square)
    whole = vectors * np.sqrt(values)
    assert attack(cloaked(C, whole, scale), low, high).holds
    cut = whole.copy()
    cut[:, 0] = 0.0
    faulty = attack(cloaked(C, cut, scale), low, high)
    assert not faulty.holds, faulty.describe()
    assert faulty.false_positive_rate == faulty.false_negative_rate == 0.0


def test_noise_that_is_used_twice():
    """Two measurements of the same outputs with one seed: their difference holds no noise.

    1,000 draws a side through the code that measures."""
    X = np.random.default_rng(0).uniform(size=(20, 1))
    settings = {"y_bounds": (0, 1), "epsilon": EPSILON, "delta": DELTA, "reconstruct": "unbiased"}
    plans = [PrivateGPRegressor(targets=[[t]], **settings).plan(X) for t in (0.3, 0.7)]
    each = [Guarantee(EPSILON, DELTA, "u", "n", (), "m", "s", (p.noise.multiplier,)) for p in plans]
    y = np.full(20, 0.5)
    z = y.copy()
    z[np.argmin(np.abs(X[:, 0] - 0.3))] = 1.0

    def release(reuse):
        def both(outputs, rng):
            seeds = rng.integers(2**31, size=2)
            seeds[1] = seeds[0] if reuse else seeds[1]
            return [
                measure(outputs, (0, 1), p.strategy, p.noise, np.random.default_rng(s)).values[0]
                for p, s in zip(plans, seeds, strict=True)
            ]

        return both

    options = {"promise": compose(each, DELTA), "batch": False, "draws": 1000}
    sound = attack(release(False), y, z, **options)
    assert sound.holds, sound.describe()
    faulty = attack(release(True), y, z, **options)
    assert not faulty.holds, faulty.describe()
    assert faulty.false_positive_rate == faulty.false_negative_rate == 0.0


def paths(kernel, noise_variance, points):
    """Posterior sample paths at these points, as a batch."""

    def release(dataset, rng, count):
        X, y = dataset
        K = kernel(X) + noise_variance * np.eye(len(X))
        weights = np.linalg.solve(K, kernel(X, points)).T
        covariance = kernel(points) - weights @ kernel(X, points)
        root = np.linalg.cholesky(covariance + 1e-12 * np.eye(len(points)))
        return weights @ y + rng.standard_normal((count, len(points))) @ root.T

    return release


def test_an_order_outside_its_interval():
    """Theorem 3.1 evaluated at any order, the interval ignored: beyond 1 + r^2/V its terms turn
    negative, and epsilon comes out as 0. The curve itself refuses such orders; the attack shows why.

    20,000 draws a side of one path at three points."""
    kernel, noise, n = Matern(1.0, nu=0.5), 0.09, 4
    curve = renyi_curve(kernel, noise, n)
    with pytest.raises(ValueError, match="order"):
        curve.at(1.01 * curve.limit)

    def careless(order):
        w = curve.influence
        t = w / (1 - w)
        with np.errstate(invalid="ignore"):
            above = 0.5 * np.log1p(t) - np.log((1 + order * t) / (1 + t)) / (2 * (order - 1))
            below = -0.5 * np.log1p(t) - np.log(1 - t * (order - 1)) / (2 * (order - 1))
        mean = 0.5 * order * curve.shift**2 / (1 - order * w)
        return 2 * np.fmax(above, below) + mean - math.log(0.05) / (order - 1)

    orders = np.linspace(1.01, 200, 20_000)
    claimed = max(0.0, float(np.nanmin(careless(orders))))
    assert claimed < 0.5
    X = np.array([[0.1], [0.4], [0.9], [0.5]])
    first, second = (X, np.array([-1.0, -1.0, 1.0, 1.0])), (X, np.array([-1.0, -1.0, 1.0, -1.0]))
    release = paths(kernel, noise, np.array([[0.3], [0.5], [0.7]]))
    faulty = attack(release, first, second, promise=(claimed, 0.05))
    assert not faulty.holds, faulty.describe()
    sound = attack(release, first, second, promise=path_promise(kernel, noise, n))
    assert sound.holds, sound.describe()


def test_a_mean_released_without_the_randomness_of_a_path():
    """The guarantee of one path, kept for the mean of a hundred: twenty times the mu."""
    kernel, noise = Matern(1.0, nu=0.5), 4.0
    X = np.array([[0.1], [0.4], [0.9], [0.5]])
    first, second = (X, np.array([-1.0, -1.0, 1.0, 1.0])), (X, np.array([-1.0, -1.0, 1.0, -1.0]))
    one = paths(kernel, noise, np.array([[0.5]]))
    promise = path_promise(kernel, noise, 4)
    assert attack(one, first, second, promise=promise).holds

    def mean_of_hundred(dataset, rng, count):
        return one(dataset, rng, 100 * count).reshape(count, 100).mean(axis=1)[:, None]

    many = attack(mean_of_hundred, first, second, promise=promise, draws=5000)
    assert not many.holds, many.describe()
