"""Which kind of noise, strategy, plan, draw or release it is: asked only where they are built."""

from __future__ import annotations

import ast
from functools import cache

from tests.house.source import House, Module

KINDS = {
    "Noise", "GaussianNoise", "LaplaceNoise",
    "Strategy", "OutputSums", "GroupSums", "Bins", "HalvedBins", "BinSums", "JointSums",
    "ClassSums", "ClassGroupSums", "Features", "PeopleBins", "PeopleHalvedBins", "PeopleFeatures",
    "FunctionModel", "RecordsModel", "PathModel",
    "Draws", "RecordDraws", "PathDraws", "FunctionContents", "OutputsContents", "RecordsContents",
    "PathContents",
    "Posterior", "AtTargets", "Cloaked", "RatePosterior", "Rates", "Probabilities",
}  # fmt: skip

# Places that still ask. Lines may only be removed.
LEFT: set[str] = set()


def asked_kinds(house: House) -> set[str]:
    """``module kind`` for every isinstance, ``type(...) is`` or match on a kind."""
    return set().union(*map(_asked_by, house.modules.values()))


@cache
def _asked_by(module: Module) -> frozenset[str]:
    found: set[str] = set()
    for node in module.nodes:
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            found |= _names(node.args[1])
        elif isinstance(node, ast.Compare) and ast.unparse(node.left).startswith("type("):
            found |= set().union(*map(_names, node.comparators))
        elif isinstance(node, ast.MatchClass):
            found |= _names(node.cls)
    return frozenset(f"{module.name} {word}" for word in found & KINDS)


def _names(node: ast.expr) -> set[str]:
    return {
        ast.unparse(each).rpartition(".")[2]
        for each in ast.walk(node)
        if isinstance(each, ast.expr)
    }
