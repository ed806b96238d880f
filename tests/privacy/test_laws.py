"""The shared suite of noise laws: whatever is in ``LAWS`` passes it, or does not."""

from __future__ import annotations

import json
import math
from typing import get_args

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from privgp import PrivateGPRegressor, audit, load, load_plan
from privgp.audit.attacks import NoisyPair, attack_pair
from privgp.audit.promises import Promise
from privgp.audit.result import Trial
from privgp.command.options import Law
from privgp.privacy.noise import LAWS, PURE, Noise, noise_for
from privgp.question.parameters import choices
from privgp.release.certificate import certificate
from privgp.storage.codec import Codec
from privgp.vault.measure import PROTECTING, SIMULATED, add_noise
from tests.adversary.attacks import DENSITIES

EPSILON, DELTA, SENSITIVITY = 1.5, 1e-4, 2.0
X = np.linspace(0, 1, 12)[:, None]
every_law = pytest.mark.parametrize("law", LAWS)


def needed(law, size=1, epsilon=EPSILON, delta=DELTA):
    return noise_for(law, epsilon, 0.0 if law in PURE else delta, size, SENSITIVITY, 0.0)


def density(noise, widest=60.0, steps=400_001):
    """Places, and the density there, which sums to 1."""
    z = np.linspace(-widest * noise.std, widest * noise.std, steps)
    weights = np.exp(noise.log_density(z))
    return z, weights / weights.sum()


def keeps(noise, factor):
    """Whether the density times ``factor`` keeps the guarantee for numbers that move all they can."""
    small = noise.with_size(noise.size, factor)
    if noise.pure:
        z = np.linspace(-40 * noise.std, 40 * noise.std, 100_001)
        losses = small.log_density(z) - small.log_density(z - SENSITIVITY)
        return float(np.abs(losses).max()) <= EPSILON * (1 + 1e-9)
    z, here = density(small)
    there = here * np.exp(small.log_density(z - SENSITIVITY) - small.log_density(z))
    return float(np.maximum(there - math.exp(EPSILON) * here, 0.0).sum()) <= DELTA * (1 + 1e-6)


def test_every_list_of_laws_is_this_one():
    assert choices("mechanism") == get_args(Law) == ("auto", *LAWS)
    assert set(PROTECTING) == set(SIMULATED) == set(DENSITIES) == set(LAWS)


@every_law
def test_the_promise_is_kept_and_little_is_wasted(law):
    noise = needed(law)
    assert keeps(noise, 1.0)
    assert not keeps(noise, 0.97)


@every_law
def test_the_std_is_that_of_the_density(law):
    noise = needed(law)
    z, probability = density(noise)
    assert math.sqrt(float(probability @ z**2)) == pytest.approx(noise.std, rel=1e-3)
    assert noise.with_size(7, 0.5).size == 7
    assert noise.with_size(7, 0.5).std == pytest.approx(0.5 * noise.std)


@every_law
def test_the_attackers_density_is_the_same(law):
    noise = needed(law)
    z = np.linspace(-9, 9, 50) * noise.std
    ours, theirs = noise.log_density(z), DENSITIES[law](z / noise.scale)
    assert ours - ours[0] == pytest.approx(theirs - theirs[0], abs=1e-9)


@every_law
@pytest.mark.parametrize("size", [1, 10, 10_000])
def test_noise_covers_rounding_to_the_lattice(law, size):
    one, many = (noise_for(law, EPSILON, DELTA, n, SENSITIVITY, 1e-3) for n in (1, size))
    assert many.scale >= one.scale * (1 - 1e-12)
    rounded = size if law in PURE else math.sqrt(size)
    moved = SENSITIVITY + 2e-3 + rounded * 2.0**many.exponent
    assert many.scale / moved >= one.scale / (SENSITIVITY + 2e-3 + 2.0**one.exponent) * (1 - 1e-12)


@every_law
def test_what_it_spends_is_what_was_offered(law):
    event = needed(law).event
    assert bool(event.pure_epsilons) == (law in PURE)
    assert all(e <= EPSILON for e in event.pure_epsilons)


