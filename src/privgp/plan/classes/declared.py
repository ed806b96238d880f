"""Declared classes: two or more, all numbers or all text, never read from the data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from privgp.plan.classes.sums import MOST_CLASSES

Classes = tuple[str, ...] | tuple[bool, ...] | tuple[int, ...] | tuple[float, ...]
KINDS = (str, bool, int, float)
LARGEST = 10**18  # which an array of numbers holds


def check_classes(classes: Any) -> Classes:
    """The classes, sorted as scikit-learn sorts them; ValueError unless they can be classes."""
    if classes is None:
        raise ValueError(
            "classes must be declared: all labels that may occur, chosen without looking at them."
        )
    if isinstance(classes, str | bytes) or not isinstance(classes, Iterable):
        raise ValueError("classes must be a list of labels.")
    found = [each.item() if isinstance(each, np.generic) else each for each in classes]
    if not 2 <= len(found) <= MOST_CLASSES:
        got = "1 class" if len(found) == 1 else f"{len(found)} classes"
        raise ValueError(f"classes must be 2 to {MOST_CLASSES} labels, got {got}.")
    kinds = {type(each) for each in found}
    if not kinds <= set(KINDS) or (len(kinds) > 1 and kinds != {int, float}):
        raise ValueError("classes must be all numbers or all text.")
    if not all(abs(each) < LARGEST for each in found if not isinstance(each, str)):
        raise ValueError("classes must not be NaN or infinite, or numbers of 19 digits and more.")
    if len(kinds) > 1:
        found = [float(each) for each in found]
    if len(set(found)) < len(found):
        raise ValueError("classes must differ from each other.")
    return tuple(sorted(found))
