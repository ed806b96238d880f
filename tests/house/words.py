"""Patterns of hard-to-read English, and the texts that must not have them: pages, docstrings, comments,
messages, help and templates."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.house.source import PACKAGE, SOURCE

# Each with what to write instead.
BANNED = {
    r"(?:^|[.!?:] )Of (?!course)[a-z]": "put the subject first",
    r"\bunless given\b": "by default",
    r"\bfor ever\b": "permanently",
    r"\b[Ww]hoever\b": "anyone who",
    r"\bstands? for all\b": "represents",
    r"\bstands? (?:in|on|once|twice|elsewhere|there|here|below|above|beside)\b": "is",
    r"\bsays? so\b": "states this",
    r"\bin all(?=[.,;:)]|$)": "in total",
    r"\bof its own(?=[.,;:)]|$)": "its own",
    r"\bof their own(?=[.,;:)]|$)": "their own",
    r"\bby itself\b": "separately",
    r"\bby themselves\b": "separately",
    r"\bplainly\b": "clearly",
    r"\bso many\b": "that many",
    r"\bwhat it is\b(?! given| told)": "its kind",
    r"\bthat (?:is|are) there\b": "that exist",
    r"\bmade[- ]up\b": "simulated",
    r"\b[Ee]rror bars?\b": "interval",
    r"\bin earnest\b": "in production",
    r"\ba place to ask\b": "a server",
    r"\b[Nn]o interval knows\b": "intervals do not account for this",
    r"\bnobody is told\b": "silently",
    r"\bis not told\b": "does not learn",
    r"\bit is told\b": "it receives",
    r"\btells? apart\b": "distinguish",
    r"\bbut for\b": "except",
    r"\bnone of them\b(?= knows)": "none accounts for this",
    r"\bas (?:one|people) (?:has|have) (?:it|them)\b": "as written",
    r"\bwhat (?:of it|of them|of these)\b": "which part",
    r"\bmost at once\b": "at most",
    r"\bis an admission\b": "means unknown",
    r"\ban admission\b": "unknown",
    r"\bput in front of you\b": "consider",
    r"\bspend your thoughts\b": "concentrate",
    r"\blook(?:s|ed)? through for\b": "searched for",
    r"\bthe nicest\b(?! (?:of|is|:))": "the best",
    r"\bhas nothing of\b": "does not contain",
    r"\bwhom this makes\b": "who become",
    r"\bhow the table is\b": "the format of the table",
    r"\bwhat nobody can do without\b": "the minimum",
    r"\bsuch as they are\b": "as they are",
    r", too[.;]": "as well, or another order",
    r"(?<!differ )\bin the place of\b": "instead of",
    r"\b(?:plans?|intervals?|releases?|curves?|pictures?|certificates?|models?|ledgers?|noise|tables?) "
    r"(?:knows?|tells?)\b(?! apart)": "shows, states, contains",
    r"\bsays it already\b": "has it already",
    r"\bis said to be\b": "is declared to be",
    r"\bread off\b": "read from",
    r"\btold apart\b": "distinguished",
    r"(?<![Tt]here )\bis no (?:certificate|column|label|number|table)\b": "is not a",
    r"\bnobody but\b": "only",
    r"\bholds? the function\b": "contains",
    r"\bnothing of the\b": "no",
    r"\btell(?:ing)? more than\b": "contain more information than",
    r"\beach further one\b": "each further and its noun",
    r"\bmeant at\b": "applies to",
    r"\bas it does\b": "in the same way",
}
PATTERN = re.compile("|".join(f"(?:{each})" for each in BANNED), re.MULTILINE)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
# The sections of the site: words of prose and tables, without code, and the pages that have them.
BUDGETS = {
    "landing page": (300, "README"),
    "learn": (
        4500,
        "ideas tutorial tutorial-map tutorial-file cheat-sheet notebooks/README"
        " notebooks/growth-curve notebooks/city-map notebooks/case-counts",
    ),
    "guides": (
        8400,
        "custodians analysts many-rows private-inputs tables classes counts survey-weights"
        " several-outputs density engine ledger updates averages server",
    ),
    "advanced": (
        1800,
        "which-method kernels choosing-hyperparameters private-search whole-functions"
        " sample-paths audits",
    ),
    "concepts": (4000, "public-inputs choosing error-bars several-releases sharp-edges"),
    "for people": (2500, "citizens dpia reviewers faq troubleshooting"),
    "reference": (3000, "certificate glossary symbols"),
    "evidence": (3500, "benchmarks measured comparison suite gallery papers"),
}


def texts_of_page(path: Path) -> Iterator[str]:
    """A page without its code and its tables of what to search for."""
    yield FENCE.sub("", path.read_text(encoding="utf-8"))


def texts_of_module(path: Path) -> Iterator[str]:
    """Docstrings, other strings and comments."""
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield " ".join(node.value.split())
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string.lstrip("# ")


def pages(root: Path) -> list[Path]:
    """Everything that users read as text."""
    top = [
        root / "README.md",
        root / "CONTRIBUTING.md",
        root / "SECURITY.md",
        root / "CHANGELOG.md",
    ]
    return [*top, *sorted((root / "docs").rglob("*.md"))]


def templates() -> list[Path]:
    """The pages of the server."""
    return sorted((SOURCE / PACKAGE).rglob("*.html"))


def modules() -> list[Path]:
    """The code of the package."""
    return sorted((SOURCE / PACKAGE).rglob("*.py"))


def found(texts: Iterator[str]) -> list[str]:
    """The banned words in some texts."""
    return [match.group().strip() for text in texts for match in PATTERN.finditer(text)]


def read_page(docs: Path, name: str) -> str:
    """The text of a page, or of the text cells of a notebook."""
    page = docs / f"{name}.md"
    if page.exists():
        return page.read_text("utf-8")
    cells = json.loads((docs / f"{name}.ipynb").read_text("utf-8"))["cells"]
    return "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


def count_words(text: str) -> int:
    """Words of prose and tables, without code, pictures and addresses."""
    text = FENCE.sub("", text)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    text = re.sub(r"^\|[-| :]+\|$", "", text, flags=re.MULTILINE)
    return len(re.findall(r"[A-Za-z0-9][\w'’.-]*", text))


def prose(text: str) -> str:
    """Sentences alone: no code, tables, headings, pictures, addresses and formulas."""
    text = re.sub(r"^(?:\||#+ ).*$", "", FENCE.sub("", text), flags=re.MULTILINE)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\$[^$]*\$", "x", re.sub(r"`[^`]*`", "code", text))
    text = re.sub(r"^\s*(?:[-*]|\d+\.) ", "", text, flags=re.MULTILINE)
    return re.sub(r"[*_]", "", text)


def syllables(word: str) -> int:
    """Groups of vowels, without a silent ending."""
    word = word.lower()
    if len(word) <= 3:
        return 1
    if not re.search(r"[td]ed$", word):
        word = re.sub(r"ed$|(?<=[^laeiouy])es?$", "", word)
    return max(1, len(re.findall(r"[aeiouy]{1,2}", word.removeprefix("y"))))


def reading_ease(text: str) -> float:
    """Flesch's reading ease: 60 is plain English, 30 is hard. A sentence ends with . ! ? or its line."""
    text = prose(text)
    lines = [line for line in text.split("\n") if line.strip()]
    sentences = [s for line in lines for s in re.split(r"(?<=[.!?])\s+", line)]
    count = sum(bool(re.search("[A-Za-z]", sentence)) for sentence in sentences)
    every = re.findall(r"[A-Za-z][A-Za-z'’-]*", text)
    spoken = sum(map(syllables, every)) / len(every)
    return 206.835 - 1.015 * len(every) / count - 84.6 * spoken
