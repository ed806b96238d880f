"""A budget shared out over stages: never more than the total, and what is left of it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privgp import PrivateGPRegressor, compose
from privgp.plan.designs.stages import check_shares, information_share, share_out

X = np.linspace(0.0, 90.0, 40)[:, None]


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.1, 0.9), (1, 1, 2)])
def test_stages_compose_to_the_total(law, shares):
    y = np.full(40, 100.0)
    settings = {"y_bounds": (60, 200), "mechanism": law, "hyperparameters": "fixed"}
    parts = [
        PrivateGPRegressor(epsilon=e, delta=d, **settings).fit(X, y).guarantee_
        for e, d in share_out(law, 1.5, 1e-5, check_shares(shares))
    ]
    delta = math.fsum(part.delta for part in parts)
    assert delta <= 1e-5 * (1 + 1e-9)
    whole = compose(parts, delta)
    assert 0.999 * 1.5 < whole.epsilon <= 1.5


def test_what_splitting_keeps():
    """Two halves: all with Gaussian noise, half the information with Laplace noise."""
    assert information_share("gaussian", (0.5, 0.5)) == 1.0
    assert information_share("laplace", (0.5, 0.5)) == pytest.approx(math.sqrt(0.5))
    assert information_share("laplace", (0.25, 0.75)) ** 2 == pytest.approx(0.625)


def test_the_noise_distribution_is_chosen_for_all_stages():
    """Laplace noise is better for one measurement; with many stages it is not."""
    model = PrivateGPRegressor(y_bounds=(60, 200), epsilon=1.0, delta=1e-3, hyperparameters="fixed")
    two, many = model.stages(X, shares=(0.95, 0.05)), model.stages(X, shares=(1.0,) * 30)
    assert (two.mechanism, many.mechanism) == ("laplace", "gaussian")
    assert len(many.budgets) == 30
    assert many.errors["laplace"] > two.errors["laplace"]
    assert many.errors["gaussian"] == two.errors["gaussian"]
    assert "Nothing has been spent" in many.describe()


def test_bad_shares_and_budgets_are_refused():
    model = PrivateGPRegressor(y_bounds=(60, 200), delta=1e-5)
    for shares in ((1.0,), (), (0.5, -0.5), (0.5, "a"), 2, (1.0, math.inf)):
        with pytest.raises(ValueError, match="shares must be two or more"):
            model.stages(X, shares=shares)
    with pytest.raises(ValueError, match="delta must be positive"):
        model.set_params(delta=0.0, mechanism="gaussian").stages(X)