@every_law
def test_nonsense_is_refused(law):
    for epsilon, sensitivity in ((-1.0, 2.0), (math.nan, 2.0), (2e4, 2.0), (1.0, 0.0)):
        with pytest.raises(ValueError, match=r"epsilon must|sensitivity"):
            noise_for(law, epsilon, DELTA, 3, sensitivity, 0.0)


@every_law
def test_it_is_written_and_read_back(law):
    codec, noise = Codec(Noise, "noise"), needed(law, 5)
    assert codec.decode(codec.encode(noise)) == noise


@every_law
def test_a_model_plans_measures_saves_and_certifies_with_it(law, tmp_path):
    delta = 0 if law in PURE else DELTA
    y = np.random.default_rng(0).uniform(size=12)
    model = PrivateGPRegressor(y_bounds=(0, 1), epsilon=4.0, delta=delta, mechanism=law)
    plan = model.plan(X)
    assert plan.noise.law == plan.strategy.law == law
    assert plan.is_pure == (law in PURE)
    assert plan.noise.describe() in model.plan(X).budget or not plan.is_pure
    with pytest.warns(UserWarning, match="inputs"):
        plan.save(tmp_path / "a.plan")
    model.fit(X, y, plan=load_plan(tmp_path / "a.plan"))
    assert model.plan_.hash == plan.hash
    assert model.guarantee_.delta == delta
    assert model.guarantee_.sampler == plan.noise.sampler
    with pytest.warns(UserWarning, match="inputs"):
        model.save(tmp_path / "a.privgp")
    again = load(tmp_path / "a.privgp")
    assert_array_equal(again.predict(X), model.predict(X))
    assert again.guarantee_ == model.guarantee_
    for each in (model, again):
        assert plan.noise.describe() in json.dumps(certificate(each))
    assert audit.trade_off(plan, draws=500).holds


@every_law
def test_simulated_noise_is_reproducible(law):
    noise = needed(law, 4)
    first, second = (add_noise(np.ones(4), noise, np.random.default_rng(5)) for _ in range(2))
    assert_array_equal(first, second)


@pytest.mark.statistical(failure=1e-6)
@every_law
@pytest.mark.parametrize("rng", [None, np.random.default_rng(1)], ids=["protecting", "simulated"])
def test_draws_follow_the_density(law, rng):
    """30,000 draws; Kolmogorov-Smirnov with the Dvoretzky-Kiefer-Wolfowitz bound at 1e-8."""
    noise = needed(law, 30_000)
    values = np.linspace(-50, 50, noise.size)
    drawn = add_noise(values, noise, rng)
    if rng is None:
        steps = drawn / 2.0**noise.exponent
        assert_array_equal(steps, np.round(steps))
    z, probability = density(noise)
    levels = np.arange(noise.size + 1) / noise.size

    def follows(errors):
        cdf = np.interp(np.sort(errors), z, np.cumsum(probability))
        distance = max((levels[1:] - cdf).max(), (cdf - levels[:-1]).max())
        return distance <= math.sqrt(math.log(2e8) / (2 * noise.size))

    assert follows(drawn - values)
    assert not follows(0.8 * (drawn - values))
    assert not follows(1.25 * (drawn - values))


@pytest.mark.statistical(failure=1e-6)
@every_law
def test_an_audit_finds_noise_a_fifth_too_small(law):
    """15,000 draws of one number (Gaussian: 4,000); either fails by chance with probability below 1e-6."""
    noise = needed(law, epsilon=2.0 if law in PURE else 8.0, delta=0.01)
    pair = NoisyPair(np.zeros(1), np.array([SENSITIVITY]), noise, Promise.of(noise.event))
    draws = 15_000 if law in PURE else 4000
    trial = Trial(draws, 1e-6, lambda share, doing: None)
    for factor, holds in ((1.0, True), (0.8, False)):
        assert attack_pair(pair, trial, factor, None).holds is holds
