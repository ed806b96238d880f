"""The average over hyperparameters and changes, against its sum over a dense grid of them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from privgp import PrivateGPRegressor
from privgp.gp.changes import Cell, Change
from privgp.gp.inference import learning
from privgp.gp.inference.evidence import condition, fit
from privgp.gp.inference.learning import learn, thin_weights
from privgp.gp.inference.posterior import posterior
from privgp.gp.measurement import Functionals, Measurement
from privgp.gp.priors import Hyperparameters, Prior, prior_about

ROWS = np.linspace(0.0, 1.0, 12)[:, None]
AT = np.array([[0.02], [0.3], [0.52], [0.9], [1.3]])
CHANGES = [
    Change("step", np.array([0.55]), np.array([[40.0]]), 1.0),
    Change("bump", np.array([0.2]), np.array([[10.0]]), 1.0),
    Change("edge", np.array([0.0]), np.array([[8.0]]), 1.0),
]
CELLS = [Cell(change, apart=np.zeros(1)) for change in CHANGES]  # nothing else lies near them
SHARES = np.array([0.5, 0.3, 0.2])
SETS = [(), *((i,) for i in range(3)), *combinations(range(3), 2)]
PRIOR = prior_about(Hyperparameters(ConstantKernel(1.0, "fixed") * RBF(0.4), 0.1), noise_free=True)


def problem(seed: int, noise_std: float, energy: bool = False) -> tuple[Functionals, Measurement]:
    """Sums over pairs of twelve rows of a wave with a step."""
    rng = np.random.default_rng(seed)
    A = np.kron(np.eye(6), np.ones((1, 2)))
    zero = np.zeros((6, 6))
    shares = np.full(12, 1.0 / 12)
    f = Functionals(
        ROWS, A, A @ A.T, zero, 1.0, np.diag(shares), shares[:, None] * A.T, (A * shares) @ A.T
    )
    y = np.sin(7 * ROWS[:, 0]) + 1.5 * (ROWS[:, 0] > 0.55) + 0.3 * rng.standard_normal(12)
    y -= y.mean()
    noisy = A @ y + noise_std * rng.standard_normal(6)
    return f, Measurement(noisy, noise_std, float(shares @ y**2) if energy else None, 0.3)


def enumerated(f: Functionals, t: Measurement, prior: Prior = PRIOR) -> list[Hyperparameters]:
    """Every set of changes at every point of a grid, with its weight."""
    pairs = np.array([2.0 * SHARES[i] * SHARES[j] for i, j in combinations(range(3), 2)])
    numbers = learning.ALONG
    shares = np.concatenate([[numbers[0]], numbers[1] * SHARES, numbers[2] * pairs])
    models, logs = [], []
    for z in product(np.linspace(-4, 4, 19), repeat=prior.size):
        model = prior.at(np.array(z))
        for chosen, share in zip(SETS, shares, strict=True):
            bends = tuple(CHANGES[i] for i in chosen)
            g = np.stack([c(ROWS) for c in bends], axis=1) if bends else None
            log = fit(f, t, model.kernel, model.noise_variance, ROWS, changes=g).log_evidence
            models.append(replace(model, changes=bends))
            logs.append(log + np.log(share) - 0.5 * np.square(z).sum())
    weights = np.exp(np.array(logs) - logsumexp(logs))
    kept = np.flatnonzero(weights > 1e-9)
    total = weights[kept].sum()
    return [replace(models[i], weight=float(weights[i] / total)) for i in kept]


def summary(f: Functionals, t: Measurement, models: list[Hyperparameters]) -> dict[str, np.ndarray]:
    mean, variance = posterior(f, t, models, 0.0).mean_and_variance(AT)
    weights = np.array([model.weight for model in models])
    logs = np.array([np.log(model.noise_variance) for model in models])
    number = [weights @ [len(model.changes) == n for model in models] for n in range(3)]
    return {
        "mean": mean,
        "std": np.sqrt(variance),
        "number": np.array(number),
        "log noise": np.array([weights @ logs]),
    }


@cache
def exact(seed: int, noise_std: float) -> tuple[Functionals, Measurement, dict[str, np.ndarray]]:
    f, t = problem(seed, noise_std)
    return f, t, summary(f, t, enumerated(f, t))


@pytest.fixture
def few_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "list_changes", lambda X, std: (CELLS, SHARES))


def differences(ours: dict[str, np.ndarray], exact: dict[str, np.ndarray]) -> dict[str, float]:
    """Of means in stds of f, of stds as shares, of probabilities, of log noise in the prior's stds."""
    return {
        "mean": float(np.max(np.abs(ours["mean"] - exact["mean"]) / exact["std"])),
        "std": float(np.max(np.abs(ours["std"] / exact["std"] - 1.0))),
        "number": float(np.max(np.abs(ours["number"] - exact["number"]))),
        "noise": float(np.abs(ours["log noise"] - exact["log noise"])[0] / PRIOR.root[1, 1]),
    }


