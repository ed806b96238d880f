"""Where private points lie: what is released, what it guarantees, and what is refused."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad

import privgp
from privgp import Ledger, Number, Presence, PrivateGP, PrivateGPDensity, PrivateGPRegressor
from privgp.plan.bins.points import REPLACED, bins_per_input, count_bounds
from privgp.plan.part import table_rows
from privgp.vault.measure import exact, measure
from privgp.vault.table import seal_counts, seal_rows

SETTINGS: dict[str, Any] = {
    "epsilon": 1.0, "delta": 1e-6, "random_state": 0, "hyperparameters": "fixed",
}  # fmt: skip
BOX = {"x_bounds": [(0, 1)], "bins": 24}
rng = np.random.default_rng(0)
POINTS = np.clip(rng.normal(0.35, 0.1, (600, 1)), 0, 1)


@pytest.fixture(scope="module")
def fitted() -> PrivateGPDensity:
    return PrivateGPDensity(**BOX, **SETTINGS).fit(POINTS)


def test_the_density_integrates_to_one_and_is_zero_outside(fitted):
    total = quad(lambda x: np.exp(fitted.score_samples([[x]])[0]), 0, 1, limit=300)[0]
    assert total == pytest.approx(1.0, abs=1e-6)
    assert_array_equal(fitted.score_samples([[-0.1], [1.1]]), [-np.inf, -np.inf])
    assert_array_equal(fitted.intensity([[1.1]]), [0.0])


def test_the_intensity_is_the_density_times_about_the_number_of_points(fitted):
    x = np.linspace(0.05, 0.95, 20)[:, None]
    ratio = fitted.intensity(x) / np.exp(fitted.score_samples(x))
    assert_allclose(ratio, ratio[0])
    assert ratio[0] == pytest.approx(600, rel=0.1)
    low, high = fitted.interval(x)
    assert np.all((low >= 0) & (low < fitted.intensity(x)) & (fitted.intensity(x) < high))


def test_in_two_dimensions_the_density_integrates_to_one():
    points = rng.normal(0.5, 0.15, (500, 2))
    model = PrivateGPDensity(x_bounds=[(0, 1), (0, 2)], bins=8, **SETTINGS).fit(points)
    axes = [(np.arange(400) + 0.5) / 400, 2 * (np.arange(400) + 0.5) / 400]
    lattice = np.stack([each.ravel() for each in np.meshgrid(*axes)], axis=1)
    total = np.exp(model.score_samples(lattice)).mean() * 2.0
    assert total == pytest.approx(1.0, abs=2e-5)


def test_the_quadrature_is_exact_for_polynomials(fitted):
    points, weights = fitted._bins.quadrature()
    assert weights.sum() == pytest.approx(1.0)
    assert weights @ points[:, 0] ** 7 == pytest.approx(1 / 8)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_no_replaced_point_moves_the_measurement_further_than_stated(mechanism):
    model = PrivateGPDensity(**BOX, mechanism=mechanism, **SETTINGS)
    plan = model.plan(64)
    strategy, bounds = plan.parts[0].strategy, plan.parts[0].y_bounds
    assert bounds == count_bounds(64) == (0.0, 64.0)
    assert plan.parts[0].max_change == REPLACED
    q = 1 if plan.noise.pure else 2
    counts = rng.multinomial(64, np.full(24, 1 / 24)).astype(float)
    base, moves = exact(strategy, counts, bounds), []
    for i in range(24):
        for j in range(24):
            moved = counts.copy()
            moved[i], moved[j] = moved[i] - 1, moved[j] + 1
            if moved[i] >= 0 and i != j:
                moves.append(np.linalg.norm(exact(strategy, moved, bounds) - base, q))
    assert max(moves) <= strategy.sensitivity()
    assert max(moves) >= (0.999 if q == 1 else 0.5) * strategy.sensitivity()


def test_a_plan_uses_the_number_of_points_alone():
    model = PrivateGPDensity(**BOX, **SETTINGS)
    plan = model.plan(600)
    assert plan.hash == model.plan(POINTS).hash == model.plan(POINTS[::-1] * 0.1).hash
    again = PrivateGPDensity(**BOX, **SETTINGS).fit(POINTS, plan=plan)
    assert again.guarantee_.unit == "one point"
    with pytest.raises(ValueError, match="plan was made for other"):
        PrivateGPDensity(**BOX, **SETTINGS).fit(POINTS[:500], plan=plan)
    other = PrivateGPRegressor(y_bounds=(0, 1), **SETTINGS)
    with pytest.raises(ValueError, match="plan"):
        PrivateGPDensity(**BOX, **SETTINGS).fit(POINTS, plan=other.plan(POINTS))


def test_files_and_certificates_say_what_is_protected(fitted, tmp_path):
    fitted.save(tmp_path / "a.privgp")
    loaded = privgp.load(tmp_path / "a.privgp")
    x = np.linspace(0, 1, 9)[:, None]
    assert_array_equal(loaded.score_samples(x), fitted.score_samples(x))
    assert_array_equal(loaded.sample_y(x, 3), fitted.sample_y(x, 3))
    assert loaded.n_points_ == 600
    stated = loaded.certificate()
    assert stated["unit"] == "one point"
    assert stated["private"] == ["the place of every point"]
    assert stated["data"]["rows"] == 600
    assert not [each for each in stated["public"] if "inputs" in each]
    assert not [each for each in stated["not_protected"] if "inputs" in each]
    assert "bins of the declared domain" in loaded.guarantee_.mechanism


def test_a_plan_counts_points_and_not_bins():
    plan = PrivateGPDensity(**BOX, **SETTINGS).plan(POINTS)
    assert table_rows(plan.parts[0]) == 600
    assert "600 points in 24 bins" in plan.describe()
    assert "one person has one of them" in plan.describe()
    assert "output" not in plan.describe()
    # one over the number of points, which is more than that of bins
    with pytest.warns(UserWarning, match="not below 1/600"):
        PrivateGPDensity(
            **BOX, **{**SETTINGS, "delta": 2e-3, "mechanism": "gaussian"}
        ).plan(POINTS)  # fmt: skip


def test_a_ledger_is_charged(tmp_path):
    ledger = Ledger(f"sqlite:///{tmp_path}/l.db")
    account = ledger.open("points", epsilon=1.5, delta=1e-5)
    given = {**SETTINGS, "ledger": account, "random_state": None}
    PrivateGPDensity(**BOX, **given).fit(POINTS)
    with pytest.raises(privgp.BudgetExceeded):
        PrivateGPDensity(**BOX, **given).fit(POINTS + 0.01)


def test_points_of_a_table_go_by_name():
    table = pd.DataFrame({"x": POINTS[:, 0], "other": "text"})
    model = PrivateGPDensity(x_bounds={"x": (0, 1)}, bins=24, **SETTINGS).fit(table)
    plain = PrivateGPDensity(**BOX, **SETTINGS).fit(POINTS)
    new = pd.DataFrame({"x": [0.2, 0.6]})
    assert_allclose(model.intensity(new), plain.intensity([[0.2], [0.6]]))


def test_averages_and_bands_of_an_intensity(fitted):
    x = np.linspace(0.02, 0.98, 40)[:, None]
    found = fitted.average(x, by=x[:, 0] > 0.5)
    assert found.mean[0] > found.mean[1]
    low, high = fitted.interval(x, simultaneous=True)
    own_low, own_high = fitted.interval(x)
    assert np.all((low <= own_low) & (own_high <= high))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x_bounds": None}, "x_bounds must be declared"),
        ({"x_bounds": [(1, 0)]}, "x_bounds"),
        ({"x_bounds": [(0, 1)] * 6}, "at most 5 inputs"),
        ({"bins": 1}, "bins must be"),
        ({"bins": 10**6}, "bins must be"),
        ({"bins": 2.5}, "bins must be"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"mechanism": "cauchy"}, "mechanism"),
        (
            {"x_bounds": {}, "columns": {"r": ("periodic", 24)}},
            "over numbers, dates, places and categories",
        ),
        (
            {"x_bounds": {"x": (0, 1)}, "columns": {"r": ("category", list("abcdefghijklmnop"))}},
            "at most about ten levels",
        ),
        (
            {"x_bounds": {"x": (0, 1)}, "columns": {"r": ("category", ["a", "b"])}, "bins": 1000},
            "combinations of categories must be at most 1600",
        ),
    ],
)
def test_wrong_declarations_are_refused_before_anything_is_spent(given, message):
    with pytest.raises(ValueError, match=message):
        PrivateGPDensity(**{**BOX, **SETTINGS, **given}).plan(100)


def test_points_in_few_places_are_not_smeared():
    rng = np.random.default_rng(5)
    places = rng.uniform(0, 1, (30, 1))
    points = places[rng.integers(0, 30, 1500)]
    model = PrivateGPDensity(x_bounds=[(0, 1)], **{**SETTINGS, "hyperparameters": "learned"})
    model.fit(points)
    centres = (np.arange(64)[:, None] + 0.5) / 64
    truth = np.bincount((points[:, 0] * 64).astype(int), minlength=64) / 1500
    found = np.exp(model.score_samples(centres)) / 64
    noisy = np.maximum(truth * 1500 + rng.laplace(0, 2, 64), 0)
    assert 0.5 * np.abs(found - truth).sum() < 0.5 * np.abs(noisy / noisy.sum() - truth).sum()
    low, high = model.interval(centres)
    held = (low <= truth * 1500 * 64) & (truth * 1500 * 64 <= high)
    assert held.mean() > 0.8


def test_points_can_be_places():
    rng = np.random.default_rng(6)
    homes = pd.DataFrame({"lat": rng.normal(52, 0.1, 400), "lon": rng.normal(5, 0.1, 400)})
    box = {
        "x_bounds": {"lat": (51.5, 52.5), "lon": (4.0, 6.0)},
        "columns": {("lat", "lon"): "place"},
    }
    model = PrivateGPDensity(**box, bins=10, **SETTINGS).fit(homes)
    new = pd.DataFrame({"lat": [52.0, 51.6], "lon": [5.0, 4.1]})
    near, far = model.intensity(new)  # per square kilometre
    assert near > 5 * far
    area = 111.2 * 222.4 * np.cos(np.radians(52))
    assert 400 / area < near < 400


def test_fewer_points_or_less_budget_make_fewer_bins():
    assert bins_per_input(None, 2, 1000, 1.0) == 20
    assert bins_per_input(None, 2, 1000, 0.1) == 6
    assert bins_per_input(None, 1, 50, 1.0) == 20
    assert bins_per_input(None, 2, 10**6, 1.0) == 24
    assert bins_per_input(None, 3, 2, 0.01) == 2


@pytest.mark.parametrize("points", [[["a"]], [[np.nan]], [[np.inf]], [[0.1, 0.2]]])
def test_broken_points_are_refused(points):
    with pytest.raises(ValueError, match="X"):
        PrivateGPDensity(**BOX, **SETTINGS).fit(points)


CATEGORIES: dict[str, Any] = {
    "x_bounds": {"x": (0, 1)}, "columns": {"sex": ("category", ["f", "m"])}, "bins": 10,
}  # fmt: skip


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    sex = rng.choice(["f", "m", "unknown"], 900, p=[0.3, 0.6, 0.1])
    centre = np.where(sex == "f", 0.3, 0.7)
    return pd.DataFrame({"x": np.clip(rng.normal(centre, 0.1), 0, 1), "sex": sex})


def test_a_density_over_numbers_and_categories(people, tmp_path):
    model = PrivateGPDensity(**CATEGORIES, **SETTINGS).fit(people)
    at = pd.DataFrame({"x": [0.3, 0.7, 0.3, 0.7, 0.3], "sex": ["f", "f", "m", "m", "unknown"]})
    found = model.intensity(at)
    assert found[0] > 5 * found[1]
    assert found[3] > 5 * found[2]
    assert found[4] == 0.0
    fine = (np.arange(4000) + 0.5) / 4000
    each = [pd.DataFrame({"x": fine, "sex": level}) for level in ("f", "m")]
    total = sum(np.exp(model.score_samples(one)).mean() for one in each)
    assert total == pytest.approx(1.0, abs=1e-6)
    model.save(tmp_path / "a.privgp")
    assert_array_equal(privgp.load(tmp_path / "a.privgp").intensity(at), found)


@pytest.mark.parametrize("asked", [PrivateGPDensity, partial(PrivateGP, Presence())])
def test_a_plan_with_categories_is_saved_before_it_is_carried_out(asked, people, tmp_path):
    declared = {name: CATEGORIES[name] for name in ("x_bounds", "columns")}
    model = asked(**declared, **SETTINGS)
    model.plan(people).save(tmp_path / "a.plan")
    model.fit(people, plan=privgp.load_plan(tmp_path / "a.plan"))


def test_no_replaced_point_of_any_category_moves_the_measurement_further_than_stated(people):
    model = PrivateGPDensity(**CATEGORIES, **SETTINGS)
    plan = model.plan(len(people))
    part = plan.parts[0]

    def measured(table: pd.DataFrame) -> np.ndarray:
        counts = seal_counts(seal_rows(table, model.inputs_), model._bins)
        same = np.random.default_rng(0)  # noise, which cancels
        return measure(counts, part.y_bounds, part.strategy, plan.noise, same).values

    model.inputs_ = plan.made_for.parameters.columns
    model._points = len(people)
    base, moves = measured(people), []
    for x in (-3.0, 0.0, 0.55, 1.0):
        for sex in ("f", "m", "unknown"):
            other = people.copy()
            other.loc[0, ["x", "sex"]] = [x, sex]
            moves.append(np.abs(measured(other) - base).sum())
    assert max(moves) == pytest.approx(REPLACED)


def test_an_exposure_makes_the_intensity_one_per_unit_of_it():
    rng = np.random.default_rng(8)
    census = pd.DataFrame({"x": (np.arange(100) + 0.5) / 100, "people": np.linspace(900, 100, 100)})
    cases = np.repeat(census["x"], rng.poisson(0.02 * census["people"])).to_numpy()[:, None]
    model = PrivateGPDensity(x_bounds=[(0, 1)], bins=20, **SETTINGS)
    plan = model.plan(cases, exposure=census)
    model.fit(cases, plan=plan, exposure=census)
    x = (np.arange(4000)[:, None] + 0.5) / 4000
    assert_allclose(model.intensity(x), 0.02, rtol=0.4)
    density = np.exp(model.score_samples(x))
    assert density.mean() == pytest.approx(1.0, abs=1e-6)
    assert density[:400].mean() > 3 * density[-400:].mean()
    low, high = model.interval(x)
    assert np.mean((low <= 0.02) & (high >= 0.02)) > 0.5
    alone = PrivateGPDensity(x_bounds=[(0, 1)], bins=20, **SETTINGS)
    with pytest.raises(ValueError, match="plan was made for other"):
        alone.fit(cases, plan=plan)


@pytest.mark.parametrize(
    "exposure",
    [
        [[0.5, -1.0]], [[0.5, np.nan]], [["a", 1.0]], [[0.5, 0.0]], [[0.5, 1.0, 2.0]], 3,
        {"x": [0.5], "n": ["many"]},
    ],
)  # fmt: skip
def test_broken_exposures_are_refused(exposure):
    with pytest.raises(ValueError, match="exposure must"):
        PrivateGPDensity(**BOX, **SETTINGS).plan(100, exposure=exposure)


@pytest.mark.parametrize("protect", ["records", "outputs"])
@pytest.mark.parametrize("name", ["x", "cases"])
def test_a_presence_is_the_density_of_the_records(name, protect, tmp_path):
    table = pd.DataFrame({"x": POINTS[:, 0], "other": "text"})
    asked = {"x_bounds": {"x": (0, 1)}, **SETTINGS}
    model = PrivateGP({name: Presence()}, protect=protect, **asked)
    plan = model.plan(table)
    model.fit(table, plan=plan)
    new = pd.DataFrame({"x": [0.2, 0.6]})
    plain = PrivateGPDensity(**asked).fit(table)
    found = model.predict(new)
    assert list(found.columns) == [f"{name}_{each}" for each in ("mean", "std", "low", "high")]
    assert_array_equal(found, plain.predict_frame(new))
    assert model.guarantee_ == plain.guarantee_
    model.save(tmp_path / "a.privgp")
    loaded = privgp.load(tmp_path / "a.privgp")
    assert loaded.outcomes == {name: Presence()}
    assert loaded.protect == "records"
    assert_array_equal(loaded.predict(new), found)
    assert model.certificate()["private"] == ["the place of every point"]
    plan.save(tmp_path / "a.plan")
    PrivateGP({name: Presence()}, protect=protect, **asked).fit(
        table, plan=privgp.load_plan(tmp_path / "a.plan")
    )
    with pytest.raises(ValueError, match="cannot be updated"):
        model.update(table)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"outcomes": {"a": Presence(), "b": Number(0, 1)}}, "another outcome does not go"),
        ({"outcomes": Presence(), "groups": "g"}, "groups does not go"),
        ({"outcomes": Presence(), "targets": [[0.5]]}, "targets does not go"),
        ({"outcomes": Presence(), "x_bounds": None}, "x_bounds must be declared"),
    ],
)
def test_what_does_not_go_with_a_presence_is_refused(given, message):
    table = pd.DataFrame({"x": POINTS[:, 0]})
    with pytest.raises(ValueError, match=message):
        PrivateGP(**{"x_bounds": {"x": (0, 1)}, **SETTINGS, **given}).plan(table)


def test_an_account_is_charged_for_a_presence(tmp_path):
    account = Ledger(f"sqlite:///{tmp_path}/l.db").open("points", epsilon=1.5, delta=1e-5)
    given = {**SETTINGS, "ledger": account, "random_state": None}
    model = PrivateGP(Presence(), x_bounds=[(0, 1)], **given).fit(pd.DataFrame({"x": POINTS[:, 0]}))
    assert model.charged_
    with pytest.raises(privgp.BudgetExceeded):
        PrivateGP(Presence(), x_bounds=[(0, 1)], **given).fit(pd.DataFrame({"x": POINTS[:, 0]}))
