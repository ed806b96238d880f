"""Whether the models and the certificate of a file are those of what it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from privgp.gp.measurement import Measurement
from privgp.gp.priors import Hyperparameters
from privgp.plan.parameters import Parameters
from privgp.privacy.guarantee import Guarantee
from privgp.release.certificate import steps_of, validate_file
from privgp.release.spendings import Spending, as_one, combine_guarantees
from privgp.storage.archive import DamagedFile, require

MOST_MODELS = 256
SAME_EPSILON = 1e-9  # composed elsewhere, its last digits may differ


def check_models(models: Sequence[Hyperparameters], columns: int) -> None:
    """Refuse models that are not for this many columns, or whose weights are broken."""
    for model in models:
        model.check_for(columns)
    total = sum(model.weight for model in models)
    several = 1 <= len(models) <= MOST_MODELS
    fits = several and abs(total - 1.0) <= 1e-9
    require(fits, "its models do not have weights that sum to one")


def check_spent(spent: Sequence[Spending], measured: tuple[Measurement, ...]) -> None:
    """Refuse measurements that do not make up those that the release is computed from, one of every
    function."""
    if not spent:
        return
    problem, functions = "its measurements are broken", len(measured)
    require(len({type(each) for each in spent}) == 1, problem)
    require(all(len(each.values) % functions == 0 for each in spent), problem)
    require(len({each.sums_fingerprint for each in spent}) == 1, problem)
    for whole, held in zip(as_one(spent, functions), measured, strict=True):
        same = [
            np.array_equal(getattr(whole, name), getattr(held, name))
            for name in ("values", "counts", "gram", "laplace")
        ]
        require(all(same), problem)


def check_total(spent: Sequence[Spending], stated: Guarantee) -> None:
    """Refuse a guarantee that is not the one that follows from several measurements. One alone may have
    spent more, on a choice of hyperparameters."""
    if len(spent) < 2:
        return
    whole, told = combine_guarantees(spent), stated.epsilon
    near = abs(told - whole.epsilon) <= SAME_EPSILON * whole.epsilon
    same = near and stated == replace(whole, epsilon=told)
    require(same, "its guarantee is not that of its parts")


def check_facts(
    stated: Mapping[str, Any],
    promised: Guarantee,
    given: Parameters,
    measured: str,
    *,
    several: bool = False,
) -> None:
    """Refuse a certificate that has not its form, or is not about this release. ``measured``: the
    hash of what was measured; ``several``: times, so that parameters are those of one of them."""
    try:
        validate_file(stated)
    except ValueError:
        raise DamagedFile("its certificate is broken") from None
    budget = (promised.epsilon, promised.delta)
    require(
        (stated["epsilon"], stated["delta"]) == budget
        and (
            several or given.epsilon <= promised.epsilon
        )  # a private choice may have spent some too
        and (several or given.delta <= promised.delta or promised.is_pure)
        and stated["unit"] == promised.unit
        and stated["neighbours"] == promised.neighbours
        and stated["simulation"] == promised.is_simulation
        and stated["bounds"]["outputs"] == np.array(given.y_bounds).tolist()
        and stated["bounds"].get("classes") == given.labels()
        and ("noise_variance" in stated["hyperparameters"]) == given.scatters
        and stated["plan_hash"] == measured
        and _holds_everywhere(stated, promised),
        "its certificate is not about its contents",
    )


def _holds_everywhere(stated: Mapping[str, Any], promised: Guarantee) -> bool:
    """Whether a certificate's steps are those of the promise, and its curve, mu and best guess say no
    more."""
    mechanism = stated["mechanism"]
    own, *others = map(steps_of, promised.events)
    if {**mechanism, **own} != mechanism or mechanism.get("others", []) != others:
        return False
    slack = 1.0 + 1e-6  # versions may round otherwise
    curve = [(promised.delta_at(epsilon), delta) for epsilon, delta in stated["curve"]]
    guess = 0.5 + 0.5 * promised.delta_at(0.0)
    pairs = [*curve, (promised.mu, stated["mu"]), (guess, stated["best_guess"])]
    return all(least <= slack * told for least, told in pairs)
