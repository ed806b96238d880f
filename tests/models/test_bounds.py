"""Bounds of private values: what they cover, what they spend, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from privgp import BudgetExceeded, Ledger, PrivateGPRegressor, compose, private_bounds
from privgp.models.bounds import bin_ends, read_bounds

rng = np.random.default_rng(0)
SALES = np.exp(rng.normal(5, 1, 3000))


def test_bounds_cover_about_the_share_of_skewed_values():
    for seed in range(10):
        found = private_bounds(SALES, epsilon=0.1, low=0.0, random_state=seed)
        inside = np.mean((found.low <= SALES) & (found.high >= SALES))
        assert found.low == 0.0
        assert 0.85 <= inside < 1.0
        assert found.high <= 3 * np.quantile(SALES, 0.95)


def test_bounds_of_either_sign_are_found():
    values = rng.normal(-40, 10, 3000)
    found = private_bounds(values, epsilon=1.0, random_state=1)
    assert found.bounds == (found.low, found.high)
    assert np.mean((found.low <= values) & (values <= found.high)) > 0.85
    assert -150 <= found.low < found.high <= 0


def test_without_noise_bounds_are_the_ends_of_bins():
    ends = bin_ends(1, 100, None, fine=False)
    assert ends.tolist() == [-100, -50, -20, -10, -5, -2, -1, 0, 1, 2, 5, 10, 20, 50, 100]
    counts = np.zeros(16)
    counts[9], counts[11] = 500.0, 500.0  # in (1, 2] and in (5, 10]
    assert read_bounds(counts, ends, 1000, 10.0, 0.9, None) == (1.0, 10.0)
    assert read_bounds(np.zeros(16), ends, 1000, 10.0, 0.9, None) == (-100.0, -50.0)
    assert bin_ends(1, 100, 3.0, fine=False).tolist() == [3, 5, 10, 20, 50, 100]


def test_what_is_spent_is_stated_and_charged(tmp_path):
    account = Ledger(f"sqlite:///{tmp_path}/l.db").open("sales", epsilon=0.25, delta=0.0)
    found = private_bounds(SALES, epsilon=0.2, ledger=account)
    assert found.guarantee.epsilon == pytest.approx(0.2)
    assert found.guarantee.is_pure
    assert found.guarantee.unit == "one output value"
    assert compose([found.guarantee, found.guarantee], delta=0.0).epsilon == pytest.approx(0.4)
    with pytest.raises(BudgetExceeded):
        private_bounds(SALES, epsilon=0.2, ledger=account)


@pytest.mark.parametrize("protect", ["outputs", "records"])
def test_bounds_and_a_release_within_them_are_charged_to_one_account(protect, tmp_path):
    """One budget limits both: an account that refused the second would have to be followed by another."""
    account = Ledger(f"sqlite:///{tmp_path}/l.db").open("sales", epsilon=1.0, delta=1e-5)
    found = private_bounds(SALES[:60], epsilon=0.2, low=0.0, protect=protect, ledger=account)
    model = PrivateGPRegressor(
        y_bounds=found.bounds,
        x_bounds=(0, 1) if protect == "records" else None,
        protect=protect,
        epsilon=0.7,
        mechanism="laplace",
        hyperparameters="fixed",
        ledger=account,
    )
    model.fit(np.linspace(0.0, 1.0, 60)[:, None], SALES[:60])
    assert compose([found.guarantee, model.guarantee_], delta=0.0).epsilon == pytest.approx(0.9)
    assert account.remaining() == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": np.inf}, "epsilon"),
        ({"share": 1.0}, "share"),
        ({"protect": "people"}, "protect"),
        ({"share": "most"}, "share"),
        ({"smallest": 0.0}, "smallest and largest"),
        ({"smallest": 2.0, "largest": 1.0}, "smallest and largest"),
        ({"largest": np.inf}, "smallest and largest"),
        ({"largest": 1e300}, "powers of ten"),
        ({"low": np.nan}, "low must be"),
        ({"low": 1e12}, "low must be"),
    ],
)
def test_wrong_arguments_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        private_bounds(SALES, **{"epsilon": 1.0, **given})


@pytest.mark.parametrize("values", [[np.nan, 1.0], ["a"], [[1.0, 2.0]], []])
def test_broken_values_are_refused_before_anything_is_spent(values):
    with pytest.raises(ValueError, match=r"y|X"):
        private_bounds(values, epsilon=1.0)
