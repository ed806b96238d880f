"""Pages and code are written in plain English: see ``tests/house/words.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house import words

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
# How many are left.
MOST_IN_PAGES, MOST_IN_CODE = 0, 0


def test_pages_are_written_plainly():
    found = {str(page): words.found(words.texts_of_page(page)) for page in words.pages(ROOT)}
    assert sum(map(len, found.values())) <= MOST_IN_PAGES, {k: v for k, v in found.items() if v}


def test_code_and_messages_are_written_plainly():
    texts = [words.found(words.texts_of_module(module)) for module in words.modules()]
    texts += [words.found(iter([page.read_text("utf-8")])) for page in words.templates()]
    assert sum(map(len, texts)) <= MOST_IN_CODE


def test_there_are_forty_patterns():
    assert len(words.BANNED) >= 40


@pytest.mark.parametrize(
    "text",
    [
        "Of all rows some are used.",
        "The noise is kept for ever.",
        "3 rows in all.",
        "It is private, too.",
        "The model knows its inputs.",
        "'a' is no column of X.",
        "Bins in the place of records.",
    ],
)
def test_a_planted_sentence_is_found(text):
    assert words.found(iter([text]))
    assert not words.found(iter(["Of course the total is kept.", "There is no column."]))


@pytest.mark.parametrize("section", words.BUDGETS)
def test_a_section_keeps_its_budget_of_words(section):
    budget, names = words.BUDGETS[section]
    counts = {name: words.count_words(words.read_page(DOCS, name)) for name in names.split()}
    assert 0.9 * budget <= sum(counts.values()) <= 1.1 * budget, counts


def test_every_page_is_in_a_section():
    listed = {name for _, names in words.BUDGETS.values() for name in names.split()}
    found = {path.stem for path in DOCS.glob("*.md")}
    assert found == {name for name in listed if "/" not in name}


@pytest.mark.parametrize("section", ["guides", "for people"])
def test_guides_are_easy_to_read(section):
    names = words.BUDGETS[section][1].split()
    ease = {name: words.reading_ease(words.read_page(DOCS, name)) for name in names}
    assert sum(ease.values()) / len(ease) >= 50, ease


def test_no_page_is_hard_to_read():
    names = [
        n for s, (_, all_of) in words.BUDGETS.items() if s != "reference" for n in all_of.split()
    ]
    ease = {name: words.reading_ease(words.read_page(DOCS, name)) for name in names}
    assert not {name: value for name, value in ease.items() if value < 35}


def test_words_and_ease_are_counted_as_readers_would():
    page = (
        "# Title\n\nThe cat sat. It ran!\n\n```python\nnot = counted\n```\n\n| a | b |\n|---|---|\n"
    )
    assert words.count_words(page) == 8
    assert words.reading_ease(page) > 100
    hard = "Considerable institutional responsibilities necessitate interdisciplinary deliberation."
    assert words.reading_ease(hard) < 0
