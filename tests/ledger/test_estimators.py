"""Every estimator charges before it draws, for what it then guarantees, and once."""

from __future__ import annotations

import json
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import Ridge

import privgp
import privgp.models as models
from privgp import (
    Account,
    BinnedGP,
    BinnedMeans,
    BudgetExceeded,
    Ledger,
    Number,
    PosteriorPaths,
    PrivateBayesSearchCV,
    PrivateFunction,
    PrivateGP,
    PrivateGPClassifier,
    PrivateGPDensity,
    PrivateGPRegressor,
    PrivateGridSearchCV,
)
from privgp.ledger.filter import decimal_below as below
from privgp.models.published import SpendsAtFit
from privgp.release.certificate import certificate, page
from privgp.vault import measure

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 10, (30, 1))
y = np.sin(X[:, 0])
BOUNDS: dict[str, Any] = {"y_bounds": (-1, 1)}
HALF: dict[str, Any] = {"epsilon": 0.5, "delta": 1e-6}
FIXED: dict[str, Any] = {**BOUNDS, **HALF, "hyperparameters": "fixed"}
LOSS: dict[str, Any] = {"scoring": "squared_error", "loss_bounds": (0, 4)}
CANDIDATES = {"kernel": [RBF(1.0), RBF(3.0)]}


def grid(**options: Any) -> PrivateGridSearchCV:
    model = PrivateGPRegressor(RBF(1.0), 0.1, **BOUNDS, hyperparameters="fixed")
    return PrivateGridSearchCV(model, CANDIDATES, **HALF, **options)


def on_validation(search: Any) -> Any:
    return search.fit(X, y, X_val=X, y_val=y)


def at_once(model: Any) -> Any:
    return model.fit(X, y)


OUTCOMES = {"y": Number(-1, 1)}
MADE: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "outputs": (lambda: PrivateGPRegressor(**FIXED), at_once),
    "gaussian": (lambda: PrivateGPRegressor(**FIXED, mechanism="gaussian"), at_once),
    "records": (lambda: PrivateGPRegressor(**FIXED, protect="records", x_bounds=(0, 10)), at_once),
    "inducing": (lambda: PrivateGPRegressor(**FIXED, inducing=4), at_once),
    "several outputs": (
        lambda: PrivateGPRegressor(y_bounds=[(-1, 1), (0, 1)], **HALF, hyperparameters="fixed"),
        lambda model: model.fit(X, np.column_stack([y, y**2])),
    ),
    "counts": (
        lambda: PrivateGPRegressor(
            y_bounds=(0, 9), **HALF, hyperparameters="fixed", likelihood="poisson", max_change=1
        ),
        lambda model: model.fit(X, np.arange(30) % 5),
    ),
    "many private inputs": (
        lambda: PrivateGPRegressor(**FIXED, protect="records", x_bounds=[(0, 10)] * 4),
        lambda model: model.fit(np.repeat(X, 4, axis=1), y),
    ),
    "labels": (
        lambda: PrivateGPClassifier(classes=(0, 1), **HALF, hyperparameters="fixed"),
        lambda model: model.fit(X, (y > 0).astype(int)),
    ),
    "labelled records": (
        lambda: PrivateGPClassifier(
            classes=(0, 1), **HALF, hyperparameters="fixed", protect="records", x_bounds=(0, 10)
        ),
        lambda model: model.fit(X, (y > 0).astype(int)),
    ),
    "any outcomes": (
        lambda: PrivateGP(OUTCOMES, **HALF, hyperparameters="fixed"),
        lambda model: model.fit({"x": X[:, 0], "y": y}),
    ),
    "density": (lambda: PrivateGPDensity(x_bounds=[(0, 10)], **HALF), lambda model: model.fit(X)),
    "means": (lambda: BinnedMeans(3, **BOUNDS, **HALF), at_once),
    "means of records": (
        lambda: BinnedMeans(3, **BOUNDS, **HALF, protect="records", x_bounds=(0, 10)),
        at_once,
    ),
    "binned": (lambda: BinnedGP(bins=3, **BOUNDS, **HALF), at_once),
    "function": (lambda: PrivateFunction(RBF(1.0), 0.1, **BOUNDS, **HALF), at_once),
    "paths": (
        lambda: PosteriorPaths(RBF(1.0), 40.0, domain=(0, 10), **BOUNDS, delta=1e-6),
        at_once,
    ),
    "by the measurement": (grid, at_once),
    "by cross-validation": (lambda: grid(method="permute-and-flip", cv=2), at_once),
    "by validation": (
        lambda: PrivateGridSearchCV(
            Ridge(), {"alpha": [1.0, 2.0]}, **HALF, method="exponential", **LOSS
        ),
        on_validation,
    ),
    "bayes": (
        lambda: PrivateBayesSearchCV(Ridge(), {"alpha": (1.0, 2.0)}, **HALF, n_iter=2, **LOSS),
        on_validation,
    ),
}


