"""The papers' baselines: what they predict, what they guarantee, what they refuse."""

from __future__ import annotations

import pickle

import numpy as np
import opendp.prelude as dp
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from privgp import BinnedGP, BinnedMeans
from privgp.plan.bins.bins import Grid
from privgp.privacy.noise import laplace_noise
from tests.models import FITS_AN_INPUT

BOUNDS = {"y_bounds": (-100, 100), "x_bounds": None}


@parametrize_with_checks(
    [BinnedMeans(y_bounds=(-100, 100)), BinnedGP(y_bounds=(-100, 100), bins=4, model="centres")],
    expected_failed_checks=lambda _: FITS_AN_INPUT,
)
def test_every_check_of_scikit_learn_passes(estimator, check):
    check(estimator)


def data(rows=300, columns=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, (rows, columns))
    return X, 5.0 + 3.0 * np.sin(X[:, 0]) + rng.normal(size=rows)


def almost_without_noise(kind, *arguments, **settings):
    given = {"y_bounds": (0, 10), "epsilon": 1e4, "delta": 0.5, "random_state": 0, **settings}
    return kind(*arguments, **given)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_with_hardly_any_noise_they_are_the_means_of_the_bins(noise):
    X, y = data()
    model = almost_without_noise(BinnedMeans, 5, noise=noise, x_bounds=(0, 10)).fit(X, y)
    for place in (1.0, 3.0, 9.9):
        inside = (X[:, 0] >= 2 * (place // 2)) & (X[:, 0] < 2 * (place // 2) + 2)
        wanted = np.clip(y[inside], 0, 10).mean()
        assert model.predict([[place]])[0] == pytest.approx(wanted, abs=0.05)
    assert_array_equal(model.counts_, np.bincount((X[:, 0] // 2).astype(int)))
    assert_allclose(np.column_stack([model.bin_low_, model.bin_high_])[2], [4.0, 6.0])


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_records_with_hardly_any_noise_have_the_same_means(noise):
    X, y = data()
    settings = {"x_bounds": (0, 10), "noise": noise}
    public = almost_without_noise(BinnedMeans, 5, **settings).fit(X, y)
    private = almost_without_noise(BinnedMeans, 5, protect="records", **settings).fit(X, y)
    points = np.linspace(-1, 11, 50)[:, None]
    assert_allclose(private.predict(points), public.predict(points), atol=0.05)
    assert not np.any(private.counts_ == public.counts_)


def test_empty_bins_are_at_the_public_middle_and_points_outside_in_the_nearest():
    X, y = np.array([[0.5], [0.6], [9.5]]), np.array([2.0, 4.0, 9.0])
    model = almost_without_noise(BinnedMeans, 10, x_bounds=(0, 10)).fit(X, y)
    assert_allclose(model.predict([[5.0], [-3.0], [70.0]]), [5.0, 3.0, 9.0], atol=0.1)


def test_the_noise_on_a_mean_falls_with_its_count():
    X, y = data()
    model = BinnedMeans(5, y_bounds=(0, 10), epsilon=0.5, random_state=0).fit(X, y)
    assert_allclose(model.noise_std_ * model.counts_, np.sqrt(2) * 10 / 0.5, rtol=1e-9)


def test_a_gp_on_centres_is_the_ordinary_posterior():
    X, y = np.linspace(0.5, 9.5, 10)[:, None], np.linspace(2.0, 8.0, 10)
    kernel = 4.0 * RBF(2.0)
    model = almost_without_noise(
        BinnedGP, kernel, 0.3, bins=10, model="centres", x_bounds=(0, 10)
    ).fit(X, y)
    known = GaussianProcessRegressor(kernel, alpha=0.3, optimizer=None).fit(X, y - 5.0)
    mean, std = known.predict(X + 0.3, return_std=True)
    found = model.predict(X + 0.3, return_std=True)
    assert_allclose(found[0], 5.0 + mean, atol=0.02)
    assert_allclose(found[1], std, atol=0.01)


def test_the_noise_variance_may_come_as_a_white_kernel():
    X, y = data()
    settings = {"bins": 5, "y_bounds": (0, 10), "random_state": 1}
    inside = BinnedGP(9.0 * RBF(2.0) + WhiteKernel(0.7), **settings).fit(X, y)
    beside = BinnedGP(9.0 * RBF(2.0), 0.7, **settings).fit(X, y)
    assert (inside.kernel_, inside.noise_variance_) == (beside.kernel_, 0.7)
    assert_allclose(inside.predict(X), beside.predict(X), rtol=1e-12)


def test_small_bins_of_the_integral_kernel_are_points():
    X, y = data(200)
    kernel = 9.0 * RBF(2.0)
    points = np.linspace(0, 10, 30)[:, None]
    made = [
        BinnedGP(kernel, 1.0, bins=500, model=model, y_bounds=(0, 10), random_state=1)
        .fit(X, y).predict(points, return_std=True)
        for model in ("integral", "centres")
    ]  # fmt: skip
    assert_allclose(made[0][0], made[1][0], atol=1e-4)
    assert_allclose(made[0][1], made[1][1], atol=1e-4)


def test_the_integral_kernel_undoes_the_averaging_of_wide_bins():
    """A peak in the middle of a bin: centres take the bin's average for its height."""
    X = np.linspace(0, 9, 4001)[:, None]
    y = 8.0 * np.exp(-0.5 * (X[:, 0] - 4.5) ** 2) + 1.0
    errors = {}
    for model in ("integral", "centres"):
        made = almost_without_noise(BinnedGP, 16.0 * RBF(1.0), 1e-4, bins=9, model=model)
        errors[model] = abs(made.fit(X, y).predict([[4.5]])[0] - 9.0)
    assert errors["integral"] < 0.5 * errors["centres"]


@pytest.mark.parametrize("kind", [BinnedMeans, BinnedGP])
def test_guarantees_say_what_was_done(kind):
    X, y = data()
    laplace = kind(y_bounds=(0, 10), epsilon=0.7).fit(X, y).guarantee_
    assert (laplace.epsilon, laplace.delta) == (0.7, 0.0)
    assert "Laplace" in laplace.mechanism
    assert not laplace.is_simulation
    gaussian = kind(y_bounds=(0, 10), noise="gaussian", delta=1e-3).fit(X, y).guarantee_
    assert gaussian.delta_at(1.0) <= 1e-3
    assert gaussian.unit == "one output value"
    for noise, delta in (("gaussian", 1e-6), ("laplace", 0.0)):
        records = kind(
            y_bounds=(0, 10), x_bounds=(0, 10), noise=noise, protect="records", random_state=1
        ).fit(X, y)
        assert records.guarantee_.unit == "one whole record (inputs and output)"
        assert records.guarantee_.is_simulation
        assert records.guarantee_.delta == delta
        assert records.guarantee_.delta_at(1.0) <= delta


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("epsilon", [1e-3, 0.2, 1.0, 50.0])
def test_opendp_agrees_that_the_laplace_noise_is_enough_and_hardly_more(epsilon, size):
    noise = laplace_noise(epsilon, size, 2.0, 1e-9)
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=size), dp.l1_distance(T=float)
    mechanism = dp.m.make_laplace(*space, scale=noise.scale, k=noise.exponent)
    assert 0.999 * epsilon < mechanism.map(2.0 + 2e-9) <= epsilon


def test_a_grid_knows_its_bins():
    grid = Grid(np.zeros(2), np.array([4.0, 9.0]), (4, 3))
    X = np.array([[0.0, 0.0], [4.0, 9.0], [2.5, 3.0], [-9.0, 99.0]])
    assert_array_equal(grid.of(X), [0, 11, 7, 2])
    low, high = grid.corners(grid.of(X[2:3]))
    assert_allclose([low[0], high[0]], [[2, 3], [3, 6]])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": np.nan}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"y_bounds": None}, "y_bounds"),
        ({"y_bounds": (1, 0)}, "y_bounds"),
        ({"x_bounds": (1, 0)}, "x_bounds"),
        ({"x_bounds": [(0, 1), (0, 1)]}, "x_bounds"),
        ({"x_bounds": "wide"}, "x_bounds"),
        ({"bins": 0}, "bins"),
        ({"bins": 2.5}, "bins"),
        ({"bins": (3, 3)}, "bins"),
        ({"bins": "many"}, "bins"),
        ({"bins": 2**70}, "bins"),
        ({"noise": "none"}, "noise"),
        ({"protect": "nobody"}, "protect"),
        ({"protect": "records"}, "x_bounds"),
        ({"protect": "records", "x_bounds": (0, 1), "bins": 9999}, "bins"),
        ({"protect": "records", "noise": "gaussian", "delta": 0.0, "x_bounds": (0, 1)}, "delta"),
        ({"kernel": "rbf"}, "kernel"),
        ({"kernel": RBF([1.0, 2.0])}, "lengthscales"),
        ({"kernel": RBF() * WhiteKernel()}, "kernel"),
        ({"noise_variance": 0.0}, "noise_variance"),
        ({"noise_variance": "small"}, "noise_variance"),
        ({"model": "square"}, "model"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_drawn(change, words, monkeypatch):
    def drawn(*_):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr("privgp.models.binned.measure", drawn)
    X, y = data(20)
    with pytest.raises(ValueError, match=words):
        BinnedGP(**{"y_bounds": (0, 10), **change}).fit(X, y)


@pytest.mark.parametrize("settings", [{}, {"protect": "records"}])
def test_wrong_data_are_refused_without_a_private_value(settings):
    X, y = data(20)
    y[3] = 7.8731531
    model = BinnedMeans(y_bounds=(0, 10), x_bounds=(0, 10), **settings)
    for wrong in (None, y[:-1], [*y[:-1], np.nan], [*y[:-1], np.inf], [*y[:-1], "high"], []):
        with pytest.raises(ValueError, match="y") as refusal:
            model.fit(X, wrong)
        assert "87315" not in str(refusal.value)
    for wrong in ([[np.nan]] * 20, [["a"]] * 20, np.empty((0, 1)), X[:, 0], np.hstack([X, X])):
        with pytest.raises(ValueError):  # noqa: PT011 - scikit-learn's sentences
            model.fit(wrong, y)
    with pytest.raises(NotFittedError):
        BinnedMeans(y_bounds=(0, 1)).predict(X)


def test_one_row_and_equal_rows_will_do():
    for X in ([[3.0]], [[3.0]] * 5):
        y = [4.0] * len(X)
        for kind in (BinnedMeans, BinnedGP):
            assert np.isfinite(kind(y_bounds=(0, 10)).fit(X, y).predict([[3.0], [1e9]])).all()


@pytest.mark.parametrize("protect", ["outputs", "records"])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_nothing_private_remains(protect, noise):
    X, y = data(40)
    y = np.round(y, 9)
    model = BinnedGP(y_bounds=(0, 10), x_bounds=(0, 10), protect=protect, noise=noise).fit(X, y)
    kept = pickle.dumps(model)
    private = np.concatenate([y, (np.clip(y, 0, 10) - 5) / 5])
    if protect == "records":
        private = np.concatenate([private, X[:, 0]])
    assert not any(np.float64(value).tobytes() in kept for value in private)
