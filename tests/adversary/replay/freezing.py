"""A run in which nothing is random: the noise, the clock, names of files and keys are constants.

The first run of a pair records what it releases: its exact numbers plus a constant instead of the
noise. The second run, on a neighbouring dataset, releases the same numbers whatever its own are. So
everything that is computed from released numbers alone is the same in both, to the last bit.
"""

from __future__ import annotations

import importlib
import pkgutil
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import count
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import privgp
from privgp.vault.states import paths as states
from tests.adversary.spying import drawing

Frozen = list["Draw"]
SIGNING_KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))  # of ledgers


@dataclass(frozen=True)
class Draw:
    """One draw: of which noise distribution (or a choice), at which scale, of which exact numbers, and
    what was released instead."""

    kind: str
    scale: float
    exact: np.ndarray
    released: np.ndarray

    @property
    def shape(self) -> tuple[str, float, int]:
        """What is public of it."""
        return self.kind, self.scale, len(self.exact)


class Clock(datetime):
    """A clock that stands still."""

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return datetime(2026, 1, 1, 12, tzinfo=tz)


@contextmanager
def frozen(
    recorded: Sequence[Draw] = (), seen: Callable[[np.ndarray], None] = lambda exact: None
) -> Iterator[Frozen]:
    """The draws that are made meanwhile.

    ``recorded``: draws whose released numbers are released again, in order; a further draw releases its
    exact numbers plus a constant. ``seen``: called with the exact numbers of every draw.
    """
    draws: Frozen = []

    def drawn(kind: str, scale: float, values: Any) -> np.ndarray:
        exact, number = np.array(values, dtype=float), len(draws)
        if number < len(recorded):
            released = np.resize(recorded[number].released, 1 if kind == "choice" else len(exact))
        elif kind == "choice":
            released = np.array([np.argmax(exact)])
        else:
            released = exact + scale * np.random.default_rng(number).standard_normal(len(exact))
        draws.append(Draw(kind, scale, exact, released))
        seen(exact)
        return released

    def numbers(law: str, size: int, scale: float, exponent: int) -> Any:
        return lambda values: drawn(law, scale, values).tolist()

    def choice(*space: Any, scale: float, **options: Any) -> Any:
        return lambda values: int(drawn("choice", scale, values)[0])

    generator, names = np.random.default_rng, count()
    with drawing(numbers, choice), pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            np.random, "default_rng", lambda seed=None: generator(0 if seed is None else seed)
        )
        # The answers that a second run keeps are those of the first, as no file of its own has them.
        patch.setattr(states, "MOST_STDS", np.inf)
        patch.setattr(secrets, "token_hex", lambda size: f"{next(names):0{2 * size}x}")
        patch.setattr(Ed25519PrivateKey, "generate", lambda: SIGNING_KEY)
        for module in modules():
            if getattr(module, "datetime", None) is datetime:
                patch.setattr(module, "datetime", Clock)
        with _no_memory():
            yield draws


@contextmanager
def _no_memory() -> Iterator[None]:
    """What the process remembers of earlier runs, such as a warning that is given once, is forgotten."""
    tokens = [(each, each.set(type(each.get())())) for each in _memories()]
    try:
        yield
    finally:
        for each, token in tokens:
            each.reset(token)


@cache
def _memories() -> list[ContextVar[Any]]:
    return [
        each for module in modules() for each in vars(module).values() if type(each) is ContextVar
    ]


@cache
def modules() -> tuple[Any, ...]:
    """Every module of the product, so that none is imported with another clock."""
    found = pkgutil.walk_packages(privgp.__path__, "privgp.")
    names = [each.name for each in found if not each.name.endswith(("__main__", ".env", ".first"))]
    for name in names:
        importlib.import_module(name)
    return tuple(sys.modules[name] for name in names)
