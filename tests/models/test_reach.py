"""Releases at public inputs know how far the rows reach, and what columns and levels are called."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import privgp
from privgp import PrivateGPRegressor
from privgp.command.io.axes import grid_of
from privgp.server.views.view import view

RNG = np.random.default_rng(7)
SETTINGS = {"y_bounds": (0, 1), "epsilon": 1.0, "random_state": 0, "hyperparameters": "fixed"}
ROWS = pl.DataFrame({"lat": RNG.beta(2, 2, 1500) + 45.0, "lon": RNG.beta(2, 2, 1500) + 9.0})
COST = RNG.uniform(0, 1, 1500)


def ends(release) -> np.ndarray:
    return np.array([[axis[0], axis[-1]] for axis in grid_of(release, 5, None).axes])


@pytest.mark.filterwarnings("ignore:The file contains")
@pytest.mark.parametrize("columns", [None, {("lat", "lon"): "place"}], ids=["numbers", "place"])
def test_grids_and_pictures_reach_the_outermost_rows(columns, tmp_path):
    """Though the rows are gathered in cells, whose middles lie inside."""
    model = PrivateGPRegressor(columns=columns, **SETTINGS).fit(ROWS, COST)
    true = np.array([[ROWS[name].min(), ROWS[name].max()] for name in ROWS.columns])
    assert len(model.functionals_.nodes) < 1500
    np.testing.assert_allclose(ends(model._released), true, atol=1e-9)
    model.save(tmp_path / "a.privgp")
    loaded = privgp.load(tmp_path / "a.privgp")
    np.testing.assert_allclose(ends(loaded._released), true, atol=1e-9)
    low, high = loaded.plot().axes[0].get_xlim()
    np.testing.assert_allclose([low, high], true[1], atol=0.02)


def test_an_update_reaches_the_rows_of_all_batches():
    model = PrivateGPRegressor(**SETTINGS).fit(ROWS, COST)
    more = ROWS.with_columns(pl.col("lat") + 3.0)
    model.update(more, COST)
    both = pl.concat([ROWS, more])
    np.testing.assert_allclose(ends(model._released)[0], [both["lat"].min(), both["lat"].max()])


def test_private_inputs_reach_as_far_as_was_declared():
    model = PrivateGPRegressor(protect="records", x_bounds=[(40, 50), (5, 15)], **SETTINGS)
    model.fit(ROWS, COST)
    assert model._released.reach is None
    np.testing.assert_allclose(ends(model._released), [(40, 50), (5, 15)])
    assert "lat from 40 to 50" in model._repr_html_()


def test_the_output_is_called_as_its_column_unless_it_was_named():
    X, y = ROWS.to_pandas()[:60], pd.Series(COST[:60], name="cost")
    model = PrivateGPRegressor(**SETTINGS).fit(X, y)
    assert model.output_ == {"name": "cost", "column": "cost"}
    assert model.fit(X, y.rename("price")).output_["name"] == "price"
    assert model.fit(X, COST[:60]).output_ is None
    model.name_output("cost of a visit", "EUR").fit(X, y)
    assert model.output_ == {"name": "cost of a visit", "units": "EUR"}


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_ordered_levels_keep_their_order(library):
    levels = ["low", "middle", "high", "none of these"]
    cells = RNG.choice(levels[:3], 60)
    if library == "pandas":
        X = pd.DataFrame({"pay": pd.Categorical(cells, levels, ordered=True)})
    else:
        X = pl.DataFrame({"pay": pl.Series(cells).cast(pl.Enum(levels))})
    model = PrivateGPRegressor(**SETTINGS).fit(X, COST[:60])
    assert model.inputs_.columns[0].levels == ("low", "middle", "high")


def test_pages_tell_where_no_data_are_near():
    far = (ROWS["lat"] > 45.5) & (ROWS["lon"] > 9.5)
    model = PrivateGPRegressor(**SETTINGS).fit(ROWS.filter(~far), COST[~far.to_numpy()])
    shown = view(model._released, "cost")
    near = np.array(shown["near"]).reshape(len(shown["axes"][0]), -1)
    assert near[:15, :15].mean() > 0.8
    assert near[-8:, -8:].mean() == 0.0
    private = PrivateGPRegressor(protect="records", x_bounds=[(45, 46), (9, 10)], **SETTINGS)
    assert "near" not in view(private.fit(ROWS, COST)._released, "cost")


def test_a_plan_says_over_what_distance_a_function_changes_along_every_column():
    X = ROWS[:80].with_columns(pl.Series("size", RNG.choice(["s", "l"], 80)))
    settings = {**SETTINGS, "hyperparameters": "learned", "columns": {("lat", "lon"): "place"}}
    said = PrivateGPRegressor(**settings).plan(X[["lat", "lon"]]).summary()
    assert said.count("along lat and lon") == 1
