"""Files of privgp 0.1: releases predict the same numbers, states are refused with the reason.

They were written by that version: nine rows of simulated data, `sin` of the input. Files of format 2
were written before models had changes and Laplace noise was modelled exactly: they say neither,
and predict what they predicted. In files of format 3, one outcome stood beside what is said of the
whole release.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from privgp import (
    PosteriorPaths,
    PrivateFunction,
    PrivateGP,
    PrivateGPClassifier,
    PrivateGPRegressor,
    load,
    load_plan,
)
from privgp.models.load import save
from privgp.storage.archive import DamagedFile, pack, unpack

FOLDER = Path(__file__).parent / "files_of_0_1"
FORMAT_2 = Path(__file__).parent / "files_of_format_2"
FORMAT_3 = Path(__file__).parent / "files_of_format_3"
PREDICTED_3 = json.loads((FORMAT_3 / "predictions.json").read_text())
PREDICTED_2 = json.loads((FORMAT_2 / "predictions.json").read_text())
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


@pytest.mark.parametrize("case", PREDICTED_2)
def test_a_release_of_format_2_predicts_what_it_predicted(case, tmp_path):
    X = np.array([[1.0], [5.0]])
    model = load(FORMAT_2 / f"{case}.privgp")
    save(model, tmp_path / "new.privgp")
    for one in (model, load(tmp_path / "new.privgp")):
        mean, std = one.predict(X, return_std=True)
        assert np.allclose(mean, PREDICTED_2[case]["mean"], rtol=1e-10)
        assert np.allclose(std, PREDICTED_2[case]["std"], rtol=1e-10)
        assert not one.measurements_[0].is_laplace
        assert not any(c.model.changes for c in one.release_.components)
        low, high = one.interval(X)
        assert np.all((low < mean) & (mean < high))


def predictions(model: Any) -> dict[str, Any]:
    X = np.array([[1.0], [5.0]])
    if isinstance(model, PrivateGP):
        found: dict[str, Any] = model.predict({"x": X[:, 0]}).to_dict(as_series=False)
        return found
    if isinstance(model, PrivateGPClassifier):
        return {"probability": model.predict_proba(X)}
    return dict(zip(("mean", "std"), model.predict(X, return_std=True), strict=True))


@pytest.mark.parametrize("case", PREDICTED_3)
def test_a_release_of_format_3_predicts_what_it_predicted(case, tmp_path):
    model = load(FORMAT_3 / f"{case}.privgp")
    save(model, tmp_path / "new.privgp")
    again = load(tmp_path / "new.privgp")
    assert again.certificate() == model.certificate()
    for one in (model, again):
        found = predictions(one)
        assert found.keys() - {"near_data"} == PREDICTED_3[case].keys()  # which it had not
        for name, told in PREDICTED_3[case].items():
            values = found[name]
            same = values == told if name == "l_label" else np.allclose(values, told, rtol=1e-10)
            assert same, name


def test_an_update_goes_on_with_a_release_of_format_3():
    model = load(FORMAT_3 / "number.privgp")
    X = np.arange(9.0)[:, None] * 1.25
    model.set_params(random_state=2).update(X + 0.2, np.sin(X[:, 0]))
    assert [each.batch for each in model._released.spent] == [0, 1, 2]


def test_only_what_came_later_may_be_missing(tmp_path):
    members, path = unpack((FORMAT_2 / "laplace.privgp").read_bytes()), tmp_path / "old.privgp"
    tree = json.loads(members["release.json"])
    later = {"models": "changes", "measurement": "is_laplace"}
    for part, name in later.items():
        fields = tree[part][0] if part == "models" else tree[part]
        assert name not in fields
        for missing in fields:
            less = {key: value for key, value in fields.items() if key != missing}
            changed = {**tree, part: [less, *tree[part][1:]] if part == "models" else less}
            path.write_bytes(pack({**members, "release.json": json.dumps(changed).encode()}))
            with pytest.raises(DamagedFile):
                load(path)


def test_a_plan_of_format_2_is_read():
    plan = load_plan(FORMAT_2 / "some.plan")
    assert [prior.start.changes for prior in plan.priors] == [()] * len(plan.priors)
    X = np.arange(9.0)[:, None] * 1.25
    model = PrivateGPRegressor(y_bounds=(-1.5, 1.5), epsilon=4.0, delta=1e-3, random_state=1)
    assert model.fit(X, np.sin(X[:, 0]), plan=plan).plan_ is plan


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
        ("rational", PrivateFunction, "RationalQuadratic kernel, which could break its guarantee"),
        ("paths", PosteriorPaths, "whose answers could give records away"),
    ],
)
def test_old_states_are_refused_with_the_reason(name, kind, words, tmp_path):
    path = tmp_path / f"{name}.private-state"
    shutil.copy(FOLDER / path.name, path)
    with pytest.raises(DamagedFile, match=words):
        kind.load_state(path)
    assert path.read_bytes() == (FOLDER / path.name).read_bytes()


def test_a_guarantee_in_earlier_words_loads_as_it_is_worded_now(tmp_path):
    """Updated and refined releases said "the same in all" and "measured by itself"."""
    X, y = np.linspace(0, 1, 12)[:, None], np.linspace(-1, 1, 12)
    model = PrivateGPRegressor(y_bounds=(-1, 1), epsilon=1.0, delta=1e-5, random_state=0)
    model.fit(X, y).refine(X, y, 1.0, 1e-6).update(X + 0.01, y)
    model.save(tmp_path / "now.privgp")
    members = unpack((tmp_path / "now.privgp").read_bytes())
    told = members["release.json"]
    earlier = told.replace(b"were the same in all of them", b"were the same in all")
    earlier = earlier.replace(b"each measured separately; of", b"each measured by itself; of")
    assert earlier != told
    (tmp_path / "old.privgp").write_bytes(pack({**members, "release.json": earlier}))
    assert load(tmp_path / "old.privgp").guarantee_ == model.guarantee_
