"""Pictures show what was released and planned, readably, and nothing private."""

from __future__ import annotations

import subprocess
import sys
from datetime import date

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from sklearn.exceptions import NotFittedError

from privgp import PrivateGPRegressor, load
from privgp.command.errors import Failure, Refusal
from privgp.command.io.files import PICTURES, check_files
from privgp.command.io.results import write_picture
from privgp.models.picture import part_of, ranges, rate_of
from privgp.pictures.maps import EMPTY
from privgp.pictures.released import OUTPUTS, TOTAL, input_names
from privgp.pictures.style import budget_text, limits, number
from privgp.release.queries.quantities import ReleasedFunction

BOUNDS = (0.0, 10.0)
ROWS = 24


def inputs(columns: int, rows: int = ROWS) -> np.ndarray:
    return np.random.default_rng(columns).uniform(20.0, 30.0, size=(rows, columns))


def outputs(rows: int = ROWS) -> np.ndarray:
    return np.random.default_rng(99).uniform(*BOUNDS, size=rows)


def fitted(X, hyperparameters="fixed", **options) -> PrivateGPRegressor:
    budget = {"epsilon": 1.0, "delta": 1e-5}
    model = PrivateGPRegressor(
        y_bounds=BOUNDS, hyperparameters=hyperparameters, **budget, **options
    )
    return model.fit(X, outputs(len(X)))


@pytest.fixture(scope="module", params=[1, 2, 4], ids=lambda columns: f"{columns} inputs")
def model(request) -> PrivateGPRegressor:
    return fitted(inputs(request.param), "learned" if request.param == 1 else "fixed")


@pytest.fixture(scope="module", params=[1, 2, 4], ids=lambda columns: f"{columns} inputs")
def unbiased(request) -> PrivateGPRegressor:
    return fitted(inputs(request.param), reconstruct="unbiased")


def drawn_texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def drawn_numbers(figure: Figure) -> np.ndarray:
    """Every coordinate and pixel value that the figure's artists hold."""
    found: list[np.ndarray] = [np.zeros(0)]
    for ax in figure.findobj(Axes):
        for line in ax.lines:
            found += [np.asarray(line.get_xdata(orig=True)), np.asarray(line.get_ydata(orig=True))]
        for collection in ax.collections:
            found += [path.vertices for path in collection.get_paths()]
            found.append(np.ma.filled(collection.get_offsets(), np.nan))
            if collection.get_array() is not None:
                found.append(np.asarray(collection.get_array()))
        found += [np.asarray(image.get_array()) for image in ax.images]
        found += [np.asarray(patch.get_path().vertices) for patch in ax.patches]
    return np.concatenate([np.asarray(values, dtype=float).ravel() for values in found])


def save_figure(figure: Figure, path):
    write_picture(figure, path)
    return path


def is_drawable(figure: Figure, tmp_path) -> bool:
    assert isinstance(figure, Figure)
    path = save_figure(figure, tmp_path / "figure.png")
    return path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 5_000


def hides(figure: Figure, secrets: np.ndarray) -> bool:
    drawn = drawn_numbers(figure)
    assert drawn.size > 10
    return bool(np.abs(secrets[:, None] - drawn[np.isfinite(drawn)]).min() > 1e-9)


def test_a_model_is_drawn_without_private_outputs(model, tmp_path):
    figure = model.plot(observation=True, output="cost")
    assert is_drawable(figure, tmp_path)
    assert hides(figure, outputs())


def test_an_unbiased_release_is_drawn_at_its_targets(unbiased, tmp_path):
    figure = unbiased.plot(observation=True)
    assert is_drawable(figure, tmp_path)
    assert hides(figure, outputs())
    assert np.isin(unbiased.release_.released.targets, drawn_numbers(figure)).all()


@pytest.mark.parametrize("reconstruct", ["posterior", "unbiased"])
def test_a_plan_is_drawn(reconstruct, tmp_path):
    settings = {"reconstruct": reconstruct, "hyperparameters": "fixed"}
    model = PrivateGPRegressor(y_bounds=BOUNDS, **settings)
    assert is_drawable(model.plan(inputs(2)).plot(), tmp_path)


