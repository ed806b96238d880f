"""Measured scores and Kusner's search inside the vault."""

from __future__ import annotations

import numpy as np
import pytest

from privgp.gp.surrogate import Surrogate, known_prior
from privgp.privacy.noise import noise_of_shares
from privgp.privacy.selection import KusnerConstants
from privgp.vault import select as vault
from privgp.vault.scores import check_validation, make_loss
from tests.models.looking_up import Column, records

LOSS = make_loss("accuracy")
SCORES = np.linspace(0.1, 0.9, 9)
VALIDATION = check_validation(*records(SCORES, 100), LOSS)
POINTS = np.linspace(0, 1, 9)[:, None]


def objective(seen: list[int] | None = None) -> vault.Objective:
    def train(place):
        if seen is not None:
            seen.append(place)
        return Column(place)

    return vault.Objective(train, VALIDATION, 0.5, 0.25)


def constants(observation_std=0.1, steps=6, **settings) -> KusnerConstants:
    base = {"epsilon": 0.5, "delta": 5e-6, "correlation": 0.99, "regret": 0.3}
    return KusnerConstants(
        **{**base, **settings}, settings=9, steps=steps, observation_std=observation_std
    )


def test_a_measured_loss_is_the_mean_loss_plus_noise():
    (noise,) = noise_of_shares(1e4, 0.5, (1.0,), 0.01)
    assert vault.measure_loss(Column(6), VALIDATION, noise) == pytest.approx(0.3, abs=0.01)
    rng = np.random.default_rng(0)
    simulated = vault.measure_loss(Column(6), VALIDATION, noise, rng)
    expected = 0.3 + noise.std * np.random.default_rng(0).standard_normal()
    assert simulated == pytest.approx(expected, abs=1e-12)


def test_a_measured_loss_gets_the_noise_that_was_planned(monkeypatch):
    (noise,) = noise_of_shares(1.0, 1e-5, (1.0,), 0.01)
    calls = []
    monkeypatch.setattr(vault, "add_noise", lambda v, n, rng: calls.append((v[0], n)) or v)
    vault.measure_loss(Column(6), VALIDATION, noise)
    assert calls == [(pytest.approx(0.3), noise)]


def test_the_objective_is_standardised():
    assert objective().value(8) == pytest.approx((0.9 - 0.5) / 0.25)


def test_algorithm_1_follows_equation_2():
    seen: list[int] = []
    reported: list[int] = []
    c = constants()
    prior = known_prior(1, 0.3, 2.5)
    vault.kusner_search(
        objective(seen), POINTS, prior, c, reported.append, np.random.default_rng(5)
    )
    rng, mine = np.random.default_rng(5), Surrogate(POINTS, prior)
    for step, place in enumerate(seen, start=1):
        bound = mine.means[0] + np.sqrt(c.beta(step)) * np.sqrt(mine.variances[0])
        assert place == np.argmax(bound)
        value = objective().value(place) + 0.1 * rng.standard_normal()
        mine.observe(place, value, 0.1)
    assert reported == [1, 2, 3, 4, 5, 6]


def test_algorithm_2_never_repeats_and_stops_when_all_is_seen():
    seen: list[int] = []
    c = constants(0.0, steps=50)
    prior = known_prior(1, 0.3, 2.5)
    vault.kusner_search(objective(seen), POINTS, prior, c, lambda n: None, np.random.default_rng(0))
    assert len(seen) == len(set(seen)) == 9


def test_algorithm_2_leaves_out_settings_that_cannot_be_best():
    points = np.linspace(0, 1, 200)[:, None]
    scores = 0.9 - 0.8 * (points[:, 0] - 0.7) ** 2
    validation = check_validation(*records(scores, 1000), LOSS)
    seen: list[int] = []

    def train(place):
        seen.append(place)
        return Column(place)

    goal = vault.Objective(train, validation, 0.5, 0.25)
    c = KusnerConstants(1e4, 0.4, 200, 40, 1.0, 0.0, 1e-9)
    prior = known_prior(1, 0.5, np.inf)
    chosen, value = vault.kusner_search(goal, points, prior, c, lambda n: None)
    assert abs(points[chosen, 0] - 0.7) < 0.05
    assert 0.5 + 0.25 * value == pytest.approx(0.9, abs=0.01)
    late = np.array(seen[20:])
    assert np.mean(np.abs(points[late, 0] - 0.7) < 0.2) > 0.8


def test_one_step_is_enough_to_run():
    for sigma in (0.0, 0.1):
        chosen, value = vault.kusner_search(
            objective(), POINTS, known_prior(1, 0.3, 2.5), constants(sigma, 1), lambda n: None
        )
        assert 0 <= chosen < 9
        assert np.isfinite(value)


def test_training_that_fails_or_warns_tells_nothing(recwarn):
    import warnings

    def warn(place):
        warnings.warn(f"at {place}", stacklevel=1)
        return Column(place)

    def fail(place):
        raise RuntimeError(f"at {place}")

    prior = known_prior(1, 0.3, 2.5)
    for train in (warn, fail):
        goal = vault.Objective(train, VALIDATION, 0.5, 0.25)
        if train is warn:
            vault.kusner_search(goal, POINTS, prior, constants(), lambda n: None)
        else:
            with pytest.raises(ValueError, match="could not be fitted") as caught:
                vault.kusner_search(goal, POINTS, prior, constants(), lambda n: None)
            assert caught.value.__suppress_context__
    assert not recwarn


def test_what_is_not_finite_is_refused_and_nothing_is_released():
    prior = known_prior(1, 0.3, 2.5)
    goal = vault.Objective(Column, VALIDATION, 0.5, 1e-320)
    for sigma in (0.0, 0.1):
        with (
            pytest.raises(ValueError, match="finite; nothing was released"),
            np.errstate(all="ignore"),
        ):
            vault.kusner_search(goal, POINTS, prior, constants(sigma), lambda n: None)


@pytest.mark.parametrize("regret", [-10.0, np.nan])
def test_a_value_of_no_sensitivity_is_refused(regret):
    with pytest.raises(ValueError, match="sensitivity is 0"):
        constants(0.0, regret=regret).value_noise()


def test_the_released_value_lies_on_the_lattice_of_its_noise():
    c = constants(0.0, 2)
    lattice = 2.0 ** c.value_noise().exponent
    assert lattice <= c.laplace_scale * 2.0**-40
    for _ in range(20):
        _, value = vault.kusner_search(
            objective(), POINTS, known_prior(1, 0.3, 2.5), c, lambda n: None
        )
        assert value / lattice == np.round(value / lattice)
