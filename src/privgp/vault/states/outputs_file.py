"""What the state of a function of private outputs holds beside that of any function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from privgp.plan.functions.outputs import MAX_POINTS, FunctionModel
from privgp.privacy.noise import GaussianNoise
from privgp.storage.fields import array, positive
from privgp.types import Array
from privgp.vault.states.outputs import Draws

SETTINGS = ("limit",)
ARRAYS = ("inputs", "counts", "sums", "squares")


def parts(model: FunctionModel, draws: Draws) -> tuple[dict[str, Any], dict[str, Array]]:
    """Settings and arrays."""
    arrays = {
        "inputs": model.inputs,
        "counts": model.counts,
        "sums": draws.sums,
        "squares": draws.squares,
    }
    if model.nodes is not None:
        arrays["nodes"] = model.nodes
    return {"limit": draws.limit}, arrays


def restored(
    s: Mapping[str, Any],
    members: Mapping[str, bytes],
    kernel: Any,
    noise_variance: float,
    noise: GaussianNoise,
    seed: int | None,
    numbers: Array,
) -> tuple[FunctionModel, Draws]:
    """The model and the draws of a file."""
    inputs = array(members["inputs.npy"], "inputs", (None, None))
    rows, columns = inputs.shape
    nodes = members.get("nodes.npy")
    model = FunctionModel(
        kernel,
        noise_variance,
        inputs,
        array(members["counts.npy"], "counts", (rows,)),
        None if nodes is None else array(nodes, "nodes", (None, columns)),
    )
    draws = Draws(
        sums=array(members["sums.npy"], "sums", (rows,)),
        noise=noise,
        limit=positive(s["limit"], "limit"),
        seed=seed,
        squares=array(members["squares.npy"], "squares", (rows,)),
        numbers=numbers,
    )
    return model, draws


def problem(model: FunctionModel, draws: Draws, points: int) -> str | None:
    """What is wrong with these parts together."""
    numbers = len(draws.numbers)
    if model.nodes is None:
        aligned = numbers == points <= draws.noise.size <= MAX_POINTS
    else:
        aligned = points == 0 and numbers in (0, len(model.nodes))
        aligned = aligned and draws.noise.size == len(model.nodes)
    if not aligned or len(model.inputs) == 0 or not np.all(model.counts >= 1):
        return "its parts do not belong together"
    if not np.all((draws.squares >= 0) & (draws.squares <= draws.limit * (1.0 + 1e-9))):
        return "it has drawn more than it may"
    return None


def added(draws: Draws) -> tuple[Array, ...]:
    """What a question has added beside the points and numbers."""
    return (draws.squares,)


def added_size(draws: Draws) -> int:
    return len(draws.sums)


def with_added(draws: Draws, numbers: Array, rest: Sequence[tuple[int, int, Array]]) -> Draws:
    """The draws after these entries, of which only the last squares count."""
    return replace(draws, numbers=numbers, squares=rest[-1][2])
