"""The vault keeps quiet: it prints, logs, draws and opens nothing, and its errors are public words."""

from __future__ import annotations

import ast

from tests.house.source import House, Module, room_of, within

CHECKS = "privgp.vault.validate"  # of names and places, which are public; never of values
STATES = "privgp.vault.states"  # what a custodian keeps, written through privgp.storage
# What opens files of tables, and the one name of it that knows where a private column is.
OPENS = ("privgp.tables.files", "privgp.tables.parser")
MAY_READ = ("privgp.tables.files.Files",)

MAY_IMPORT = {
    "__future__", "typing", "warnings", "numpy", "opendp", "sklearn", "collections", "dataclasses",
    "contextlib", "datetime", "decimal", "functools", "hashlib", "inspect", "itertools", "math", "numbers", "privgp", "scipy",
    "secrets", "unicodedata", "uuid",
}  # fmt: skip
MAY_NOT_IMPORT_FROM = ("scipy.io", "numpy.lib", "sklearn.datasets")
# Of the public rooms below it the vault takes types, constants and plain mathematics. A name of
# ``plan`` is listed here once somebody saw that it is not handed a private value to compute on.
FROM_PLAN = {
    "Bins", "HalvedBins", "BinSums", "OutputSums", "JointSums", "Strategy", "Part",
    "ClassSums", "ClassGroupSums", "Features",
    "CheckedFactor", "FunctionModel", "RecordsModel", "PathModel", "path_model",
    "check_bounds", "check_choice", "check_inside", "SENSITIVITIES", "RECORD_SENSITIVITIES",
    "MAX_POINTS", "MOST_POINTS", "Inputs", "Tally", "Blocks", "sum_parts", "keys_of", "Places", "sum_columns", "DatabaseRows", "KEY",
    "Dealt", "Trial",
}  # fmt: skip

SPEAKING = {"print", "open", "input", "breakpoint", "exec", "eval", "repr", "__import__", "compile"}
SPEAKING_METHODS = {
    "save", "savez", "savetxt", "savez_compressed", "tofile", "dump", "load", "loadtxt", "genfromtxt",
    "fromfile", "memmap", "write", "write_text", "write_bytes", "read_text", "read_bytes",
    "debug", "info", "warning", "error", "critical", "exception", "log_message", "print_exc",
    "getLogger", "print_exception", "format_exc", "plot", "savefig",
}  # fmt: skip
# What may stand in a text: a number of rows; of a kept state also what was declared or answered.
PUBLIC_WORDS = {"rows"}
PUBLIC_WORDS_OF_STATES = PUBLIC_WORDS | {"name", "path", "most", "answered"}
PUBLIC_WORDS_OF_CHECKS = PUBLIC_WORDS | {"name", "called", "role", "other"}
OF_A_PROCESS = {"os.getpid", "os.PathLike", "os.fspath"}  # which states may take from os


def loud(house: House) -> set[str]:
    """Everything in the vault that imports too much, speaks, writes, or says more than it may."""
    found = set()
    for module in house.room("vault"):
        found |= {f"{module.name}: {what}" for what in _imports(module) | _says(module)}
    return found


def _imports(module: Module) -> set[str]:
    found = set()
    for each in module.imports:
        target = each.target
        room = room_of(target)
        first = target.partition(".")[0]
        of_states = within(module.name, STATES) and (
            first == "threading" or (first == "os" and _asks_the_process(module))
        )
        if first not in MAY_IMPORT and not of_states:
            found.add(f"imports {target}")
        if any(within(target, banned) for banned in MAY_NOT_IMPORT_FROM):
            found.add(f"imports {target}")
        if room == "storage" and not within(module.name, STATES):
            found.add(f"imports {target}, which is for kept states")
        if any(within(target, opener) for opener in OPENS) and target not in MAY_READ:
            found.add(f"imports {target}, which opens files")
        if room == "plan" and target.rpartition(".")[2] not in FROM_PLAN:
            found.add(f"takes {target} from plan")
    return found


def _asks_the_process(module: Module) -> bool:
    """Whether nothing else is taken from os."""
    used = {ast.unparse(node) for node in module.nodes if isinstance(node, ast.Attribute)}
    return {name for name in used if name.startswith("os.")} <= OF_A_PROCESS


def _says(module: Module) -> set[str]:
    found = set()
    special = {STATES: PUBLIC_WORDS_OF_STATES, CHECKS: PUBLIC_WORDS_OF_CHECKS}
    words = (special[room] for room in special if within(module.name, room))
    public = next(words, PUBLIC_WORDS)
    for node in module.nodes:
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name) and called.id in SPEAKING:
                found.add(f"calls {called.id}")
            elif isinstance(called, ast.Attribute) and called.attr in SPEAKING_METHODS:
                owner = ast.unparse(called.value)
                if (
                    within(module.name, STATES)
                    and room_of(module.bindings.get(owner, "")) == "storage"
                ):
                    continue
                found.add(f"calls .{called.attr}")
            if isinstance(called, ast.Attribute) and called.attr == "format":
                found.add("calls .format")
        elif isinstance(node, ast.JoinedStr):
            inside = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
            if not all(isinstance(v, ast.Name) and v.id in public for v in inside):
                found.add(f"says {ast.unparse(node)}")
        found |= {f"raises {ast.unparse(each)}" for each in _refusals(node) if not _fixed(each)}
    return found


def _refusals(node: ast.AST) -> list[ast.expr]:
    """The sentences that a statement may raise: those of ``raise``, and of ``require``."""
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        return node.exc.args
    if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "require":
        return [*node.args[1:], *(each.value for each in node.keywords)]
    return []


def _fixed(node: ast.expr) -> bool:
    """Text alone, or several put together; what stands in its braces is looked at elsewhere."""
    if isinstance(node, ast.BinOp):
        return _fixed(node.left) and _fixed(node.right)
    return isinstance(node, ast.Constant | ast.JoinedStr) or _is_constant(node)


def _is_constant(node: ast.expr) -> bool:
    """A name in capitals: a fixed sentence."""
    return (
        isinstance(node, ast.Name | ast.Attribute)
        and ast.unparse(node).rpartition(".")[2].isupper()
    )
