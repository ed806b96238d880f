"""What a curator keeps of a function, as bytes: JSON and arrays, never a pickle.

Private: sums of outputs, and the draws that must never be made again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from privgp.plan.functions import MAX_POINTS, SENSITIVITIES, FunctionModel
from privgp.plan.kernels import check_kernel
from privgp.privacy.calibrate import check_budget
from privgp.privacy.guarantee import Guarantee
from privgp.privacy.lattice import LatticeNoise
from privgp.release import archive
from privgp.release.archive import DamagedFile
from privgp.release.fields import (
    array,
    array_bytes,
    choice,
    kernel_from,
    kernel_tree,
    number,
    positive,
    record,
    text,
    whole,
)
from privgp.types import Array
from privgp.vault.state import Draws

FORM = "private-state"
NOTICE = "PRIVATE: for the curator only. This file holds sums of private outputs; never publish it."
_SETTINGS = (
    "notice", "kernel", "noise_variance", "y_bounds", "epsilon", "delta", "sensitivity", "dominance",
    "norm", "noise", "limit", "seed", "names", "guarantee",
)  # fmt: skip
_ARRAYS = ("inputs", "counts", "sums", "squares", "numbers", "points", "answers")


@dataclass(frozen=True)
class Contents:
    """All there is to a function. ``points`` (asked, columns) have ``answers`` in units of y."""

    model: FunctionModel
    y_bounds: tuple[float, float]
    epsilon: float
    delta: float
    sensitivity: str
    dominance: float | None
    norm: float
    guarantee: Guarantee
    names: tuple[str, ...] | None
    draws: Draws
    points: Array
    answers: Array


def encode(contents: Contents) -> bytes:
    """The bytes of the file."""
    c, draws = contents, contents.draws
    settings = {
        "notice": NOTICE,
        "kernel": kernel_tree(c.model.kernel),
        "noise_variance": c.model.noise_variance,
        "y_bounds": list(c.y_bounds),
        "epsilon": c.epsilon,
        "delta": c.delta,
        "sensitivity": c.sensitivity,
        "dominance": c.dominance,
        "norm": c.norm,
        "noise": asdict(draws.noise),
        "limit": draws.limit,
        "seed": draws.seed,
        "names": None if c.names is None else list(c.names),
        "guarantee": c.guarantee.to_json(),
    }
    arrays: dict[str, Array] = {
        "inputs": c.model.inputs,
        "counts": c.model.counts,
        "sums": draws.sums,
        "squares": draws.squares,
        "numbers": draws.numbers,
        "points": c.points,
        "answers": c.answers,
    }
    if c.model.nodes is not None:
        arrays["nodes"] = c.model.nodes
    members = {"private_state.json": archive.dump(settings)}
    members |= {f"{name}.npy": array_bytes(values) for name, values in arrays.items()}
    return archive.pack(members, FORM)


def decode(data: bytes) -> Contents:
    """The contents of a file, every value checked."""
    members = archive.unpack(data, FORM)
    names = {"private_state.json", *(f"{name}.npy" for name in _ARRAYS)}
    if {*members} - {"nodes.npy"} != names:
        raise DamagedFile("it does not have the parts it should")
    s = record(archive.parse(members["private_state.json"]), "state", _SETTINGS)
    inputs = array(members["inputs.npy"], "inputs", (None, None))
    rows, columns = inputs.shape
    nodes = members.get("nodes.npy")
    kernel = kernel_from(s["kernel"])
    model = FunctionModel(
        kernel,
        positive(s["noise_variance"], "noise variance"),
        inputs,
        array(members["counts.npy"], "counts", (rows,)),
        None if nodes is None else array(nodes, "nodes", (None, columns)),
    )
    numbers = array(members["numbers.npy"], "numbers", (None,))
    points = array(members["points.npy"], "points", (None, columns))
    answers = array(members["answers.npy"], "answers", (len(points),))
    noise = _noise(s["noise"])
    draws = Draws(
        sums=array(members["sums.npy"], "sums", (rows,)),
        noise=noise,
        limit=positive(s["limit"], "limit"),
        seed=None if s["seed"] is None else whole(s["seed"], "seed", 0, 2**31),
        squares=array(members["squares.npy"], "squares", (rows,)),
        numbers=numbers,
    )
    bounds = s["y_bounds"]
    if not isinstance(bounds, list) or len(bounds) != 2:
        raise DamagedFile("its bounds are broken")
    try:
        check_kernel(kernel, columns)
        check_budget(s["epsilon"], s["delta"])
        guarantee = Guarantee.from_json(text(s["guarantee"], "guarantee"))
    except (TypeError, ValueError, KeyError, AttributeError):
        raise DamagedFile("its settings are broken") from None
    contents = Contents(
        model=model,
        y_bounds=(number(bounds[0], "bounds"), number(bounds[1], "bounds")),
        epsilon=float(s["epsilon"]),
        delta=float(s["delta"]),
        sensitivity=choice(s["sensitivity"], "sensitivity", SENSITIVITIES),
        dominance=None if s["dominance"] is None else positive(s["dominance"], "dominance"),
        norm=positive(s["norm"], "norm"),
        guarantee=guarantee,
        names=_names(s["names"], columns),
        draws=draws,
        points=points,
        answers=answers,
    )
    return checked(contents)


def checked(contents: Contents) -> Contents:
    """The same, if its parts belong together."""
    c, model, draws = contents, contents.model, contents.draws
    numbers = len(draws.numbers)
    if model.nodes is None:
        aligned = numbers == len(c.points) == len(c.answers) <= draws.noise.size <= MAX_POINTS
    else:
        aligned = len(c.points) == 0 and numbers in (0, len(model.nodes))
        aligned = aligned and draws.noise.size == len(model.nodes)
    finite = all(
        np.all(np.isfinite(v)) for v in (c.points, c.answers, draws.numbers, draws.squares)
    )
    if not (aligned and finite) or len(model.inputs) == 0 or not np.all(model.counts >= 1):
        raise DamagedFile("its parts do not belong together")
    if np.any(draws.squares < 0) or np.any(draws.squares > draws.limit * (1.0 + 1e-9)):
        raise DamagedFile("it has drawn more than it may")
    return contents


def _noise(value: Any) -> LatticeNoise:
    v = record(value, "noise", tuple(LatticeNoise.__dataclass_fields__))
    return LatticeNoise(
        whole(v["size"], "noise", 1, 10**9),
        positive(v["std"], "noise"),
        whole(v["exponent"], "noise", -2000, 2000),
        positive(v["multiplier"], "noise"),
        number(v["delta_slack"], "noise", 0.0, 1.0),
    )


def _names(value: Any, columns: int) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != columns:
        raise DamagedFile("its names of columns are broken")
    return tuple(text(name, "name of a column") for name in value)


def added(contents: Contents, first: int) -> tuple[Array, ...] | None:
    """What the points from the first on have added; through inducing inputs all is drawn at once."""
    c = contents
    if c.model.nodes is not None:
        return None
    return c.points[first:], c.draws.numbers[first:], c.answers[first:], c.draws.squares


def added_size(contents: Contents, first: int, count: int) -> int:
    """How many numbers so many points add."""
    return count * (contents.points.shape[1] + 2) + len(contents.draws.sums)


def with_added(contents: Contents, entries: Sequence[tuple[int, Array]]) -> Contents:
    """The contents with all that was added, checked."""
    c, columns = contents, contents.points.shape[1]
    points, numbers, answers = [c.points], [c.draws.numbers], [c.answers]
    squares = c.draws.squares
    for count, values in entries:
        rows, drawn, told, squares = np.split(values, np.cumsum([count * columns, count, count]))
        points.append(rows.reshape(count, columns))
        numbers.append(drawn)
        answers.append(told)
    draws = replace(c.draws, numbers=np.concatenate(numbers), squares=squares)
    together = {"points": np.concatenate(points), "answers": np.concatenate(answers)}
    return checked(replace(c, draws=draws, **together))
