"""The public benchmark: every method answers a small problem, and the page shows what was measured."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.suite.__main__ import RESULTS, intervals, measure, summary, table
from benchmarks.suite.problem import FUNCTIONS, Answer, Method, all_methods, problem_of

ROOT = Path(__file__).resolve().parents[2]
METHODS = {each.name: each for each in all_methods()}
NONE = Path("nowhere")


@pytest.mark.parametrize(
    "name", [name for name in METHODS if not METHODS[name].for_labels and "diffpriv" not in name]
)
def test_a_method_answers_with_finite_numbers(name):
    problem = problem_of("wave", 1.0, 0, NONE)
    found = measure(METHODS[name], problem)
    assert "failed" not in found, found
    assert np.isfinite(found["square"])


def test_the_example_of_the_readme_is_a_method():
    page = (ROOT / "benchmarks" / "suite" / "README.md").read_text("utf-8")
    known: dict[str, tuple[Method, ...]] = {}
    exec(page.split("```python\n")[1].split("```")[0], known)
    found = summary([measure(known["METHODS"][0], problem_of("wave", 1.0, 0, NONE))])
    assert found["failed"] is None
    assert 10.0 < found["rmse"] < 40.0  # about the spread of the wave, as a constant must have


def test_a_method_that_fails_is_reported():
    def run(problem):
        raise RuntimeError("it is not installed")

    found = measure(Method("broken", "outputs", run), problem_of("wave", 1.0, 0, NONE))
    assert "not installed" in summary([found])["failed"]


def test_the_truth_scores_best():
    problem = problem_of(FUNCTIONS[0], 1.0, 0, NONE)
    exact = Method("truth", "nothing", lambda p: Answer(p.truth, p.truth - 1, p.truth + 1))
    found = summary([measure(exact, problem)])
    assert found["rmse"] == 0.0
    assert found["coverage"] == 1.0
    assert found["score"] == pytest.approx(2.0)


def test_the_page_shows_what_was_measured():
    rows = json.loads((ROOT / RESULTS / "results.json").read_text())["rows"]
    page = (ROOT / "docs" / "suite.md").read_text()
    for epsilon in {row["epsilon"] for row in rows}:
        assert table(rows, epsilon) in page or epsilon != 1.0
        assert intervals(rows, epsilon) in page