def test_the_search_for_private_outputs_finds_them():
    figure = Figure()
    figure.subplots().scatter(np.arange(ROWS), outputs())
    assert not hides(figure, outputs())


@pytest.mark.parametrize("columns", [1, 2, 4])
@pytest.mark.parametrize("reconstruct", ["posterior", "unbiased"])
@pytest.mark.parametrize("rows", [1, 10])
def test_a_single_distinct_input_is_drawn(columns, reconstruct, rows):
    model = fitted(np.full((rows, columns), 3.0), reconstruct=reconstruct)
    figures = [model.plot(), model.plan_.plot()]
    assert all(figure.axes for figure in figures)
    if rows == 1:
        figures[0].draw_without_rendering()


@pytest.mark.parametrize("reconstruct", ["posterior", "unbiased"])
@pytest.mark.parametrize("columns", [1, 2, 4])
def test_the_band_of_privacy_is_inside_the_band_of_everything(columns, reconstruct):
    X = inputs(columns)
    model = fitted(X, reconstruct=reconstruct, random_state=0)
    function = ReleasedFunction.of(model._released)
    mean, bands = ranges(function, X, observation=True)
    assert list(bands) == [OUTPUTS, TOTAL]
    low, high = part_of(bands[TOTAL], mean, function.privacy_share(X))
    assert (low < mean).all()
    assert (mean < high).all()
    assert (bands[TOTAL][0] < low).all()
    assert (high < bands[TOTAL][1]).all()
    assert (bands[OUTPUTS][0] <= bands[TOTAL][0]).all()
    assert (bands[TOTAL][1] <= bands[OUTPUTS][1]).all()


@given(st.data())
def test_a_part_of_an_interval_lies_in_it(data):
    """Whatever the interval, wherever the mean: the parts of two shares add up on either side."""
    number = st.floats(-1e6, 1e6)
    low, high = sorted(data.draw(st.tuples(number, number)))
    mean, share = data.draw(number), data.draw(st.floats(0, 1))
    total = np.array([low]), np.array([high])
    middle = np.clip(mean, low, high)
    parts = [part_of(total, np.array([mean]), np.array([each])) for each in (share, 1 - share)]
    for inner_low, inner_high in parts:
        assert low <= inner_low[0] <= middle <= inner_high[0] <= high
    for end, privacy, rest in zip((low, high), *parts, strict=True):
        whole = np.hypot(privacy - middle, rest - middle)
        np.testing.assert_allclose(whole, abs(end - middle), rtol=1e-9, atol=1e-9)


def test_the_part_of_privacy_is_its_noise_where_the_posterior_is_normal():
    """One model, far from the bounds: the part is 1.645 standard deviations of the noise."""
    X = inputs(1)
    model = fitted(X, random_state=0)
    mean = model.predict(X)
    reach, variance = 1.6448536269514722, model.release_.mean_and_variance(X)[1]
    whole = reach * np.sqrt(variance)
    share = ReleasedFunction.of(model._released).privacy_share(X)
    low, high = part_of((mean - whole, mean + whole), mean, share)
    own = reach * np.sqrt(model.release_.privacy_variance(X))
    np.testing.assert_allclose([mean - low, high - mean], [own, own], rtol=1e-6)


@pytest.mark.parametrize("observation", [False, True])
def test_the_outer_band_is_the_interval(observation):
    model = fitted(inputs(1), "learned", random_state=0)
    curve, low, high = model.plot(observation=observation).axes[0].lines[:3]
    X = curve.get_xdata()[:, None]
    np.testing.assert_allclose(curve.get_ydata(), model.predict(X))
    ends = model.interval(X, observation=observation)
    np.testing.assert_allclose([low.get_ydata(), high.get_ydata()], ends)


