"""Every line of code knows its room: only the vault computes on private values, and it keeps quiet."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src"
FILES = sorted((SOURCE / "privgp").rglob("*.py"))
PUBLIC = ("plan", "release", "privacy")
VAULT_MAY_USE = (
    "privgp.gp",
    "privgp.plan.strategy",
    "privgp.plan.bins",
    "privgp.gp.kernels.proved",
    "privgp.gp.kernels.evaluate",
    "privgp.gp.surrogate",
    "privgp.plan.streamed.columns",
    "privgp.plan.inputs.rows",
    "privgp.plan.inputs.arguments",
    "privgp.plan.functions",
    "privgp.plan.search.space",
    "privgp.privacy",
    "privgp.storage",
    "privgp.types",
    "privgp.vault",
)
VAULT_MAY_IMPORT = {"__future__", "typing", "warnings", "numpy", "opendp", "sklearn", "collections",
    "dataclasses", "decimal", "functools", "math", "numbers", "privgp", "scipy", "threading",
    "os", "contextlib"}  # fmt: skip
# States are files that a curator keeps: this one writes lines itself, the others through storage.
WRITES_LINES = "privgp.vault.states.search_file"
PUBLIC_WORDS = {"rows", "most", "answered", "path"}
VAULT_MAY_NOT_IMPORT_FROM = ("scipy.io", "numpy.lib", "sklearn.datasets")
SPEAKING = {"print", "open", "input", "breakpoint", "exec", "eval", "repr", "__import__", "compile"}
SPEAKING_METHODS = {
    "save", "savez", "savetxt", "savez_compressed", "tofile", "dump", "load", "loadtxt", "genfromtxt",
    "fromfile", "memmap", "write", "write_text", "write_bytes", "read_text", "read_bytes",
    "debug", "info", "warning", "error", "critical", "exception", "log_message", "print_exc", "getLogger",
    "print_exception", "format_exc", "plot", "savefig",
}  # fmt: skip


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {name_of(path): path for path in FILES}


@cache
def tree_of(name: str) -> ast.Module:
    return ast.parse(NAMES[name].read_text(encoding="utf-8"))


@cache
def imports_of(name: str) -> frozenset[str]:
    """Every module that this one imports, at any depth of its code; `from a import b` gives both."""
    package = name if NAMES[name].name == "__init__.py" else name.rpartition(".")[0]
    found: set[str] = set()
    for node in ast.walk(tree_of(name)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([node.module] if node.module else [])])
            found.add(base)
            found.update(
                f"{base}.{alias.name}"
                for alias in node.names
                if f"{base}.{alias.name}" in NAMES or not base.startswith("privgp")
            )
    return frozenset(found)


def within(module: str, room: str) -> bool:
    return module == room or module.startswith(room + ".")


def room(name: str) -> list[str]:
    return [module for module in NAMES if within(module, f"privgp.{name}")]


def reached_from(name: str) -> set[str]:
    """All of the project's modules that this one needs, directly or through others."""
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        module = waiting.pop()
        if module in NAMES and module not in seen:
            seen.add(module)
            # the package's own __init__ imports everything: it is what users see, not a need
            waiting.extend(found for found in imports_of(module) if found != "privgp")
    return seen


def calls_in(name: str):
    for node in ast.walk(tree_of(name)):
        if isinstance(node, ast.Call):
            yield node.func


def test_the_walk_sees_the_whole_house():
    assert {"privgp.vault.measure", "privgp.plan.strategy", "privgp.models.regressor"} <= set(NAMES)
    assert "privgp.vault.noise" in imports_of("privgp.vault.measure")
    assert "privgp.vault.measure" in reached_from("privgp.models.regressor")


@pytest.mark.parametrize("name", [module for part in PUBLIC for module in room(part)])
def test_public_rooms_never_import_the_vault(name):
    assert not [module for module in imports_of(name) if within(module, "privgp.vault")]