@pytest.mark.usefixtures("few_changes")
@pytest.mark.parametrize("case", [(0, 0.7), (2, 3.0)], ids=["clear", "noisy"])
def test_the_average_is_near_the_sum_over_a_grid(case):
    f, t, grid = exact(*case)
    models = learn(f, t, [PRIOR])
    assert_allclose(sum(model.weight for model in models), 1.0, rtol=1e-12)
    assert len(models) <= 1.5 * learning.MODELS
    off = differences(summary(f, t, list(models)), grid)
    assert off["mean"] < 0.15
    assert off["std"] < 0.15
    assert off["number"] < 0.15


@pytest.mark.usefixtures("few_changes")
def test_with_many_draws_it_is_the_sum_over_a_grid(monkeypatch):
    monkeypatch.setattr(learning, "DRAWS", 200)
    monkeypatch.setattr(learning, "FIRST_MODELS", 10**6)
    monkeypatch.setattr(learning, "MODELS", 10**6)
    f, t, grid = exact(0, 0.7)
    off = differences(summary(f, t, list(learn(f, t, [PRIOR]))), grid)
    assert off["mean"] < 0.02
    assert off["std"] < 0.02
    assert off["number"] < 0.01
    assert off["noise"] < 0.06


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("noise_std", [0.05, 1.0, 20.0])
def test_enough_draws_carry_the_weight(seed, noise_std, monkeypatch):
    seen = []
    weighted = learning._weigh_draws

    def watched(*given):
        seen.append(weighted(*given))
        return seen[-1]

    monkeypatch.setattr(learning, "_weigh_draws", watched)
    f, t = problem(seed, noise_std, energy=True)
    learn(f, t, [PRIOR])
    (drawn,) = seen
    totals = logsumexp(drawn.logs, axis=1)
    shares = np.exp(totals - logsumexp(totals))
    assert 1.0 / np.square(shares).sum() >= learning.ENOUGH


@pytest.mark.parametrize("seed", range(3))
def test_a_border_between_the_listed_ones_is_found(seed, monkeypatch):
    """Little noise on a map: no listed border fits, so the best one is halved until one does."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.uniform(0.0, 10.0, (2000, 2)))
    places = np.unique(X, axis=0)

    def border(at: np.ndarray) -> np.ndarray:
        return np.where(at[:, 0] + 0.5 * at[:, 1] < 7.2, 105.0, 150.0)

    y = border(X) + rng.normal(0.0, 6.0, len(X))
    asked = {"y_bounds": (60.0, 200.0), "epsilon": 10.0, "residuals": "never", "random_state": seed}

    def error() -> float:
        mean = PrivateGPRegressor(**asked).fit(X, y).predict(places)
        return float(np.sqrt(np.mean((mean - border(places)) ** 2)))

    found = error()
    monkeypatch.setattr(learning, "HALVINGS", 0)
    assert found < 0.7 * error()


def test_hyperparameters_that_are_given_are_kept():
    f, t = problem(0, 1.0)
    fixed = Hyperparameters(ConstantKernel(1.0, "fixed") * RBF(0.4, "fixed"), 0.1)
    models = learn(f, t, [prior_about(fixed, noise_free=False)])
    assert {model.noise_variance for model in models} == {0.1}
    assert all(model.kernel == fixed.kernel for model in models)
    assert_allclose(sum(model.weight for model in models), 1.0, rtol=1e-12)


@given(
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40),
    st.integers(1, 80),
    st.floats(1.0, 12.0),
)
def test_thinned_weights_sum_to_one_and_heavy_ones_stay(raw, count, power):
    weights = np.array(raw) ** power + 1e-12
    weights /= weights.sum()
    kept = dict(thin_weights(weights, count))
    assert len(kept) <= count + 1
    assert_allclose(sum(kept.values()), 1.0, rtol=1e-9)
    for i in np.flatnonzero(weights >= 1.0 / count):
        assert kept[int(i)] == weights[i]


@pytest.mark.parametrize("spread", [0.0, 1.0, 3.0])
def test_a_thinned_mixture_has_nearly_the_mean_and_variance_of_the_whole(spread):
    """Each of 64 carries a 64th at most: an error of an eighth of a std is one standard error."""
    off = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        weights = np.exp(spread * rng.standard_normal(3000))
        weights /= weights.sum()
        x = rng.standard_normal(3000)
        mean, std = weights @ x, np.sqrt(weights @ x**2 - (weights @ x) ** 2)
        places, shares = map(np.array, zip(*thin_weights(weights, 64), strict=True))
        thin = shares @ x[places]
        thin_std = np.sqrt(shares @ x[places] ** 2 - thin**2)
        off.append([(thin - mean) / std, thin_std / std - 1.0])
    assert np.all(np.abs(np.mean(off, axis=0)) < 0.05)
    assert np.all(np.sqrt(np.mean(np.square(off), axis=0)) < 0.15)


@pytest.mark.parametrize("share", [2, 1])
def test_a_model_that_cannot_be_conditioned_is_left_out(share, monkeypatch):
    """Every second one fails, then all: something is still released, as the budget is spent."""
    calls = []

    def failing(*arguments):
        calls.append(arguments)
        if len(calls) % share == 0:
            raise np.linalg.LinAlgError
        return condition(*arguments)

    monkeypatch.setattr(learning, "condition", failing)
    models = learn(*problem(0, 0.5), (PRIOR,))
    assert sum(model.weight for model in models) == pytest.approx(1.0)
    assert (len(models) == 1) == (share == 1)
