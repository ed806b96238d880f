"""Noise that repeats, so that a test that fails by bad luck fails every time.

OpenDP's randomness takes no seed. In tests, each of its samplers still draws, so that calls are made
as in production, until it has drawn ``SOUND`` numbers; that draw is thrown away, and one from a seeded
generator takes its place. The seed is made of the sampler, its scale, how often it drew in this test, and ``PRIVGP_TEST_SHIFT``. It
does not depend on the order of tests or threads. A sampler that is not replaced here may not draw.

A test marked ``statistical(failure=...)`` gets the noise that protects.

Nothing in ``src/`` reads the variable: a switch there that replaces noise would be a hole.
"""

from __future__ import annotations

import importlib.util
import os
import random
import sys
from collections import Counter
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from threading import Lock
from typing import Any
from zlib import crc32

SHIFT = "PRIVGP_TEST_SHIFT"
MOST_LIKELY_FAILURE = 1e-6
SOUND = 1000  # an audit draws millions

_lock = Lock()
_draws: Counter[tuple[Any, ...]] = Counter()
_sound: Counter[tuple[Any, ...]] = Counter()
_protecting = False
_seeded: Callable[[list[int]], Any]  # numpy's default_rng


class UnseededNoise(AssertionError):
    """A test without a stated failure probability drew noise that does not repeat."""


def start(failure: float | None = None) -> None:
    """Begin a test: count draws from 0.

    Parameters
    ----------
    failure : the probability, at most 1e-6, with which the test fails by chance; its noise is then
        the one that protects. None: noise that repeats.

    """
    global _protecting
    if failure is not None and not 0 < failure <= MOST_LIKELY_FAILURE:
        raise UnseededNoise("statistical(failure=...) is above 0 and at most 1e-6.")
    _protecting = failure is not None
    _draws.clear()
    random.seed(_shift())
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed(_shift())


def install() -> None:
    """Replace the generators of OpenDP and NumPy, now or when they are imported."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    for name, change in CHANGES.items():
        if name in sys.modules:
            change(sys.modules[name])
    sys.meta_path.insert(0, _Finder())
    start()


def environment() -> dict[str, str]:
    """What a process needs to have the same noise: its path begins with this folder."""
    here = os.path.dirname(os.path.abspath(__file__))
    others = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    path = os.pathsep.join([here, *(each for each in others if each != here)])
    return {"PYTHONPATH": path, SHIFT: str(_shift())}


def _shift() -> int:
    return int(os.environ.get(SHIFT) or 0)


def _generator(*key: Any) -> Any:
    with _lock:
        _draws[key] += 1
        return _seeded([_shift(), crc32(repr(key).encode()), _draws[key]])


class _Repeatable:
    """A measurement of OpenDP whose draws repeat.

    Parameters
    ----------
    sound : the measurement
    draw : from the exact values and a generator to what is released
    key : what the generator depends on

    """

    def __init__(self, sound: Any, draw: Callable[[Any, Any], Any], *key: Any) -> None:
        self._sound, self._draw, self._key = sound, draw, key

    def __call__(self, values: Any) -> Any:
        from opendp.core import measurement_invoke

        if _protecting:
            return measurement_invoke.sound(self._sound, values)
        if _sound[self._key] < SOUND:
            _sound[self._key] += len(values)
            measurement_invoke.sound(self._sound, values)
        return self._draw(values, _generator(*self._key))

    invoke = __call__

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sound, name)


def _change_opendp(measurements: Any) -> None:
    import numpy as np
    from opendp import core

    def adds(name: str, law: str) -> Callable[..., _Repeatable]:
        make = getattr(measurements, name)

        def made(domain: Any, metric: Any, scale: float, k: int | None = None) -> _Repeatable:
            def draw(values: Any, rng: Any) -> Any:
                noise = getattr(rng, law)(0.0, scale, np.shape(values))
                if k is None:
                    return (np.asarray(values) + noise).tolist()
                step = 2.0**k
                return (
                    step * (np.round(np.asarray(values) / step) + np.round(noise / step))
                ).tolist()

            return _Repeatable(make(domain, metric, scale, k), draw, law, f"{scale:.6g}", k)

        return made

    def chooses(*space: Any, scale: float) -> _Repeatable:
        law = "exponential" if str(space[-1]) == "MaxDivergence" else "gumbel"

        def draw(values: Any, rng: Any) -> int:
            noise = (
                rng.standard_exponential(len(values))
                if law == "exponential"
                else rng.gumbel(size=len(values))
            )
            return int(np.argmax(np.asarray(values) + scale * noise))

        return _Repeatable(noisy_max(*space, scale=scale), draw, law, f"{scale:.6g}")

    noisy_max, invoke = measurements.make_noisy_max, core.measurement_invoke

    def refuse(measurement: Any, values: Any) -> Any:
        if not _protecting:
            raise UnseededNoise(
                "this draw of OpenDP does not repeat: replace its sampler in tests/steady, or mark "
                "the test statistical(failure=...)."
            )
        return invoke(measurement, values)

    refuse.sound = invoke  # type: ignore[attr-defined]
    core.measurement_invoke = refuse
    measurements.make_gaussian = adds("make_gaussian", "normal")
    measurements.make_laplace = adds("make_laplace", "laplace")
    measurements.make_noisy_max = chooses


def _change_numpy(module: Any) -> None:
    global _seeded
    _seeded = default_rng = module.default_rng

    def repeatable_rng(seed: Any = None) -> Any:
        return _generator("numpy") if seed is None else default_rng(seed)

    module.default_rng = repeatable_rng
    module.seed(_shift())


CHANGES = {"numpy.random": _change_numpy, "opendp.measurements": _change_opendp}


class _Finder(MetaPathFinder):
    """Changes a module when it is imported."""

    def __init__(self) -> None:
        self._inside: set[str] = set()

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name not in CHANGES or name in self._inside:
            return None
        self._inside.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._inside.discard(name)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def run_and_change(module: Any) -> None:
            run(module)
            CHANGES[name](module)

        spec.loader.exec_module = run_and_change  # type: ignore[method-assign]
        return spec
