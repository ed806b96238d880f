"""The filter: as much as ``compose`` allows for one kind of noise, and never more than the total to
somebody who chooses by looking at answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import norm

from privgp import Guarantee, compose
from privgp.ledger.filter import UNIT, Budget, Spent, decimal, mu_square_of_pure
from privgp.privacy.budget import gaussian_delta, gaussian_multiplier
from privgp.privacy.guarantee import Event, in_parallel, mix_delta
from tests.ledger.promises import gaussian, of, pure

TOTALS = [(1.0, 1e-5), (0.1, 1e-6), (5.0, 0.01), (0.5, 0.3), (10.0, 1e-9)]


def budget(epsilon: float, delta: float, reserve: float = 0.0) -> Budget:
    return Budget(decimal(epsilon), decimal(delta), decimal(reserve))


def charged(total: Budget, guarantees: Iterable[Guarantee]) -> tuple[list[Guarantee], Spent]:
    """Those that fit, one after the other, and what is then spent."""
    spent, taken = Spent(), []
    for each in guarantees:
        fits = total.after(spent, each)
        if fits is not None:
            taken.append(each)
            spent = fits[1]
    return taken, spent


@pytest.mark.parametrize(("epsilon", "delta"), TOTALS)
def test_one_release_may_take_all(epsilon, delta):
    for whole in (gaussian(epsilon, delta), pure(epsilon)):
        taken, spent = charged(budget(epsilon, delta), [whole, whole])
        assert len(taken) == 1
        assert budget(epsilon, delta).left(spent) <= 1e-7 * epsilon


@pytest.mark.parametrize(("epsilon", "delta"), TOTALS)
def test_ten_equal_shares_fit_and_an_eleventh_does_not(epsilon, delta):
    share = Event(noise_multipliers=(gaussian_multiplier(epsilon, delta) * 10**0.5,))
    for each in (of(share, delta=delta), pure(epsilon / 10)):
        assert len(charged(budget(epsilon, delta), [each] * 12)[0]) == 10


@pytest.mark.parametrize("worst", [pure(5.0), gaussian(5.0, 1e-7)])
def test_of_several_batches_the_worst_is_charged(worst):
    batches = in_parallel([gaussian(0.01, 1e-6), worst])
    total = budget(1.0, 1e-5)
    assert worst.noise_multipliers != batches.noise_multipliers  # it is among the others
    assert total.after(Spent(), batches) is None
    large = budget(10.0, 1e-5)
    cost, _ = large.after(Spent(), batches)
    for each in (gaussian(0.01, 1e-6), worst):
        alone, _ = large.after(Spent(), each)
        assert cost.epsilon >= alone.epsilon
        assert cost.mu2 >= alone.mu2
        assert cost.delta >= alone.delta


def test_batches_that_name_no_steps_are_refused():
    for own, other in (
        (Event(), Event(pure_epsilons=(50.0,))),
        (Event(pure_epsilons=(0.1,)), Event()),
    ):
        forged = replace(of(own, epsilon=0.1, delta=1e-7), others=(other,))
        with pytest.raises(ValueError, match="must name"):
            budget(1.0, 1e-5).after(Spent(), forged)


def test_of_several_batches_with_equal_costs_one_is_charged():
    each, total = gaussian(1.0, 1e-6), budget(1.0, 1e-6)
    assert total.after(Spent(), in_parallel([each, each, each])) == total.after(Spent(), each)


def test_gaussian_releases_fit_as_long_as_compose_says():
    each, total = gaussian(0.05, 1e-6), budget(1.0, 1e-5)
    taken, _ = charged(total, [each] * 400)
    assert compose(taken, 1e-5).epsilon <= 1.0 < compose([*taken, each], 1e-5).epsilon
    seven = charged(total, [each] * 7)[1]
    assert total.left(seven) == pytest.approx(1.0 - compose([each] * 7, 1e-5).epsilon, abs=1e-8)


def test_pure_steps_add_up_to_the_last_digit():
    total = budget(1.0, 0.0)
    taken, spent = charged(total, [pure(0.1)] * 12)
    assert len(taken) == 10
    assert total.left(spent) == 0.0
    assert total.after(spent, pure(5e-324)) is None


def test_gaussian_noise_after_pure_steps_has_what_adding_up_leaves():
    taken, _ = charged(budget(1.0, 1e-5), [pure(0.5), gaussian(0.5, 1e-5), gaussian(0.01, 1e-5)])
    assert len(taken) == 2


def test_pure_steps_after_gaussian_noise_need_a_reserve():
    order = [gaussian(0.5, 1e-6), pure(0.5)]
    assert len(charged(budget(1.0, 1e-5), order)[0]) == 1
    assert len(charged(budget(1.0, 1e-5, reserve=0.5), order)[0]) == 2
    _, spent = charged(budget(1.0, 1e-5, reserve=0.5), [gaussian(0.6, 1e-5)])
    assert (
        spent.mu2 == 0
    )  # it is too much for the Gaussian part, so it is added as it is guaranteed
    small = [gaussian(0.5, 1e-6), pure(0.05)]
    assert len(charged(budget(1.0, 1e-5), small)[0]) == 2  # as the Gaussian that it is within


def test_what_is_no_sum_of_known_steps_is_added_as_it_is_promised():
    alone = of(epsilon=0.4, delta=2e-6)  # names no mechanism
    taken, spent = charged(budget(1.0, 1e-5), [alone] * 4)
    assert len(taken) == 2
    assert spent.delta == 2 * decimal(2e-6)


def test_a_guarantee_that_says_less_than_its_steps_is_charged_for_its_steps():
    sly = of(Event(noise_multipliers=(0.1,), pure_epsilons=(0.5,)), epsilon=1e-6, delta=1e-6)
    assert charged(budget(10.0, 1e-5), [sly])[0] == []


@settings(max_examples=40)
@given(
    st.lists(
        st.one_of(
            st.floats(1e-3, 0.7).map(pure),
            st.floats(1e-3, 0.7).map(lambda e: gaussian(e, 1e-6)),
            st.floats(1e-3, 0.7).map(lambda e: of(epsilon=e, delta=1e-7)),
        ),
        max_size=7,
    ),
    st.floats(0.0, 1.0),
)
def test_what_is_accepted_composes_to_no_more_than_the_total(guarantees, reserve):
    taken, spent = charged(budget(1.0, 1e-5, reserve), guarantees)
    known = [each for each in taken if each.noise_multipliers or each.pure_epsilons]
    if known:
        assert compose(known, 1e-5).epsilon <= 1.0 + 1e-12
    assert budget(1.0, 1e-5, reserve).holds(spent)


# Somebody who looks at the first answer, and then takes whichever second step is worse.

Value = Callable[[np.ndarray], np.ndarray]  # delta of a step, at every epsilon left


def coin(epsilon: float) -> Value:
    p = expit(epsilon)
    gap = lambda left: np.maximum(0.0, -np.expm1(np.minimum(left, 0.0)))  # noqa: E731
    return lambda left: p * gap(left - epsilon) + (1 - p) * gap(left + epsilon)


def normal(mu: float) -> Value:
    return np.vectorize(lambda left: gaussian_delta(left, 1.0 / mu) if mu > 0 else coin(0.0)(left))


def revealing(delta: float) -> Value:
    """Tells everything with this probability, and nothing otherwise."""
    return lambda left: delta + (1 - delta) * coin(0.0)(left)


def looked(first_mu: float, seconds: list[Value], epsilon: float) -> float:
    """Delta of a Gaussian first step and then the worst second one for the loss that came up."""
    z = np.linspace(-12, 12, 4001)
    losses = 0.5 * first_mu**2 + first_mu * z
    worst = np.max([each(epsilon - losses) for each in seconds], axis=0)
    return float(np.trapezoid(worst * norm.pdf(z), z))


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (1.0, 0.01), (0.3, 1e-6)])
def test_compose_is_no_filter(epsilon, delta):
    """Both ends are within the total by ``compose``, and somebody who looks gets more than delta."""
    most = 1.0 / gaussian_multiplier(epsilon, delta)
    first = 0.7 * most
    rest = np.sqrt(most**2 - first**2)
    pure_rest = brentq(lambda e: mix_delta(epsilon, first, [e]) - delta, 1e-6, epsilon)
    for end in (normal(rest), coin(pure_rest)):
        assert looked(first, [end], epsilon) == pytest.approx(delta, rel=1e-3)
    assert looked(first, [normal(rest), coin(pure_rest)], epsilon) > 1.3 * delta


@pytest.mark.parametrize("reserve", [0.0, 0.5])
@pytest.mark.parametrize("share", [0.3, 0.7, 0.9])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (1.0, 0.01), (0.3, 1e-6)])
def test_looking_gains_nothing_with_the_ledger(epsilon, delta, share, reserve):
    """The largest second steps that the ledger takes after a Gaussian first one."""
    total = budget(epsilon, delta, reserve * epsilon)
    first = share * (1 - reserve) / gaussian_multiplier(epsilon, delta)
    _, spent = charged(total, [of(Event(noise_multipliers=(1.0 / first,)), delta=delta)])
    assert spent.mu2 > 0

    def largest(made: Callable[[float], Guarantee], high: float) -> float:
        low = 0.0
        for _ in range(40):
            middle = 0.5 * (low + high)
            fits = total.after(spent, made(middle)) is not None
            low, high = (middle, high) if fits else (low, middle)
        return low

    mu = largest(lambda m: of(Event(noise_multipliers=(1.0 / m,)), delta=delta), 20.0)
    e = largest(pure, epsilon)
    d = largest(lambda d: of(epsilon=1e-30, delta=d), delta)
    assert mu > 0
    assert e > 0
    seconds = [normal(mu), coin(e), revealing(d)]
    assert looked(first, seconds, epsilon) <= delta * (1 + 1e-5)
    # and the test could tell: somewhat larger steps are too much
    larger = [normal(1.1 * mu), coin(1.1 * e)]
    if not reserve:
        assert looked(first, larger, epsilon) > delta


@pytest.mark.parametrize("share", [0.2, 0.6])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (1.0, 0.01)])
def test_nor_does_looking_at_a_first_step_that_is_not_gaussian(epsilon, delta, share):
    """A pure step with some delta first, then the worst that the ledger takes."""
    total = budget(epsilon, delta)
    first, told = share * epsilon, share * delta
    _, spent = charged(total, [of(epsilon=first, delta=told)])
    rest = gaussian((1 - share) * epsilon, (1 - share) * delta * (1 - 1e-6))
    assert total.after(spent, rest) is not None
    mu, e, d = rest.mu, (1 - share) * epsilon, (1 - share) * delta * (1 - 1e-9)
    assert total.after(spent, of(epsilon=e, delta=d)) is not None
    both = coin(e)
    seconds = [normal(mu), lambda left: d + (1 - d) * both(left)]
    p = expit(first)
    worst = [
        max(float(each(np.array(left))) for each in seconds)
        for left in (epsilon - first, epsilon + first)
    ]
    found = told + (1 - told) * (p * worst[0] + (1 - p) * worst[1])
    assert found <= delta * (1 + 1e-9)
    assert total.after(spent, of(epsilon=e, delta=1.01 * d)) is None
    assert total.after(spent, gaussian(1.01 * e, d)) is None


def test_a_pure_step_within_its_gaussian_at_every_epsilon():
    for epsilon in (0.01, 0.3, 1.0, 4.0):
        mu = float(np.sqrt(mu_square_of_pure(epsilon) / UNIT))
        left = epsilon * np.linspace(-3, 3, 301)
        left = left[np.abs(left) > 2e-4]  # nearer to 0 the Gaussian curve is rounded up
        assert np.all(coin(epsilon)(left) <= normal(mu)(left) + 1e-12)
        assert np.any(coin(epsilon)(left) > normal(0.95 * mu)(left) + 1e-6 * epsilon)
