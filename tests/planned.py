"""Plans of equal public arguments are made once per worker, where planning is not what is tested.

A plan is a frozen value and a pure function of what is public; tests/plan shows that. Tests there, of
faults and of recorded results plan anew every time, and so does every test that patches something,
and every process that a test starts. Attacks remember by all that a plan is made of: if a private value
were among that, the neighbouring dataset would be planned anew, and differ. Both runs of a replay plan
anew; the run with planted leaks takes the plans of the run before, on the same dataset.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest

from privgp.plan import plan

ANEW = (
    "tests/plan/",
    "tests/adversary/test_",
    "tests/recorded/",
    "tests/statistical/",
    "tests/test_steady",
)
ATTACKS = ("tests/adversary/test_mechanisms",)
MOST_BYTES, MOST_PLANS = 100_000, 300

_made: dict[bytes, Any] = {}
_remembers = False


def start(test: pytest.Item) -> None:
    """Begin a test: remember plans, or make them anew. Pages patch the working directory alone."""
    global _remembers
    patches = "monkeypatch" in getattr(test, "fixturenames", ())
    anew = test.nodeid.startswith(ANEW) and not test.nodeid.startswith(ATTACKS)
    _remembers = not anew and (not patches or test.nodeid.startswith("tests/test_docs.py"))


def forget() -> None:
    """Make every plan anew from now on, once."""
    _made.clear()


def install() -> None:
    """Remember the plans that are made from now on."""
    plan.plan_parts = _remember(plan.plan_parts)


def _remember(make: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(make)
    def remembered(*given: Any, **named: Any) -> Any:
        key = _key(given, named) if _remembers else None
        if key is None:
            return make(*given, **named)
        if key not in _made:
            if len(_made) == MOST_PLANS:
                del _made[next(iter(_made))]
            _made[key] = make(*given, **named)
        return _made[key]

    return remembered


def _key(*given: Any) -> bytes | None:
    """The arguments, unless they are many or cannot be compared."""
    try:
        key = pickle.dumps(given)
    except (pickle.PicklingError, TypeError, AttributeError):
        return None
    return key if len(key) <= MOST_BYTES else None
