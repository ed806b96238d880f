"""The order of the rooms: every import goes downwards, lazy ones too, and there is no cycle."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.house.source import PACKAGE, SOURCE, House, room_of, within

ORDER = (
    "errors", "limits", "types", "storage", "pictures", "engine", "tables", "gp", "privacy", "question", "plan", "vault", "release", "ledger",
    "publish", "models", "audit", "server", "command",
)  # fmt: skip
ALONE = ("storage", "pictures")  # know no other room than types
BESIDE = ("papers", "benchmarks", "tests")  # not installed


def upward_imports(house: House) -> set[tuple[str, str]]:
    """Every import of a room that lies above, or beside."""
    rank = {room: place for place, room in enumerate(ORDER)}
    found = set()
    for module in house.modules.values():
        here = room_of(module.name)
        if here in ("", "__main__"):
            continue
        if here not in rank:
            raise AssertionError(f"{here} is no room of the house: give it a place in ORDER.")
        found |= {
            (module.name, each.target)
            for each in module.imports
            if any(within(each.target, part) for part in BESIDE)
        }
        for needed in house.needs(module):
            there = room_of(needed)
            # the package itself, which knows its version, stands beside the command
            upwards = rank.get(there, len(ORDER) - 1) > rank[here]
            if upwards or (here in ALONE and there not in (here, "errors", "limits", "types")):
                found.add((module.name, needed))
    return found


def charging(house: House) -> set[str]:
    """Modules that charge an account; ``ledger`` itself, whose accounts pass it on, is left out."""
    return {
        module.name
        for module in house.modules.values()
        if room_of(module.name) != "ledger"
        for node in module.calls
        if ast.unparse(node.func).rpartition(".")[2] in ("charge", "answer")
        and not ast.unparse(node.func).startswith("super()")
    }


def cycle(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """Nodes that lead back to their first, or nothing."""
    done: set[str] = set()
    for root in graph:
        way: list[str] = []
        branches = [iter([root])]
        while branches:
            node = next(branches[-1], None)
            if node is None:
                branches.pop()
                if way:
                    done.add(way.pop())
            elif node in way:
                return [*way[way.index(node) :], node]
            elif node not in done:
                way.append(node)
                branches.append(iter(sorted(graph.get(node, ()))))
    return []


def room_graph(house: House) -> dict[str, set[str]]:
    graph: dict[str, set[str]] = {}
    for module in house.modules.values():
        here = room_of(module.name)
        if here not in ("", "__main__"):
            rooms = {room_of(needed) for needed in house.needs(module)} - {here}
            graph.setdefault(here, set()).update(rooms)
    return graph


def module_graph(house: House) -> dict[str, set[str]]:
    """What each module imports while it is itself imported.

    ``from a import b`` imports a's ``__init__`` first, which must then be complete: the empty ones
    of the folders are, and the package's own imports lazily.
    """
    return {name: house.needs(module, late=False) for name, module in house.modules.items()}


def files_per_folder(root: Path) -> Counter[str]:
    return Counter(
        str(path.parent.relative_to(root))
        for path in root.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    )


def lines_of_code() -> int:
    """Lines of Python in the package without docstrings, comments and blank lines."""
    return sum(map(code_lines, (SOURCE / PACKAGE).rglob("*.py")))


def code_lines(path: Path) -> int:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            docstrings.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    quiet = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    held: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in quiet and token.type != tokenize.ENDMARKER:
            held.update(range(token.start[0], token.end[0] + 1))
    return len(held - docstrings)
