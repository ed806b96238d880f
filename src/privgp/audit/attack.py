"""``trade_off``: attack any mechanism of two neighbouring datasets, and compare with its promise."""

from dataclasses import replace

import numpy as np
from sklearn.utils import check_random_state

from privgp.audit.attacks import attack_pair, train_attack
from privgp.audit.mechanisms import attack_choice, pair_of, paths_of, release_mechanism, sampler_of
from privgp.audit.promises import promise_of
from privgp.audit.result import Callback, TradeOff, Trial, show_progress
from privgp.models.paths import PosteriorPaths
from privgp.models.search.grid import PrivateGridSearchCV
from privgp.models.spending import simulation
from privgp.types import Random, RandomState, Table


def trade_off(
    mechanism: object,
    data: object = None,
    neighbour: object = None,
    *,
    promise: object = None,
    points: Table | None = None,
    batch: bool = False,
    draws: int = 20_000,
    noise_scale: float = 1.0,
    failure_probability: float = 1e-6,
    random_state: RandomState = None,
    progress: bool | Callback = False,
) -> TradeOff:
    """Attack a mechanism: can it be told which of two neighbouring datasets a release came from?

    Use public or simulated data only: an audit shows what it can tell. ``mechanism``:

    - a plan, with no data for the worst neighbours there are (or two sets of outputs; of records,
      two datasets (X, y)). The best attack, on the sampler that protects real releases;
    - an unfitted PrivateGPRegressor or PrivateFunction, with X alone for the worst neighbours, or
      two datasets (X, y); a function is attacked at ``points`` (its inputs by default);
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

    ``data`` and ``neighbour`` are the two datasets. ``draws`` releases of each are attacked, and a mechanism
    that keeps its guarantee is reported with at most ``failure_probability``.
    ``noise_scale`` below 1 plants a fault into a measurement or a choice, to see that the audit finds
    it. ``random_state`` seeds the generator that callables get. ``progress``: True for a bar, or a
    function of (share done, what is being done)."""
    if draws < 1 or not 0 < failure_probability < 1 or not noise_scale > 0:
        raise ValueError("draws and noise_scale must be positive, failure_probability in (0, 1).")
    with show_progress(progress) as tell:
        trial = Trial(draws, failure_probability, tell)
        if isinstance(mechanism, PrivateGridSearchCV):
            return attack_choice(mechanism, data, trial, noise_scale, _generator_of(mechanism))
        pair = pair_of(mechanism, data, neighbour, points)
        if pair is not None:
            if promise is not None:
                pair = replace(pair, promise=promise_of(promise))
            return attack_pair(pair, trial, noise_scale, _generator_of(mechanism))
        if isinstance(mechanism, PosteriorPaths):
            mechanism, promised = paths_of(mechanism, data, neighbour, points)
            promise, batch = promised if promise is None else promise, True
        if data is None or neighbour is None or promise is None:
            raise ValueError("this mechanism needs data, neighbour and promise.")
        if noise_scale != 1.0:
            raise ValueError("noise_scale is for measurements and choices: scale your own noise.")
        release = mechanism if callable(mechanism) else release_mechanism(mechanism, points)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        sampler = sampler_of(release, (data, neighbour), rng, batch)
        return train_attack(sampler, promise_of(promise), trial)


def _generator_of(model: object) -> Random:
    """The generator of a model that simulates, else None: the noise that protects."""
    return simulation(model) if hasattr(model, "random_state") else None
