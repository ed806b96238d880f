"""How far one record moves features, by brute force; what is measured of them, and what plans choose."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from privgp import PrivateGPRegressor
from privgp.gp.features import (
    BLOCK_ROWS,
    correlation,
    principal_features,
    spread_points,
    unit_features,
)
from privgp.plan.features import Features
from privgp.privacy.noise import noise_for
from privgp.vault.measure import exact

LOW, HIGH = np.array([-1.0, 0.0, 10.0, 5.0]), np.array([1.0, 2.0, 40.0, 6.0])
WEIGHTS = (0.3, 0.5**0.5, 0.9, 1.0, 2.0**0.5, 3.0)


def features(number=8, weight=1.0, rows=1, energy=1.0, lengthscale=0.5):
    of = principal_features(LOW, HIGH, lengthscale, number)
    return Features(**vars(of), rows=rows, gram_weight=weight, energy_weight=energy)


def added(phi, u, weight, energy):
    """What one record adds, with the whole symmetric matrix: its Frobenius norm is kept."""
    gram = weight * np.outer(phi, phi)
    return np.concatenate([gram.ravel(), phi * u, [energy * u * u]])


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("energy", [0.0, 0.5, 1.0])
def test_no_pair_of_features_and_outputs_moves_further_and_one_does(weight, energy):
    """Any features of norm at most 1, not only ours: random pairs, and the best climbed further."""
    rng = np.random.default_rng(0)
    bound, inputs = features(3, weight, energy=energy).sensitivity(), 3

    def moved(z):
        a, b = z[:inputs], z[inputs : 2 * inputs]
        a, b = a / max(1.0, np.linalg.norm(a)), b / max(1.0, np.linalg.norm(b))
        u, v = np.clip(z[-2:], -1.0, 1.0)
        return float(np.linalg.norm(added(a, u, weight, energy) - added(b, v, weight, energy)))

    pairs = rng.standard_normal((2000, 2 * inputs + 2)) * rng.choice([0.4, 1.0, 3.0], (2000, 1))
    lengths = np.array([moved(z) for z in pairs])
    climbed = [
        -minimize(lambda z: -moved(z), pairs[i], method="Nelder-Mead", options={"maxfev": 1500}).fun
        for i in np.argsort(-lengths)[:3]
    ]
    assert max(*lengths, *climbed) <= bound
    assert max(climbed) >= 0.99 * bound


@pytest.mark.parametrize("weight", WEIGHTS)
def test_the_bound_is_reached_by_our_features(weight):
    strategy = features(30, weight)
    first, second = strategy.worst_neighbours()
    assert 0.99 * strategy.sensitivity() <= np.linalg.norm(first - second)
    assert np.linalg.norm(first - second) <= strategy.sensitivity()


@pytest.mark.parametrize("weight", [0.5**0.5, 1.0])
def test_a_heavier_energy_would_not_be_free(weight):
    """Nor could a file have one."""
    a = np.array([1.0, 0.0])
    b = np.array([0.0, 1.0]) if weight == 1.0 else a
    low, high = added(a, 1.0, weight, 2.0), added(b, 0.0, weight, 2.0)
    assert np.linalg.norm(low - high) > features(3, weight).sensitivity()
    with pytest.raises(ValueError, match="weight 1"):
        features(3, weight, energy=1.5).sensitivity()
    with pytest.raises(ValueError, match="belong"):
        features(3, weight, energy=1.5).check()


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e90, 0.0])
def test_features_are_no_longer_than_1_whatever_the_matrix(scale):
    """Noise, a singular matrix, one that is all zeros: less useful, and no longer."""
    rng = np.random.default_rng(1)
    broken = replace(features(20), matrix=scale * rng.standard_normal((20, 512)))
    broken.check()
    phi = broken.at(rng.uniform(LOW, HIGH, (500, 4)))
    assert np.all(np.isfinite(phi))
    assert np.all(np.linalg.norm(phi, axis=1) <= 1.0 + 30 * 2.0**-53)
    doubled = replace(features(20), matrix=np.repeat(features(10).matrix, 2, axis=0))
    assert np.linalg.norm(doubled.at(LOW[None])) <= 1.0 + 30 * 2.0**-53


def test_the_bits_of_features_are_those_of_the_record_alone():
    """However many others there are: also where features are nothing but rounding."""
    rng = np.random.default_rng(3)
    matrix = rng.standard_normal((8, 512))
    forged = replace(features(), lengthscale=1e9, matrix=matrix - matrix.mean(axis=1)[:, None])
    forged.check()
    X = rng.uniform(LOW, HIGH, (BLOCK_ROWS + 1, 4))
    for strategy in (features(20), forged):
        of = strategy.lengthscale, strategy.inducing, strategy.matrix
        places = (X - LOW) / (HIGH - LOW)
        phi = unit_features(places, *of)
        for count in (1, 7, len(X) - 3):
            assert np.array_equal(unit_features(places[-count:], *of), phi[-count:])


def test_features_carry_their_kernel():
    """With all features the products are the kernel at the inducing points; and all norms are 1."""
    of = principal_features(LOW, HIGH, 0.5, 512)
    phi = of.at(of.low + of.inducing[:50] * (of.high - of.low))
    assert_allclose(phi @ phi.T, correlation(of.inducing[:50], of.inducing[:50], 0.5), atol=1e-4)
    everywhere = principal_features(LOW, HIGH, 0.25, 30).at(spread_points(LOW, HIGH, 64, 9))
    assert_allclose(np.linalg.norm(everywhere, axis=1), 1.0, rtol=1e-12)


def test_what_is_measured_is_read_back():
    rng = np.random.default_rng(2)
    strategy = features(6, 1.3, rows=50)
    X, u = rng.uniform(LOW, HIGH, (50, 4)), rng.uniform(-1, 1, 50)
    noise = noise_for("gaussian", 1.0, 1e-5, strategy.size, strategy.sensitivity(), 0.0)
    numbers = exact(strategy, (X, 3.0 + 2.0 * u), (1.0, 5.0))
    read = strategy.read(numbers, noise, 2.0)
    phi = strategy.at(X)
    assert_allclose(read.gram, phi.T @ phi, rtol=1e-12, atol=1e-12)
    assert_allclose(read.values, 2.0 * phi.T @ u, rtol=1e-10, atol=1e-12)
    assert read.energy == pytest.approx(4.0 * float(u @ u))
    assert read.counts is None


def test_inputs_outside_count_at_the_edge():
    strategy = features(6, rows=1)
    outside = LOW[None] - np.array([[1.0, 0.0, 1e300, 2.0]])
    at_edge = exact(strategy, (LOW[None], [0.5]), (-1.0, 1.0))
    assert np.array_equal(exact(strategy, (outside, [0.5]), (-1.0, 1.0)), at_edge)


@pytest.mark.parametrize(
    "broken",
    [
        {"rows": 0},
        {"low": HIGH, "high": LOW},
        {"low": LOW[:2]},
        {"gram_weight": 0.0},
        {"gram_weight": float("nan")},
        {"lengthscale": 0.0},
        {"lengthscale": 1e-200},  # at an inducing input 0/0, which an error would tell
        {"lengthscale": 1e200},
        {"inducing": np.full((512, 4), 1e200)},
        {"matrix": np.full((8, 512), np.inf)},
        {"matrix": np.ones((8, 3))},
        {"inducing": np.zeros(4)},
    ],
)
def test_a_file_with_parts_that_the_proof_does_not_cover_is_refused(broken):
    with pytest.raises(ValueError, match="belong"):
        replace(features(), **broken).check()


@pytest.mark.parametrize("settings", [{"mechanism": "laplace"}, {"delta": 0.0}])
def test_pure_noise_is_refused(settings):
    model = PrivateGPRegressor(protect="records", x_bounds=[(0, 1)] * 4, y_bounds=(0, 1))
    with pytest.raises(ValueError, match="4 private inputs need Gaussian noise"):
        model.set_params(**settings).plan(1000)


def test_plans_measure_more_with_more_records_and_expect_less_error():
    settings = {"protect": "records", "hyperparameters": "fixed"}
    model = PrivateGPRegressor(x_bounds=[(0, 1)] * 4, y_bounds=(0, 1), **settings)
    few, many = (model.plan(rows) for rows in (300, 30_000))
    assert len(few.strategy.matrix) < len(many.strategy.matrix)
    assert many.expected_error() < few.expected_error()
    assert many.error_without_privacy() < many.expected_error()
    assert few.gap == np.inf
    assert "features of the inputs" in many.describe()
