"""What a curator keeps of sample paths, as bytes: JSON and arrays, never a pickle.

Private: all the records, and the draws that must never be made again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privgp.models.paths_model import MAX_POINTS, PathModel, path_model
from privgp.models.state_contents import FORM
from privgp.privacy.guarantee import Guarantee
from privgp.release import archive
from privgp.release.archive import DamagedFile
from privgp.release.fields import array, array_bytes, kernel_from, kernel_tree, record, text, whole
from privgp.types import Array
from privgp.vault.paths import PathRecords, within

NOTICE = "PRIVATE: for the curator only. This file holds all private records; never publish it."
_SETTINGS = (
    "notice", "kernel", "noise_variance", "domain", "y_bounds", "n_paths", "extra_noise", "delta",
    "sensitivity", "seed", "names", "guarantee",
)  # fmt: skip
_ARRAYS = ("inputs", "outputs", "points", "normals", "answers")


@dataclass(frozen=True)
class PathContents:
    """All there is to some paths. ``points`` (asked, columns); ``normals``, ``answers`` (paths, asked)."""

    model: PathModel
    records: PathRecords
    guarantee: Guarantee
    seed: int | None
    names: tuple[str, ...] | None
    points: Array
    normals: Array = field(repr=False)
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
        "seed": c.seed,
        "names": None if c.names is None else list(c.names),
        "guarantee": c.guarantee.to_json(),
    }
    arrays = {
        "inputs": c.records.inputs,
        "outputs": c.records.outputs,
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
            delta=s["delta"], sensitivity=_sensitivity(s["sensitivity"]),
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
    if len(inputs) == 0 or len(points) > MAX_POINTS:
        raise DamagedFile("its parts do not belong together")
    outputs = array(members["outputs.npy"], "outputs", (len(inputs),))
    if not within(PathRecords(inputs, outputs), model.domain, model.y_bounds):
        raise DamagedFile("its records leave their bounds")
    if guarantee.path_curves != (model.curve(len(inputs)),):
        raise DamagedFile("its guarantee does not belong to it")
    names = s["names"]
    if names is not None and (not isinstance(names, list) or len(names) != columns):
        raise DamagedFile("its names of columns are broken")
    return PathContents(
        model=model,
        records=PathRecords(inputs, outputs),
        guarantee=guarantee,
        seed=None if s["seed"] is None else whole(s["seed"], "seed", 0, 2**31),
        names=None if names is None else tuple(text(name, "name of a column") for name in names),
        points=points,
        normals=array(members["normals.npy"], "normals", shape),
        answers=array(members["answers.npy"], "answers", shape),
    )


def _sensitivity(value: Any) -> Any:
    return value if isinstance(value, str) else ("function", value)