@pytest.mark.parametrize("reconstruct", ["posterior", "unbiased"])
def test_a_loaded_model_is_drawn_the_same(reconstruct, tmp_path):
    model = fitted(inputs(1), reconstruct=reconstruct)
    model.save(tmp_path / "model.privgp")
    loaded = load(tmp_path / "model.privgp")
    before, after = (
        save_figure(each.plot(observation=True), tmp_path / "figure.svg").read_bytes()
        for each in (model, loaded)
    )
    assert before == after


@pytest.mark.parametrize("ending", ["png", "svg", "PNG"])
def test_files_are_equal_for_equal_figures(tmp_path, ending):
    model = fitted(inputs(1))
    first, second = (
        save_figure(model.plot(), tmp_path / f"{name}.{ending}").read_bytes()
        for name in ("first", "second")
    )
    assert first == second
    assert len(first) > 5_000
    assert {path.name for path in tmp_path.iterdir()} == {f"first.{ending}", f"second.{ending}"}


@pytest.mark.parametrize("name", ["figure.pdf", "figure", "figure.png.txt", ".png"])
def test_other_endings_are_refused(tmp_path, name):
    with pytest.raises(Refusal, match=r"must end in \.png or \.svg"):
        check_files([], [(tmp_path / name, PICTURES)], force=False)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "figure.png"
    path.write_bytes(b"old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("privgp.command.io.files.os.replace", fail)
    with pytest.raises(Failure, match="could not be written"):
        save_figure(Figure(), path)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["figure.png"]


def test_the_title_says_the_budget_and_shouts_when_it_is_a_simulation():
    for columns in (1, 2, 4):
        X = inputs(columns)
        simulated = "\n".join(drawn_texts(fitted(X, random_state=0).plot()))
        assert "SIMULATION, not for release" in simulated
        assert "ε = 1, δ = " in simulated
        private = "\n".join(drawn_texts(fitted(X).plot()))
        assert "SIMULATION" not in private
        assert "From 24 rows; protects one output value with ε = 1, δ = 0 (pure)" in private
    gaussian = fitted(inputs(1), mechanism="gaussian").plot()
    assert "ε = 1, δ = 1e-5" in "\n".join(drawn_texts(gaussian))


def test_slices_say_that_the_others_are_held():
    X = inputs(4)
    texts = words_of(fitted(X).plot())
    assert "the others are held at their median: input 1 = " in texts
    kinds = pl.DataFrame(
        {
            "age": X[:, 0],
            "day": [date(2025, 3, 1)] * len(X),
            "region": ["north", *["south"] * (len(X) - 1)],
        }
    )
    texts = words_of(fitted(kinds).plot())
    assert f"age = {np.median(X[:, 0]):.4g}, day = 2025-03-01, region = south" in texts


def test_names_are_drawn_as_they_are(tmp_path):
    pandas = pytest.importorskip("pandas")
    names = ["price in $", "x_1^$ and $"]  # would be a broken formula
    model = fitted(pandas.DataFrame(inputs(2), columns=names))
    figure = model.plot(output="a $ and $x_")
    assert is_drawable(figure, tmp_path)
    assert r"price in \$" in drawn_texts(figure)
    with pytest.raises(ValueError, match="names must name 2 inputs"):
        input_names(["one"], 2)


def test_given_axes_and_figures_are_drawn_on():
    model = fitted(inputs(1))
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert model.plot(left) is figure
    assert model.plan_.plot(right) is figure
    assert left.lines
    assert right.lines
    wide = fitted(inputs(4))
    canvas = Figure()
    part = canvas.subfigures(1, 2)[0]
    assert wide.plot(figure=part) is canvas
    assert len(part.axes) == 4
    with pytest.raises(ValueError, match="give figure, not ax"):
        wide.plot(left)


def test_the_planned_error_is_marked_between_no_noise_and_more_noise():
    plan = fitted(inputs(1)).plan_
    ax = plan.plot().axes[0]
    curve, floor = ax.lines[0], ax.lines[1]
    assert np.all(np.diff(curve.get_ydata()) < 0)
    assert floor.get_ydata()[0] < np.min(curve.get_ydata())
    marked = [line for line in ax.lines if str(line.get_label()).startswith("planned:")]
    assert marked[-1].get_ydata()[0] == plan.expected_error()


def test_a_plan_has_a_band_at_every_epsilon_on_an_axis_of_ratios():
    plan = fitted(inputs(1), "learned").plan_
    ax = plan.plot().axes[0]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    (band,) = ax.collections
    low, high = plan.error_range()
    at = band.get_paths()[0].vertices
    here = at[np.isclose(at[:, 0], plan.epsilon), 1]
    np.testing.assert_allclose([here.min(), here.max()], [low, high])
    epsilon = 0.1
    np.testing.assert_allclose(
        at[np.isclose(at[:, 0], epsilon), 1].max(), plan.at(epsilon).error_range()[1]
    )
    assert any("24 rows" in text for text in drawn_texts(ax.figure))
    assert "units of the output" in ax.get_ylabel()


def legend_of(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def words_of(figure: Figure) -> str:
    """All texts of a figure, with the lines of each joined."""
    return " | ".join(" ".join(text.split()) for text in drawn_texts(figure))


def table(**columns):
    return pytest.importorskip("polars").DataFrame(columns)


def test_a_curve_says_what_it_shows_in_which_units():
    model = fitted(table(age=inputs(1)[:, 0])).name_output("height", "cm")
    figure = model.plot(points=table(age=[21.0, 25.0]))
    (ax,) = figure.axes
    assert figure.get_suptitle() == "Mean height by age"
    assert "From 24 rows; protects one output value" in words_of(figure)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("age", "height (cm)")
    assert all(name in words_of(figure) for name in ("mean", TOTAL, "public inputs"))
    assert "Diamonds: points asked." in words_of(figure)
    (asked,) = [line for line in ax.lines if line.get_label() == "points asked"]
    np.testing.assert_allclose(asked.get_ydata(), model.predict(table(age=[21.0, 25.0])))


def test_money_is_written_as_money():
    model = fitted(table(age=inputs(1)[:, 0])).name_output("price", "£")
    figure = model.plot()
    figure.draw_without_rendering()
    ticks = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert any(tick.startswith("£") for tick in ticks)


@pytest.mark.parametrize("names", [("lat", "lon"), ("Longitude", "Latitude")])
def test_plain_latitudes_go_up_and_longitudes_to_the_right_in_true_shape(names):
    where = {names[0]: inputs(2)[:, 0], names[1]: inputs(2)[:, 1]}
    lon, lat = sorted(names, key=lambda name: not name.lower().startswith("lon"))
    model = fitted(table(**where))
    asked = {name: [25.0] if name == lat else [22.0] for name in names}
    left, right = (figure := model.plot(points=table(**asked))).axes[:2]
    assert (left.get_xlabel(), left.get_ylabel()) == (lon, lat)
    middle = np.radians(np.mean(left.get_ylim()))
    np.testing.assert_allclose(left.get_aspect(), 1.0 / np.cos(middle), rtol=1e-3)
    dots = next(line for line in left.lines if len(line.get_xdata()) == ROWS)
    np.testing.assert_array_equal(np.sort(dots.get_xdata()), np.sort(where[lon]))
    (mark,) = [line for line in right.lines if line.get_label() == "points asked"]
    assert mark.get_xydata().tolist() == [[22.0, 25.0]]
    figure.draw_without_rendering()
    assert left.get_xticklabels()[0].get_text().endswith("°E")


def test_coordinates_of_a_plane_have_one_scale_and_others_have_not():
    X = inputs(2)
    assert fitted(table(x=X[:, 0], y=X[:, 1])).plot().axes[0].get_aspect() == 1.0
    assert (
        fitted(table(**{"east (km)": X[:, 0], "north (m)": X[:, 1]})).plot().axes[0].get_aspect()
        == "auto"
    )
    assert fitted(table(bmi=X[:, 0], bp=X[:, 1])).plot().axes[0].get_aspect() == "auto"
    assert fitted(table(x=X[:, 0], y=1000.0 * X[:, 1])).plot().axes[0].get_aspect() == "auto"


def test_chosen_points_are_not_called_public_inputs():
    figure = fitted(inputs(1, 200), inducing=20).plot()
    assert "20 representative inputs" in words_of(figure)
    assert "public inputs" not in words_of(figure)


def test_inputs_with_two_values_have_bars_there_and_no_curve():
    X = inputs(3)
    X[:, 1] = np.arange(ROWS) % 2
    figure = fitted(X).plot()
    binary = figure.axes[1]
    assert binary.get_xticks().tolist() == [0.0, 1.0]
    assert [len(line.get_xdata()) for line in binary.lines if line.get_label() == "mean"] == [2]
    assert len(figure.axes[0].lines[0].get_xdata()) == 300
    assert len({*legend_of(figure)}) == len(legend_of(figure))


def test_whole_numbers_have_whole_ticks():
    """Of children 0.8 are none; of the other input, ticks may be anywhere."""
    X = np.column_stack([np.arange(ROWS) % 5, inputs(2)])
    panels = fitted(X).plot().axes
    whole = [tick for tick in panels[0].get_xticks() if 0 <= tick <= 4]
    assert len(whole) >= 3
    assert all(tick == round(tick) for tick in whole)


def test_no_title_is_wider_than_its_figure():
    """The longest guarantee that a curve's title has: one person's contribution, and pure."""
    X = inputs(1, 400)
    model = PrivateGPRegressor(
        y_bounds=(0, 400), epsilon=1.0, delta=1e-5, likelihood="poisson", max_change=1,
        hyperparameters="fixed",
    )  # fmt: skip
    model.fit(X, np.zeros(400), exposure=np.full(400, 9.0))
    figure = model.plot()
    figure.draw_without_rendering()
    extents = [text.get_window_extent() for text in figure.findobj(Text) if text.get_text()]
    assert all(each.x0 >= 0.0 and each.x1 <= figure.bbox.x1 for each in extents)


def test_a_rate_is_per_unit_of_exposure_unless_its_units_say_otherwise():
    assert rate_of("cases") == "cases per unit of exposure"
    assert rate_of("cases (per 1,000 people)") == "cases (per 1,000 people)"


def test_records_hide_where_nobody_is():
    """Inputs are private: nothing is masked, and no input is drawn."""
    model = PrivateGPRegressor(
        y_bounds=BOUNDS, protect="records", x_bounds=[(20, 30)] * 2, epsilon=1.0, delta=1e-5,
        hyperparameters="fixed",
    )  # fmt: skip
    figure = model.fit(inputs(2), outputs()).plot()
    assert not any(name in words_of(figure) for name in ("public inputs", EMPTY))
    assert "one whole record" in words_of(figure)


def test_an_unfitted_model_is_refused():
    with pytest.raises(NotFittedError):
        PrivateGPRegressor(y_bounds=BOUNDS).plot()


def test_no_pyplot_is_needed(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    assert is_drawable(fitted(inputs(2)).plot(), tmp_path)


def test_matplotlib_waits_for_a_picture():
    code = (
        "import sys, numpy as np; from privgp import PrivateGPRegressor as GP\n"
        "model = GP(y_bounds=(0, 1), hyperparameters='fixed', random_state=0)\n"
        "model.plan(np.eye(3)); model.fit(np.eye(3), np.ones(3))\n"
        "assert 'matplotlib' not in sys.modules\n"
        "import warnings\n"  # old versions of it use names that newer versions of others deprecate
        "warnings.filterwarnings('ignore', category=DeprecationWarning, module='matplotlib')\n"
        "model.plot(); assert 'matplotlib' in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_numbers_are_short():
    assert budget_text(1.0, 1e-5) == "ε = 1, δ = 1e-5"
    assert [number(v) for v in (0.01, 1e6, 2.5e-12)] == ["0.01", "1e6", "2.5e-12"]


def test_limits_are_never_empty():
    for values in ([0.0], [5.0, 5.0], [-2.0], [1.0, 2.0]):
        low, high = limits(np.array(values), 0.0)
        assert low < high
