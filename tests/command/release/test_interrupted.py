"""A release that stops halfway leaves nothing half-written and says what is spent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from privgp.models.regressor import PrivateGPRegressor
from tests.command.running import BUDGET, COLUMNS, QUICK, Result, assert_one_sentence, run

SPENT = "count epsilon = 1, delta = 1e-05 as spent."
PROBLEMS = [KeyboardInterrupt(), RuntimeError("1234.73591"), MemoryError(), OSError("1234.73591")]


def attempt(tmp_path: Path, visits: Path) -> Result:
    return run(
        *("release", visits, *COLUMNS, *BUDGET, *QUICK, "-o", tmp_path / "v.privgp"),
        *("--certificate", tmp_path / "c.json", "--plot", tmp_path / "p.svg"),
    )


def left(tmp_path: Path) -> set[str]:
    return {path.name for path in tmp_path.iterdir()}


def really_fits(model: PrivateGPRegressor) -> bool:
    """Whether this is the fit of the private outputs, not the rehearsal."""
    return model.random_state is None


@pytest.mark.parametrize("problem", PROBLEMS, ids=repr)
def test_before_fit_nothing_is_spent(
    tmp_path: Path, visits: Path, monkeypatch: pytest.MonkeyPatch, problem: BaseException
) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise problem

    monkeypatch.setattr("privgp.command.io.spending.make_plan", stop)
    result = attempt(tmp_path, visits)
    assert_one_sentence(result, 1)
    assert "nothing was spent" in result.err
    assert left(tmp_path) == {"visits.csv"}


@pytest.mark.parametrize("problem", [*PROBLEMS, ValueError("1234.73591")], ids=repr)
def test_from_fit_on_the_budget_counts_as_spent(
    tmp_path: Path, visits: Path, monkeypatch: pytest.MonkeyPatch, problem: BaseException
) -> None:
    fit = PrivateGPRegressor.fit

    def stop(model: PrivateGPRegressor, *data: Any, **named: Any) -> PrivateGPRegressor:
        fit(model, *data, **named)
        if really_fits(model):
            raise problem
        return model

    monkeypatch.setattr(PrivateGPRegressor, "fit", stop)
    result = attempt(tmp_path, visits)
    assert_one_sentence(result, 1)
    assert SPENT in result.err
    assert "nothing was released" in result.err
    assert left(tmp_path) == {"visits.csv"}


@pytest.mark.parametrize("problem", PROBLEMS, ids=repr)
def test_a_release_that_cannot_be_saved_counts_as_spent(
    tmp_path: Path, visits: Path, monkeypatch: pytest.MonkeyPatch, problem: BaseException
) -> None:
    def stop(part: Path, target: Path) -> None:
        if Path(target).name == "v.privgp":
            raise problem
        Path(part).rename(target)

    monkeypatch.setattr("os.replace", stop)
    result = attempt(tmp_path, visits)
    assert_one_sentence(result, 1)
    assert SPENT in result.err
    assert left(tmp_path) == {"visits.csv"}


def test_a_release_that_could_not_be_saved_is_found_out_before_it_is_made(
    tmp_path: Path, visits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit, fitted = PrivateGPRegressor.fit, []

    def watched(model: PrivateGPRegressor, *data: Any, **named: Any) -> PrivateGPRegressor:
        fitted.append(really_fits(model))
        return fit(model, *data, **named)

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(PrivateGPRegressor, "fit", watched)
    monkeypatch.setattr("privgp.command.io.spending.save", refuse)
    result = attempt(tmp_path, visits)
    assert_one_sentence(result, 2)
    assert "nothing was spent" in result.err
    assert fitted == [False]
    assert left(tmp_path) == {"visits.csv"}


def test_the_rehearsal_sees_no_output(
    tmp_path: Path, visits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit, outputs = PrivateGPRegressor.fit, []

    def watched(model: PrivateGPRegressor, X: Any, y: Any, **named: Any) -> PrivateGPRegressor:
        if not really_fits(model):
            outputs.append({float(value) for value in y})
        return fit(model, X, y, **named)

    monkeypatch.setattr(PrivateGPRegressor, "fit", watched)
    assert attempt(tmp_path, visits).code == 0
    assert outputs == [{2500.0}]


@pytest.mark.parametrize("problem", PROBLEMS, ids=repr)
@pytest.mark.parametrize(
    "step", ["io.results.write_certificate", "io.results.write_picture", "io.results.tell"]
)
def test_a_complete_release_is_kept(
    tmp_path: Path,
    visits: Path,
    monkeypatch: pytest.MonkeyPatch,
    problem: BaseException,
    step: str,
) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise problem

    monkeypatch.setattr(f"privgp.command.{step}", stop)
    result = attempt(tmp_path, visits)
    assert_one_sentence(result, 1)
    assert SPENT in result.err
    assert "v.privgp' was written, which is complete" in result.err
    assert "v.privgp" in left(tmp_path)
    assert not any("part" in name for name in left(tmp_path))
    assert run("inspect", tmp_path / "v.privgp").code == 0


def test_predictions_that_cannot_be_written_leave_nothing(
    tmp_path: Path, visits: Path, release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("os.replace", stop)
    result = run("predict", release, visits, "-o", tmp_path / "p.csv")
    assert_one_sentence(result, 1)
    assert left(tmp_path) == {"visits.csv"}