@pytest.mark.parametrize("name", [module for part in ("plan", "privacy") for module in room(part)])
def test_planning_never_reaches_the_vault_through_others_either(name):
    assert not [module for module in reached_from(name) if within(module, "privgp.vault")]


@pytest.mark.parametrize("name", room("pictures"))
def test_pictures_know_no_other_room(name):
    for module in imports_of(name):
        if within(module, "privgp"):
            assert within(module, "privgp.pictures") or within(module, "privgp.types"), module


def test_the_package_imports_nothing_that_is_not_installed():
    beside = ("papers", "benchmarks", "tests")
    assert not [
        (name, module)
        for name in NAMES
        for module in imports_of(name)
        if any(within(module, part) for part in beside)
    ]


@pytest.mark.parametrize("name", room("vault"))
def test_the_vault_imports_little(name):
    for module in imports_of(name):
        if within(module, "privgp"):
            assert any(within(module, allowed) for allowed in VAULT_MAY_USE), module
        elif name != WRITES_LINES:
            assert module.partition(".")[0] in VAULT_MAY_IMPORT, module
            assert not any(within(module, banned) for banned in VAULT_MAY_NOT_IMPORT_FROM), module


@pytest.mark.parametrize("name", room("vault"))
def test_the_vault_needs_nothing_that_plots_prints_logs_or_reads_files(name):
    banned = {"logging", "matplotlib", "rich", "typer", "polars", "pandas", "pathlib", "os", "io",
        "sys", "json", "pickle", "csv", "sqlite3", "socket", "subprocess", "tempfile", "shutil",
        "traceback", "pdb", "joblib", "requests", "urllib"}  # fmt: skip
    if within(name, "privgp.vault.states"):
        banned -= {"os"}  # the number of a process, and paths of files
    for module in reached_from(name) & set(room("vault")) - {WRITES_LINES}:
        assert not {found.partition(".")[0] for found in imports_of(module)} & banned


@pytest.mark.parametrize("name", room("vault"))
def test_the_vault_neither_speaks_nor_writes(name):
    if name == WRITES_LINES:
        return
    for called in calls_in(name):
        if isinstance(called, ast.Name):
            assert called.id not in SPEAKING, f"line {called.lineno}"
        elif isinstance(called, ast.Attribute):
            assert called.attr not in SPEAKING_METHODS, f"line {called.lineno}"


@pytest.mark.parametrize("name", room("vault"))
def test_errors_and_warnings_of_the_vault_are_made_of_public_words(name):
    """A raised or warned message is a constant, or interpolates public words: counts of rows and
    points, and the path of a file."""
    if name == WRITES_LINES:
        return
    for node in ast.walk(tree_of(name)):
        if isinstance(node, ast.JoinedStr):
            inside = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
            assert all(isinstance(v, ast.Name) and v.id in PUBLIC_WORDS for v in inside), (
                node.lineno
            )
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            for argument in node.exc.args:
                source = argument.func if isinstance(argument, ast.Call) else argument
                named = ast.unparse(source).rpartition(".")[2]
                known = isinstance(argument, ast.Constant | ast.JoinedStr) or named in WORDS
                assert known, node.lineno
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            assert node.func.attr != "format", node.lineno


# Constants and functions of the vault's states that make their sentences
WORDS = ("COPIED", "OTHER_PROCESS", "NOT_TOGETHER", "OTHER_PROMISE", "TOO_MUCH", "too_many",
    "second_file")  # fmt: skip

