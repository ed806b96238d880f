"""Guarantees to charge for, as releases make them."""

from __future__ import annotations

from privgp.privacy.guarantee import Event, Guarantee, promise
from privgp.privacy.noise import gaussian_noise
from privgp.privacy.protected import OUTPUTS, Protected


def of(
    *events: Event, epsilon: float = 1.0, delta: float = 0.0, protected: Protected = OUTPUTS
) -> Guarantee:
    return promise(
        protected,
        events,
        (epsilon, delta),
        assumptions=(),
        mechanism="noise",
        sampler="a lattice",
        simulated=False,
    )


def pure(epsilon: float, protected: Protected = OUTPUTS) -> Guarantee:
    return of(Event(pure_epsilons=(epsilon,)), epsilon=epsilon, protected=protected)


def gaussian(epsilon: float, delta: float) -> Guarantee:
    event = gaussian_noise(epsilon, delta, 20, 1.0, 0.0).event
    return of(event, epsilon=epsilon, delta=delta)