@pytest.fixture
def ledger(empty: Path, tmp_path: Path) -> Ledger:
    shutil.copy(empty, tmp_path / "budget.db")
    return Ledger(f"sqlite:///{tmp_path}/budget.db")


def opened(ledger: Ledger, epsilon: float = 1.0) -> Account:
    return ledger.open("people", epsilon, 1e-5)


def estimators() -> set[type]:
    """All that spend at fit, found by walking the package."""
    assert models
    found, left = set(), [SpendsAtFit]
    while left:
        for kind in left.pop().__subclasses__():
            left.append(kind)
            if kind.__name__ in privgp.__all__:
                found.add(kind)
    return found


def test_every_estimator_that_spends_is_here():
    assert estimators() == {type(made()) for made, _ in MADE.values()}


@pytest.mark.parametrize("kind", MADE)
def test_a_fit_is_charged_for_what_it_promises(kind, ledger):
    made, fit = MADE[kind]
    account = opened(ledger)
    model = fit(made().set_params(ledger=account))
    (entry,) = account.entries()
    charged, promised = entry.promised, model.guarantee_
    assert (charged.epsilon, charged.delta, charged.unit) == (
        promised.epsilon,
        promised.delta,
        promised.unit,
    )
    assert charged.noise_multipliers == promised.noise_multipliers
    assert charged.pure_epsilons == promised.pure_epsilons
    assert 0.4 < account.remaining() < 0.8
    total, left = account.opened().budget, account.remaining()
    assert model.charged_ == {
        **{"dataset": "people", "entry": 1, "head": entry.hash, "left": left},
        **{"total_epsilon": below(total.epsilon), "total_delta": below(total.delta)},
    }
    assert ledger.verify(model.charged_["head"])


@pytest.mark.parametrize("same", [False, True])
def test_every_further_measurement_is_charged(same, ledger):
    account = opened(ledger, epsilon=1.2)
    model = PrivateGPRegressor(**FIXED, ledger=account).fit(X, y)
    again = (lambda: model.refine(X, y, 0.5, 1e-6)) if same else (lambda: model.update(X + 0.1, y))
    again()
    assert len(account.entries()) == 2
    assert model.charged_["entry"] == 2
    with pytest.raises(BudgetExceeded):
        model.update(X + 0.2, y)
    assert len(account.entries()) == 2
    assert len(model.measurements_) == 2


@pytest.mark.parametrize("kind", MADE)
def test_nothing_is_drawn_beyond_the_budget(kind, ledger, monkeypatch):
    made, fit = MADE[kind]
    account = opened(ledger, epsilon=0.1)

    def drawn(*_: Any, **__: Any) -> None:
        raise AssertionError("noise was drawn")

    for law in measure.PROTECTING:
        monkeypatch.setitem(measure.PROTECTING, law, drawn)
    monkeypatch.setattr("privgp.models.search.grid.choose_by_validation", drawn)
    monkeypatch.setattr("privgp.models.search.outputs.choose_by_residuals", drawn)
    model = made().set_params(ledger=account)
    with pytest.raises(BudgetExceeded, match="nothing was drawn"):
        fit(model)
    assert not hasattr(model, "guarantee_")
    assert not hasattr(model, "charged_")
    assert account.entries() == []
    assert account.remaining() == 0.1


