"""Pictures and descriptions of simulations say what they are, however they are made."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from sklearn.gaussian_process.kernels import RBF, Matern

from privgp import PosteriorPaths, PrivateFunction, PrivateGPRegressor
from privgp.types import STAMP

RNG = np.random.default_rng(0)
SEEDS = pytest.mark.parametrize("seed", [0, None])


def data(inputs: int) -> tuple[np.ndarray, np.ndarray]:
    X = RNG.uniform(size=(20, inputs))
    return X, X[:, 0].copy()


def stamped(figure: Figure) -> bool:
    return any(STAMP in text.get_text() for text in figure.findobj(Text) if text.get_visible())


def regressor(**options):
    return PrivateGPRegressor(y_bounds=(0, 1), hyperparameters="fixed", **options)


@SEEDS
@pytest.mark.parametrize(("inputs", "unbiased"), [(1, False), (2, False), (3, False), (1, True)])
def test_models(inputs, seed, unbiased):
    X, y = data(inputs)
    kind = {"reconstruct": "unbiased", "kernel": RBF(0.5)} if unbiased else {}
    model = regressor(random_state=seed, **kind).fit(X, y)
    assert stamped(model.plot()) == (seed is not None)
    if inputs == 1:
        ax = Figure().subplots()
        assert stamped(model.plot(ax)) == (seed is not None)


@SEEDS
@pytest.mark.parametrize("inputs", [1, 2, 3])
def test_functions(inputs, seed):
    X, y = data(inputs)
    function = PrivateFunction(
        RBF(1.0), 0.5, y_bounds=(0, 1), epsilon=1.0, delta=1e-3, random_state=seed
    ).fit(X, y)
    assert stamped(function.plot()) == (seed is not None)


@SEEDS
@pytest.mark.parametrize("inputs", [1, 2])
def test_excursions(inputs, seed):
    X, y = data(inputs)
    paths = PosteriorPaths(
        Matern(1.0, nu=0.5), 9.0, domain=[(0, 1)] * inputs, y_bounds=(0, 1), delta=1e-3, n_paths=2,
        random_state=seed,
    ).fit(X, y)  # fmt: skip
    found = paths.excursion(X, 0.5)
    assert stamped(found.plot()) == (seed is not None)
    assert (STAMP in repr(found)) == (seed is not None)
    assert found.describe().startswith(STAMP) == (seed is not None)
    assert f"{found.inside.sum()} of 20 points" in found.describe()
    assert "points=20" in repr(found)
    assert "array" not in repr(found)
