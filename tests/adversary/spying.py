"""Watches the two places where protecting noise is drawn, and can make that noise too small.

Whatever a mechanism releases about private values goes through a sampler of ``vault/measure.py`` or
through OpenDP's noisy maximum; a test sees to it that no other of its measurements is used. So the exact numbers that a mechanism sends there, for a dataset and
for its neighbour, are all that an attacker could hope to learn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest

from privgp.vault import measure as sample
from privgp.vault import select

PLACES = ("make_gaussian", "make_laplace", "make_noisy_max")


@dataclass(frozen=True)
class Event:
    """One draw: of which law (or a choice), of which exact numbers, at which scale; ``again`` draws it
    anew, numbers also with noise of another share of what was asked for."""

    kind: str
    exact: np.ndarray
    scale: float
    again: Callable[..., np.ndarray]


@contextmanager
def watched(noise_scale: float = 1.0) -> Iterator[list[Event]]:
    """The draws that are made meanwhile, with noise of this share of what was asked for."""
    events: list[Event] = []
    sampler, noisy_max = sample._sampler, dp.m.make_noisy_max

    def numbers(law: str, size: int, scale: float, exponent: int) -> Any:
        def again(exact: np.ndarray, draws: int, share: float = noise_scale) -> np.ndarray:
            many = sampler(law, len(exact) * draws, scale * share, exponent)
            return np.array(many(np.tile(exact, draws).tolist())).reshape(draws, len(exact))

        def draw(values: Any) -> Any:
            events.append(Event(law, np.array(values, dtype=float), scale, again))
            return sampler(law, size, scale * noise_scale, exponent)(values)

        return draw

    def choice(*space: Any, scale: float, **options: Any) -> Any:
        one = noisy_max(*space, scale=scale * noise_scale, **options)

        def again(exact: np.ndarray, draws: int) -> np.ndarray:
            return np.array([[one(exact.tolist())] for _ in range(draws)])

        def draw(values: Any) -> Any:
            events.append(Event("choice", np.array(values, dtype=float), scale, again))
            return one(values)

        return draw

    with drawing(numbers, choice):
        yield events


@contextmanager
def drawing(numbers: Callable[..., Any], choice: Callable[..., Any]) -> Iterator[None]:
    """Draw by these functions instead, in both places; each returns what is called with exact numbers.
    Rows keep their order: whichever they are shuffled to, the attack is on that one.

    ``numbers``: called with distribution, size, scale and the exponent of the lattice; ``choice``: as
    OpenDP's noisy maximum."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sample, "_sampler", numbers)
        patch.setattr(dp.m, "make_noisy_max", choice)
        patch.setattr(select, "random_order", lambda rows, rng=None: np.arange(rows))
        yield
