"""Which kind of noise, strategy, plan, draw or release it is: asked only where they are built."""

from __future__ import annotations

import ast

from tests.house.source import House

KINDS = {
    "Noise", "GaussianNoise", "LaplaceNoise",
    "Strategy", "OutputSums", "GroupSums", "StreamedSums", "StreamedGroups", "Bins", "HalvedBins", "BinSums", "JointSums",
    "ClassSums", "ClassGroupSums", "Features", "PeopleBins", "PeopleHalvedBins", "PeopleFeatures",
    "Plan", "JointPlan", "FunctionModel", "RecordsModel", "PathModel",
    "Draws", "RecordDraws", "PathDraws", "FunctionContents", "OutputsContents", "RecordsContents",
    "PathContents",
    "Posterior", "AtTargets", "RatePosterior", "Rates", "Probabilities",
}  # fmt: skip

# Places that still ask. Lines may only be removed.
LEFT: set[str] = set()


def asked_kinds(house: House) -> set[str]:
    """``module kind`` for every isinstance, ``type(...) is`` or match on a kind."""
    found = set()
    for module in house.modules.values():
        for node in ast.walk(module.tree):
            words: set[str] = set()
            if isinstance(node, ast.Call) and ast.unparse(node.func) in (
                "isinstance",
                "issubclass",
            ):
                words = _names(node.args[1])
            elif isinstance(node, ast.Compare) and ast.unparse(node.left).startswith("type("):
                words = set().union(*map(_names, node.comparators))
            elif isinstance(node, ast.MatchClass):
                words = _names(node.cls)
            found |= {f"{module.name} {word}" for word in words & KINDS}
    return found


def _names(node: ast.expr) -> set[str]:
    return {
        ast.unparse(each).rpartition(".")[2]
        for each in ast.walk(node)
        if isinstance(each, ast.expr)
    }
