"""Numbers of the house that may only fall: places that ask which kind they have, ``Any``, methods of a
class, names that are participles, and modules that import each other in a circle."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import cache

from tests.house.source import SOURCE, House, Module

# How code asks which outcome, unit, source or strategy it has, instead of calling what answers.
ASKS = (
    r"\bprotect\s*[!=]=",
    r"\b(classes|labels|labels\(\)) is (not )?None",
    r"\binducing is (not )?None",
    r"\blikelihood\s*[!=]=",
    r"\b(are_several|_is_joint)\(",
    r"\boutput_names is (not )?None",
    r"\breconstruct\s*[!=]=",
    r"\bdistinct_inputs is (not )?None",
    r"\bgetattr\([^)]*\"whole_people\"",
)
# Endings and words by which a name says what was done, not what to do.
PARTICIPLE = re.compile(
    r"^(made|kept|told|found|held|bound|given|drawn|known|read_by|left)$|ed$|ing$"
)
VERBS = {
    "read",
    "spread",
    "embed",
    "need",
    "feed",
    "seed",
    "speed",
    "exceed",
    "proceed",
    "shed",
    "bed",
}
NOUNS = {
    "rounding",
    "string",
    "thing",
    "spacing",
    "heading",
    "reading",
    "wording",
    "setting",
    "rating",
}
PLAIN_FIT = """
import sys
import numpy as np
from privgp import PrivateGPRegressor
X = np.linspace(0, 1, 12)[:, None]
model = PrivateGPRegressor(y_bounds=(0, 1), random_state=0)
model.fit(X, X[:, 0] ** 2)  # imports what it imports late
ran = set()
def note(frame, event, argument):
    if event == "call" and frame.f_code.co_name != "<module>":
        ran.add(frame.f_globals.get("__name__", ""))
sys.setprofile(note)
model.fit(X, X[:, 0] ** 2)
sys.setprofile(None)
print(*sorted(name for name in ran if name.startswith("privgp.")))
"""


def kind_asks(house: House) -> int:
    """How many places ask which kind they have."""
    return sum(map(_asks, house.modules.values()))


@cache
def _asks(module: Module) -> int:
    return sum(len(re.findall(pattern, line)) for line in module.code for pattern in ASKS)


def uses_of_any(house: House) -> int:
    """How often a type is not named."""
    return sum(
        isinstance(node, ast.Name) and node.id == "Any"
        for module in house.modules.values()
        for node in module.nodes
    )


def methods_per_class(house: House) -> dict[str, int]:
    """The number of methods of every class."""
    return {
        f"{module.name}.{node.name}": sum(isinstance(each, ast.FunctionDef) for each in node.body)
        for module in house.modules.values()
        for node in module.nodes
        if isinstance(node, ast.ClassDef)
    }


def participles(house: House) -> list[str]:
    """Functions whose names begin or end in a participle."""
    return [
        f"{module.name}.{node.name}"
        for module in house.modules.values()
        for node in module.nodes
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("__")
        if any(map(_is_participle, (_words(node.name)[0], _words(node.name)[-1])))
    ]


def _words(name: str) -> list[str]:
    return [word for word in name.split("_") if word] or [""]


def _is_participle(word: str) -> bool:
    return word not in VERBS | NOUNS and PARTICIPLE.search(word) is not None


def circles(house: House) -> list[set[str]]:
    """Modules that import each other in a circle, imports in functions among them; those for the type
    checker alone are left out."""
    graph = {name: _needs(house, module) for name, module in house.modules.items()}
    return [each for each in _strong_components(graph) if len(each) > 1]


def _needs(house: House, module: Module) -> set[str]:
    targets = _targets(module)
    found = {house.module_of(target) for target in targets}
    return {each for each in found if each is not None} - {module.name, "privgp"}


@cache
def _targets(module: Module) -> frozenset[str]:
    """What a module imports for more than the type checker."""
    typed = {
        f"{module._base(node)}.{alias.name}"
        for block in module.nodes
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    early = {each.target for each in module.imports if not each.late}
    return frozenset(each.target for each in module.imports if each.target not in typed - early)


def _strong_components(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """Tarjan's algorithm."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(node: str) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in order:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], order[other])
        if low[node] == order[node]:
            place = stack.index(node)
            found.append({*stack[place:]})
            del stack[place:]

    for node in graph:
        if node not in order:
            visit(node)
    return found


def modules_of_a_plain_fit() -> list[str]:
    """The modules of the package that a fit of one number to an array runs."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PLAIN_FIT],
        env={"PYTHONPATH": str(SOURCE), "PATH": "", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()
