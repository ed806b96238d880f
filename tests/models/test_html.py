"""What notebooks show: plans, guarantees and models as tables, with nothing private or unescaped."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import privgp
from privgp import PrivateGPClassifier, PrivateGPRegressor

rng = np.random.default_rng(0)
TABLE = pd.DataFrame({"x<b>": rng.uniform(0, 1, 60), "region": rng.choice(["n", "s"], 60)})
SETTINGS = {"epsilon": 1.5, "delta": 1e-5, "random_state": 0, "hyperparameters": "fixed"}


@pytest.mark.filterwarnings("ignore:The file contains")
def test_a_model_shows_inputs_output_and_guarantee(tmp_path):
    model = PrivateGPRegressor(y_bounds=(0, 1), **SETTINGS)
    assert "PrivateGPRegressor" in model._repr_html_()
    model.fit(TABLE, rng.uniform(0, 1, 60)).name_output("cost & more", "EUR")
    model.save(tmp_path / "a.privgp")
    for each in (model, privgp.load(tmp_path / "a.privgp")):
        shown = each._repr_html_()
        assert "cost &amp; more" in shown
        assert "x&lt;b&gt;" in shown
        assert "<b>x" not in shown
        assert "a category of 2: n, s" in shown
        assert "1.5" in shown
        assert "SIMULATION" in shown
        assert each._repr_mimebundle_()["text/html"] == shown


def test_labels_guarantees_and_plans_are_shown():
    model = PrivateGPClassifier(classes=["no", "yes"], **SETTINGS)
    plan = model.plan(TABLE[["x<b>"]])
    assert "data:image/png;base64," in plan._repr_html_()
    model.fit(TABLE[["x<b>"]], rng.choice(["no", "yes"], 60), plan=plan)
    assert "no, yes" in model._repr_html_()
    assert "one label" in model.guarantee_._repr_html_()
