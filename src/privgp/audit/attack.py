"""``trade_off``: attack any mechanism of two neighbouring datasets, and compare with its promise."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from privgp.audit.gaussian import NoisyPair, attack_pair
from privgp.audit.mechanisms import (
    pair_of_function,
    pair_of_plan,
    pair_of_regressor,
    paths_of,
    released_by,
    sampler_of,
    simulated,
)
from privgp.audit.progress import Callback, telling
from privgp.audit.promises import promise_of
from privgp.audit.result import TradeOff
from privgp.audit.searches import attack_choice, pair_of_search
from privgp.audit.trained import attack_trained
from privgp.models.function.estimator import PrivateFunction
from privgp.models.paths import PosteriorPaths
from privgp.models.regressor import PrivateGPRegressor
from privgp.models.search.bayes import PrivateBayesSearchCV
from privgp.models.search.grid import PrivateGridSearchCV
from privgp.plan.plan import Plan

KINDS = (
    "trade_off takes a Plan, such as model.plan(X), an unfitted model, or a function "
    "mechanism(dataset, rng) that returns numbers."
)


def trade_off(
    mechanism: Any,
    data: Any = None,
    neighbour: Any = None,
    *,
    promise: Any = None,
    points: Any = None,
    batch: bool = False,
    draws: int = 20_000,
    noise_scale: float = 1.0,
    failure_probability: float = 1e-6,
    random_state: Any = None,
    progress: bool | Callback = False,
) -> TradeOff:
    """Attack a mechanism: can it be told which of two neighbouring datasets a release came from?

    Use public or made-up data only: an audit shows what it can tell. ``mechanism``:

    - a plan, with no data for the worst neighbours there are (or two sets of outputs; of records,
      two datasets (X, y)). The best attack, on the sampler that protects real releases;
    - an unfitted PrivateGPRegressor or PrivateFunction, with X alone for the worst neighbours, or
      two datasets (X, y); a function is attacked at ``points`` (its inputs unless given);
    - an unfitted PosteriorPaths, with two datasets (X, y) and ``points``. Unless given, the attacker
      asks where they differ, clusters and near points there and the edges of the domain, with a
      restart after every question. A trained attack;
    - an unfitted PrivateBayesSearchCV (method "measured") or PrivateGridSearchCV (with validation
      records), with the number of those records: the worst record there is. The best attack on all
      scores, and a count of choices;
    - an unfitted model with ``fit`` and ``release``, or any ``mechanism(dataset, rng)`` that returns
      the numbers of one release (with ``batch``, ``mechanism(dataset, rng, count)`` those of many, a
      row each), with two datasets and a ``promise``: a Guarantee or (epsilon, delta). A trained
      attack.

    ``noise_scale`` below 1 plants a fault into a measurement or a choice, to see that the audit finds
    it. ``random_state`` seeds the generator that callables get. ``progress``: True for a bar, or a
    function of (share done, what is being done).
    """
    if draws < 1 or not 0 < failure_probability < 1 or not noise_scale > 0:
        raise ValueError("draws and noise_scale must be positive, failure_probability in (0, 1).")
    if isinstance(mechanism, PrivateGridSearchCV):
        with telling(progress) as tell:
            return attack_choice(
                mechanism, data, draws, noise_scale, failure_probability, simulated(mechanism), tell
            )
    pair = _pair(mechanism, data, neighbour, points)
    if pair is not None:
        rng = simulated(mechanism)
        if promise is not None:
            pair = NoisyPair(pair.low, pair.high, pair.noise, promise_of(promise))
        with telling(progress) as tell:
            return attack_pair(pair, draws, noise_scale, failure_probability, rng, tell)
    if isinstance(mechanism, PosteriorPaths):
        mechanism, promised = paths_of(mechanism, data, neighbour, points)
        promise, batch = promised if promise is None else promise, True
    if data is None or neighbour is None or promise is None:
        raise ValueError("this mechanism needs data, neighbour and promise.")
    if noise_scale != 1.0:
        raise ValueError(
            "noise_scale is for measurements and choices: scale the noise in the function."
        )
    release = mechanism if callable(mechanism) else released_by(mechanism, points)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    sampler = sampler_of(release, (data, neighbour), rng, batch)
    with telling(progress) as tell:
        return attack_trained(sampler, promise_of(promise), draws, failure_probability, tell)


@singledispatch
def _pair(mechanism: Any, data: Any, neighbour: Any, points: Any) -> NoisyPair | None:
    """What the best attack needs, where it is known."""
    if callable(mechanism) or (hasattr(mechanism, "fit") and hasattr(mechanism, "release")):
        return None
    raise TypeError(KINDS)


@_pair.register
def _(mechanism: Plan, data: Any, neighbour: Any, points: Any) -> NoisyPair:
    return pair_of_plan(mechanism, data, neighbour)


@_pair.register
def _(mechanism: PrivateBayesSearchCV, data: Any, neighbour: Any, points: Any) -> NoisyPair:
    return pair_of_search(mechanism, data)


@_pair.register(PrivateGPRegressor | PrivateFunction)
def _(mechanism: Any, data: Any, neighbour: Any, points: Any) -> NoisyPair:
    if data is None:
        raise ValueError("give data: X alone for the worst neighbours, or (X, y).")
    if isinstance(mechanism, PrivateGPRegressor):
        return pair_of_regressor(mechanism, data, neighbour)
    return pair_of_function(mechanism, data, neighbour, points)
