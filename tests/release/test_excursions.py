"""The picture of an excursion set says whose it is."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from privgp import PosteriorPaths
from privgp.models.paths import Excursion


@pytest.mark.parametrize("seed", [None, 0])
def test_a_simulated_excursion_set_says_so(seed):
    given = {"domain": (0, 1), "y_bounds": (0, 1), "delta": 1e-3, "random_state": seed}
    promised = PosteriorPaths(RBF(1.0), 9.0, **given).guarantee_for(10)
    x = np.linspace(0.0, 1.0, 5)
    figure = Excursion(x[:, None], 0.6, 0.5, x[None], ("place",), promised).plot()
    assert any("SIMULATION" in text.get_text() for text in figure.texts) == (seed is not None)
    assert figure.axes[0].get_xlabel() == "place"
