"""Promises: frozen, composable, and never smaller than what the mechanisms spend."""

from __future__ import annotations

import dataclasses
import json
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from privgp import Guarantee, PrivateGPRegressor, compose
from privgp.privacy.budget import gaussian_delta, gaussian_multiplier
from privgp.privacy.guarantee import EPSILON_SLACK, SIMULATION
from privgp.privacy.noise import gaussian_noise
from privgp.privacy.protected import (
    LABELLED_RECORDS,
    OUTPUTS,
    PERSON,
    RECORDS,
    SAME_RECORDS,
    VALIDATION,
)

X = np.linspace(0, 1, 12)[:, None]


def promise(epsilon=1.0, delta=1e-6, **changes) -> Guarantee:
    noise = gaussian_noise(epsilon, delta, 10, 2.0, 0.0)
    fields = {
        "epsilon": epsilon,
        "delta": delta,
        "unit": OUTPUTS.unit,
        "neighbours": OUTPUTS.neighbours,
        "assumptions": ("the inputs are public",),
        "mechanism": "one Gaussian mechanism",
        "sampler": "lattice",
        "noise_multipliers": (noise.multiplier,),
        "delta_slack": noise.delta_slack,
    }
    return Guarantee(**{**fields, **changes})


def exact_delta(epsilon, mu):
    with mpmath.workdps(50):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)

        def cdf(x):
            return mpmath.erfc(-x / mpmath.sqrt(2)) / 2

        return cdf(m / 2 - e / m) - mpmath.exp(e) * cdf(-m / 2 - e / m)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 50.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.01])
def test_a_promise_holds_at_its_own_epsilon_and_delta(epsilon, delta):
    guarantee = promise(epsilon, delta)
    assert guarantee.delta_at(epsilon) <= delta * (1 + 1e-9)
    assert guarantee.epsilon_at(delta) == pytest.approx(epsilon, rel=1e-6)


@settings(max_examples=60)
@given(
    multipliers=st.lists(st.floats(0.2, 50), min_size=1, max_size=5),
    epsilon=st.floats(0, 20),
    slack=st.floats(0, 1e-3),
)
def test_delta_is_never_below_the_exact_curve_plus_slack(multipliers, epsilon, slack):
    guarantee = promise(noise_multipliers=tuple(multipliers), delta_slack=slack)
    with mpmath.workdps(50):
        mu = mpmath.sqrt(mpmath.fsum(1 / mpmath.mpf(c) ** 2 for c in multipliers))
        exact = exact_delta(epsilon, mu) + mpmath.mpf(slack)
    found = guarantee.delta_at(epsilon)
    assert found >= float(min(exact, 1)) * (1 - 1e-15)
    assert found <= float(exact) * (1 + 1e-6) + 1e-11


@pytest.mark.parametrize("mechanisms", [1, 100, 10_000])
@pytest.mark.parametrize("epsilon", [0.5, 6.0])
def test_every_mechanism_has_a_slack_of_its_own(mechanisms, epsilon):
    """Each is drawn on a lattice, and may lose a little; one slack was taken for all of them."""
    guarantee = promise(noise_multipliers=(mechanisms**0.5,) * mechanisms, delta_slack=0.0)
    lost = mechanisms * EPSILON_SLACK * max(epsilon, 1.0)
    needed = exact_delta(epsilon - lost, 1.0)
    assert guarantee.delta_at(epsilon) == pytest.approx(float(needed), rel=1e-12)
    assert exact_delta(epsilon - 0.9 * lost, 1.0) < needed


def test_delta_falls_with_epsilon_and_epsilon_falls_with_delta():
    guarantee = promise()
    deltas = [guarantee.delta_at(e) for e in np.linspace(0, 10, 200)]
    assert all(np.diff(deltas) <= 0)
    epsilons = [guarantee.epsilon_at(d) for d in np.geomspace(1e-10, 0.9, 100)]
    assert all(np.diff(epsilons) <= 0)
    assert epsilons[-1] == 0.0


@pytest.mark.parametrize("delta", [1e-9, 1e-4, 0.1])
def test_epsilon_is_rounded_up(delta):
    guarantee = promise()
    assert guarantee.delta_at(guarantee.epsilon_at(delta)) <= delta


