"""The marginal likelihood of a measurement, its gradient, and what is learned from it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from privgp.gp.inference.evidence import fit
from privgp.gp.inference.learning import learn
from privgp.gp.kernels.evaluate import evaluate
from privgp.gp.measurement import Measurement
from privgp.gp.smoothers import choose_nodes, nystrom
from privgp.plan.build import Budget, Question, functionals, make_part
from privgp.vault.measure import measure
from tests.budgets import SetNoise

KERNEL = 0.5 * Matern([1.0, 2.0], nu=2.5) + ConstantKernel(0.3, "fixed")


def measured(groups=None, rows=60, seed=0, budget=None):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 5, size=(rows, 2))
    X[rows // 2 :] = X[: rows - rows // 2]
    y = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(rows)
    question = Question((-2.0, 2.0), KERNEL, 0.2)
    plan = make_part(X, question, budget or Budget(5.0, 1e-2), groups)
    return X, y, plan, measure(y, plan.y_bounds, plan.strategy, plan.noise, rng)


def test_the_evidence_of_the_values_is_their_gaussian_density():
    X, _, plan, t = measured()
    g, B = plan.strategy.row_weights, plan.strategy.matrix[:, plan.strategy.index]
    covariance = (B * g) @ (evaluate(KERNEL, X) + 0.2 * np.eye(len(X))) @ (B * g).T
    covariance += t.noise_std**2 * np.eye(len(B))
    silent = Measurement(t.values, t.noise_std, None, 0.0)
    ours = fit(plan.functionals, silent, KERNEL, 0.2, plan.functionals.nodes).log_evidence
    density = multivariate_normal(np.zeros(len(B)), covariance).logpdf(t.values)
    assert_allclose(ours - 0.5 * len(B) * np.log(2 * np.pi), density, rtol=1e-9)


@pytest.mark.parametrize("groups", [None, np.repeat(np.arange(15), 4)])
def test_the_energy_has_the_moments_of_y_given_the_values(groups):
    X, _, plan, t = measured(groups)
    s = plan.strategy
    B = s.matrix[:, s.index] * s.row_weights
    prior = evaluate(KERNEL, X) + 0.2 * np.eye(len(X))
    S = B @ prior @ B.T + t.noise_std**2 * np.eye(len(B))
    gain = np.linalg.solve(S, B @ prior).T
    mean, V = gain @ t.values, prior - gain @ B @ prior
    e = s.energy_shares
    expected = e @ (mean**2 + np.diag(V))
    spread = 2 * np.trace((e[:, None] * V) @ (e[:, None] * V)) + 4 * (e * mean) @ V @ (e * mean)
    nodes = plan.functionals.nodes
    silent = fit(
        plan.functionals, Measurement(t.values, t.noise_std, None, 0.0), KERNEL, 0.2, nodes
    )

    def log_density(energy: float) -> float:
        heard = Measurement(t.values, t.noise_std, energy, t.energy_noise_std)
        whole = fit(plan.functionals, heard, KERNEL, 0.2, nodes, energy_variance=1.0)
        return whole.log_evidence - silent.log_evidence

    # With unit variance the density is a parabola in the energy whose top is the expected energy.
    slope = log_density(expected + 1.0) - log_density(expected - 1.0)
    assert_allclose(slope, 0.0, atol=1e-6 * expected)
    approximate = fit(plan.functionals, t, KERNEL, 0.2, nodes).energy_variance
    approximate -= t.energy_noise_std**2
    assert spread * 0.8 < approximate < spread * 2.0


def test_the_gradient_is_the_slope():
    _, _, plan, t = measured()
    nodes, step = plan.functionals.nodes, 1e-5
    logs = np.append(KERNEL.theta, np.log(0.2))
    spread = fit(plan.functionals, t, KERNEL, 0.2, nodes).energy_variance

    def at(values: np.ndarray, gradient: bool = False):
        kernel = KERNEL.clone_with_theta(values[:-1])
        noise = float(np.exp(values[-1]))
        return fit(plan.functionals, t, kernel, noise, nodes, gradient=gradient,
                   energy_variance=spread)  # fmt: skip

    numeric = [
        (at(logs + step * axis).log_evidence - at(logs - step * axis).log_evidence) / (2 * step)
        for axis in np.eye(len(logs))
    ]
    assert_allclose(at(logs, gradient=True).gradient, numeric, rtol=1e-4, atol=1e-5)


def test_learning_finds_the_truth_when_there_is_hardly_any_noise():
    rng = np.random.default_rng(5)
    X = np.sort(rng.uniform(0, 10, size=(90, 1)), axis=0)
    truth = 0.3 * RBF(1.5)
    y = np.linalg.cholesky(evaluate(truth, X) + 1e-10 * np.eye(90)) @ rng.standard_normal(90)
    y += 0.1 * rng.standard_normal(90)
    question = Question((-3.0, 3.0), 1.0 * RBF(4.0), 0.2, mechanism="gaussian")
    plan = make_part(X, question, SetNoise(1.0, 1e-6, 1e-4))
    t = measure(y, plan.y_bounds, plan.strategy, plan.noise, rng)
    models = learn(plan.functionals, t, plan.priors)
    weights = np.array([m.weight for m in models])
    noise = np.array([m.noise_variance for m in models])
    assert_allclose(weights.sum(), 1.0)
    assert 0.05 < np.sqrt(weights @ noise) < 0.2
    scales = np.array([m.kernel.k2.length_scale for m in models])
    assert 1.0 < weights @ scales < 2.3
    assert np.all(np.diff(weights) <= 1e-12)


def test_many_inputs_are_carried_by_few_nodes():
    _, _, plan, t = measured(rows=120)
    coarse = functionals(
        plan.strategy, nystrom(KERNEL, plan.inputs, choose_nodes(KERNEL, plan.inputs, 45))
    )
    assert len(coarse.nodes) == 45 < len(plan.functionals.nodes)
    few = fit(coarse, t, KERNEL, 0.2, coarse.nodes).log_evidence
    all_ = fit(plan.functionals, t, KERNEL, 0.2, plan.functionals.nodes).log_evidence
    assert abs(few - all_) < 0.2
