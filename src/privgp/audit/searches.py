"""Searches on private validation records, attacked at the worst record there is.

Under one dataset every model predicts it right, under the other every model predicts it wrong; or it
speaks for one setting against all others, and then for all others against that one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from privgp.audit.gaussian import NoisyPair
from privgp.audit.progress import Callback, part
from privgp.audit.promises import Promise
from privgp.audit.result import TradeOff, from_errors
from privgp.models.search.bayes import PrivateBayesSearchCV
from privgp.models.search.bayes_plan import guarantee_of
from privgp.models.search.candidates import candidates_of
from privgp.models.search.grid import PrivateGridSearchCV
from privgp.vault.scores import score_sensitivity
from privgp.vault.select import CHOICES, choose


def pair_of_search(search: PrivateBayesSearchCV, rows: Any) -> NoisyPair:
    """All scores that a search measures, in units of the first one's noise."""
    plan = search.plan(_count(rows))
    if plan.constants is not None:
        raise ValueError(
            "Kusner's promises hold under an assumption only: attack method='measured'."
        )
    first = plan.noise[0]
    moved = np.array([first.std / step.std for step in plan.noise]) / plan.rows
    guarantee = guarantee_of(plan, simulated=False)
    promise = Promise(mu=guarantee.mu, slack=guarantee.delta_slack)
    return NoisyPair(np.zeros(len(moved)), moved, first, promise)


def attack_choice(
    search: PrivateGridSearchCV,
    rows: Any,
    draws: int,
    noise_scale: float,
    failure: float,
    rng: np.random.Generator | None,
    tell: Callback,
) -> TradeOff:
    """How often the last setting is chosen: two records behind all others, or level with them."""
    if search.method not in CHOICES:
        raise ValueError(
            "method='measurement' chooses by what was measured: attack the regressor itself."
        )
    count, settings = _count(rows), len(candidates_of(search.param_grid))
    if settings < 2:
        raise ValueError("param_grid must hold at least two settings to choose from.")
    epsilon = float(search.epsilon)
    chosen = []
    for k, behind in enumerate((2.0, 0.0)):
        told = part(tell, 0.5 * k, 0.5 * (k + 1))
        utilities = np.zeros(settings)
        utilities[-1] = -behind / count
        hits = 0
        for draw in range(draws):
            if draw % 1000 == 0:
                told(draw / draws, "watching choices")
            scale = noise_scale * score_sensitivity(count)
            hits += choose(search.method, utilities, scale, epsilon, rng) == settings - 1
        chosen.append(hits)
    promise = Promise(pairs=((epsilon, 0.0),))
    return from_errors(promise, chosen[0], draws - chosen[1], draws, failure, "the last setting")


def _count(rows: Any) -> int:
    if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 2:
        raise ValueError("data must be the number of validation records, at least 2.")
    return int(rows)
