"""The reference, written from the code into docs/reference: ``python -m website.reference``.

One page per public object, whose text mkdocstrings reads from its docstrings; one page for the command,
from its options; one page of combinations that are refused, from the rules of the package. A test
compares the pages with the code.
"""

from __future__ import annotations

import inspect
import io
import os
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import privgp
from privgp.command import main
from privgp.command.app import EXAMPLES
from privgp.question.rules import COLUMNS, GIVEN, OUTCOME, RULES, Rule

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
GROUPS = {
    "Models": "PrivateGPRegressor PrivateGPClassifier PrivateGP PrivateGPDensity BinnedMeans BinnedGP",
    "Outcomes and kernels": "Number Count Label Presence VaryingLengthscale",
    "Plans, guarantees and averages": "Plan Guarantee compose load load_plan open_table Average",
    "Budgets": "Ledger Account LedgerError BudgetExceeded LedgerTampered",
    "Bounds and searches": "private_bounds PrivateBounds PrivateGridSearchCV PrivateBayesSearchCV",
    "Functions and paths": "PrivateFunction PosteriorPaths tune_for",
    "Servers": "Client",
    "Audits": "audit.trade_off audit.TradeOff audit.membership audit.Membership audit.path_promise "
    "audit.Promise",
}
HOMES = {"Average": "privgp.release.queries.averages"}  # what methods return
TYPES = """\
## Types of arguments

| type | meaning |
|---|---|
| `Table` | rows of inputs: an array, a data frame of any library, nested lists, or the `inputs` of `open_table` |
| `Column` | one value per row: an array, a series, a list, or a column of `open_table` |
| `Bounds` | `(low, high)`, or one such pair per column |
| `RandomState` | an integer or a NumPy `RandomState` for simulations; `None` for the noise that protects |
| `Array` | a NumPy array of `float64` |
"""


def thing(name: str) -> Any:
    """The object behind a public name, such as "audit.trade_off"."""
    if name in HOMES:
        return getattr(__import__(HOMES[name], fromlist=[name]), name)
    found: Any = privgp
    for part in name.split("."):
        found = getattr(found, part)
    return found


def file_name(name: str) -> str:
    """The file of a page; names of files differ by more than capitals."""
    room, _, word = name.rpartition(".")
    return f"{room}_{word}{'_result' if word[0].isupper() else ''}.md" if room else f"{word}.md"


def summary(name: str) -> str:
    """The first sentence of a docstring, in one line."""
    first = " ".join((inspect.getdoc(thing(name)) or "").split("\n\n")[0].split())
    return first.split(". ")[0].rstrip(".").replace("``", "`").replace("|", "\\|")


def members(kind: type) -> tuple[list[str], list[str]]:
    """The public methods and properties of a class: all of them, and the inherited ones."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith("privgp")]

    def names(base: type) -> list[str]:
        return [
            name
            for name, value in vars(base).items()
            if not name.startswith(("_", "set_"))
            if inspect.isroutine(value) or isinstance(value, property) or hasattr(value, "fn")
        ]

    fields = getattr(kind, "__dataclass_fields__", {})  # explained as parameters
    named = (name for base in ours for name in names(base))
    every = list(dict.fromkeys(name for name in named if name not in fields))
    return every, [name for name in every if name not in names(kind)]


def object_page(name: str) -> str:
    """The page of one object: the place where its docstrings are shown, under its name."""
    found = thing(name)
    lines = [f"::: {found.__module__}.{found.__name__}", "    options:", "      heading_level: 1"]
    if inspect.isclass(found):
        every, inherited = members(found)
        lines += [f"      members: [{', '.join(every)}]"]
        lines += [f"      inherited_members: [{', '.join(inherited)}]"] if inherited else []
    return "\n".join([*lines, ""])


def index_page() -> str:
    """Every object with the first sentence of its docstring."""
    parts = [
        "# Reference",
        "",
        "Everything that `import privgp` offers. These pages are written from the",
    ]
    parts += ["code. See also [the command](command.md) and [the combinations that are"]
    parts += ["refused](combinations.md).", ""]
    for title, names in GROUPS.items():
        parts += [f"## {title}", "", "| name | meaning |", "|---|---|"]
        parts += [f"| [`{name}`]({file_name(name)}) | {summary(name)} |" for name in names.split()]
        parts += [""]
    return "\n".join([*parts, TYPES])


def where(rule: Rule, value: object) -> str:
    """What parameters do not go with."""
    if rule.where == OUTCOME:
        return str(value)
    if value is None:
        return f"rows without `{rule.where}`"
    return f"`{rule.where}`" if value == GIVEN else f'`{rule.where}="{value}"`'


def combinations_page() -> str:
    """The combinations that are refused, with the reason of each."""
    lines = ["# Combinations that are refused", ""]
    lines += ["The estimators, the command and the server refuse the same combinations."]
    lines += ["Every reason has a proof.", ""]
    lines += ["| parameters or columns | do not go with | because | proof |", "|---|---|---|---|"]
    for rule in RULES:
        names = ", ".join(f"`{name}`" for name in rule.names)
        places = " or ".join(where(rule, value) for value in rule.values)
        proof = f"[{rule.proof}](../proofs/{rule.proof}.md)"
        lines += [f"| {names} | {places} | {rule.reason} | {proof} |"]
    columns = ", ".join(f"`{name}`" for name in COLUMNS)
    return "\n".join([*lines, "", f"Columns beside the inputs are {columns}.", ""])


def command_page() -> str:
    """What every subcommand prints for ``--help-all``."""
    lines = ["# The command `privgp`", ""]
    lines += [
        "`privgp SUBCOMMAND --help` shows the options that most people need; this page shows all of"
    ]
    lines += ["them. A refusal is one sentence on the standard error, and the exit code is 2.", ""]
    for name in EXAMPLES:
        lines += [f"## `privgp {name}`", "", "```text", help_of(name), "```", ""]
    return "\n".join(lines)


def help_of(name: str) -> str:
    """The help of a subcommand, 100 columns wide."""
    shown = io.StringIO()
    with mock.patch.dict(os.environ, {"COLUMNS": "100", "NO_COLOR": "1"}), redirect_stdout(shown):
        assert main([*name.split(), "--help-all"]) == 0
    return "\n".join(line.rstrip() for line in shown.getvalue().strip().splitlines())


def pages() -> dict[str, str]:
    """Every page of the reference by its file name."""
    names = [name for group in GROUPS.values() for name in group.split()]
    made = {file_name(name): object_page(name) for name in names}
    assert len(made) == len(names), "two objects share a file name"
    return made | {
        "README.md": index_page(),
        "combinations.md": combinations_page(),
        "command.md": command_page(),
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.md"):
        old.unlink()
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
