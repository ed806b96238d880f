"""The package as text: every module's source, its syntax tree and what it imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"
PACKAGE = "privgp"


def within(module: str, room: str) -> bool:
    return module == room or module.startswith(room + ".")


def room_of(module: str) -> str:
    """``privgp.plan.bins.bins`` lies in ``plan``; the package itself in no room."""
    return module.split(".")[1] if within(module, PACKAGE) and "." in module else ""


@dataclass(frozen=True)
class Import:
    """``name`` is bound to ``target``, a module or something in one; ``late``: not at import time."""

    name: str
    target: str
    late: bool


class Module:
    """One file of code."""

    def __init__(self, name: str, text: str, *, is_package: bool) -> None:
        self.name, self.text, self.is_package = name, text, is_package

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """The whole tree."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def calls(self) -> tuple[ast.Call, ...]:
        return tuple(node for node in self.nodes if isinstance(node, ast.Call))

    @cached_property
    def code(self) -> tuple[str, ...]:
        """The lines without docstrings and comments."""
        silent: set[int] = set()
        for node in self.nodes:
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                silent.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        lines = enumerate(self.text.splitlines(), 1)
        return tuple(line.partition("#")[0] for place, line in lines if place not in silent)

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        """All of them, at any depth of the code."""
        found: list[Import] = []
        for node in self.nodes:
            if isinstance(node, ast.Import):
                late = self._is_late(node)
                for alias in node.names:
                    bound = alias.asname or alias.name.partition(".")[0]
                    target = alias.name if alias.asname or "." in alias.name else bound
                    found.append(Import(bound, target, late))
            elif isinstance(node, ast.ImportFrom):
                late, base = self._is_late(node), self._base(node)
                found.extend(
                    Import(alias.asname or alias.name, f"{base}.{alias.name}", late)
                    for alias in node.names
                )
        return tuple(found)

    @cached_property
    def bindings(self) -> dict[str, str]:
        """What a name of this module stands for: an imported thing, or one defined here."""
        made = {
            node.name: f"{self.name}.{node.name}"
            for node in self.tree.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        }
        return {each.name: each.target for each in self.imports} | made

    def _base(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        package = self.name if self.is_package else self.name.rpartition(".")[0]
        parts = package.split(".")
        above = parts[: len(parts) - node.level + 1]
        return ".".join([*above, *([node.module] if node.module else [])])

    def _is_late(self, node: ast.AST) -> bool:
        """Whether it happens in a function, or for the type checker alone."""
        while node in self.parents:
            node = self.parents[node]
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                return True
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                return True
        return False


class House:
    """All modules by name. A house can be planted with text that breaks a rule."""

    def __init__(self, modules: Mapping[str, Module]) -> None:
        self.modules = dict(modules)

    @classmethod
    @cache
    def built(cls) -> House:
        """The package as it is; modules that are not planted are read once for all tests."""
        modules = {}
        for path in sorted((SOURCE / PACKAGE).rglob("*.py")):
            parts = path.relative_to(SOURCE).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            text = path.read_text(encoding="utf-8")
            modules[name] = Module(name, text, is_package=is_package)
        return cls(modules)

    def planted(self, name: str, text: str) -> House:
        """The same house with text added at the end of a module, which may be a new one."""
        former = self.modules.get(name)
        whole = f"{former.text if former else ''}\n\n{text}"
        is_package = former is not None and former.is_package
        return House({**self.modules, name: Module(name, whole, is_package=is_package)})

    def room(self, *names: str) -> Iterator[Module]:
        return (module for module in self.modules.values() if room_of(module.name) in names)

    def module_of(self, target: str) -> str | None:
        """The module of the package that an imported name is, or is in."""
        while within(target, PACKAGE):
            if target in self.modules:
                return target
            target = target.rpartition(".")[0]
        return None

    def needs(self, module: Module, *, late: bool = True) -> set[str]:
        """The modules of the package that this one imports; ``late=False``: when it is imported."""
        targets = (each.target for each in module.imports if late or not each.late)
        return {found for target in targets if (found := self.module_of(target))} - {module.name}
