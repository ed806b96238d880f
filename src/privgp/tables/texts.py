"""Numbers and dates that come as text in a way that only people read, such as 45% or 31/12/2024.
As categories they would lose their order, and nobody would notice."""

from __future__ import annotations

import re
from collections.abc import Iterable

MONEY, MINUS = "$£€¥₹", "−–-"  # the hyphen last, as sets of letters have it
SPACES = "\u00a0\u202f\u2009 '’"
NUMBER = re.compile(
    rf"[(+{MINUS}]?\s*[{MONEY}]?\s*[+{MINUS}]?\s*[.,]?\d[\d.,{SPACES}]*([eE][-+]?\d+)?"
    rf"\s*([%‰{MONEY}]|°[CFcf]?|°?\s*[NSEWnsew])?\)?"
)
DATE = re.compile(r"\d{1,4}([-./])\d{1,2}\1\d{1,4}([ T,].*)?|\d{4}[-/]\d{1,2}|\d{1,2}[./]\d{4}")

ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?$")  # which is no disguise


def disguise_of(texts: Iterable[str]) -> str | None:
    """``"dates"`` or ``"numbers"`` if every text looks like one; None for whole numbers without any
    sign, which may be codes, and for all other texts."""
    cells = {text.strip() for text in texts}
    if not cells:
        return None
    if all(map(DATE.fullmatch, cells)):
        return "dates"
    if all(cell.isascii() and cell.isdigit() for cell in cells):
        return None
    return "numbers" if all(map(NUMBER.fullmatch, cells)) else None