PRIVATE = {
    "privgp.models.function.estimator": ("fit", ("y",), ("fit", "self._prepared")),
    "privgp.models.function.outputs": (
        "fit_outputs",
        ("y",),
        ("checked_outputs", "first_draws"),
    ),
    "privgp.models.function.records": (
        "fit_records",
        ("X", "y", "inputs"),
        ("checked_inputs", "checked_outputs", "first_record_draws", "validate_data", "len"),
    ),
    "privgp.models.paths": (
        "fit",
        ("X", "y", "inputs"),
        (
            "checked_inputs",
            "checked_outputs",
            "first_path_draws",
            "validate_data",
            "len",
            "self._prepared",
        ),
    ),
    "privgp.models.kept": ("_prepared", ("y",), ()),
    "privgp.models.binned.measured": ("fit", ("X", "y"), ("release_outputs", "release_records")),
    "privgp.models.binned.outputs": (
        "release_outputs",
        ("y",),
        ("checked_outputs", "self._measured"),
    ),
    "privgp.models.binned.means records": (
        "_measure_records",
        ("X", "y", "inputs"),
        ("checked_inputs", "checked_outputs", "self._measured", "validate_data", "len"),
    ),
    "privgp.models.binned.means measured": ("_measured", ("data",), ("measure",)),
    "privgp.models.regressor": (
        "fit",
        ("y",),
        ("checked_outputs", "measure", "fit_records", "with_outputs"),
    ),
    "privgp.models.inducing": ("fit_rows", ("pairs",), ("measure_rows",)),
    "privgp.models.search.bayes": (
        "fit",
        ("X_val", "y_val", "validation"),
        ("checked_validation", "search"),
    ),
    "privgp.models.search.bayes measured": ("_measure", ("validation",), ("measured_loss",)),
    "privgp.models.search.bayes kusner": ("_search_in_vault", ("validation",), ("Objective",)),
    "privgp.models.search.grid": (
        "fit",
        ("y", "X_val", "y_val"),
        ("fit_by_evidence", "fit_by_cross_validation", "self._fit_validated"),
    ),
    "privgp.models.search.grid validated": (
        "_fit_validated",
        ("X_val", "y_val", "validation"),
        ("checked_validation", "choose_by_validation"),
    ),
    "privgp.models.search.outputs evidence": (
        "fit_by_evidence",
        ("y",),
        ("checked_outputs", "measure"),
    ),
    "privgp.models.search.outputs cross-validation": (
        "fit_by_cross_validation",
        ("y",),
        ("checked_outputs", "choose_by_residuals", "model.fit"),
    ),
    "privgp.models.records": (
        "fit_records",
        ("X", "y", "inputs"),
        ("checked_inputs", "checked_outputs", "measure", "validate_data", "len"),
    ),
    # made_up uses the names of columns and the number of rows
    "privgp.command.io.columns": ("output_column", ("cells",), ("column_numbers",)),
    "privgp.command.io.spending prepared": ("prepared", ("y",), ("model.fit",)),
    "privgp.command.function": ("create", ("X", "y"), ("function.fit", "made_up")),
    "privgp.command.paths": ("create", ("X", "y"), ("paths.fit",)),
    "privgp.command.search.grid": ("grid", ("y",), ("search.fit",)),
    "privgp.command.search.bayes": ("bayes", ("X_val", "y_val"), ("search.fit",)),
}


@pytest.mark.parametrize("module", PRIVATE)
def test_private_values_go_straight_from_fit_into_the_vault(module):
    """They are only compared with None, counted, and handed to the vault (and, for the names of
    its columns, X to scikit-learn, which is told not to look at values)."""
    function, names, receivers = PRIVATE[module]
    (fit,) = (
        node
        for node in ast.walk(tree_of(module.partition(" ")[0]))
        if isinstance(node, ast.FunctionDef) and node.name == function
    )
    taken = {
        id(part)
        for node in ast.walk(fit)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in receivers
        for argument in node.args
        for part in (argument.elts if isinstance(argument, ast.Tuple) else [argument])
    }
    # how many validation records there are is public, and so is the loss
    taken |= {
        id(node.value)
        for node in ast.walk(fit)
        if isinstance(node, ast.Attribute)
        if node.attr in ("rows", "loss")
    }
    compared = {id(node.left) for node in ast.walk(fit) if isinstance(node, ast.Compare)}
    uses = [n for n in ast.walk(fit) if isinstance(n, ast.Name) and n.id in names]
    assert uses
    for use in uses:
        if isinstance(use.ctx, ast.Load):
            assert id(use) in taken | compared, f"line {use.lineno}"