@pytest.mark.parametrize("kind", ["outputs", "function", "bayes"])
def test_what_is_no_account_is_refused(kind):
    made, fit = MADE[kind]
    with pytest.raises(ValueError, match="ledger must be an Account"):
        fit(made().set_params(ledger="sqlite:///budget.db"))


def test_a_simulation_is_charged_too(ledger):
    account = opened(ledger)
    PrivateGPRegressor(**FIXED, random_state=0, ledger=account).fit(X, y)
    assert account.remaining() == 0.5
    assert account.entries()[0].promised.is_simulation


def test_bad_values_are_refused_before_they_are_charged(ledger):
    account = opened(ledger)
    wrong = np.where(np.arange(30) == 3, np.nan, y)
    for kind in ("outputs", "records", "inducing", "means", "function", "paths"):
        with pytest.raises(ValueError, match="NaN"):
            MADE[kind][0]().set_params(ledger=account).fit(X, wrong)
    assert account.entries() == []


def test_the_ledger_of_a_search_is_its_own(ledger):
    search = grid(ledger=opened(ledger))
    search.estimator.set_params(ledger=opened(ledger))
    with pytest.raises(ValueError, match="ledger belongs to the search"):
        search.fit(X, y)


def test_a_search_that_goes_on_is_not_charged_again(ledger, tmp_path):
    account, state = opened(ledger), str(tmp_path / "search.state")
    search = MADE["bayes"][0]().set_params(ledger=account, state_file=state)
    first = on_validation(search).cv_results_["score"]
    again = on_validation(search).cv_results_["score"]
    assert list(first) == list(again)
    assert len(account.entries()) == 1
    other = ledger.open("others", 1.0, 1e-5)
    on_validation(search.set_params(ledger=other))  # which was never charged
    assert len(other.entries()) == 1


def test_a_file_that_says_what_was_paid_is_not_believed(ledger, tmp_path):
    """A file with the head of a charge, which certificates show, made every further search free."""
    account, state = ledger.open("small", 0.6, 1e-5), tmp_path / "search.state"
    search = MADE["bayes"][0]().set_params(ledger=account, state_file=str(state))
    on_validation(search)
    begun, told, *_ = state.read_text().splitlines()
    entry = account.entries()[0]
    assert json.loads(told)["secret"] not in str(entry)
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    claims = {"charged": {"head": entry.hash}}, {"secret": entry.key}, {"secret": entry.hash}
    for number, claim in enumerate(claims):
        path = tmp_path / str(number)
        path.write_text(f"{begun}\n{json.dumps(claim)}\n")
        with pytest.raises(BudgetExceeded):
            on_validation(clone(search).set_params(state_file=str(path)))
    assert len(account.entries()) == 1


def test_the_certificate_names_the_charge_also_from_a_file(ledger, tmp_path):
    account = opened(ledger)
    model = PrivateGPRegressor(**FIXED, ledger=account).fit(X, y)
    with pytest.warns(UserWarning, match="inputs"):
        model.save(tmp_path / "a.privgp")
    stated = certificate(privgp.load(tmp_path / "a.privgp"))
    assert stated["ledger"] == model.charged_
    assert (stated["ledger"]["entry"], stated["ledger"]["head"]) == (1, account.head)
    assert account.head in page(stated)
    assert "ledger" not in certificate(model.set_params(ledger=None).fit(X, y))


def test_the_same_public_inputs_under_another_name_warn(ledger):
    PrivateGPRegressor(**FIXED, ledger=opened(ledger)).fit(X, y)
    other = ledger.open("others", 1.0, 1e-5)
    with pytest.warns(UserWarning, match="charged to dataset 'people' before"):
        PrivateGPRegressor(**FIXED, ledger=other).fit(X, y)
