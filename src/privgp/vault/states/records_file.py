"""What the state of a function of private records holds beside that of any function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from privgp.plan.functions.checked_factor import MOST_POINTS
from privgp.plan.functions.records import RecordsModel
from privgp.privacy.noise import GaussianNoise
from privgp.storage.archive import DamagedFile
from privgp.storage.fields import array, number
from privgp.storage.triangles import split_rows, triangle
from privgp.types import Array
from privgp.vault.states.records import RecordDraws

SETTINGS = ("domain", "residual")
ARRAYS = ("inputs", "weights", "exact", "lower")


def parts(model: RecordsModel, draws: RecordDraws) -> tuple[dict[str, Any], dict[str, Array]]:
    """Settings and arrays."""
    arrays = {
        "inputs": draws.inputs,
        "weights": draws.weights,
        "exact": draws.exact,
        "lower": np.concatenate([*draws.lower, np.empty(0)]),
    }
    return {"domain": [list(pair) for pair in model.domain], "residual": draws.residual}, arrays


def restored(
    s: Mapping[str, Any],
    members: Mapping[str, bytes],
    kernel: Any,
    noise_variance: float,
    noise: GaussianNoise,
    seed: int | None,
    numbers: Array,
) -> tuple[RecordsModel, RecordDraws]:
    """The model and the draws of a file."""
    domain = _domain(s["domain"])
    inputs = array(members["inputs.npy"], "inputs", (None, len(domain)))
    lower = array(members["lower.npy"], "factor", (triangle(len(numbers)),))
    model = RecordsModel(kernel, noise_variance, domain, len(inputs))
    draws = RecordDraws(
        inputs=inputs,
        weights=array(members["weights.npy"], "weights", (len(inputs),)),
        noise=noise,
        seed=seed,
        exact=array(members["exact.npy"], "coordinates", (len(numbers),)),
        numbers=numbers,
        lower=split_rows(lower, 0, len(numbers)),
        residual=number(s["residual"], "residual", 0.0),
    )
    return model, draws


def problem(model: RecordsModel, draws: RecordDraws, points: int) -> str | None:
    """What is wrong with these parts together."""
    low, high = np.array(model.domain).T
    inside = np.all((draws.inputs >= low) & (draws.inputs <= high))
    aligned = len(draws.numbers) == len(draws.exact) == len(draws.lower) == points
    if model.rows == 0 or not (aligned and inside) or draws.noise.size != MOST_POINTS:
        return "its parts do not belong together"
    return None if points <= MOST_POINTS else "it has drawn more than it may"


def added(draws: RecordDraws, first: int) -> tuple[Array, ...]:
    """What the points from the first on have added beside themselves and their numbers."""
    rows = np.concatenate([*draws.lower[first:], np.empty(0)])
    return draws.exact[first:], rows, np.array([draws.residual])


def added_size(first: int, count: int) -> int:
    return count + triangle(first + count) - triangle(first) + 1


def with_added(
    draws: RecordDraws, numbers: Array, rest: Sequence[tuple[int, int, Array]]
) -> RecordDraws:
    """The draws after these entries: of each the first point, their number, and what was added."""
    exact, lower = [draws.exact], list(draws.lower)
    for first, count, values in rest:
        exact.append(values[:count])
        lower += split_rows(values[count:-1], first, count)
    return replace(
        draws,
        numbers=numbers,
        exact=np.concatenate(exact),
        lower=tuple(lower),
        residual=float(rest[-1][2][-1]),
    )


def _domain(value: Any) -> tuple[tuple[float, float], ...]:
    if not isinstance(value, list) or not value:
        raise DamagedFile("its domain is broken")
    pairs = []
    for pair in value:
        if not isinstance(pair, list) or len(pair) != 2:
            raise DamagedFile("its domain is broken")
        low, high = (number(end, "domain") for end in pair)
        if not low < high:
            raise DamagedFile("its domain is broken")
        pairs.append((low, high))
    return tuple(pairs)
