"""What the pages say is true: their code runs, their links lead somewhere, the reference is complete."""

from __future__ import annotations

import importlib
import inspect
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from papers.__main__ import NAMES
from papers.__main__ import app as papers_app
from privgp.command import main
from privgp.release.certificate import SCHEMA

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


def first_cells(text: str) -> set[str]:
    """The names in the first column of the tables of a section."""
    return {
        name
        for cell in re.findall(r"^\| (`[^|]+`)", text, re.MULTILINE)
        for name in re.findall(r"`([\w.]+)[^`]*`", cell)
    }


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
