"""What a curator keeps of a function, as bytes: JSON and arrays, never a pickle.

Private: sums of outputs, and the draws that must never be made again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from privgp.gp.kernels.codec import kernel_from, kernel_tree
from privgp.gp.kernels.evaluate import check_kernel
from privgp.plan.functions.outputs import SENSITIVITIES, FunctionModel
from privgp.plan.functions.records import RECORD_SENSITIVITIES, RecordsModel
from privgp.privacy.budget import check_budget
from privgp.privacy.guarantee import Guarantee
from privgp.privacy.lattice import LatticeNoise
from privgp.storage import archive
from privgp.storage.archive import DamagedFile
from privgp.storage.fields import (
    array,
    array_bytes,
    choice,
    number,
    positive,
    record,
    text,
    whole,
)
from privgp.storage.journal import FORM
from privgp.types import Array
from privgp.vault.states import outputs_file as state_outputs
from privgp.vault.states import records_file as state_records
from privgp.vault.states.outputs import Draws
from privgp.vault.states.records import RecordDraws

NOTICE = "PRIVATE: for the curator only. This file holds private values; never publish it."
_SETTINGS = (
    "notice", "kernel", "noise_variance", "y_bounds", "epsilon", "delta", "sensitivity", "dominance",
    "norm", "noise", "seed", "names", "guarantee",
)  # fmt: skip
_ARRAYS = ("numbers", "points", "answers")


@dataclass(frozen=True)
class Contents:
    """All there is to a function. ``points`` (asked, columns) have ``answers`` in units of y.

    The model is of private outputs or of private records, and the draws are of the same kind.
    """

    model: FunctionModel | RecordsModel
    y_bounds: tuple[float, float]
    epsilon: float
    delta: float
    sensitivity: str
    dominance: float | None
    norm: float
    guarantee: Guarantee
    names: tuple[str, ...] | None
    draws: Draws | RecordDraws
    points: Array
    answers: Array


def encode(contents: Contents) -> bytes:
    """The bytes of the archive."""
    c = contents
    settings, arrays = _kind_of(c).parts(c.model, c.draws)
    settings |= {
        "notice": NOTICE,
        "kernel": kernel_tree(c.model.kernel),
        "noise_variance": c.model.noise_variance,
        "y_bounds": list(c.y_bounds),
        "epsilon": c.epsilon,
        "delta": c.delta,
        "sensitivity": c.sensitivity,
        "dominance": c.dominance,
        "norm": c.norm,
        "noise": asdict(c.draws.noise),
        "seed": c.draws.seed,
        "names": None if c.names is None else list(c.names),
        "guarantee": c.guarantee.to_json(),
    }
    arrays |= {"numbers": c.draws.numbers, "points": c.points, "answers": c.answers}
    members = {"private_state.json": archive.dump(settings)}
    members |= {f"{name}.npy": array_bytes(values) for name, values in arrays.items()}
    return archive.pack(members, FORM)


def decode(data: bytes) -> Contents:
    """The contents of an archive, every value checked."""
    members = archive.unpack(data, FORM)
    if "private_paths.json" in members:
        raise DamagedFile("it holds sample paths, not a function")
    records = "weights.npy" in members
    kind: Any = state_records if records else state_outputs
    names = {"private_state.json", *(f"{name}.npy" for name in (*_ARRAYS, *kind.ARRAYS))}
    if {*members} - ({"nodes.npy"} if not records else set()) != names:
        raise DamagedFile("it does not have the parts it should")
    s = record(archive.parse(members["private_state.json"]), "state", (*_SETTINGS, *kind.SETTINGS))
    kernel = kernel_from(s["kernel"])
    model, draws = kind.restored(
        s,
        members,
        kernel,
        positive(s["noise_variance"], "noise variance"),
        _noise(s["noise"]),
        None if s["seed"] is None else whole(s["seed"], "seed", 0, 2**31),
        array(members["numbers.npy"], "numbers", (None,)),
    )
    points = array(members["points.npy"], "points", (None, model.columns))
    bounds = s["y_bounds"]
    if not isinstance(bounds, list) or len(bounds) != 2:
        raise DamagedFile("its bounds are broken")
    try:
        check_kernel(kernel, model.columns)
        check_budget(s["epsilon"], s["delta"])
        guarantee = Guarantee.from_json(text(s["guarantee"], "guarantee"))
    except (TypeError, ValueError, KeyError, AttributeError):
        raise DamagedFile("its settings are broken") from None
    choices = RECORD_SENSITIVITIES if records else SENSITIVITIES
    contents = Contents(
        model=model,
        y_bounds=(number(bounds[0], "bounds"), number(bounds[1], "bounds")),
        epsilon=float(s["epsilon"]),
        delta=float(s["delta"]),
        sensitivity=choice(s["sensitivity"], "sensitivity", choices),
        dominance=None if s["dominance"] is None else positive(s["dominance"], "dominance"),
        norm=positive(s["norm"], "norm"),
        guarantee=guarantee,
        names=_names(s["names"], model.columns),
        draws=draws,
        points=points,
        answers=array(members["answers.npy"], "answers", (len(points),)),
    )
    return _checked(contents)


def added(contents: Contents, first: int) -> tuple[Array, ...] | None:
    """What the points from the first on have added; through inducing inputs all is drawn at once."""
    c = contents
    if c.model.nodes is not None:
        return None
    common = (c.points[first:], c.draws.numbers[first:], c.answers[first:])
    if isinstance(c.draws, RecordDraws):
        return *common, *state_records.added(c.draws, first)
    return *common, *state_outputs.added(c.draws)


def added_size(contents: Contents, first: int, count: int) -> int:
    """How many numbers so many points add."""
    common = count * (contents.model.columns + 2)
    if isinstance(contents.draws, RecordDraws):
        return common + state_records.added_size(first, count)
    return common + state_outputs.added_size(contents.draws)


def with_added(contents: Contents, entries: Sequence[tuple[int, Array]]) -> Contents:
    """The contents with all that was added, checked."""
    c, columns = contents, contents.model.columns
    points, numbers, answers = [c.points], [c.draws.numbers], [c.answers]
    rest, first = [], len(c.points)
    for count, values in entries:
        rows, drawn, told, other = np.split(values, np.cumsum([count * columns, count, count]))
        points.append(rows.reshape(count, columns))
        numbers.append(drawn)
        answers.append(told)
        rest.append((first, count, other))
        first += count
    draws = _kind_of(c).with_added(c.draws, np.concatenate(numbers), rest)
    return _checked(
        replace(c, draws=draws, points=np.concatenate(points), answers=np.concatenate(answers))
    )


def _kind_of(contents: Contents) -> Any:
    return state_records if isinstance(contents.model, RecordsModel) else state_outputs


def _checked(contents: Contents) -> Contents:
    """The same, if its parts belong together."""
    c = contents
    values = (c.points, c.answers, c.draws.numbers)
    finite = all(np.all(np.isfinite(part)) for part in values)
    problem = _kind_of(c).problem(c.model, c.draws, len(c.points))
    if problem is not None or not finite:
        raise DamagedFile(problem or "it holds numbers that are not finite")
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
