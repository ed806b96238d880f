"""Cross-validation residuals: the claimed sensitivity against the worst that an attack can find."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern
from sklearn.model_selection import KFold, ShuffleSplit, cross_val_predict

from privgp.gp.priors import Hyperparameters
from privgp.plan.search.folds import folds_of, public_splits
from privgp.vault.select import root_utilities

BOUNDS = (-1.0, 1.0)


def utility(y, models, X, splits, noise=0.0, people=None):
    candidates = ((folds_of(model, X, splits), noise) for model in models)
    return root_utilities(y, BOUNDS, candidates, people)


def residual_map(model, X, splits):
    """R as one matrix, from its definition."""
    rows = []
    for train, test in splits:
        K = model.kernel(X[train]) + model.noise_variance * np.eye(len(train))
        R = np.zeros((len(test), len(X)))
        R[:, train] = -np.linalg.solve(K, model.kernel(X[train], X[test])).T
        R[np.arange(len(test)), test] += 1.0
        rows.append(R)
    return np.vstack(rows)


def worst_change(R, noise, person, rng, sweeps=6):
    """Climb over corners of the other outputs, and over the two values of one person's rows."""

    def value(y):
        return np.sqrt(np.sum((R @ y) ** 2) + noise**2)

    def change(y, ends):
        one, other = y.copy(), y.copy()
        one[person], other[person] = ends[0], ends[1]
        return abs(value(one) - value(other))

    grid = (-1.0, -0.5, 0.0, 0.5, 1.0)
    best = 0.0
    for _ in range(2):
        y = rng.choice([-1.0, 1.0], R.shape[1])
        ends = np.array([-np.ones(len(person)), np.ones(len(person))])
        for _ in range(sweeps):
            for j in range(len(y)):
                if j not in person:
                    tries = [np.where(np.arange(len(y)) == j, v, y) for v in (-1.0, 0.0, 1.0)]
                    y = max(tries, key=lambda t: change(t, ends))
            for k in range(len(person)):
                tries = []
                for a in grid:
                    for b in grid:
                        new = ends.copy()
                        new[:, k] = a, b
                        tries.append(new)
                ends = max(tries, key=lambda t: change(y, t))
        best = max(best, change(y, ends))
    return best


MODELS = [
    Hyperparameters(ConstantKernel(2.0) * RBF(1.0), 0.01),
    Hyperparameters(RBF(0.1), 0.5),
    Hyperparameters(ConstantKernel(10.0) * Matern(3.0, nu=2.5) + ConstantKernel(4.0), 0.1),
]


@pytest.mark.parametrize("cv", [KFold(4), ShuffleSplit(6, test_size=0.4, random_state=0)])
def test_no_attack_moves_the_utility_further_than_claimed(cv):
    rng = np.random.default_rng(0)
    X = rng.choice(rng.uniform(0, 3, 9), 14)[:, None]  # with repeated inputs
    splits = public_splits(cv, X)
    reached = 0.0
    for model in MODELS:
        for noise in (0.0, 0.7):
            claimed = utility(np.zeros(14), [model], X, splits, noise)[1]
            R = residual_map(model, X, splits)
            assert claimed == pytest.approx(2 * np.linalg.norm(R, axis=0).max(), rel=1e-6)
            j = int(np.linalg.norm(R, axis=0).argmax())
            found = worst_change(R, noise, [j], rng)
            assert found <= claimed
            reached = max(reached, found / claimed)
    assert reached > 0.7, "the attack is worth its name"


def crowded(many):
    """Two points at one place predict many others there; nothing else matters."""
    X = np.zeros((2 + many, 1))
    splits = [(np.arange(2, 2 + many), np.arange(2)), (np.arange(2), np.arange(2, 2 + many))]
    return X, splits, Hyperparameters(RBF(1.0), 0.01)


def test_the_claimed_sensitivity_is_reached_within_one_percent():
    X, splits, model = crowded(1000)
    y = np.ones(len(X))
    y[1] = -1.0
    values = []
    for y[0] in (-1.0, 1.0):
        utilities, claimed = utility(y, [model], X, splits)
        values.append(utilities[0])
    assert 0.99 * claimed < abs(values[1] - values[0]) <= claimed


def test_a_person_with_several_rows_is_bounded_by_the_sum():
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 2, (10, 1))
    people = np.array([0, 0, 0, 1, 1, 2, 3, 4, 5, 6])
    splits = public_splits(KFold(5), X)
    R = residual_map(MODELS[0], X, splits)
    claimed = utility(np.zeros(10), [MODELS[0]], X, splits, 0.0, people)[1]
    norms = np.bincount(people, np.linalg.norm(R, axis=0))
    assert claimed == pytest.approx(2 * norms.max(), rel=1e-6)
    person = np.flatnonzero(people == norms.argmax()).tolist()
    assert worst_change(R, 0.0, person, rng, sweeps=2) <= claimed
    X, splits, model = crowded(400)
    y = np.ones(len(X))
    values = []
    people = np.array([0, 0, *range(1, 401)])
    for y[:2] in (-1.0, 1.0):
        utilities, claimed = utility(y, [model], X, splits, 0.0, people)
        values.append(utilities[0])
    assert 0.98 * claimed < abs(values[1] - values[0]) <= claimed


def test_the_utility_is_the_root_of_the_pooled_squared_error_and_the_noise():
    rng = np.random.default_rng(2)
    X, y = rng.uniform(0, 3, (23, 1)), rng.uniform(-1, 1, 23)
    splits = public_splits(KFold(4), X)
    for model in MODELS:
        gp = GaussianProcessRegressor(model.kernel, alpha=model.noise_variance, optimizer=None)
        residuals = y - cross_val_predict(gp, X, y, cv=KFold(4))
        for noise in (0.0, 2.0):
            (found,), _ = utility(y, [model], X, splits, noise)
            assert -found == pytest.approx(np.hypot(np.linalg.norm(residuals), noise), rel=1e-8)


def test_outputs_outside_the_bounds_are_clipped():
    X = np.arange(6.0)[:, None]
    splits = public_splits(3, X)
    y = np.array([5.0, -9.0, 0.0, 1.0, 0.5, 1e300])
    one, two = (utility(v, MODELS[:1], X, splits)[0] for v in (y, np.clip(y, -1, 1)))
    assert one == two


def test_the_sensitivity_is_the_largest_over_candidates():
    X = np.linspace(0, 1, 12)[:, None]
    splits = public_splits(3, X)
    each = [utility(np.zeros(12), [model], X, splits)[1] for model in MODELS]
    assert utility(np.zeros(12), MODELS, X, splits)[1] == max(each) > min(each)
