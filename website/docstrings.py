"""Docstrings as the reference reads them: what follows ``name :`` is a sentence, the code has the type."""

from __future__ import annotations

import re
from typing import Any

import griffe

SECTION = re.compile(r"^(?:Parameters|Attributes)\n-+\n(?:.+\n?|\n(?=    ))*", re.MULTILINE)
ENTRY = re.compile(r"^(\w+(?:, \w+)*) : (.*(?:\n+    .*)*)", re.MULTILINE)


def with_types_from_code(text: str) -> str:
    """The docstring with every ``name : sentence`` as a name and, below it, the sentence.

    Names that share a sentence get one each: the reader of docstrings would give all of them the type
    and the default of the first.
    """
    return SECTION.sub(lambda section: ENTRY.sub(_apart, section[0]), text)


def _apart(entry: re.Match[str]) -> str:
    names, sentence = entry.groups()
    return "\n".join(f"{name}\n    {sentence}" for name in names.split(", "))


class Sentences(griffe.Extension):
    """Rewrites the docstring of every object that is shown."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = with_types_from_code(obj.docstring.value)
