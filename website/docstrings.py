"""Docstrings as the reference reads them: what follows ``name :`` is a sentence, the code has the type."""

from __future__ import annotations

import re
from typing import Any

import griffe

SECTION = re.compile(r"^(?:Parameters|Attributes)\n-+\n(?:.+\n?|\n(?=    ))*", re.MULTILINE)
ENTRY = re.compile(r"^(\w+(?:, \w+)*) : (.*)$", re.MULTILINE)


def with_types_from_code(text: str) -> str:
    """The docstring with every ``name : sentence`` as a name and, below it, the sentence."""
    return SECTION.sub(lambda section: ENTRY.sub(r"\1\n    \2", section[0]), text)


class Sentences(griffe.Extension):
    """Rewrites the docstring of every object that is shown."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = with_types_from_code(obj.docstring.value)
