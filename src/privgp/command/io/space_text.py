"""A space written in one line: ``C=1e-3:1e3:log,kernel=rbf|linear,n_neighbors=1:30:int``."""

from __future__ import annotations

import math
from typing import Any

from privgp.command.errors import Refusal

MOST_VALUES = 1000
LONGEST = 2000


def read_space(text: str) -> dict[str, Any]:
    """The axes: ``low:high``, ``low:high:log``, ``low:high:int``, or values separated by |."""
    if len(text) > LONGEST:
        raise Refusal("--space is too long.")
    axes: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, axis = part.partition("=")
        name = name.strip()
        if not name or not equals or not axis.strip():
            raise _malformed(text)
        if name in axes:
            raise Refusal(f"--space names '{name}' twice.")
        axes[name] = _range(axis, text) if ":" in axis else [_value(v) for v in axis.split("|")]
    return axes


def _range(axis: str, text: str) -> Any:
    pieces = [piece.strip() for piece in axis.split(":")]
    kind = pieces.pop() if len(pieces) == 3 else ""
    if len(pieces) != 2 or kind not in ("", "log", "int"):
        raise _malformed(text)
    try:
        low, high = (int(p) if kind == "int" else float(p) for p in pieces)
    except ValueError:
        raise _malformed(text) from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise Refusal(f"--space '{axis.strip()}' must have finite ends with low < high.")
    if kind == "log" and low <= 0:
        raise Refusal(f"--space '{axis.strip()}' must begin above 0 to be logarithmic.")
    if kind == "int":
        if high - low >= MOST_VALUES:
            raise Refusal(f"--space '{axis.strip()}' has more than {MOST_VALUES} values.")
        return list(range(int(low), int(high) + 1))
    return (low, high, "log-uniform") if kind == "log" else (low, high)


def _value(text: str) -> Any:
    text = text.strip()
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"none": None, "true": True, "false": False}.get(text.lower(), text)


def _malformed(text: str) -> Refusal:
    return Refusal(
        f"--space '{text}' is not of the form C=1e-3:1e3:log,kernel=rbf|linear,n_neighbors=1:30:int."
    )
