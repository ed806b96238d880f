"""Files of privgp 0.1: releases predict the same numbers, states are refused with the reason.

They were written by that version: nine rows of made-up data, `sin` of the input.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from privgp import PosteriorPaths, PrivateFunction, load
from privgp.models.load import save
from privgp.storage.archive import DamagedFile, pack, unpack

FOLDER = Path(__file__).parent / "files_of_0_1"
PREDICTED = json.loads((FOLDER / "predictions.json").read_text())


def old_members(case: str) -> dict[str, bytes]:
    return unpack((FOLDER / f"{case}.privgp").read_bytes())


@pytest.mark.parametrize("case", PREDICTED)
def test_an_old_release_predicts_what_it_predicted(case, tmp_path):
    model = load(FOLDER / f"{case}.privgp")
    X = np.array([[1.0], [5.0]])
    X = pd.DataFrame(X, columns=["age"]) if case == "learned" else X
    mean, std = model.predict(X, return_std=True)
    assert np.allclose(mean, PREDICTED[case]["mean"], rtol=1e-10)
    assert np.allclose(std, PREDICTED[case]["std"], rtol=1e-10)
    save(model, tmp_path / "new.privgp")
    assert np.array_equal(load(tmp_path / "new.privgp").predict(X), mean)


@pytest.mark.parametrize("case", PREDICTED)
def test_an_old_release_that_was_changed_is_refused(case, tmp_path):
    members, path = old_members(case), tmp_path / "old.privgp"
    tree = json.loads(members["model.json"])
    needed = [name for name in members if name != "parameter_targets.npy"]
    changed = [{k: v for k, v in members.items() if k != name} for name in needed]
    changed += [{**members, "extra.npy": members["nodes.npy"]}, {**members, "extra.json": b"{}"}]
    fine = [("noise_variance", 7.5), ("plan_summary", "text"), ("names", None)]
    for name in tree:
        for value in (None, "text", [], {}, 7.5, [[]]):
            if value != tree[name] and (name, value) not in fine:
                edited = json.dumps({**tree, name: value}).encode()
                changed.append({**members, "model.json": edited})
        changed.append({**members, "model.json": json.dumps({**tree, name: 0, "more": 1}).encode()})
    changed += [{**members, "model.json": text} for text in (b"", b"[]", b"null", b"\xff")]
    for one in changed:
        path.write_bytes(pack(one))
        with pytest.raises(DamagedFile):
            load(path)


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("function", PrivateFunction, "written by privgp 0.1: ask it with that version"),
        ("rational", PrivateFunction, "RationalQuadratic kernel, which could break its promise"),
        ("paths", PosteriorPaths, "whose answers could give records away"),
    ],
)
def test_old_states_are_refused_with_the_reason(name, kind, words, tmp_path):
    path = tmp_path / f"{name}.private-state"
    shutil.copy(FOLDER / path.name, path)
    with pytest.raises(DamagedFile, match=words):
        kind.load_state(path)
    assert path.read_bytes() == (FOLDER / path.name).read_bytes()
