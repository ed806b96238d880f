"""The one path that spends: rehearse, charge, measure, learn, in that order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privgp import Account, BudgetExceeded, Ledger, PrivateGPRegressor
from privgp.publish import Payer, publish
from tests.ledger.promises import pure

STAGES = ("rehearse", "charge", "measure", "learn")


@pytest.fixture
def account(tmp_path: Path) -> Account:
    return Ledger(f"sqlite:///{tmp_path}/budget.db").open("people", 0.6, 1e-6)


def spend(account: Account | None, fails: str = "", **payer: Any) -> list[str]:
    """The stages that were reached, with what each was given."""
    seen: list[Any] = []

    def stage(name: str, *given: Any) -> str:
        seen.append((name, *given))
        if name == fails:
            raise ArithmeticError(name)
        return name

    try:
        publish(
            pure(0.5),
            Payer(account, **payer),
            lambda: stage("measure"),
            lambda measured: stage("learn", measured),
            keep=lambda receipt: stage("charge", receipt and receipt["entry"]),  # type: ignore[arg-type, return-value]
            rehearse=lambda: stage("rehearse"),
        )
    except ArithmeticError:
        assert seen[-1][0] == fails
    return seen


def test_the_stages_have_one_order(account):
    assert spend(account) == [("rehearse",), ("charge", 1), ("measure",), ("learn", "measure")]
    assert spend(None) == [("rehearse",), ("charge", None), ("measure",), ("learn", "measure")]


@pytest.mark.parametrize("fails", STAGES)
def test_a_failure_costs_from_the_charge_on(fails, account):
    seen = spend(account, fails)
    assert [name for name, *_ in seen] == list(STAGES[: STAGES.index(fails) + 1])
    assert len(account.entries()) == (fails != "rehearse")


def test_a_charge_that_is_refused_draws_nothing(account):
    spend(account)
    with pytest.raises(BudgetExceeded, match="nothing was drawn"):
        spend(account)
    assert len(account.entries()) == 1


def test_a_draw_that_was_paid_for_is_not_charged_again(account):
    """A search that goes on is charged under a key that its file alone holds."""
    spend(account, key="a" * 64)
    (entry,) = account.entries()
    assert ("charge", 1) in spend(account, key="a" * 64)
    assert len(account.entries()) == 1
    for other in ("b" * 64, entry.hash, None):  # what the ledger shows is no key
        with pytest.raises(BudgetExceeded):
            spend(account, key=other)


@pytest.mark.parametrize("settings", [{}, {"inducing": 4}, {"y_bounds": [(-1, 1), (-1, 1)]}])
def test_what_would_stop_a_fit_stops_its_rehearsal(settings, account, monkeypatch):
    def fail(*_: Any) -> None:
        raise np.linalg.LinAlgError("no posterior")

    monkeypatch.setattr("privgp.release.parts.posterior", fail)
    X = np.arange(8.0)[:, None]
    y = np.sin(X) if len(settings.get("y_bounds", ())) == 0 else np.hstack([np.sin(X)] * 2)
    model = PrivateGPRegressor(
        **{"y_bounds": (-1, 1), "epsilon": 0.5, "ledger": account} | settings
    )
    with pytest.raises(np.linalg.LinAlgError):
        model.fit(X, y if y.shape[1] > 1 else y[:, 0])
    assert account.entries() == []
    assert not hasattr(model, "guarantee_")
