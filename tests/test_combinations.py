"""Every outcome with every protection, every source of rows and every operation.

What is refused has a reason that a proof page states.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import privgp
from privgp import PrivateGPClassifier, PrivateGPRegressor, open_table

ROWS = 60
rng = np.random.default_rng(0)
INPUTS = pd.DataFrame(
    {"a": rng.uniform(0, 10, ROWS).round(2), "b": rng.uniform(0, 10, ROWS).round(2)}
)
KINDS = INPUTS.assign(
    when=pd.date_range("2024-01-01", periods=ROWS), region=rng.choice(list("xyz"), ROWS)
)
PEOPLE = np.repeat(np.arange(ROWS // 3), 3)
NUMBER = np.sin(INPUTS["a"].to_numpy()) + rng.normal(0, 0.1, ROWS)
PRIVATE: dict[str, Any] = {
    "number": NUMBER,
    "two classes": np.where(rng.random(ROWS) < 0.5, "yes", "no"),
    "three classes": rng.choice(list("pqr"), ROWS),
    "counts": rng.poisson(3, ROWS).astype(float),
    "several": np.column_stack([NUMBER, NUMBER**2]),
}
DECLARED: dict[str, Any] = {
    "number": {"y_bounds": (-2, 2)},
    "two classes": {"classes": ["no", "yes"]},
    "three classes": {"classes": list("pqr")},
    "counts": {"y_bounds": (0, 20), "likelihood": "poisson"},
    "several": {"y_bounds": ((-2, 2), (-2, 2))},
}
PROTECTED = ("outputs", "people", "records", "people's records")
SOURCES = ("array", "table", "kinds", "inducing", "files")
COLUMNS = {"when": "date", "region": ("category", list("xyz"))}
DOMAIN = {"a": (0, 10), "b": (0, 10), "when": ("2024-01-01", "2024-12-31")}


def model(outcome: str, protected: str, source: str) -> Any:
    settings: dict[str, Any] = {
        "epsilon": 2.0, "delta": 1e-5, "random_state": 0, "hyperparameters": "fixed",
        **DECLARED[outcome],
    }  # fmt: skip
    if "records" in protected:
        settings |= {"protect": "records", "x_bounds": ((0, 10), (0, 10))}
        if source == "kinds":
            settings["x_bounds"] = DOMAIN
    elif outcome == "counts":
        settings["max_change"] = 1
    if source == "kinds":
        settings["columns"] = COLUMNS
    if source in ("inducing", "files"):
        settings["inducing"] = 15
    return (PrivateGPClassifier if "classes" in outcome else PrivateGPRegressor)(**settings)


def given(outcome: str, protected: str, source: str, folder: Any) -> tuple[Any, Any, Any]:
    """X, y and groups."""
    y, groups = PRIVATE[outcome], PEOPLE if "people" in protected else None
    if source == "files":
        names = ["y", "z"] if outcome == "several" else ["y"]
        columns = dict(zip(names, y.T if y.ndim == 2 else [y], strict=True))
        table = pl.from_pandas(INPUTS.assign(who=PEOPLE, **columns))
        for part in range(3):
            table[20 * part : 20 * (part + 1)].write_parquet(folder / f"{part}.parquet")
        output = names if outcome == "several" else "y"
        who = "who" if groups is not None else None
        opened = open_table(str(folder / "*.parquet"), ["a", "b"], output, who)
        return opened.inputs, opened.output, opened.groups
    if source == "kinds":
        return KINDS, y, groups
    return INPUTS if source == "table" else INPUTS.to_numpy(), y, groups


def new_points(source: str) -> Any:
    return (
        KINDS[:3]
        if source == "kinds"
        else INPUTS[:3]
        if source == "table"
        else INPUTS.to_numpy()[:3]
    )


def answers(fitted: Any, points: Any) -> Any:
    return fitted.predict_proba(points) if hasattr(fitted, "classes") else fitted.predict(points)


@pytest.mark.filterwarnings("ignore:The file contains", "ignore:Epsilon", "ignore:This is")
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("protected", PROTECTED)
@pytest.mark.parametrize("outcome", PRIVATE)
def test_every_combination_goes_from_plan_to_file(outcome, protected, source, tmp_path):
    made = model(outcome, protected, source)
    X, y, groups = given(outcome, protected, source, tmp_path)
    plan = made.plan(X, groups=groups)
    assert np.all(np.isfinite(plan.expected_error()))
    made.fit(X, y, groups=groups, plan=plan)
    points = new_points(source)
    found = answers(made, points)
    assert np.all(np.isfinite(found))
    low, high = made.interval(points)
    assert np.all(low <= high)
    together = "of one person" in made.guarantee_.unit or "group of rows" in made.guarantee_.unit
    assert together == ("people" in protected)
    assert ("record" in made.guarantee_.unit) == ("records" in protected)
    made.save(tmp_path / "a.privgp")
    loaded = privgp.load(tmp_path / "a.privgp")
    assert np.array_equal(answers(loaded, points), found)
    assert loaded.certificate()["epsilon"] == made.guarantee_.epsilon


@pytest.mark.filterwarnings("ignore:Epsilon", "ignore:This is")
@pytest.mark.parametrize("protected", PROTECTED)
@pytest.mark.parametrize("outcome", PRIVATE)
def test_every_release_is_updated_and_refined(outcome, protected, tmp_path):
    X, y, groups = given(outcome, protected, "array", tmp_path)
    others = None if groups is None else groups + 1000
    made = model(outcome, protected, "array").fit(X, y, groups=groups)
    before, unit = made.guarantee_, made.guarantee_.unit
    made.refine(X, y, 1.0, 1e-6, groups=groups)
    total = made.guarantee_
    assert total.epsilon > before.epsilon
    made.update(X + 0.01, y, groups=others)
    assert made.guarantee_.epsilon == pytest.approx(total.epsilon)
    assert made.guarantee_.unit == unit
    assert np.all(np.isfinite(answers(made, X[:3])))


@pytest.mark.parametrize("protected", PROTECTED[:3])
@pytest.mark.parametrize("outcome", ["two classes", "three classes"])
def test_a_label_has_no_interval_of_observations(outcome, protected, tmp_path):
    """A new label is one of the classes: their probabilities say all about it."""
    X, y, groups = given(outcome, protected, "array", tmp_path)
    made = model(outcome, protected, "array").fit(X, y, groups=groups)
    with pytest.raises(ValueError, match=r"docs/proofs/classes\.md"):
        made.interval(X[:2], observation=True)


@pytest.mark.parametrize("protected", PROTECTED[2:])
@pytest.mark.parametrize("outcome", PRIVATE)
def test_points_that_carry_the_function_do_not_go_with_private_inputs(outcome, protected, tmp_path):
    X, y, groups = given(outcome, protected, "array", tmp_path)
    made = model(outcome, protected, "array").set_params(inducing=X[:5])
    with pytest.raises(ValueError, match=r"inducing does not go with protect.*docs/proofs/records"):
        made.fit(X, y, groups=groups)
