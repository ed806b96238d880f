"""Declared classes: two or more, all numbers or all text, never read from the data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from privgp.plan.classes.sums import MOST_CLASSES

Classes = tuple[str, ...] | tuple[bool, ...] | tuple[int, ...] | tuple[float, ...]
KINDS = (str, bool, int, float)


def declared_classes(classes: Any) -> Classes:
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
    if {type(each) for each in found} == {int, float}:
        found = [float(each) for each in found]
    if len({type(each) for each in found}) > 1 or type(found[0]) not in KINDS:
        raise ValueError("classes must be all numbers or all text.")
    if len(set(found)) < len(found):
        raise ValueError("classes must differ from each other.")
    if not all(np.isfinite(each) for each in found if not isinstance(each, str)):
        raise ValueError("classes must not be NaN or infinite.")
    return tuple(sorted(found))
