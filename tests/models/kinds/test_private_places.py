"""A private place is two numbers in kilometres, and its release is as theirs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from privgp import PrivateGPRegressor
from privgp.plan.inputs.inputs import narrow_kernel, scale_widths

EAST = 0.5 / np.cos(np.radians(51.5))
SIDES = {"lat": (51.0, 52.0), "lon": (-EAST, EAST)}  # square on the ground: one scale to begin with
PLACE = {("lat", "lon"): "place"}


@pytest.mark.filterwarnings("ignore:The x_bounds")
def test_a_private_place_is_released_as_two_numbers_in_kilometres():
    rng = np.random.default_rng(4)
    table = pd.DataFrame({"lat": rng.uniform(51, 52, 300), "lon": rng.uniform(-EAST, EAST, 300)})
    y = 3.0 + np.sin(6.0 * table["lat"].to_numpy()) + 0.2 * rng.standard_normal(300)
    asked = {"y_bounds": (0, 6), "epsilon": 2.0, "delta": 1e-5, "protect": "records"}
    asked |= {"random_state": 5}
    place = PrivateGPRegressor(x_bounds=SIDES, columns=PLACE, **asked).fit(table, y)
    inputs = place.inputs_
    domain = inputs.columns[0].domain()
    numbers = PrivateGPRegressor(x_bounds=[*map(tuple, domain)], **asked)
    numbers.fit(inputs.columns[0].coordinates(table.to_numpy()), y)
    new = table[:40]
    at = inputs.columns[0].coordinates(new.to_numpy())
    np.testing.assert_allclose(place.predict(new), numbers.predict(at), rtol=1e-3)
    np.testing.assert_allclose(place.interval(new), numbers.interval(at), rtol=1e-3)
    # one lengthscale along each side, which differ once they are learned
    assert scale_widths(inputs) == (1, 1)
    scales = narrow_kernel(inputs, place.kernel_).k1.k2.length_scale
    assert scales.shape == (2,)
    assert scales[0] != scales[1]
