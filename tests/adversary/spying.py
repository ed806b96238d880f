"""Watches the three places where protecting noise is drawn, and can make that noise too small.

Whatever a mechanism releases about private values goes through one of OpenDP's measurements; a test
sees to it that no other is used. So the exact numbers that a mechanism sends there, for a dataset and
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

from privgp.vault import noise as sample

PLACES = ("make_gaussian", "make_laplace", "make_noisy_max")


@dataclass(frozen=True)
class Event:
    """One draw: of which kind, of which exact numbers, at which scale; ``again`` draws it anew."""

    kind: str
    exact: np.ndarray
    scale: float
    again: Callable[[np.ndarray, int], np.ndarray]


@contextmanager
def watched(noise_scale: float = 1.0) -> Iterator[list[Event]]:
    """The draws that are made meanwhile, with noise of this share of what was asked for."""
    events: list[Event] = []
    sound = {name: getattr(dp.m, name) for name in PLACES}

    def watching(name: str) -> Callable[..., Any]:
        def make(*space: Any, scale: float, **options: Any) -> Any:
            def draw(values: Any) -> Any:
                exact = np.atleast_1d(np.array(values, dtype=float))
                again = _many(name, sound[name], space, scale * noise_scale, options)
                events.append(Event(name, exact, scale, again))
                return small(values)

            small = sound[name](*space, scale=scale * noise_scale, **options)
            return draw

        return make

    sample._sampler.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        for name in PLACES:
            patch.setattr(dp.m, name, watching(name))
        yield events
    sample._sampler.cache_clear()


def _many(
    name: str, make: Callable[..., Any], space: Any, scale: float, options: dict[str, Any]
) -> Callable[[np.ndarray, int], np.ndarray]:
    """Many fresh draws of the same measurement, (draws, numbers), by the sampler that protects."""

    def again(exact: np.ndarray, draws: int) -> np.ndarray:
        if name == "make_noisy_max":
            one = make(*space, scale=scale, **options)
            return np.array([[one(exact.tolist())] for _ in range(draws)])
        size = len(exact) * draws
        distance = dp.l2_distance(T=float) if name == "make_gaussian" else dp.l1_distance(T=float)
        domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=size)
        drawn = make(domain, distance, scale=scale, **options)(np.tile(exact, draws).tolist())
        return np.array(drawn).reshape(draws, len(exact))

    return again