def test_no_epsilon_holds_below_the_lattice_slack():
    guarantee = promise(delta_slack=1e-8)
    assert guarantee.epsilon_at(1e-9) == math.inf
    with pytest.raises(ValueError, match="larger delta"):
        compose([guarantee], 1e-9)


@pytest.mark.parametrize("epsilon", [-1e-9, math.nan, math.inf])
def test_delta_at_no_epsilon_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        promise().delta_at(epsilon)


@pytest.mark.parametrize("delta", [1.0, -0.1, math.nan, 2.0])
def test_epsilon_at_no_delta_is_refused(delta):
    with pytest.raises(ValueError, match="delta"):
        promise().epsilon_at(delta)
    with pytest.raises(ValueError, match="delta"):
        compose([promise()], delta)


def test_gaussian_mechanisms_compose_to_one_gaussian_mechanism():
    parts = [promise(0.5), promise(1.0), promise(2.0)]
    whole = compose(parts, 1e-6)
    mu = math.sqrt(sum(part.mu**2 for part in parts))
    assert whole.mu == pytest.approx(mu)
    assert whole.noise_multipliers == tuple(c for part in parts for c in part.noise_multipliers)
    assert whole.delta_slack == pytest.approx(sum(part.delta_slack for part in parts))
    assert gaussian_delta(whole.epsilon, 1 / mu) <= 1e-6
    assert whole.epsilon < 3.5  # the sum of the parts
    assert whole.epsilon > 2.0  # the largest part


def test_four_equal_releases_cost_as_one_with_half_the_noise():
    whole = compose([promise()] * 4, 1e-6)
    (c,) = promise().noise_multipliers
    assert gaussian_multiplier(whole.epsilon, 1e-6) == pytest.approx(c / 2, rel=1e-6)


def test_composition_does_not_depend_on_order_or_grouping():
    a, b, c = promise(0.5), promise(1.0), promise(2.0)
    whole = compose([a, b, c], 1e-5)
    assert compose([c, a, b], 1e-5).epsilon == pytest.approx(whole.epsilon, rel=1e-9)
    grouped = compose([compose([a, b], 1e-7), c], 1e-5)
    assert grouped.epsilon == pytest.approx(whole.epsilon, rel=1e-9)


def test_one_release_alone_costs_what_it_promised():
    assert compose([promise()], 1e-6).epsilon == pytest.approx(1.0, rel=1e-6)


def test_a_question_chosen_by_an_earlier_answer_costs_no_more():
    """The loss of an adaptive pair with 1/c1^2 + 1/c2^2 fixed has the law of one mechanism.

    The second mechanism asks about the same person or about nobody, as the first answer says; by
    numerical integration over the first answer its delta stays below that of the composition.
    """
    mu1 = mu2 = 0.8
    epsilon = 0.7
    x = np.linspace(-9, 9, 20001)
    density = np.exp(-0.5 * (x - mu1) ** 2) / math.sqrt(2 * math.pi)
    loss = mu1 * (x - 0.5 * mu1)

    def hockey_stick(mu, rest):
        """E of (1 - e^(rest - loss))_+ for one more answer of this mu."""
        if mu == 0:
            return np.maximum(-np.expm1(np.minimum(rest, 0.0)), 0.0)
        return ndtr(mu / 2 - rest / mu) - np.exp(rest) * ndtr(-mu / 2 - rest / mu)

    bound = gaussian_delta(epsilon, 1 / math.hypot(mu1, mu2))
    for rule in (x > 0, x < 0.5, np.abs(x) < 1, np.ones_like(x, dtype=bool)):
        after = np.where(rule, hockey_stick(mu2, epsilon - loss), hockey_stick(0.0, epsilon - loss))
        assert np.trapezoid(density * after, x) <= bound + 1e-9


