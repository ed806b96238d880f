"""The sampler's door: what it refuses, and that its answers lie on the lattice."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from privgp.privacy.noise import GaussianNoise, gaussian_noise
from privgp.vault import measure as sample
from privgp.vault.measure import add_noise

NOISE = gaussian_noise(1.0, 1e-5, 4, 2.0, 0.0)


@pytest.mark.parametrize(
    "values",
    [
        np.array([0.0, 1.0, 2.0, np.nan]),
        np.array([0.0, 1.0, 2.0, np.inf]),
        np.array([0.0, 1.0, -np.inf, 2.0]),
        np.zeros(3),
        np.zeros(5),
        np.zeros(0),
        np.zeros((4, 1)),
        np.zeros((2, 2)),
        np.float64(1.0),
    ],
    ids=["nan", "inf", "-inf", "short", "long", "empty", "column", "square", "scalar"],
)
def test_what_the_sampler_would_take_without_a_word_is_refused_first(monkeypatch, values):
    monkeypatch.setattr(sample, "_sampler", None)  # nothing may be drawn
    with pytest.raises(ValueError, match="nothing was released") as caught:
        add_noise(values, NOISE)
    assert not any(digit in str(caught.value) for digit in "0123456789")


@pytest.mark.parametrize("depth", [10, 40])
@pytest.mark.parametrize("std", [1e-9, 1.0, 3e12])
def test_answers_are_multiples_of_the_lattice_step(std, depth):
    exponent = int(np.floor(np.log2(std))) - depth
    noise = GaussianNoise(50, std, exponent, 1.0, 0.0)
    values = np.random.default_rng(0).uniform(-3, 3, size=50) * std
    steps = add_noise(values, noise) / 2.0**exponent
    assert_array_equal(steps, np.round(steps))


def test_values_are_rounded_to_the_nearest_lattice_point():
    noise = GaussianNoise(7, 1e-3, 0, 1.0, 0.0)  # a step of 1 and no noise to speak of
    values = np.array([0.2, -0.2, 0.8, -0.8, 7.49, 1e6 + 0.3, -2.6])
    assert_array_equal(add_noise(values, noise), [0, 0, 1, -1, 7, 1e6, -3])


def test_every_call_draws_afresh():
    draws = np.array([add_noise(np.zeros(4), NOISE) for _ in range(20)])
    assert len(np.unique(draws)) == draws.size


def test_simulated_noise_is_reproducible():
    first, second = (add_noise(np.ones(4), NOISE, np.random.default_rng(5)) for _ in range(2))
    assert_array_equal(first, second)


def test_values_given_are_not_changed():
    values = np.ones(4)
    add_noise(values, NOISE)
    assert_array_equal(values, np.ones(4))
