"""Attacks on a whole function, and the law of answers that are drawn one by one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import solve_triangular
from scipy.stats import chi2, norm
from sklearn.gaussian_process.kernels import RBF, Matern

from privgp import PrivateFunction
from privgp.audit import trade_off

pytestmark = pytest.mark.statistical

DRAWS = 2400
INPUTS = np.linspace(0, 10, 25)[:, None]
POINTS = np.sort(np.vstack([INPUTS, np.random.default_rng(0).uniform(-2, 12, (25, 1))]), axis=0)


def attacked(noise_scale: float, *, inducing: bool = False):
    """The worst person at one end of the bounds or the other; all others known."""
    nodes = np.linspace(0, 10, 12)[:, None] if inducing else None
    function = PrivateFunction(
        Matern(2.0, nu=2.5), 0.3, y_bounds=(0.0, 1.0), epsilon=8.0, delta=0.01, inducing=nodes
    )
    return trade_off(function, INPUTS, points=POINTS, draws=DRAWS, noise_scale=noise_scale)


@pytest.mark.parametrize("inducing", [False, True], ids=["50 points", "inducing"])
def test_the_best_attack_stays_within_the_promise(inducing):
    """Fails by chance with probability at most 1e-6."""
    result = attacked(1.0, inducing=inducing)
    assert result.holds, result.describe()
    assert result.is_tight, result.describe()


def test_the_attack_finds_noise_that_is_a_fifth_too_small():
    """At 0.8 of the noise the attack's mu is 1.25 times the promise, ten standard errors above it."""
    assert not attacked(0.8).holds


def test_answers_one_by_one_across_restarts_are_one_joint_draw(tmp_path):
    """Whitened by the joint covariance they are independent standard normal numbers.

    Fails by chance with probability below 1e-5.
    """
    kernel, points = 4.0 * RBF(2.0), np.array([[5.0], [0.0], [5.5], [9.0], [5.2], [20.0]])
    y = np.full(25, 0.5)  # the middle of the bounds: the function is the noise alone
    answers = []
    for seed in range(300):
        path = tmp_path / f"{seed}.private-state"
        options = {"y_bounds": (0.0, 1.0), "epsilon": 1.0, "delta": 1e-5, "random_state": seed}
        made = PrivateFunction(kernel, 0.3, **options).fit(INPUTS, y, state=path)
        order = np.random.default_rng(seed).permutation(6)
        answer = np.empty(6)
        for part in np.split(order, [1, 2, 4]):
            answer[part] = made.release(points[part])
            made = PrivateFunction.load_state(path)
        path.unlink()
        answers.append((answer - 0.5) / made.noise_std_)
    covariance = kernel(points) / 4.0 + 1e-8 * np.eye(6)
    white = solve_triangular(np.linalg.cholesky(covariance), np.array(answers).T, lower=True)
    for row in white:
        assert 1e-6 < chi2.cdf(np.sum(row**2), 300) < 1 - 1e-6
    gram = white @ white.T / np.sqrt(300)
    off = gram[np.triu_indices(6, 1)]
    assert np.abs(off).max() < norm.isf(1e-6)
    assert np.abs(white.sum(axis=1)).max() / np.sqrt(300) < norm.isf(1e-6)


def test_thousands_of_points_one_by_one_across_restarts_are_one_function(tmp_path):
    """2,100 points, protected by the production sampler, restarted on the way."""
    path = tmp_path / "long.private-state"
    rng = np.random.default_rng(1)
    y = rng.uniform(0, 1, 25)
    points = rng.uniform(-1, 11, (2100, 1))
    kernel = Matern(0.5, nu=1.5)
    made = PrivateFunction(kernel, 0.3, y_bounds=(0.0, 1.0), epsilon=1.0, delta=1e-5)
    made.fit(INPUTS, y, state=path)
    answers = []
    for i, point in enumerate(points):
        if i % 700 == 350:
            made = PrivateFunction.load_state(path)
        answers.append(made.release(point[None])[0])
    again = PrivateFunction.load_state(path)
    assert np.array_equal(again.release(points), answers)
    draws = again._contents.draws
    assert np.all(draws.squares <= draws.limit)
    # In law: minus the posterior mean and whitened, 2,100 independent standard normal numbers.
    prior = kernel(INPUTS)
    mean = kernel(points, INPUTS) @ np.linalg.solve(prior + 0.3 * np.eye(25), y - 0.5)
    noise = (np.array(answers) - 0.5 - mean) / made.noise_std_
    joint = np.linalg.cholesky(kernel(points) + 1e-8 * np.eye(2100))
    white = solve_triangular(joint, noise, lower=True)
    assert 1e-6 < chi2.cdf(np.sum(white**2), 2100) < 1 - 1e-6
    assert abs(white[1:] @ white[:-1]) / np.sqrt(2099) < norm.isf(1e-6)
