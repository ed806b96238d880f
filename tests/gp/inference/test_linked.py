"""The function behind a link, beside brute-force integration over it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from privgp.gp.inference import linked
from privgp.gp.inference.evidence import condition
from privgp.gp.inference.linked import Outcomes, learn_outcomes, outcome_posterior, settle
from privgp.gp.links import LOG, LOGIT, PROBIT, Link
from privgp.gp.measurement import Functionals, Measurement
from privgp.gp.priors import Hyperparameters, prior_about

LEVEL = Hyperparameters(ConstantKernel(1.5), 1e-3)


def functionals(nodes: np.ndarray, groups: np.ndarray, rows: np.ndarray) -> Functionals:
    """Sums over groups of ``rows`` outcomes at every node; groups: (sums, nodes)."""
    A = groups * rows
    gram = A @ groups.T
    return Functionals(
        nodes, A, gram, np.zeros_like(gram), float(rows.sum()), np.diag(rows), A.T, gram
    )


def one_sum(rows: float, total: float, noise: float, link: Link, centre: float) -> Outcomes:
    f = functionals(np.zeros((1, 1)), np.ones((1, 1)), np.array([rows]))
    return Outcomes(f, Measurement(np.array([total]), noise, None, 0.0), link, centre)


def integrated(outcomes: Outcomes, variance: float) -> tuple[float, float, float]:
    """Mean and std of f, and log evidence, of one sum of normal scatter, on a fine grid."""
    f = np.linspace(-12.0, 12.0, 40_001)
    link, measurement = outcomes.link, outcomes.measurement
    rows = outcomes.functionals.weights[0, 0]
    spread = rows * link.variance(f) + measurement.noise_std**2
    off = measurement.values[0] - rows * (link.mean(f) - outcomes.centre)
    logs = -0.5 * off**2 / spread - 0.5 * np.log(spread)
    logs += -0.5 * f**2 / variance - 0.5 * np.log(2.0 * np.pi * variance)
    weights = np.exp(logs - logs.max())
    total = weights.sum() * (f[1] - f[0])
    mean = float(np.average(f, weights=weights))
    std = float(np.sqrt(np.average((f - mean) ** 2, weights=weights)))
    return mean, std, float(logs.max() + np.log(total))


@pytest.mark.parametrize(
    ("link", "share"),
    [*((LOGIT, share) for share in (0.02, 0.1, 0.5, 0.8, 0.99)), (PROBIT, 0.1), (PROBIT, 0.5)],
    ids=lambda value: getattr(value, "name", value),
)
def test_one_sum_of_labels_is_read_as_integration_reads_it(link, share):
    outcomes = one_sum(300.0, 300.0 * (share - 0.5), 3.0, link, 0.5)
    mean, std, evidence = integrated(outcomes, 1.5)
    found = settle(outcomes, LEVEL)
    assert abs(found.mean[0] - mean) < 0.1 * std
    assert np.sqrt(found.variance[0]) == pytest.approx(std, rel=0.08)
    other = integrated(outcomes, 6.0)[2] - evidence
    wide = settle(outcomes, Hyperparameters(ConstantKernel(6.0), 1e-3))
    assert wide.log_evidence - found.log_evidence == pytest.approx(other, abs=0.06)


def test_one_sum_of_counts_is_read_as_integration_reads_it():
    outcomes = one_sum(50.0, 50.0 * (3.0 - 4.0), 5.0, LOG, 4.0)
    mean, std, _ = integrated(outcomes, 1.5)
    found = settle(outcomes, LEVEL)
    assert found.mean[0] == pytest.approx(mean, abs=0.1 * std)
    assert np.sqrt(found.variance[0]) == pytest.approx(std, rel=0.1)


def identity(f: np.ndarray) -> np.ndarray:
    return np.asarray(f, dtype=float)


LINEAR = Link("linear", identity, np.ones_like, lambda f: np.full_like(f, 0.7), identity)


def some_outcomes(link: Link, centre: float, is_laplace: bool = False) -> Outcomes:
    rng = np.random.default_rng(0)
    nodes = np.linspace(0, 1, 8)[:, None]
    f = functionals(nodes, np.eye(4)[:, [0, 0, 1, 1, 2, 2, 3, 3]], np.full(8, 20.0))
    values = 40.0 * rng.uniform(-0.4, 0.4, size=4)
    return Outcomes(f, Measurement(values, 2.0, None, 0.0, None, is_laplace), link, centre)


@pytest.mark.parametrize("is_laplace", [False, True])
def test_a_linear_link_is_the_gaussian_model(is_laplace):
    model = Hyperparameters(ConstantKernel(0.8) * RBF(0.4), 0.7)
    outcomes = some_outcomes(LINEAR, 0.0, is_laplace)
    given = condition(outcomes.functionals, outcomes.measurement, model)
    found = settle(outcomes, model)
    assert_allclose(found.given.solved, given.solved)
    assert found.log_evidence == pytest.approx(given.log_evidence)


def test_the_scatter_is_exact_where_every_input_is_a_node():
    rng = np.random.default_rng(1)
    B, rows = rng.standard_normal((3, 5)), rng.integers(1, 9, size=5).astype(float)
    outcomes = Outcomes(
        functionals(rng.uniform(size=(5, 1)), B, rows),
        Measurement(np.zeros(3), 1.0, None, 0.0),
        LOGIT,
        0.5,
    )
    mean = rng.standard_normal(5)
    line, numbers = outcomes.linearise(mean, np.zeros(5))
    p = LOGIT.mean(mean)
    assert_allclose(line.fixed_gram, (B * rows * p * (1 - p)) @ B.T)
    assert_allclose(line.weights, B * rows * p * (1 - p))
    assert_allclose(numbers.values, -(B * rows) @ (p - 0.5) + line.weights @ mean)


def test_sums_that_no_probability_gives_still_have_a_finite_answer():
    """Noise may carry a sum far beyond all labels, and the budget is spent by then."""
    for total, laplace in product((-1e4, 1e4), (False, True)):
        outcomes = one_sum(10.0, total, 3.0, LOGIT, 0.5)
        numbers = replace(outcomes.measurement, is_laplace=laplace)
        found = settle(replace(outcomes, measurement=numbers), LEVEL)
        assert np.isfinite(found.mean).all()
        assert np.sign(found.mean[0]) == np.sign(total)


def test_learned_models_have_weights_and_give_the_same_posterior_twice():
    outcomes = some_outcomes(LOGIT, 0.5, is_laplace=True)
    start = Hyperparameters(ConstantKernel(1.0) * RBF(0.4) + ConstantKernel(4.0, "fixed"), 0.2)
    models = learn_outcomes(outcomes, (prior_about(start, noise_free=False),))
    assert sum(model.weight for model in models) == pytest.approx(1.0, abs=1e-9)
    X = np.linspace(-0.2, 1.2, 7)[:, None]
    first, second = (outcome_posterior(outcomes, models).mixture(X) for _ in range(2))
    assert_array_equal(first.means, second.means)
    assert np.all(first.variances > 0.0)


def test_models_of_next_to_no_weight_are_left_out_and_the_others_sum_to_one(monkeypatch):
    monkeypatch.setattr(linked, "LEAST", 0.01)
    outcomes = some_outcomes(LOGIT, 0.5)
    start = Hyperparameters(ConstantKernel(1.0) * RBF(0.4) + ConstantKernel(4.0, "fixed"), 0.2)
    models = learn_outcomes(outcomes, (prior_about(start, noise_free=False),))
    assert min(model.weight for model in models) > 0.01
    assert sum(model.weight for model in models) == pytest.approx(1.0, abs=1e-12)


def test_a_model_that_cannot_be_conditioned_is_left_out(monkeypatch):
    outcomes = some_outcomes(LOGIT, 0.5)
    models = [Hyperparameters(ConstantKernel(v), 0.2, weight=0.5) for v in (1.0, 2.0)]
    sound = linked.condition

    def fails(functionals, measurement, model, smooth=None):
        if model is models[0]:
            raise np.linalg.LinAlgError
        return sound(functionals, measurement, model, smooth)

    monkeypatch.setattr(linked, "condition", fails)
    (left,) = outcome_posterior(outcomes, models).components
    assert left.model == replace(models[1], weight=1.0)
    with pytest.raises(np.linalg.LinAlgError):
        outcome_posterior(outcomes, models[:1])
