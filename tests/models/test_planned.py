"""fit(X, y, plan=plan): what was planned is measured, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from privgp import PrivateGPRegressor
from privgp.privacy.noise import LaplaceNoise
from privgp.storage.codec import fingerprint
from tests.plans import with_part

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(60, 2))
Y = np.sin(4 * X[:, 0]) + 0.1 * RNG.standard_normal(60)
PEOPLE = np.repeat(np.arange(20), 3)
POINTS = [[0.2, 0.3], [0.7, 0.1]]

KINDS: dict[str, dict[str, Any]] = {
    "outputs": {},
    "gaussian": {"mechanism": "gaussian"},
    "fixed": {"hyperparameters": "fixed"},
    "unbiased": {"reconstruct": "unbiased", "targets": POINTS, "hyperparameters": "fixed"},
    "two stages": {"residuals": "always"},
    "inducing": {"inducing": 12},
    "records": {"protect": "records", "x_bounds": ((0, 1), (0, 1))},
}


def regressor(**parameters: Any) -> PrivateGPRegressor:
    given = {"y_bounds": (-2, 2), "kernel": RBF(0.3), "random_state": 3}
    return PrivateGPRegressor(**{**given, **parameters})


@pytest.fixture
def nothing_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(*_: Any) -> None:
        raise AssertionError("noise was drawn")

    monkeypatch.setattr("privgp.vault.measure.add_noise", drawn)


@pytest.mark.parametrize("kind", KINDS)
def test_a_planned_fit_releases_the_same(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = regressor(**KINDS[kind]).fit(X, Y)
    model = regressor(**KINDS[kind])
    plan = model.plan(X)

    def again(*_: Any, **__: Any) -> None:
        raise AssertionError("planned again")

    monkeypatch.setattr("privgp.models.rows.fit.plan_for_rows", again)
    model.fit(X, Y, plan=plan)
    assert model.plan_ is plan
    assert model.guarantee_ == alone.guarantee_
    assert model.measurements_[0].values.tolist() == alone.measurements_[0].values.tolist()
    at = POINTS if kind == "unbiased" else X[:5]
    assert model.predict(at).tolist() == alone.predict(at).tolist()


def test_a_planned_fit_for_people_releases_the_same() -> None:
    model, alone = (regressor(hyperparameters="fixed") for _ in range(2))
    planned = model.fit(X, Y, groups=PEOPLE, plan=model.plan(X, groups=PEOPLE)).predict(X[:5])
    assert planned.tolist() == alone.fit(X, Y, groups=PEOPLE).predict(X[:5]).tolist()


def test_a_plan_may_be_measured_by_an_equal_model_and_after_a_fit() -> None:
    model = regressor(y_bounds=[-2.0, 2.0], epsilon=1).fit(X, Y)
    other = regressor(y_bounds=(-2, 2), epsilon=1.0, random_state=8)
    assert other.fit(X, Y, plan=model.plan_).plan_ is model.plan_


CHANGED: dict[str, dict[str, Any]] = {
    "y_bounds": {"y_bounds": (-2, 2.5)},
    "epsilon": {"epsilon": 2.0},
    "delta": {"delta": 1e-5},
    "kernel": {"kernel": RBF(0.30001)},
    "another kernel": {"kernel": Matern(0.3)},
    "noise variance": {"noise_variance": 0.01},
    "targets": {"targets": [0.2, 0.7]},
    "mechanism": {"mechanism": "laplace"},
    "objective": {"objective": "trace"},
    "inducing": {"inducing": 12},
    "records": {"protect": "records", "x_bounds": (0, 1)},
}


@pytest.mark.usefixtures("nothing_drawn")
@pytest.mark.parametrize("changed", CHANGED)
def test_a_plan_for_other_parameters_is_refused(changed: str) -> None:
    plan = regressor().plan(X[:, :1])
    with pytest.raises(ValueError, match="plan was made for other"):
        regressor(**CHANGED[changed]).fit(X[:, :1], Y, plan=plan)


@pytest.mark.usefixtures("nothing_drawn")
@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_for_other_inputs_is_refused(kind: str) -> None:
    model = regressor(**KINDS[kind])
    others = X[:-1] if kind == "records" else X + 1e-9
    with pytest.raises(ValueError, match="plan was made for other"):
        model.fit(others, Y[: len(others)], plan=model.plan(X))


@pytest.mark.usefixtures("nothing_drawn")
def test_what_no_model_planned_is_refused() -> None:
    model = regressor()
    for plan in ("a plan", model, replace(model.plan(X), made_for=None)):
        with pytest.raises(ValueError, match="plan must be what"):
            model.fit(X, Y, plan=plan)


@pytest.mark.usefixtures("nothing_drawn")
def test_a_plan_for_other_people_is_refused() -> None:
    model = regressor()
    for planned, fitted in ((None, PEOPLE), (PEOPLE, None), (PEOPLE, PEOPLE[::-1] % 7)):
        with pytest.raises(ValueError, match="plan was made for other"):
            model.fit(X, Y, groups=fitted, plan=model.plan(X, groups=planned))


@pytest.mark.usefixtures("nothing_drawn")
def test_energies_cannot_be_learned_from_where_none_are_measured() -> None:
    plan = regressor(hyperparameters="fixed").plan(X)
    with pytest.raises(ValueError, match="plan was made for other"):
        regressor().fit(X, Y, plan=plan)


def test_fixed_hyperparameters_take_a_plan_for_learned_ones() -> None:
    plan = regressor().plan(X)
    assert regressor(hyperparameters="fixed").fit(X, Y, plan=plan).plan_ is plan


@pytest.mark.usefixtures("nothing_drawn")
@pytest.mark.parametrize("kind", KINDS)
def test_less_noise_than_the_budget_asks_for_is_refused(kind: str) -> None:
    model = regressor(**KINDS[kind])
    plan = model.plan(X)
    quiet = plan.noise
    if isinstance(quiet, LaplaceNoise):
        quiet = replace(quiet, scale=0.999 * quiet.scale)
    else:
        quiet = replace(quiet, std=0.999 * quiet.std)
    with pytest.raises(ValueError, match="plan holds other noise"):
        model.fit(X, Y, plan=replace(plan, noise=quiet))


@pytest.mark.usefixtures("nothing_drawn")
def test_a_changed_plan_is_refused() -> None:
    model = regressor()
    plan = model.plan(X)
    strategy = plan.strategy
    for changed in (
        with_part(plan, strategy=replace(strategy, row_weights=-strategy.row_weights)),
        with_part(plan, strategy=replace(strategy, matrix=0.5 * strategy.matrix)),
        replace(plan, epsilon=0.5),
        with_part(plan, y_bounds=(-1.0, 1.0)),
        replace(plan, fingerprint=""),
    ):
        with pytest.raises(ValueError, match="plan was made for other"):
            model.fit(X, Y, plan=changed)


def test_what_is_no_plan_is_refused() -> None:
    with pytest.raises(ValueError, match="plan must be"):
        regressor().fit(X, Y, plan="plan")


def test_fingerprints_tell_values_apart() -> None:
    values: list[Any] = [
        *(None, True, 1.0, "1", "True", [1.0], [[1.0]], [1.0, 2.0], {"a": 1.0}, ["a", 1.0, None]),
        *(RBF(1.0), RBF(1.0 + 1e-12), RBF(1.0, "fixed"), Matern(1.0), RBF() + RBF(), RBF() * RBF()),
        *(("ab", "c"), ("a", "bc"), ([1.0], [2.0, 3.0]), ([1.0, 2.0], [3.0])),
    ]
    assert len({fingerprint(value) for value in values}) == len(values)
    assert fingerprint(1) == fingerprint(1.0)
    assert fingerprint((0, 1)) == fingerprint(np.array([0.0, 1.0]))
