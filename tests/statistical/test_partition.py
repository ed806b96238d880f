"""The best attack on a sum with Laplace noise, with the sampler that protects real releases.

The release is (epsilon, 0)-private, so no event is more than e^epsilon times as likely under a
neighbour. The event "the sum lies above the larger of its two exact values" attains it: probability
1/2 against e^-epsilon / 2. Each test draws 30,000 numbers a side; bounds fail with probability at
most 1e-6.
"""

from __future__ import annotations

from dataclasses import replace
from math import log

import numpy as np
import pytest
from scipy.stats import binomtest

from privgp import PrivateGPRegressor
from privgp.vault.measure import add_noise
from privgp.vault.measure import exact as without_noise

pytestmark = pytest.mark.statistical(failure=1e-6)
X = np.random.default_rng(0).uniform(size=(30, 1))
DRAWS = 30_000


def attacked_epsilon(epsilon: float, noise_scale: float = 1.0) -> tuple[float, float]:
    """Confidence bounds of the log-ratio of the event's probabilities."""
    plan = PrivateGPRegressor(y_bounds=(0, 1), epsilon=epsilon, mechanism="laplace").plan(X)
    u, v = np.full(len(X), 0.2), np.full(len(X), 0.2)
    u[0], v[0] = 1.0, -1.0
    high, low = (
        without_noise(plan.strategy, u, (-1.0, 1.0)),
        without_noise(plan.strategy, v, (-1.0, 1.0)),
    )
    place = int(np.argmax(np.abs(high - low)))
    assert np.count_nonzero(high - low) == 1
    noise = replace(plan.noise, size=DRAWS, scale=plan.noise.scale * noise_scale)
    rates = []
    for exact in (high, low):
        noisy = add_noise(np.full(DRAWS, exact[place]), noise)
        hits = int(np.count_nonzero(noisy > high[place]))
        rates.append(binomtest(hits, DRAWS).proportion_ci(1 - 5e-7, method="exact"))
    return log(rates[0].low / rates[1].high), log(rates[0].high / rates[1].low)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_no_event_is_more_than_the_promised_times_as_likely(epsilon):
    least, most = attacked_epsilon(epsilon)
    assert least <= epsilon
    assert most >= epsilon


def test_the_attack_finds_noise_that_is_a_fifth_too_small():
    least, _ = attacked_epsilon(1.5, noise_scale=0.8)
    assert least > 1.5


def test_the_attack_finds_noise_that_is_a_third_too_large():
    _, most = attacked_epsilon(1.5, noise_scale=1.33)
    assert most < 1.5
