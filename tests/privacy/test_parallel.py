"""Promises to different people: the weakest counts, whatever is composed with it later."""

from __future__ import annotations

from dataclasses import replace

import pytest

from privgp import Guarantee, compose
from privgp.privacy.guarantee import Event, in_parallel, promise
from privgp.privacy.protected import Protected

UNIT = Protected("one output value", "datasets that differ in one output value")


def gaussian(epsilon: float, multiplier: float, delta: float = 1e-5) -> Guarantee:
    return _promise(epsilon, delta, Event(noise_multipliers=(multiplier,)))


def pure(epsilon: float) -> Guarantee:
    return _promise(epsilon, 0.0, Event(pure_epsilons=(epsilon,)))


def _promise(epsilon: float, delta: float, event: Event) -> Guarantee:
    words = {"assumptions": ("public inputs",), "mechanism": "sums", "sampler": "lattice"}
    return promise(UNIT, [event], (epsilon, delta), simulated=False, **words)


def test_the_weakest_batch_is_promised():
    loud, quiet, laplace = gaussian(1.0, 3.73), gaussian(0.5, 6.9), pure(0.8)
    whole = in_parallel([quiet, laplace, loud])
    assert (whole.epsilon, whole.delta) == (1.0, 1e-5)
    for epsilon in (0.0, 0.3, 0.79, 0.8, 1.0, 2.0):
        each = (part.delta_at(epsilon) for part in (quiet, laplace, loud))
        assert whole.delta_at(epsilon) == max(each)
    assert whole.noise_multipliers == loud.noise_multipliers
    assert not whole.is_pure
    assert in_parallel([pure(0.5), pure(0.8)]).is_pure
    assert in_parallel([pure(0.5), pure(0.8)]).epsilon_at(0.0) == pure(0.8).epsilon_at(0.0)


def test_equal_batches_promise_what_one_does():
    one = gaussian(1.0, 3.73)
    assert in_parallel([one] * 12) == one


def test_what_comes_later_is_composed_with_every_batch():
    """A person of the pure batch and one of the Gaussian batch both take part in a later release."""
    laplace, loud, later = pure(0.8), gaussian(1.0, 3.73), gaussian(0.7, 5.2)
    whole = compose([in_parallel([laplace, loud]), later], 2e-5)
    apart = [compose([part, later], 2e-5) for part in (laplace, loud)]
    assert whole.epsilon == pytest.approx(max(each.epsilon for each in apart), rel=1e-9)
    for epsilon in (0.2, 0.9, 1.4):
        assert whole.delta_at(epsilon) == max(each.delta_at(epsilon) for each in apart)


def test_json_brings_back_an_equal_one():
    whole = in_parallel([pure(0.8), gaussian(1.0, 3.73), gaussian(1.0, 4.0)])
    assert len(whole.others) == 2
    assert Guarantee.from_json(whole.to_json()) == whole


def test_different_units_are_refused():
    with pytest.raises(ValueError, match="different things"):
        in_parallel([pure(0.8), replace(pure(0.8), unit="one person")])


def test_steps_that_spend_more_than_is_promised_are_refused():
    """As only a forged file has them, also of a batch that is not the first."""
    whole = in_parallel([gaussian(1.0, 3.74), pure(0.8)])
    whole.check()
    assert whole.mu == pytest.approx(1.0 / 3.74)
    for forged in (
        replace(whole, epsilon=0.5),
        replace(whole, delta=1e-9),
        replace(whole, others=(Event(pure_epsilons=(1.1,)),)),
        replace(whole, others=(Event(noise_multipliers=(3.0,)),)),
    ):
        with pytest.raises(ValueError, match="spend more"):
            forged.check()


def test_a_batch_that_names_no_steps_is_not_taken_for_one_that_spends_nothing():
    unknown = replace(pure(5.0), pure_epsilons=())
    with pytest.raises(ValueError, match="names no mechanism"):
        in_parallel([gaussian(1.0, 3.74), unknown])
    forged = replace(pure(1.0), others=(Event(),))
    with pytest.raises(ValueError, match="names no mechanism"):
        compose([forged, pure(1.0)], 0.0)
    with pytest.raises(ValueError, match="names no mechanism"):
        forged.check()
