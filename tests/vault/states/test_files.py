"""States whose seals are right and whose contents are not: refused in one sentence without a value."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF

from privgp import PosteriorPaths, PrivateFunction
from privgp.storage import state_file
from privgp.storage.archive import DamagedFile, pack, unpack
from tests.models.functions import ASKED, X, Y, function

KINDS = {
    "outputs": (PrivateFunction, lambda: function()),
    "inducing": (PrivateFunction, lambda: function(inducing=4)),
    "records": (PrivateFunction, lambda: function(protect="records", domain=(0, 10))),
    "paths": (
        PosteriorPaths,
        lambda: PosteriorPaths(RBF(2.0), 1.0, domain=(0, 10), y_bounds=(0, 100), delta=1e-3),
    ),
}


@cache
def members_of(kind: str) -> dict[str, bytes]:
    """The members of a state that was written anew after some questions."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "f.private-state"
        made = KINDS[kind][1]().fit(X, Y)
        made.release(ASKED)
        made.save_state(path)
        data = path.read_bytes()
        return unpack(data[data.index(b"\n") + 1 :], state_file.FORM)


def written(members: dict[str, bytes], path: Path) -> Path:
    data = pack(members, state_file.FORM)
    path.write_bytes(state_file._line(len(data)) + data)
    return path


def tree_of(kind: str) -> tuple[str, dict]:
    name = "paths.json" if kind == "paths" else "function.json"
    return name, json.loads(members_of(kind)[name])


def places(value, path=()):
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def replaced(document, path, value):
    if not path:
        return value
    document = document.copy()
    document[path[0]] = replaced(document[path[0]], path[1:], value)
    return document


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_is_read_back_whole(kind, tmp_path):
    path = written(members_of(kind), tmp_path / "f.private-state")
    again = KINDS[kind][0].load_state(path)
    assert again.points_answered_ == (0 if kind == "inducing" else len(ASKED))


@given(st.data())
def test_a_value_of_another_type_is_refused(data):
    kind = data.draw(st.sampled_from(list(KINDS)))
    name, tree = tree_of(kind)
    path = data.draw(st.sampled_from(list(places(tree))))
    old = tree
    for key in path:
        old = old[key]
    new = data.draw(st.sampled_from(["text", 1.5, True, [], {}, None, 10**400, -7]))
    same = isinstance(new, type(old)) or (isinstance(old, float | int) and new in (1.5, -7))
    if (same and new != 10**400) or (old is None and new in (1.5, -7)):
        return
    if new is None and path[-1:] in (("seed",), ("names",), ("dominance",), ("nodes",)):
        return
    edited = json.dumps(replaced(tree, path, new)).encode()
    with TemporaryDirectory() as folder:
        state = written({**members_of(kind), name: edited}, Path(folder) / "f.private-state")
        with pytest.raises(DamagedFile) as refusal:
            KINDS[kind][0].load_state(state)
    assert "\n" not in str(refusal.value)
    assert not any(f"{value:.6g}" in str(refusal.value) for value in (*Y, *X[:, 0]))


@pytest.mark.parametrize("kind", KINDS)
def test_missing_extra_and_exchanged_members_are_refused(kind, tmp_path):
    members, path = members_of(kind), tmp_path / "f.private-state"
    arrays = [name for name in members if name.endswith(".npy")]
    spoilt = [{k: v for k, v in members.items() if k != name} for name in members]
    spoilt += [{**members, "extra.npy": members[arrays[0]]}, {**members, "extra.json": b"{}"}]
    for name in arrays:
        values = np.frombuffer(members[name][128:]).copy()
        values[0] = np.nan
        spoilt.append({**members, name: members[name][:128] + values.tobytes()})
        spoilt.append({**members, name: members[name][:-8]})
    for one in spoilt:
        with pytest.raises(DamagedFile):
            KINDS[kind][0].load_state(written(one, path))


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("outputs", ("draws", "noise", "size"), 20_001),
        ("outputs", ("draws", "limit"), 1e-9),
        ("outputs", ("y_bounds",), [1.0, 0.0]),
        ("outputs", ("sensitivity",), "paper"),
        ("outputs", ("epsilon",), 2e4),
        ("outputs", ("epsilon",), 2.0),
        ("outputs", ("names",), ["a", "b"]),
        ("outputs", ("draws", "points"), {"zeros": [0, 1]}),
        ("inducing", ("model", "nodes"), None),
        ("records", ("model", "rows"), 29),
        ("records", ("model", "domain"), [[0.0, 1.0]]),
        ("records", ("model", "domain"), [[10.0, 0.0]]),
        ("records", ("draws", "noise", "size"), 10),
        ("records", ("draws", "lower"), {"zeros": [0]}),
        ("records", ("sensitivity",), "varah"),
        ("paths", ("model", "max_points"), 5),
        ("paths", ("model", "y_bounds"), [49.0, 51.0]),
        ("paths", ("model", "domain"), [[0.0, 1.0]]),
        ("paths", ("model", "delta"), 0.5),
        ("paths", ("model", "paths"), 2),
        ("paths", ("guarantee", "path_curves"), []),
        ("paths", ("draws", "lower"), {"zeros": [1]}),
    ],
)
def test_a_value_that_does_not_fit_the_rest_is_refused(kind, path, value, tmp_path):
    name, tree = tree_of(kind)
    edited = json.dumps(replaced(tree, path, value)).encode()
    state = written({**members_of(kind), name: edited}, tmp_path / "f.private-state")
    with pytest.raises(DamagedFile, match=r"cannot be loaded: (its|it) [a-z ]{5,60}\.$"):
        KINDS[kind][0].load_state(state)


def test_a_state_of_another_kind_is_named(tmp_path):
    path = tmp_path / "f.private-state"
    with pytest.raises(DamagedFile, match="it holds a function, not"):
        PosteriorPaths.load_state(written(members_of("records"), path))
    with pytest.raises(DamagedFile, match="it holds sample paths, not"):
        PrivateFunction.load_state(written(members_of("paths"), path))
