"""What the pages say is true: their code runs, their links lead somewhere, the reference is complete."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import operator
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

import privgp
from papers.__main__ import NAMES
from papers.__main__ import app as papers_app
from privgp.audit import Membership, Promise, TradeOff
from privgp.command import main
from privgp.release.certificate import SCHEMA
from tests.command.running import subcommands

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]

RUN = {"python", "sh"}
SHOWN = {"", "text", "json", "toml"}
SKIPPED = {"make", "git", "cat", "cd", "ls", "pip", ".venv/bin/pre-commit"}
FORBIDDEN = re.compile(r"\bsessions?\b|\bissue #|\btodo\b", re.IGNORECASE)

FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
TEST_FILE = re.compile(r"tests/[\w/]+\.py")
HEADING = re.compile(r"^#+ +(.+?)\s*$", re.MULTILINE)


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def every_page(test: Any) -> Any:
    return pytest.mark.parametrize("page", PAGES, ids=named)(test)


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks_of(text: str) -> list[tuple[str, int, str]]:
    """Every fenced block: its language, the line it starts on, its text."""
    return [
        (found[1].strip(), text.count("\n", 0, found.start(2)), found[2])
        for found in FENCE.finditer(text)
    ]


def shell_lines(block: str) -> list[list[str]]:
    """The commands of a block as words; a backslash joins lines, comments are dropped."""
    lines = block.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def anchors_of(text: str) -> set[str]:
    """The headings as links name them."""
    titles = [re.sub(r"[^\w\- ]", "", title.lower()) for title in HEADING.findall(text)]
    return {title.replace(" ", "-") for title in titles}


def run_shell(words: list[str]) -> None:
    program, *arguments = words
    if Path(program).name == "privgp":
        assert main(arguments) == 0, shlex.join(words)
        return
    assert program in SKIPPED, f"neither run nor known to be skipped: {shlex.join(words)}"
    if program == "make":
        targets = re.findall(r"^([a-z][a-z-]*):", read(ROOT / "Makefile"), re.MULTILINE)
        assert set(arguments) <= set(targets), shlex.join(words)


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=named)
def test_the_test_files_that_a_page_names_exist(page):
    assert not [name for name in TEST_FILE.findall(read(page)) if not (ROOT / name).exists()]


@every_page
def test_the_code_of_a_page_runs_and_prints_what_the_page_shows(
    page, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setattr(
        "privgp.command.io.documents.EPSILONS", (0.5, 2.0)
    )  # it plans anew for each
    namespace: dict[str, Any] = {"__name__": "__main__"}
    text = read(page)
    for language, line, block in blocks_of(text):
        capsys.readouterr()
        if language == "python":
            # Empty lines before the code make tracebacks name the page's own lines.
            code = compile("\n" * line + block, str(page), "exec", dont_inherit=True)
            exec(code, namespace)
        elif language == "sh":
            for words in shell_lines(block):
                run_shell(words)
        if language in RUN and (shown := shown_output(text, line, block)) is not None:
            assert agrees(capsys.readouterr().out, shown), f"{named(page)}, line {line}"


def shown_output(text: str, line: int, block: str) -> str | None:
    """The block of text that directly follows a block of code: what the code prints."""
    rest = "\n".join(text.split("\n")[line + block.count("\n") + 1 :])
    found = re.match(r"\s*```text\n(.*?)^```$", rest, re.MULTILINE | re.DOTALL)
    return found and found[1]


def agrees(printed: str, shown: str) -> bool:
    """Whether both have the same words; ``...`` on the page stands for anything."""
    pattern = ".*".join(re.escape(" ".join(part.split())) for part in shown.split("..."))
    return re.fullmatch(pattern, " ".join(printed.split()), re.DOTALL) is not None


def test_an_output_that_differs_is_found():
    page = "```python\nprint(1, 2.5)\n```\n\n```text\n1 ...\n```\n"
    ((_, line, block), _) = blocks_of(page)
    shown = shown_output(page, line, block)
    assert shown is not None
    assert agrees("1 2.5\n", shown)
    assert not agrees("2 2.5\n", shown)


@every_page
def test_every_block_of_a_page_is_run_or_only_shown(page):
    text = read(page)
    assert {language for language, _, _ in blocks_of(text)} <= RUN | SHOWN
    assert "```" not in FENCE.sub("", text), "a fence is not closed, or not at the line's start"


@every_page
def test_links_lead_to_pages_files_and_headings_of_the_project(page):
    for target in LINK.findall(FENCE.sub("", read(page))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        place = (page.parent / path).resolve() if path else page
        assert place.is_relative_to(ROOT), target
        assert place.exists(), target
        if anchor:
            assert anchor in anchors_of(read(place)), target


@every_page
def test_formulas_are_written_as_mathematics(page):
    spans = re.findall(r"`([^`\n]+)`", FENCE.sub("", read(page)))
    assert not [span for span in spans if re.search("[≤≥√‖Σ∈²³⁻₀₁ᵀ∫⟨]", span)]


@every_page
def test_no_page_has_words_that_mean_nothing_to_readers(page):
    assert not FORBIDDEN.search(read(page))


def test_the_navigation_has_every_page_once():
    listed = re.findall(r"([\w/-]+\.md)$", read(ROOT / "mkdocs.yml"), re.MULTILINE)
    ours = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    assert not ours - set(listed)
    assert len(set(listed)) == len(listed)


# The reference: everything public is on the page, and everything on the page is there.


def section(title: str, page: str = "api.md") -> str:
    """The text under a heading, up to the next of the same or a higher rank."""
    text = read(DOCS / page)
    found = re.search(rf"^(#+) {re.escape(title)}$", text, re.MULTILINE)
    assert found, f"{page} has no heading {title!r}"
    after = text[found.end() :]
    following = re.search(rf"^#{{1,{len(found[1])}}} ", after, re.MULTILINE)
    return after[: following.start()] if following else after


def first_cells(text: str) -> set[str]:
    """The names in the first column of the tables of a section."""
    return {
        name
        for cell in re.findall(r"^\| (`[^|]+`)", text, re.MULTILINE)
        for name in re.findall(r"`([\w.]+)[^`]*`", cell)
    }


def public_names(thing: Any) -> set[str]:
    """Fields, properties and methods that a class or a base of the project defines."""
    ours = [base for base in thing.__mro__ if base.__module__.startswith("privgp")]
    names = {name for base in ours for name in vars(base) if not name.startswith("_")}
    if dataclasses.is_dataclass(thing):
        names |= {field.name for field in dataclasses.fields(thing)}
    return names


def assert_signature(function: Any, text: str, shown_as: str) -> None:
    """The page shows a call with every parameter, in order and with its default."""
    blocks = [block for language, _, block in blocks_of(text) if language == "text"]
    (shown,) = (block for block in blocks if block.startswith(shown_as))
    at = 0
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "self" or parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        plain = parameter.default is inspect.Parameter.empty
        wanted = name if plain else f"{name}={shown_default(parameter.default)}"
        found = re.compile(rf"[(\s]{re.escape(wanted)}[,)]").search(shown, at)
        assert found, f"{shown_as}: {wanted}"
        at = found.end() - 1


def shown_default(value: Any) -> str:
    if inspect.isfunction(value):
        return value.__name__
    return f'"{value}"' if isinstance(value, str) else re.sub(r"e([+-])0", r"e\1", repr(value))


@pytest.mark.parametrize("name", privgp.__all__)
def test_the_reference_has_every_public_name(name):
    assert re.search(rf"^##+ .*`(privgp\.)?{name}\b", read(DOCS / "api.md"), re.MULTILINE)


CALLS = {
    "PrivateGPRegressor": "PrivateGPRegressor plan epsilon_for fit predict interval plot save "
    "certificate",
    "PrivateGPClassifier": "PrivateGPClassifier plan fit predict_proba interval plot",
    "PrivateGP": "PrivateGP plan fit predict",
    "PrivateFunction": "PrivateFunction fit release plot save_state load_state",
    "PrivateBayesSearchCV": "PrivateBayesSearchCV plan fit predict",
    "PrivateGridSearchCV": "PrivateGridSearchCV fit describe",
    "PosteriorPaths": "PosteriorPaths guarantee_for calibrate fit release excursion",
    "BinnedMeans": "BinnedMeans fit predict",
    "BinnedGP": "BinnedGP predict",
    "Plan": "expected_std expected_error plot",
    "Ledger": "Ledger open verify",
    "Account": "charge answer",
    "compose": "compose",
    "load": "load",
    "audit.trade_off": "trade_off",
    "audit.membership": "membership",
    "audit.path_promise": "path_promise",
}


@pytest.mark.parametrize(
    ("title", "call"), [(title, call) for title, calls in CALLS.items() for call in calls.split()]
)
def test_the_reference_shows_signatures_as_they_are(title, call):
    thing = operator.attrgetter(title)(privgp)
    function = thing if title.endswith(call) else getattr(thing, call)
    assert_signature(function, section(f"`{title}`"), f"{call}(")


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        (kind.__name__, parameter)
        for kind in (
            privgp.PrivateGPRegressor,
            privgp.PrivateGPClassifier,
            privgp.PrivateGP,
            privgp.PrivateBayesSearchCV,
            privgp.PrivateGridSearchCV,
        )
        for parameter in inspect.signature(kind).parameters
    ],
)
def test_the_reference_explains_every_parameter(name, parameter):
    assert parameter in first_cells(section(f"`{name}`"))


def test_the_reference_has_the_attributes_of_the_bayesian_search():
    model = DummyClassifier()
    search = privgp.PrivateBayesSearchCV(
        model, {"random_state": [0, 1]}, epsilon=1, delta=0.1, n_iter=1, random_state=0
    )
    search.fit([[0], [1]], [0, 1], X_val=[[0], [1]], y_val=[0, 1])
    fitted = {name for name in vars(search) if name.endswith("_")}
    assert fitted <= first_cells(section("`PrivateBayesSearchCV`"))


@pytest.mark.parametrize("kind", [privgp.BinnedMeans, privgp.BinnedGP])
def test_the_reference_has_the_baselines_as_they_are(kind):
    rows = np.linspace(0.0, 1.0, 5)[:, None]
    model = kind(y_bounds=(0, 1), random_state=0).fit(rows, rows[:, 0].copy())
    fitted = {n for n in vars(model) if n.endswith("_") and not n.startswith("_")}
    title = f"`{kind.__name__}`"
    described = first_cells(section(title)) | first_cells(section("`BinnedMeans`"))
    assert fitted | {*inspect.signature(kind).parameters} <= described
    assert first_cells(section(title)) - fitted <= {*inspect.signature(kind).parameters} | {
        "feature_names_in_"
    }


def test_the_reference_has_the_regressor_as_it_is():
    rows = np.linspace(0.0, 1.0, 5)[:, None]
    model = privgp.PrivateGPRegressor(y_bounds=(0, 1), hyperparameters="fixed", random_state=0)
    model.fit(rows, rows[:, 0].copy())
    fitted = {name for name in vars(model) if name.endswith("_")} | {"plan_summary_"}
    known = fitted | {*inspect.signature(privgp.PrivateGPRegressor).parameters}
    described = first_cells(section("`PrivateGPRegressor`"))
    assert described - known <= {"feature_names_in_", "output_names_"}
    assert {"guarantee_", "plan_", "measurements_", "kernel_", "noise_variance_"} <= described
    assert fitted <= described


@pytest.mark.parametrize(
    ("kind", "title"),
    [
        (privgp.Plan, "`Plan`"),
        (privgp.Guarantee, "`Guarantee`"),
        (TradeOff, "`audit.TradeOff`"),
        (Membership, "`audit.Membership`"),
        (Promise, "`audit.Promise`"),
    ],
    ids=["Plan", "Guarantee", "TradeOff", "Membership", "Promise"],
)
def test_the_reference_has_the_attributes_of_values_as_they_are(kind, title):
    assert first_cells(section(title)) == public_names(kind)


@pytest.mark.parametrize("name", sorted(subcommands()))
def test_the_reference_has_every_option_of_every_subcommand(name):
    text = section(f"`privgp {name}`")
    told = [p for p in subcommands()[name].params if not getattr(p, "hidden", False)]
    wanted = {option for p in told for option in p.opts if "--" in option}
    shown = set(re.findall(r"--[a-z][a-z-]*", text)) | {"--help"}
    assert wanted <= shown
    opposites = {option for p in told for option in p.secondary_opts}
    assert shown <= wanted | opposites | {"--help"}


def test_the_gallery_has_every_name_and_option_of_the_papers():
    text = read(DOCS / "gallery.md").partition("\n## ")[0]
    (command,) = papers_app.registered_commands
    parameters = {f"--{name}" for name in inspect.signature(command.callback).parameters}
    assert set(re.findall(r"--[a-z][a-z-]*", text)) == parameters - {"--name"}
    (listed,) = re.findall(r"^- `NAME`: (.*)$", text, re.MULTILINE)
    assert set(re.findall(r"`([a-z]+)`", listed)) == {*NAMES, "all"}
    titles = "".join(re.findall(r"^## .*$", read(DOCS / "gallery.md"), re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", titles)) == {*NAMES}


def test_the_certificate_page_explains_every_field():
    wanted = set(SCHEMA["properties"])
    for part in ("bounds", "hyperparameters", "mechanism", "data", "utility"):
        wanted |= {f"{part}.{name}" for name in SCHEMA["properties"][part]["properties"]}
    described = first_cells(read(DOCS / "certificate.md"))
    assert {name for name in wanted if name not in described} == set()
    assert described <= wanted | set(SCHEMA["properties"]["holder"]["properties"])


def test_every_name_beside_a_symbol_exists():
    names = re.findall(r"`((?:privgp|papers)(?:\.\w+)+)`", read(DOCS / "symbols.md"))
    assert len(names) > 20
    assert "papers.shared.cloaking.hall_multiplier" in names
    for name in names:
        parts = name.split(".")
        for count in range(len(parts), 0, -1):
            try:
                found: Any = importlib.import_module(".".join(parts[:count]))
            except ImportError:
                continue
            break
        for part in parts[count:]:
            fields = getattr(found, "__dataclass_fields__", {})
            assert hasattr(found, part) or part in fields, name
            found = getattr(found, part, None)


def test_the_glossary_explains_terms_that_pages_use_in_one_sentence_each():
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", read(DOCS / "glossary.md"), re.MULTILINE)[1:]
    terms = [term for term, _ in rows]
    assert len(terms) > 50
    assert terms == sorted(set(terms), key=str.lower)
    others = "".join(read(page) for page in PAGES if page.name != "glossary.md").lower()
    assert [term for term in terms if term.lower() not in others] == []
    assert [
        meaning for _, meaning in rows if meaning.count(". ") or not meaning.endswith(".")
    ] == []
