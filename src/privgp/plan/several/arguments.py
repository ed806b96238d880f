"""Bounds and shares of several outputs, checked before anything is spent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any, TypeGuard

import numpy as np

from privgp.plan.inputs.arguments import check_bounds
from privgp.privacy.noise import PURE
from privgp.types import Pair

MOST_OUTPUTS = 100
SMALLEST_SHARE = 1e-6  # of the largest
AnyBounds = Pair | tuple[Pair, ...]


def are_several(y_bounds: Any) -> TypeGuard[Sequence[Any]]:
    """Whether bounds are one pair per output, not one pair."""
    if isinstance(y_bounds, str) or not isinstance(y_bounds, Sequence | np.ndarray):
        return False
    return len(y_bounds) > 0 and any(np.ndim(end) > 0 for end in y_bounds)


def output_bounds(y_bounds: Any, least: int = 1) -> tuple[Pair, ...]:
    """One (low, high) per output."""
    if not least <= len(y_bounds) <= MOST_OUTPUTS:
        raise ValueError(
            f"y_bounds must be one pair (low, high), or 2 to {MOST_OUTPUTS} pairs, one per output, "
            f"got {len(y_bounds)}."
        )
    return tuple(check_bounds("y_bounds", pair) for pair in y_bounds)


def check_any_bounds(y_bounds: AnyBounds) -> None:
    """Refuse bounds that are neither a pair nor one pair per output."""
    if are_several(y_bounds):
        output_bounds(y_bounds)
    else:
        check_bounds("bounds", y_bounds)


def check_output_shares(shares: Any, count: int) -> tuple[float, ...]:
    """The share of every output as it was declared; equal ones where none were."""
    if shares is None:
        return (1.0,) * count
    wrong = f"shares must be {count} positive numbers, one per output."
    if not isinstance(shares, Sequence | np.ndarray) or np.ndim(shares) != 1:
        raise ValueError(wrong)
    values = [float(s) for s in shares if isinstance(s, Real) and not isinstance(s, bool)]
    if len(values) != count or len(shares) != count or not all(0 < v < math.inf for v in values):
        raise ValueError(wrong)
    if min(values) < SMALLEST_SHARE * max(values):
        raise ValueError(f"shares has one below {SMALLEST_SHARE:g} of the largest.")
    return tuple(values)


def factors(shares: Sequence[float], law: str) -> tuple[float, ...]:
    """What the numbers of every output are multiplied by before noise of one size is added.

    Their norm is 1, in the norm in which sensitivities of this law are: Euclidean, or the sum of
    absolute values for pure noise. So one output alone would have the factor 1.
    """
    scaled = [share / max(shares) for share in shares]
    norm = math.fsum(scaled) if law in PURE else math.hypot(*scaled)
    return tuple(share / norm for share in scaled)


def per_output(name: str, value: Any, count: int) -> tuple[Any, ...]:
    """A value for every output: the same for all, or a list or tuple of one for each."""
    if not isinstance(value, list | tuple):
        return (value,) * count
    if len(value) != count:
        raise ValueError(f"{name} must be one for all outputs, or {count}, one per output.")
    return tuple(value)
