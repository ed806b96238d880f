"""A notebook as a newcomer writes it: the last line of every cell shows a table or a picture."""

from __future__ import annotations

from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

FIRST = """
import numpy as np
import pandas as pd
import shapely

import privgp

rng = np.random.default_rng(0)
homes = pd.DataFrame({"x": rng.uniform(0, 9, 120), "y": rng.uniform(0, 9, 120)})
homes["size"] = pd.Categorical(rng.choice(["small", "large"], 120), ["small", "large"], ordered=True)
rent = pd.Series(900 + 40 * homes["x"], name="rent")
budget = {"epsilon": 3.0, "random_state": 0, "hyperparameters": "fixed"}
model = privgp.PrivateGPRegressor(y_bounds=(500, 1500), delta=1e-6, **budget)
plain = privgp.PrivateGPRegressor(y_bounds=(500, 1500), delta=1e-6, **budget)
points = privgp.PrivateGPDensity(x_bounds=[(0, 9), (0, 9)], bins=4, **budget)
flats = privgp.PrivateGP({"rent": privgp.Number(500, 1500)}, inputs=["x", "y"], delta=1e-6, **budget)
"""
HTML, PICTURE = "text/html", "image/png"
# Every last line, what shows it, and words that it shows.
CELLS = (
    ("model", HTML, ["PrivateGPRegressor"]),
    ("plan = model.plan(homes)\nplan", HTML, ["data:image/png", "Expected error", "epsilon 0.1"]),
    ("plan.plot()", PICTURE, []),
    (
        "model.fit(homes, rent, plan=plan)",
        HTML,
        ["SIMULATION", "rent", "x from", "a category of 2: small, large", "120"],
    ),
    ("model.guarantee_", HTML, ["epsilon", "one output value"]),
    ("model.plot()", PICTURE, []),
    ("model.save('a.privgp')\nprivgp.load('a.privgp')", HTML, ["rent", "small, large", "y from"]),
    ("plain.fit(homes[['x', 'y']], rent).plot()", PICTURE, []),
    ("found = plain.average(homes[['x', 'y']], by=homes['size'])\nfound", HTML, ["small", "mean"]),
    ("areas = plain.areas([shapely.box(0, 0, 4, 9), shapely.box(4, 0, 9, 9)])\nareas", HTML, ["low"]),
    ("areas.plot()", PICTURE, []),
    ("plain.predict_frame(homes[['x', 'y']].head(3))", HTML, ["high"]),
    ("points.plan(homes[['x', 'y']])", HTML, ["data:image/png"]),
    ("points.fit(homes[['x', 'y']])", HTML, ["one point", "x from 0"]),
    ("points.plot()", PICTURE, []),
    ("flats.fit(homes.assign(rent=rent))", HTML, ["PrivateGP", "rent"]),
)  # fmt: skip


@pytest.fixture(scope="module")
def notebook(tmp_path_factory) -> Any:
    cells = [nbformat.v4.new_code_cell(text) for text in (FIRST, *(each[0] for each in CELLS))]
    made = nbformat.v4.new_notebook(cells=cells)
    folder = str(tmp_path_factory.mktemp("notebook"))
    NotebookClient(made, timeout=300, resources={"metadata": {"path": folder}}).execute()
    return made


@pytest.mark.parametrize("place", range(len(CELLS)), ids=lambda place: CELLS[place][0][-25:])
def test_the_last_line_of_a_cell_shows_itself(notebook, place):
    _, kind, words = CELLS[place]
    shown = [each for each in notebook.cells[place + 1].outputs if "data" in each]
    assert len(shown) == 1
    assert kind in shown[0]["data"]
    if kind == PICTURE:
        assert len(shown[0]["data"][PICTURE]) > 10_000
    for word in words:
        assert word in shown[0]["data"][HTML]
