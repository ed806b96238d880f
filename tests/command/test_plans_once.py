"""``privgp release`` plans once: what it rehearses and releases is that one plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import privgp.models.records
import privgp.models.regressor
from privgp.models.regressor import PrivateGPRegressor
from tests.command.running import BUDGET, COLUMNS, QUICK, run

KINDS = {
    "outputs": (privgp.models.regressor, "make_plan", []),
    "people": (privgp.models.regressor, "make_plan", ["--groups", "person"]),
    "records": (
        privgp.models.records,
        "make_records_plan",
        ["--protect", "records", "--x-bounds", "0", "90", "--x-bounds", "10", "60"],
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_plans_once(
    tmp_path: Path, visits: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    module, name, options = KINDS[kind]
    make, fit, plans, measured = getattr(module, name), PrivateGPRegressor.fit, [], []

    def planned(*arguments: Any, **named: Any) -> Any:
        plans.append(make(*arguments, **named))
        return plans[-1]

    def fitted(model: PrivateGPRegressor, *arguments: Any) -> PrivateGPRegressor:
        measured.append(fit(model, *arguments).plan_.strategy)
        return model

    monkeypatch.setattr(module, name, planned)
    monkeypatch.setattr(PrivateGPRegressor, "fit", fitted)
    result = run(
        "release", visits, *COLUMNS, *BUDGET, *QUICK, *options, "-o", tmp_path / "v.privgp"
    )
    assert result.code == 0, result
    assert len(plans) == 1
    assert [strategy is plans[0].strategy for strategy in measured] == [True, True]
