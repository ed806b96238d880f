"""Pages and code are written in plain English: see ``tests/house/words.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house import words

ROOT = Path(__file__).resolve().parents[1]
# Texts that still have some. Limits may only fall.
MOST_IN_PAGES, MOST_IN_CODE = 0, 6  # sentences that published files hold


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
    "text", ["Of all rows some are used.", "The noise is kept for ever.", "3 rows in all."]
)
def test_a_planted_sentence_is_found(text):
    assert words.found(iter([text]))
    assert not words.found(iter(["Of course the total is kept."]))
