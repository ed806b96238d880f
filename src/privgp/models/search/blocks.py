"""Searches over models of private rows, by blocks of these rows: choice and release in one guarantee."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_array

from privgp.models.kinds.records import row_count
from privgp.models.promise import generator, seeds
from privgp.models.search.candidates import candidates_of
from privgp.models.spending import SpendsAtFit
from privgp.models.tables import numbers_only
from privgp.plan.inputs.arguments import check_bounds
from privgp.plan.search.blocks import Dealt, count_blocks
from privgp.privacy.guarantee import Event, Guarantee, promise
from privgp.privacy.noise import GAUSSIAN_SAMPLER, ON_LATTICE
from privgp.privacy.protected import Protected
from privgp.privacy.pure import total_epsilon
from privgp.publish import forget_fits
from privgp.types import Array
from privgp.vault.labels import seal_outcome
from privgp.vault.masked import Sealed
from privgp.vault.select import SELECTION_SAMPLER, choose_by_blocks
from privgp.vault.validate import seal_inputs

if TYPE_CHECKING:
    from privgp.models.search.grid import PrivateGridSearchCV

BLOCKS_ASSUMPTION = (
    "the candidates, the number of blocks, bounds, domain and budget were chosen without looking at the "
    "private values, and rows are in an order that says nothing about them"
)
NEARLY = 1.0 - 2.0**-20  # so that a total is at most delta in floating point too
KERNELS_ALONE = (
    "a choice by blocks compares kernel and noise parameters only (kernel, kernel__..., noise_variance), "
    "not {}."
)


@dataclass(frozen=True)
class PrivateRows:
    """Private rows for a search: dealt out, sealed, and as far as they are public.

    Attributes
    ----------
    dealt : how they become blocks
    data : the private values
    inputs : (rows, columns), the public ones; None where inputs are private

    """

    dealt: Dealt
    data: Sealed
    inputs: Array | None


def is_searched_by_blocks(estimator: object) -> bool:
    """Whether an estimator measures private rows itself, so that they can be searched."""
    return isinstance(estimator, SpendsAtFit)


def check_names(names: Iterable[str]) -> None:
    """Refuse parameters of candidates other than those of kernel and noise."""
    wrong = {each for each in names if each not in ("kernel", "noise_variance")}
    others = sorted(each for each in wrong if not each.startswith("kernel__"))
    if others:
        raise ValueError(KERNELS_ALONE.format(", ".join(others)))


def deal(search: Any, X: Any, y: Any) -> PrivateRows:
    """Check private rows and deal them out to blocks by their places."""
    model: Any = search.estimator
    if model.ledger is not None:
        raise ValueError("ledger belongs to the search, which spends for all: give it there.")
    search._check_given(X, y)
    domain, classes, public = model._domain(), model._classes(), None
    if domain is None:
        numbers_only(search, X)
        public = check_array(X, dtype=np.float64)
    rows = row_count(X)
    columns = len(domain) if public is None else public.shape[1]
    bounds = (0.0, 1.0) if classes is not None else check_bounds("y_bounds", model.y_bounds)
    count = 2 if classes is None else len(classes)
    dealt = Dealt(rows, count_blocks(search.blocks, rows), columns, bounds, count, domain)
    data = seal_outcome(y, classes, rows, seal_inputs(X, columns))
    return PrivateRows(dealt, data, public)


def left_of(search: Any, spent: float, spent_delta: float = 0.0) -> tuple[float, float]:
    """What a choice leaves of the budget: epsilon to the last digit, and nearly all of delta."""
    left = float(search.epsilon) - spent
    while total_epsilon((spent, left)) > search.epsilon:
        left = float(np.nextafter(left, 0.0))
    return left, (float(search.delta) - spent_delta) * NEARLY


def rehearse_release(model: Any, rows: PrivateRows) -> Guarantee:
    """Release made-up values, so that whatever would stop a release stops it before anything is spent.

    Returns
    -------
    Guarantee
        What the model guarantees by itself.

    """
    dealt, classes = rows.dealt, model._classes()
    middle = np.mean(dealt.domain, axis=1) if dealt.domain is not None else None
    X = np.tile(middle, (dealt.rows, 1)) if middle is not None else rows.inputs
    y = np.full(dealt.rows, 0.5 * sum(dealt.bounds) if classes is None else classes[0])
    with forget_fits():
        stated: Guarantee = clone(model).set_params(random_state=0).fit(X, y).guarantee_
    return stated


def promise_of(
    search: Any, own: Guarantee, chosen: Sequence[Event], left: tuple[float, float], how: str
) -> Guarantee:
    """The guarantee of a choice and of the release that follows, whichever candidate is released.

    Parameters
    ----------
    search
        With the whole budget.
    own
        What one candidate's release guarantees by itself.
    chosen
        The cost of the choice.
    left
        (epsilon, delta) of the release.
    how
        How the choice is made, in words.

    """
    released = Event(pure_epsilons=(left[0],), delta_slack=left[1])
    sampler = SELECTION_SAMPLER if chosen[0].is_pure else GAUSSIAN_SAMPLER
    return promise(
        Protected(own.unit, own.neighbours),
        [*chosen, released],
        (search.epsilon, search.delta),
        assumptions=(*own.assumptions, BLOCKS_ASSUMPTION),
        mechanism=f"{how}, then {own.mechanism}",
        sampler=f"{sampler}; then noise {ON_LATTICE}",
        simulated=search.random_state is not None,
    )


def release(model: Any, X: Any, y: Any) -> Any:
    """Fit the chosen model: its part of the search's budget is spent."""
    with forget_fits():
        return model.fit(X, y)


def fit_by_blocks(search: PrivateGridSearchCV, X: Any, y: Any) -> None:
    """Choose among candidates with a share of epsilon, then release the chosen one with the rest."""
    params = candidates_of(search.param_grid)
    check_names({name for each in params for name in each})
    rows = deal(search, X, y)
    spent = search.selection_share * float(search.epsilon)
    left, (chooser, seed) = left_of(search, spent), seeds(search, 2)
    models = [
        clone(search.estimator)
        .set_params(**each)
        ._with_budget(*left, rows.dealt.rows)
        .set_params(random_state=seed)
        for each in params
    ]
    trials = [each._trial(rows.inputs, rows.dealt.rows) for each in models]
    how = f"one of {len(models)} candidates by {search.method} on {rows.dealt.blocks} blocks of the rows"
    cost = Event(pure_epsilons=(spent,))
    promised = promise_of(search, rehearse_release(models[0], rows), [cost], left, how)

    def choose_and_release() -> int:
        given = search.method, rows.data, rows.dealt, trials, spent
        best = choose_by_blocks(*given, generator(chooser))
        search.guarantee_ = promised  # from here on it counts as spent, whatever happens
        release(models[best], X, y)
        return best

    def learn(best: int) -> None:
        text = f"{search.method} on {rows.dealt.blocks} blocks, with epsilon = {spent:g}"
        search._keep(best, models[best], {}, text)

    search._publish(promised, choose_and_release, learn, inputs=rows.inputs, rows=rows.dealt.rows)