@pytest.mark.parametrize("whose", [RECORDS, LABELLED_RECORDS])
def test_a_choice_by_validation_records_goes_with_a_release_of_these_records(whose):
    pure = {"noise_multipliers": (), "delta_slack": 0.0, "pure_epsilons": (0.5,)}
    chosen = dataclasses.replace(promise(0.5), delta=0.0, **dataclasses.asdict(VALIDATION), **pure)
    released = promise(**dataclasses.asdict(whose))
    for parts in ((chosen, released), (released, chosen)):
        total = compose(parts, 1e-6)
        assert (total.unit, total.neighbours) == (whose.unit, whose.neighbours)
        assert SAME_RECORDS in total.assumptions
        assert released.epsilon < total.epsilon <= released.epsilon + 0.5
        same = dataclasses.replace(chosen, unit=whose.unit, neighbours=whose.neighbours)
        assert total.epsilon == compose((same, released), 1e-6).epsilon
    outputs = promise()
    for others in ((chosen, outputs), (chosen, released, outputs)):
        with pytest.raises(ValueError, match="protect different things"):
            compose(others, 1e-6)
    records = [promise(**dataclasses.asdict(each)) for each in (RECORDS, LABELLED_RECORDS)]
    with pytest.raises(ValueError, match="protect different things"):
        compose((chosen, *records), 1e-6)
    assert SAME_RECORDS not in compose((chosen, chosen), 0.0).assumptions


def test_promises_about_different_things_are_not_added_up():
    person = promise(unit=PERSON.unit, neighbours=PERSON.neighbours)
    with pytest.raises(ValueError, match="protect different things"):
        compose([promise(), person], 1e-5)


@pytest.mark.parametrize("parts", [[], ()])
def test_nothing_does_not_compose(parts):
    with pytest.raises(ValueError, match="at least one"):
        compose(parts, 1e-5)


def test_only_guarantees_compose():
    with pytest.raises(TypeError, match="Guarantee"):
        compose([promise(), (1.0, 1e-6)], 1e-5)


def test_a_promise_that_names_no_gaussian_mechanism_is_never_counted_as_free():
    other = promise(mechanism="exponential mechanism", noise_multipliers=(), delta_slack=0.0)
    try:
        whole = compose([promise(), other], 1e-5)
    except ValueError:
        return
    assert whole.epsilon >= promise().epsilon_at(1e-5) + other.epsilon


def test_assumptions_are_kept_once():
    other = promise(assumptions=("the inputs are public", "the kernel is public"))
    whole = compose([promise(), other], 1e-5)
    assert whole.assumptions == ("the inputs are public", "the kernel is public")


def test_a_promise_cannot_be_changed():
    guarantee = promise()
    with pytest.raises(dataclasses.FrozenInstanceError):
        guarantee.epsilon = 0.1
    assert promise() == promise()
    assert hash(promise()) == hash(promise())


@pytest.mark.parametrize(
    "guarantee", [promise(), promise(50.0, 0.01), compose([promise()] * 3, 1e-5)]
)
def test_json_brings_back_the_same_promise(guarantee):
    text = guarantee.to_json()
    assert Guarantee.from_json(text) == guarantee
    assert json.loads(text)["mu"] == guarantee.mu


def test_the_description_says_what_is_promised_and_assumed():
    text = promise().describe()
    for part in ("(1, 1e-06)", OUTPUTS.unit, OUTPUTS.neighbours, "the inputs are public"):
        assert part in text


def test_a_simulation_stays_marked_as_one():
    model = PrivateGPRegressor(y_bounds=(0, 1), random_state=0, hyperparameters="fixed")
    simulated = model.fit(X, np.zeros(len(X))).guarantee_
    assert simulated.is_simulation
    assert SIMULATION in simulated.describe()
    assert Guarantee.from_json(simulated.to_json()).is_simulation
    assert compose([promise(), simulated], 1e-5).is_simulation
    assert compose([compose([simulated, promise()], 1e-5), promise()], 1e-4).is_simulation
    assert not compose([promise(), promise()], 1e-5).is_simulation


def test_a_fit_without_a_seed_is_not_a_simulation_and_spends_what_was_asked():
    model = PrivateGPRegressor(
        y_bounds=(0, 1), epsilon=2.0, delta=1e-4, hyperparameters="fixed", mechanism="gaussian"
    )
    guarantee = model.fit(X, np.zeros(len(X))).guarantee_
    assert not guarantee.is_simulation
    assert (guarantee.epsilon, guarantee.delta) == (2.0, 1e-4)
    assert guarantee.unit == OUTPUTS.unit
    assert guarantee.delta_at(2.0) <= 1e-4 * (1 + 1e-9)
    people = model.fit(X, np.zeros(len(X)), groups=np.arange(12) // 3).guarantee_
    assert (people.unit, people.neighbours) == (PERSON.unit, PERSON.neighbours)
