"""Every mechanism holds against its best attacker, and breaks when its noise is a fifth too small.

Either fails by chance with probability below 1e-6; draws are stated in mechanisms.py.
"""

from __future__ import annotations

import ast
import math
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import privgp
from privgp.audit import TradeOff
from privgp.models.search import bayes as search_questions
from privgp.models.search import grid as search
from privgp.privacy.guarantee import Guarantee
from privgp.privacy.noise import LAWS
from tests.adversary.attacks import Chosen, Looked, Measured, Released
from tests.adversary.mechanisms import ROWS
from tests.adversary.spying import PLACES

SOURCE = Path(privgp.__file__).parent
IDS = [f"{kind.__name__}: {name}" for name, kind, _ in ROWS]
ADDS_UP = "compose"  # guarantees that were made before
ATTACKS = "privgp.audit."  # ask what would be guaranteed
BINS = tuple(f"{what}, {law}" for what in ("outputs", "records") for law in LAWS)
OPTIONS = {
    "PrivateGPRegressor": (
        *BINS,
        *(f"{how}, {law}" for how in ("people", "residuals", "refined", "updated") for law in LAWS),
        "inducing",
    ),
    "PrivateGP": (
        *(f"outputs, {law}" for law in LAWS),
        "people",
        "inducing",
        "records",
        "presence",
    ),
    "PrivateGPClassifier": tuple(f"{n} classes, {law}" for n in ("two", "three") for law in LAWS),
    "BinnedMeans": BINS,
    "BinnedGP": BINS,
    "PrivateFunction": ("outputs", "inducing", "records"),
    "PosteriorPaths": ("one path", "three paths", "extra noise"),
    "PrivateGridSearchCV": search.METHODS,
    "PrivateBayesSearchCV": search_questions.METHODS,
    "PrivateBounds": ("bounds",),
    "PrivateGPDensity": ("density", "density, categories"),
}


def wastes_no_noise(result: TradeOff) -> bool:
    """Whether the attack may well be within a tenth of what is allowed; of a pure guarantee, in epsilon."""
    if result.promise.mu is not None:
        return result.is_tight
    epsilon = min(e for e, delta in result.promise.pairs if delta < 1e-9)
    least = result.false_positive_bounds[0], result.false_negative_bounds[0]
    return math.log((1.0 - least[1]) / least[0]) >= 0.9 * epsilon


@pytest.fixture(scope="module", params=ROWS, ids=IDS)
def attacked(request) -> Looked | Chosen | Released:
    """A mechanism; numbers that it measures are measured once for both tests."""
    mechanism = request.param[2]
    return mechanism.looked() if isinstance(mechanism, Measured) else mechanism


@pytest.mark.statistical(failure=1e-6)
def test_the_promise_holds(attacked):
    if not isinstance(attacked, Looked):
        assert attacked.holds(1.0)
        return
    result = attacked.attack(1.0)
    assert result.holds, result.describe()
    assert wastes_no_noise(result), result.describe()


@pytest.mark.statistical(failure=1e-6)
def test_noise_a_fifth_too_small_is_found(attacked):
    assert not attacked.holds(0.8)


def test_every_public_estimator_and_each_of_its_ways_has_a_row():
    estimators = {name for name in privgp.__all__ if hasattr(getattr(privgp, name), "fit")}
    estimators |= {"PrivateBounds"}  # what private_bounds returns
    assert estimators == {kind.__name__ for _, kind, _ in ROWS} == set(OPTIONS)
    for estimator, options in OPTIONS.items():
        names = [name for name, kind, _ in ROWS if kind.__name__ == estimator]
        assert all(any(name.startswith(option) for name in names) for option in options), estimator


def test_every_promise_that_is_made_has_a_row(monkeypatch):
    """Every call that makes a guarantee is made by some row, and one module alone writes them."""
    assert {call[0] for call in _calls({"Guarantee"})} == {"privgp.privacy.guarantee"}
    made: set[tuple[str, str, int]] = set()
    sound = Guarantee.__init__

    def watched(self: Any, *arguments: Any, **named: Any) -> None:
        frame = sys._getframe(1)
        while frame is not None:
            made.add((frame.f_globals["__name__"], frame.f_code.co_name, frame.f_lineno))
            frame = frame.f_back
        sound(self, *arguments, **named)

    monkeypatch.setattr(Guarantee, "__init__", watched)
    calls = {
        (module, function, line)
        for module, function, line in _calls(_makers())
        if function != ADDS_UP and not module.startswith(ATTACKS)
    }
    seen: Counter[type] = (
        Counter()
    )  # one row of every estimator, then the second of each, and so on
    turns = [(seen.update([kind]) or seen[kind], mechanism) for _, kind, mechanism in ROWS]
    for _, mechanism in sorted(turns, key=lambda turn: turn[0]):
        if calls <= made:
            break
        dataset = mechanism.neighbours()[0]
        mechanism.run(dataset, 1) if isinstance(mechanism, Released) else mechanism.run(dataset)
    assert calls <= made
    assert len(calls) >= 12


def test_noise_comes_from_the_watched_places_alone():
    used = {
        node.attr
        for tree in _modules().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr.startswith(("make_", "then_"))
        and ast.unparse(node.value) not in ("super()", "Path", "shapely")
    }
    assert used == set(PLACES)


@cache
def _modules() -> dict[str, ast.Module]:
    """The source of every module, by its name."""
    return {
        ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts): ast.parse(
            path.read_text(encoding="utf-8")
        )
        for path in SOURCE.rglob("*.py")
    }


@cache
def _calls_of_functions() -> tuple[tuple[str, str, str, int, bool], ...]:
    """(module, function, what it calls, line, whether it returns that) of the whole source."""
    return tuple(
        (module, function.name, node.func.id, node.lineno, node in returned)
        for module, tree in _modules().items()
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for nodes in [tuple(_own_nodes(function))]
        for returned in [{node.value for node in nodes if isinstance(node, ast.Return)}]
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    )


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those of functions inside, which have their own frames."""
    for node in ast.iter_child_nodes(function):
        yield node
        if not isinstance(node, ast.FunctionDef):
            yield from _own_nodes(node)


def _makers() -> set[str]:
    """The names of whatever returns a guarantee that it makes."""
    names, before = {"Guarantee"}, set()
    while names != before:
        before = names
        names = before | {
            function
            for _, function, called, _, is_returned in _calls_of_functions()
            if is_returned and called in before
        } - {ADDS_UP}
    return names


def _calls(called: set[str]) -> set[tuple[str, str, int]]:
    """(module, function, line) of every call of one of these in the source."""
    return {
        (module, function, line)
        for module, function, name, line, _ in _calls_of_functions()
        if name in called
    }
