"""Where data are near: by public inputs, or by noisy numbers of private records."""

from __future__ import annotations

import numpy as np
import pytest

from privgp import (
    Label,
    Number,
    PrivateGP,
    PrivateGPClassifier,
    PrivateGPDensity,
    PrivateGPRegressor,
    load,
)
from privgp.pictures.maps import near_inputs

SIMULATED = {"epsilon": 2.0, "delta": 1e-5, "random_state": 0}
RNG = np.random.default_rng(0)
CORNER = RNG.uniform(0.0, 3.0, (2000, 2))  # of a domain that reaches to 10
VALUES = CORNER[:, 0].copy()
PLACES = np.array([[1.5, 1.5], [2.5, 0.5], [9.0, 9.0], [0.5, 9.5], [50.0, 1.0]])
NEAR = [1.0, 1.0, 0.0, 0.0, 0.0]


def test_public_inputs_tell_where_data_are():
    model = PrivateGPRegressor(y_bounds=(0, 10), **SIMULATED, hyperparameters="fixed")
    frame = model.fit(CORNER[:200], VALUES[:200]).predict_frame(PLACES)
    assert [*frame.columns] == ["mean", "std", "low", "high", "near_data"]
    assert frame["near_data"].tolist() == NEAR
    assert near_inputs(CORNER[:5], PLACES) is None


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_noisy_counts_tell_where_private_records_are(mechanism, tmp_path):
    asked = {"protect": "records", "x_bounds": [(0, 10), (0, 10)], "mechanism": mechanism}
    model = PrivateGPRegressor(y_bounds=(0, 10), **asked, **SIMULATED, hyperparameters="fixed")
    found = model.fit(CORNER, VALUES).predict_frame(PLACES)
    assert found["near_data"].tolist() == NEAR
    model.save(tmp_path / "m.privgp")
    assert load(tmp_path / "m.privgp").predict_frame(PLACES)["near_data"].tolist() == NEAR


def test_nearness_of_private_records_follows_from_the_released_file_alone():
    """Other records with the same noisy numbers are near to the same places."""
    asked = {"protect": "records", "x_bounds": [(0, 10), (0, 10)], "hyperparameters": "fixed"}
    model = PrivateGPRegressor(y_bounds=(0, 10), **asked, **SIMULATED)
    plan = model.plan(2000)
    one = model.fit(CORNER, VALUES, plan=plan)
    other = PrivateGPRegressor(y_bounds=(0, 10), **asked, **SIMULATED)
    other.fit(10.0 - CORNER, VALUES, plan=plan)
    assert one.predict_frame(PLACES)["near_data"].tolist() == NEAR
    assert other.predict_frame(10.0 - PLACES)["near_data"].tolist() == NEAR
    other._hold(one._released)
    assert other.predict_frame(PLACES)["near_data"].tolist() == NEAR


def test_labels_and_several_outcomes_have_one_column():
    asked = {"protect": "records", "x_bounds": [(0, 10), (0, 10)], "hyperparameters": "fixed"}
    labels = np.where(CORNER[:, 0] > 1.5, "a", "b")
    model = PrivateGPClassifier(classes=["a", "b", "c"], **asked, **SIMULATED)
    assert model.fit(CORNER, labels).predict_frame(PLACES)["near_data"].tolist() == NEAR
    bounds = {"x0": (0, 10), "x1": (0, 10)}
    outcomes = {"one": Number(0, 10), "kind": Label("a", "b")}
    mixed = PrivateGP(outcomes, **asked | {"x_bounds": bounds}, **SIMULATED)
    table = {"x0": CORNER[:, 0].copy(), "x1": CORNER[:, 1].copy(), "one": VALUES, "kind": labels}
    places = {"x0": PLACES[:, 0], "x1": PLACES[:, 1]}
    frame = mixed.fit(table).predict_frame(places)
    assert np.asarray(frame["near_data"]).tolist() == NEAR
    assert sum("near_data" in name for name in frame.columns) == 1


def test_where_nothing_tells_it_there_is_no_column():
    density = PrivateGPDensity(x_bounds=[(0, 10), (0, 10)], bins=4, **SIMULATED).fit(CORNER)
    assert "near_data" not in density.predict_frame(PLACES[:2]).columns
    few = PrivateGPRegressor(y_bounds=(0, 10), **SIMULATED, hyperparameters="fixed")
    assert "near_data" not in few.fit(CORNER[:5], VALUES[:5]).predict_frame(PLACES).columns
