"""The law of a whole function's answers that are drawn one by one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import cholesky, solve_triangular
from scipy.stats import chi2, norm
from sklearn.gaussian_process.kernels import RBF, Matern

from privgp import PrivateFunction
from privgp.gp.kernels.evaluate import evaluate

pytestmark = pytest.mark.statistical

INPUTS = np.linspace(0, 10, 25)[:, None]


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


def test_five_thousand_points_one_by_one_across_restarts_are_one_function(memory_disk):
    """Drawn by the production sampler, written before every answer, restarted five times.

    Fails by chance with probability below 1e-5.
    """
    path = memory_disk / "long.private-state"
    rng = np.random.default_rng(1)
    y = rng.uniform(0, 1, 25)
    points = rng.uniform(-1, 11, (5000, 1))
    kernel = Matern(0.5, nu=1.5)
    made = PrivateFunction(kernel, 0.3, y_bounds=(0.0, 1.0), epsilon=1.0, delta=1e-5)
    made.fit(INPUTS, y, state=path)
    answers = np.empty(5000)
    for i, point in enumerate(points):
        if i % 833 == 832 and i < 4900:
            made = PrivateFunction.load_state(path)
        answers[i] = made.release(point[None])[0]
    again = PrivateFunction.load_state(path)
    assert np.array_equal(again.release(points), answers)
    assert np.array_equal(made.release(points[::-1]), answers[::-1])
    draws = again._contents.draws
    assert np.all(draws.squares <= draws.limit)
    # In law: minus the posterior mean and whitened by the joint covariance, they are 5,000
    # independent standard normal numbers.
    prior = kernel(INPUTS)
    mean = kernel(points, INPUTS) @ np.linalg.solve(prior + 0.3 * np.eye(25), y - 0.5)
    noise = (answers - 0.5 - mean) / made.noise_std_
    joint = evaluate(kernel, points)
    joint.flat[::5001] += 1e-8
    white = solve_triangular(cholesky(joint, lower=True, overwrite_a=True), noise, lower=True)
    for part in (white, white[:833], white[-833:]):
        assert 1e-6 < chi2.cdf(np.sum(part**2), len(part)) < 1 - 1e-6
    assert abs(white[1:] @ white[:-1]) / np.sqrt(4999) < norm.isf(1e-6)
    assert abs(white.sum()) / np.sqrt(5000) < norm.isf(1e-6)


@pytest.fixture
def memory_disk(tmp_path):
    """Where waiting for the disk does not count: the test above writes 5,000 times."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)
