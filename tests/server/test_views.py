"""What a page shows is what the model predicts, and what is downloaded is what the page shows."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

import privgp
from privgp import PrivateGPClassifier, PrivateGPRegressor
from privgp.models.load import pack_model, unpack_model
from privgp.server.errors import Refused
from privgp.server.views import exports as page
from privgp.server.views.exports import csv_of, geojson_of, script_of
from privgp.server.views.view import COLUMNS, view

ROWS = 40
BUDGET = {"epsilon": 2.0, "delta": 1e-5, "hyperparameters": "fixed", "mechanism": "laplace"}
INPUTS = {
    "curve": ["age"],
    "map": ["lat", "lon"],
    "slices": ["age", "bmi", "bp"],
}


def inputs(names):
    rng = np.random.default_rng(0)
    return pl.DataFrame({name: rng.uniform(10 + i, 50 + i, ROWS) for i, name in enumerate(names)})


def outputs(X):
    return 3.0 * X.to_numpy()[:, 0] + 10.0 * np.sin(X.to_numpy()[:, -1])


def fitted(names, **given):
    X = inputs(names)
    return unpack_model(
        pack_model(PrivateGPRegressor(y_bounds=(0, 200), **{**BUDGET, **given}).fit(X, outputs(X)))
    )


def labelled():
    X = inputs(["age"])
    model = PrivateGPClassifier(classes=["a<b", "c", "d"], **BUDGET)
    return unpack_model(pack_model(model.fit(X, np.array(["a<b", "c", "d"])[np.arange(ROWS) % 3])))


def several():
    X = inputs(["age"])
    Y = pl.DataFrame({"cost": outputs(X), "days": outputs(X) / 2})
    model = PrivateGPRegressor(y_bounds=[(0, 200), (0, 100)], **BUDGET)
    return unpack_model(pack_model(model.fit(X, Y)))


@pytest.fixture(scope="module")
def models():
    made = {kind: fitted(names) for kind, names in INPUTS.items()}
    return {**made, "labels": labelled(), "several": several()}


@pytest.mark.parametrize("kind", INPUTS)
def test_a_view_is_what_the_model_predicts(models, kind):
    model, shown = models[kind], view(models[kind]._released, "cost")
    assert (shown["kind"], shown["inputs"]) == (kind, INPUTS[kind])
    assert len(shown["panels"]) == (3 if kind == "slices" else 1)
    for panel in shown["panels"]:
        X = pl.DataFrame(panel["points"], schema=INPUTS[kind], orient="row")
        np.testing.assert_allclose(panel["mean"], model.predict(X), rtol=1e-12)
        numbers = [np.array(panel[name]) for name in COLUMNS]
        np.testing.assert_allclose(numbers[1:3], model.interval(X, 0.9), rtol=1e-9)
        parts_lie_inside(panel)


def parts_lie_inside(panel):
    """Both parts of the interval lie in it, and add up like variances on either side of its middle."""
    mean, low, high, *parts = (np.array(panel[name]) for name in COLUMNS)
    middle = np.clip(mean, low, high)
    for inner_low, inner_high in (parts[:2], parts[2:]):
        assert np.all((low <= inner_low) & (inner_low <= middle))
        assert np.all((middle <= inner_high) & (inner_high <= high))
    for end, privacy, rest in ((low, *parts[::2]), (high, *parts[1::2])):
        whole = np.hypot(privacy - middle, rest - middle)
        np.testing.assert_allclose(whole, np.abs(end - middle), rtol=1e-9, atol=1e-9)


def test_the_parts_of_an_interval_lie_in_it_where_the_mean_does_not():
    """Intervals keep to the bounds of the outputs, means do not."""
    panel = view(fitted(["age"], random_state=11)._released, "cost")["panels"][0]
    assert min(panel["mean"]) < 0 <= min(panel["low"])
    parts_lie_inside(panel)


def test_privacy_noise_never_makes_more_than_all_of_the_range():
    """Laplace noise counts as it is given all numbers, not by its std before they were known."""
    X = inputs(["age"]).to_numpy()
    kernel = ConstantKernel(2500.0) * Matern(400.0, nu=2.5)
    model = PrivateGPRegressor(kernel=kernel, noise_variance=1.0, y_bounds=(0, 200), random_state=0)
    model.set_params(**{**BUDGET, "epsilon": 1.0}).fit(X, np.full(ROWS, 100.0))
    privacy, whole = model.release_.privacy_variance(X), model.release_.mean_and_variance(X)[1]
    assert np.all(privacy < whole)
    assert (privacy / whole).max() > 0.95


def test_labels_and_several_outputs_have_a_panel_each(models):
    of_labels, both = (
        view(models["labels"]._released, "kind"),
        view(models["several"]._released, ""),
    )
    assert of_labels["outputs"] == [f"probability of kind = {each}" for each in ("a<b", "c", "d")]
    assert [panel["output"] for panel in both["panels"]] == ["cost", "days"]
    assert "privacy_low" not in of_labels["panels"][0]
    total = np.sum([panel["mean"] for panel in of_labels["panels"]], axis=0)
    np.testing.assert_allclose(total, 1.0, rtol=1e-9)


@pytest.mark.parametrize("kind", [*INPUTS, "labels", "several"])
def test_the_script_repeats_the_table(models, kind, tmp_path):
    """From the published file alone, in another process."""
    model = models[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.save(tmp_path / "a.privgp")
    text = script_of(model._released, "cost' \n", "a.privgp")
    assert "y_bounds=" in text or "classes=" in text
    (tmp_path / "a.py").write_text(text, encoding="utf-8")
    if kind == "map":  # one of them as a person would
        home = str(Path(privgp.__file__).parents[1])
        run = [
            sys.executable,
            "-c",
            f"import sys; sys.path.insert(0, {home!r}); exec(open('a.py').read())",
        ]
        done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    else:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(tmp_path)
            exec(compile(text, "a.py", "exec"), {})
    repeated = pl.read_csv(tmp_path / "repeated.csv")
    table = pl.read_csv(io.StringIO(csv_of(model._released, "cost")))
    assert repeated.height == table.height
    ours = [name for name in table.columns if name.startswith("mean of")]
    theirs = [name for name in repeated.columns if name.startswith(("mean", "probability"))]
    told = table.select(ours).to_numpy()
    np.testing.assert_allclose(repeated.select(theirs).to_numpy(), told, rtol=1e-12)
    assert (tmp_path / "repeated.png").stat().st_size > 5000


def test_the_script_refuses_another_release(models, tmp_path):
    text = script_of(models["curve"]._released, "cost", "a.privgp")
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        models["slices"].save(tmp_path / "a.privgp")
        patch.chdir(tmp_path)
        with pytest.raises(AssertionError, match="another release"):
            exec(compile(text, "a.py", "exec"), {})


def test_geojson_has_longitude_first_whatever_the_order_of_the_inputs(models):
    model = models["map"]  # latitude comes first there
    shown, found = view(model._released, "cost"), json.loads(geojson_of(model._released, "cost"))
    assert shown["places"] == [1, 0]
    (ring,) = found["features"][-1]["geometry"]["coordinates"]
    lon, lat = np.mean(ring[:4], axis=0)
    step = shown["axes"][1][1] - shown["axes"][1][0]
    assert abs(lon - shown["axes"][1][-1]) < step
    assert abs(lat - shown["axes"][0][-1]) < step
    at = pl.DataFrame({"lat": [lat], "lon": [lon]})
    properties = found["features"][-1]["properties"]
    assert properties["mean"] == pytest.approx(model.predict(at)[0], rel=1e-6)
    assert found["privgp"]["epsilon"] == 2.0
    with pytest.raises(Refused, match="longitude and latitude"):
        geojson_of(models["slices"]._released, "cost")


def test_names_of_columns_may_be_anything(tmp_path):
    X = inputs(["mean of cost"])
    model = unpack_model(
        pack_model(PrivateGPRegressor(y_bounds=(0, 200), **BUDGET).fit(X, outputs(X)))
    )
    columns = pl.read_csv(io.StringIO(csv_of(model._released, "cost"))).columns
    assert len({*columns}) == len(columns) == 8


def test_values_at_targets_alone_are_refused():
    targets = [[20.0], [30.0]]
    model = fitted(["age"], reconstruct="unbiased", targets=targets, mechanism="gaussian")
    with pytest.raises(Refused, match="targets alone"):
        view(model._released, "cost")


@pytest.mark.parametrize("kind", [*INPUTS, "labels", "several"])
def test_a_published_page_is_complete(models, kind):
    text = page.render_release(models[kind]._released, "</script><b>", "A & <B>")
    assert text.count("<script>") == text.count("</script>") - 1 == len(page.SCRIPTS)
    assert "<h1>A &amp; &lt;B&gt;</h1>" in text
    for tag in ('rel="stylesheet"', "src=", 'href="http', "@import"):
        assert tag not in text.partition('id="view-data"')[0]
    assert "What is not protected" in text
    start = text.index('id="view-data">') + len('id="view-data">')
    shown = json.loads(text[start : text.index("</script>", start)])
    assert shown == json.loads(json.dumps(view(models[kind]._released, "</script><b>")))


def test_a_simulation_says_so_everywhere():
    model = fitted(["lon", "lat"], random_state=0)
    assert "simulation" in pl.read_csv(io.StringIO(csv_of(model._released, "cost"))).columns
    assert json.loads(geojson_of(model._released, "cost"))["privgp"]["simulation"]
    assert 'class="simulation"' in page.render_release(model._released, "cost", "name")
    assert "imulation" in script_of(model._released, "cost", "a.privgp")
