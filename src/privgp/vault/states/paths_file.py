"""What a curator keeps of sample paths, as bytes: JSON and arrays, never a pickle.

Private: all the records, and the draws that must never be made again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from privgp.gp.kernels.codec import kernel_from, kernel_tree
from privgp.plan.functions.paths import PathModel, path_model
from privgp.privacy.guarantee import Guarantee
from privgp.storage import archive
from privgp.storage.archive import DamagedFile
from privgp.storage.fields import array, array_bytes, record, text, whole
from privgp.storage.journal import FORM
from privgp.storage.triangles import split_rows, triangle
from privgp.types import Array
from privgp.vault.states.paths import PathRecords, record_factor, within

NOTICE = "PRIVATE: for the curator only. This file holds all private records; never publish it."
_SETTINGS = (
    "notice", "kernel", "noise_variance", "domain", "y_bounds", "n_paths", "extra_noise", "delta",
    "sensitivity", "max_points", "seed", "names", "guarantee",
)  # fmt: skip
_ARRAYS = ("inputs", "outputs", "factor", "points", "normals", "answers", "lower")


@dataclass(frozen=True)
class PathContents:
    """All there is to some paths.

    ``factor``: of the records; ``points`` (asked, columns); ``normals``, ``answers`` (paths, asked);
    ``lower``: the rows of the factor of the points asked, as they were used.
    """

    model: PathModel
    records: PathRecords
    guarantee: Guarantee
    seed: int | None
    names: tuple[str, ...] | None
    points: Array
    factor: Array = field(repr=False)
    normals: Array = field(repr=False)
    lower: tuple[Array, ...] = field(repr=False)
    answers: Array


def first_contents(
    model: PathModel, records: PathRecords, count: int, seed: int | None, names: Any
) -> PathContents:
    """Paths of which nothing has been asked."""
    return PathContents(
        model=model,
        records=records,
        guarantee=model.guarantee(count, simulated=seed is not None),
        seed=seed,
        names=None if names is None else tuple(str(name) for name in names),
        points=np.empty((0, len(model.domain))),
        factor=record_factor(records, model.kernel, model.noise_variance),
        lower=(),
        normals=np.empty((model.paths, 0)),
        answers=np.empty((model.paths, 0)),
    )


def parameters(contents: PathContents) -> dict[str, Any]:
    """The arguments that paths were made with."""
    m = contents.model
    return {
        "kernel": m.kernel,
        "noise_variance": m.noise_variance,
        "domain": m.domain,
        "y_bounds": m.y_bounds,
        "n_paths": m.paths,
        "extra_noise": m.extra_noise,
        "delta": m.delta,
        "sensitivity": _sensitivity(m.sensitivity),
        "max_points": m.max_points,
        "random_state": contents.seed,
    }


def encode(contents: PathContents) -> bytes:
    """The bytes of the file."""
    c, m = contents, contents.model
    settings = {
        "notice": NOTICE,
        "kernel": kernel_tree(m.kernel),
        "noise_variance": m.noise_variance,
        "domain": [list(pair) for pair in m.domain],
        "y_bounds": list(m.y_bounds),
        "n_paths": m.paths,
        "extra_noise": m.extra_noise,
        "delta": m.delta,
        "sensitivity": m.sensitivity,
        "max_points": m.max_points,
        "seed": c.seed,
        "names": None if c.names is None else list(c.names),
        "guarantee": c.guarantee.to_json(),
    }
    arrays = {
        "inputs": c.records.inputs,
        "outputs": c.records.outputs,
        "factor": c.factor[np.tril_indices(len(c.factor))],
        "lower": np.concatenate([*c.lower, np.empty(0)]),
        "points": c.points,
        "normals": c.normals,
        "answers": c.answers,
    }
    members = {"private_paths.json": archive.dump(settings)}
    members |= {f"{name}.npy": array_bytes(values) for name, values in arrays.items()}
    return archive.pack(members, FORM)


def decode(data: bytes) -> PathContents:
    """The contents of a file, every value checked."""
    members = archive.unpack(data, FORM)
    if "private_state.json" in members:
        raise DamagedFile("it holds a function, not sample paths")
    if {*members} != {"private_paths.json", *(f"{name}.npy" for name in _ARRAYS)}:
        raise DamagedFile("it does not have the parts it should")
    s = record(archive.parse(members["private_paths.json"]), "state", _SETTINGS)
    try:
        model = path_model(
            kernel_from(s["kernel"]), s["noise_variance"], domain=s["domain"],
            y_bounds=s["y_bounds"], n_paths=s["n_paths"], extra_noise=s["extra_noise"],
            delta=s["delta"], sensitivity=_sensitivity(s["sensitivity"]), max_points=s["max_points"],
        )  # fmt: skip
        guarantee = Guarantee.from_json(text(s["guarantee"], "guarantee"))
    except DamagedFile:
        raise
    except (TypeError, ValueError, KeyError, AttributeError):
        raise DamagedFile("its settings are broken") from None
    columns = len(model.domain)
    inputs = array(members["inputs.npy"], "inputs", (None, columns))
    points = array(members["points.npy"], "points", (None, columns))
    shape = (model.paths, len(points))
    if len(inputs) == 0 or len(points) > model.max_points:
        raise DamagedFile("its parts do not belong together")
    outputs = array(members["outputs.npy"], "outputs", (len(inputs),))
    if not within(PathRecords(inputs, outputs), model.domain, model.y_bounds):
        raise DamagedFile("its records leave their bounds")
    if guarantee.path_curves != (model.curve(len(inputs)),):
        raise DamagedFile("its guarantee does not belong to it")
    names = s["names"]
    if names is not None and (not isinstance(names, list) or len(names) != columns):
        raise DamagedFile("its names of columns are broken")
    factor = np.zeros((len(inputs), len(inputs)))
    factor[np.tril_indices(len(inputs))] = array(
        members["factor.npy"], "factor", (triangle(len(inputs)),)
    )
    lower = array(members["lower.npy"], "factor", (triangle(len(points)),))
    return PathContents(
        model=model,
        records=PathRecords(inputs, outputs),
        factor=factor,
        lower=split_rows(lower, 0, len(points)),
        guarantee=guarantee,
        seed=None if s["seed"] is None else whole(s["seed"], "seed", 0, 2**31),
        names=None if names is None else tuple(text(name, "name of a column") for name in names),
        points=points,
        normals=array(members["normals.npy"], "normals", shape),
        answers=array(members["answers.npy"], "answers", shape),
    )


def added(contents: PathContents, first: int) -> tuple[Array, ...]:
    """What the points from the first on have added."""
    c = contents
    rows = np.concatenate([*c.lower[first:], np.empty(0)])
    return c.points[first:], c.normals[:, first:].T, c.answers[:, first:].T, rows


def added_size(contents: PathContents, first: int, count: int) -> int:
    """How many numbers these points add."""
    each = len(contents.model.domain) + 2 * contents.model.paths
    return count * each + triangle(first + count) - triangle(first)


def with_added(contents: PathContents, entries: Sequence[tuple[int, Array]]) -> PathContents:
    """The contents with all that was added, checked."""
    c, columns, paths = contents, len(contents.model.domain), contents.model.paths
    points, normals, answers, lower = [c.points], [c.normals], [c.answers], list(c.lower)
    for count, values in entries:
        sizes = np.cumsum([count * columns, count * paths, count * paths])
        asked, drawn, told, rows = np.split(values, sizes)
        points.append(asked.reshape(count, columns))
        normals.append(drawn.reshape(count, paths).T)
        answers.append(told.reshape(count, paths).T)
        lower += split_rows(rows, len(lower), count)
    found = replace(
        c,
        points=np.vstack(points),
        normals=np.hstack(normals),
        answers=np.hstack(answers),
        lower=tuple(lower),
    )
    parts = (found.points, found.normals, found.answers, *lower)
    if len(found.points) > c.model.max_points or not all(np.isfinite(p).all() for p in parts):
        raise DamagedFile("it has drawn more than it may, or numbers that are not finite")
    return found


def _sensitivity(value: Any) -> Any:
    return value if isinstance(value, str) else ("function", value)
