"""The evidence of changes, by updates of rank one, against the covariance written out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF

from privgp.gp.changes import Change, values
from privgp.gp.inference.evidence import Bending, condition, fit
from privgp.gp.measurement import Functionals, Measurement
from privgp.gp.priors import Hyperparameters
from privgp.plan.bins.bins import Bins
from privgp.plan.bins.counts import bin_functionals
from privgp.plan.build import Budget, Question, make_part
from privgp.vault.measure import measure

KERNEL, NOISE = 0.5 * RBF(0.3), 0.1
CHANGES = (
    Change("bump", np.array([0.3]), np.array([[8.0]]), 0.9),
    Change("step", np.array([0.6]), np.array([[60.0]]), 0.9),
    Change("edge", np.array([0.0]), np.array([[9.0]]), 0.9),
    Change("bump", np.array([0.31]), np.array([[7.0]]), 0.9),  # nearly the first
)
Logs = Callable[[Functionals, Measurement], np.ndarray]
SETS = [(), *((i,) for i in range(4)), *combinations(range(4), 2)]


def of_rows(mechanism: str) -> tuple[Functionals, Measurement]:
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(40, 1))
    y = np.sin(6 * X[:, 0]) + 1.5 * (X[:, 0] > 0.6) + 0.3 * rng.standard_normal(40)
    question = Question((-3.0, 3.0), KERNEL, NOISE, mechanism=mechanism)
    plan = make_part(X, question, Budget(3.0, 1e-3))
    return plan.functionals, measure(y, plan.y_bounds, plan.strategy, plan.noise, rng)


def of_bins() -> tuple[Functionals, Measurement]:
    rng = np.random.default_rng(2)
    B = rng.uniform(size=(4, 5))
    bins = Bins(np.zeros(1), np.ones(1), (5,), 12, B / np.linalg.norm(B, axis=0))
    counts = np.array([20.0, 5.0, 0.5, 7.0, 2.0])
    found = bin_functionals(bins, counts, np.eye(5), Hyperparameters(KERNEL, NOISE))
    return found, Measurement(rng.standard_normal(4), 0.7, 9.0, 1.5)


CASES = {"gaussian": lambda: of_rows("gaussian"), "laplace": lambda: of_rows("laplace"),
         "bins": of_bins}  # fmt: skip


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[Functionals, Measurement]:
    return CASES[request.param]()


def bent(f: Functionals, t: Measurement) -> np.ndarray:
    alone = Bending.of(f, t, values(CHANGES, f.nodes))
    assert alone.sets == 1 + len(CHANGES)
    bending = replace(alone, pairs=np.array(SETS[alone.sets :]))
    assert bending.sets == len(SETS)
    numbers, energy = bending.log_evidence(KERNEL, NOISE, f.nodes)
    for some, all_ in zip(
        alone.log_evidence(KERNEL, NOISE, f.nodes), (numbers, energy), strict=True
    ):
        assert_allclose(some, all_[: alone.sets], rtol=1e-12)  # pairs change nothing else
    return np.asarray(numbers + energy)


def written_out(f: Functionals, t: Measurement) -> np.ndarray:
    each = (values([CHANGES[i] for i in chosen], f.nodes) for chosen in SETS)
    fits = [fit(f, t, KERNEL, NOISE, f.nodes, changes=g if g.size else None) for g in each]
    return np.array([one.log_evidence for one in fits])


def test_the_values_evidence_is_exact(case):
    f, t = case
    silent = replace(t, energy=None)
    assert_allclose(bent(f, silent), written_out(f, silent), rtol=1e-9)


def moments(log_evidence: Logs, f: Functionals, t: Measurement) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the energy's normal density, from the parabola that its logarithm is."""
    assert t.energy is not None
    step = 5.0
    low, here, high = (
        log_evidence(f, replace(t, energy=t.energy + move)) for move in (-step, 0.0, step)
    )
    variance = step**2 / (2.0 * here - low - high)
    return t.energy + variance * (high - low) / (2.0 * step), variance


def test_the_energys_expectation_is_exact_and_its_variance_near(case):
    """The variance leaves out how uncertain heights and the rest of the function go together."""
    f, t = case
    mean, variance = moments(bent, f, t)
    exact_mean, exact_variance = moments(written_out, f, t)
    assert_allclose(mean, exact_mean, rtol=1e-6)
    assert_allclose(variance[0], exact_variance[0], rtol=1e-6)
    ratio = variance / exact_variance
    assert np.all((ratio > 0.75) & (ratio < 1.05))


def test_a_model_is_conditioned_with_the_covariance_that_weighed_it(case):
    f, t = case
    silent = replace(t, energy=None, is_laplace=False)
    for chosen, log in zip(SETS, bent(f, silent), strict=True):
        model = Hyperparameters(KERNEL, NOISE, changes=tuple(CHANGES[i] for i in chosen))
        given = condition(f, silent, model)
        found = -0.5 * t.values @ given.solved - np.log(np.diag(given.factor)).sum()
        assert_allclose(found, log, rtol=1e-9)
        assert_allclose(given.log_evidence, log, rtol=1e-9)
        assert given.normal == given.log_evidence
        assert_allclose(
            condition(f, replace(silent, is_laplace=True), model).normal, log, rtol=1e-9
        )


@pytest.mark.parametrize("which", range(3))
def test_a_true_change_is_found(which):
    f, t = of_rows("gaussian")
    clear = replace(
        t, values=f.weights @ (2.0 * CHANGES[which](f.nodes)), noise_std=0.1, energy=None
    )
    logs = bent(f, clear)[:4]
    assert 1 + which == int(np.argmax(logs))
