"""The public side of a search: its arguments checked, its plan made, its promise written."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

from sklearn.base import is_classifier

from privgp.models.search.kusner import assumptions, kusner_constants
from privgp.models.spending import refuse_spending
from privgp.plan.inputs.arguments import check_choice, whole_number
from privgp.plan.search.acquisition import ACQUISITIONS
from privgp.plan.search.scores import SearchPlan
from privgp.plan.search.space import Space, make_space
from privgp.privacy.budget import check_budget
from privgp.privacy.guarantee import VALIDATION, Guarantee, promise
from privgp.privacy.noise import GAUSSIAN_SAMPLER
from privgp.privacy.steps import normalised, step_noise
from privgp.vault.scores import Loss, make_loss, score_sensitivity

if TYPE_CHECKING:
    from privgp.models.search.bayes import PrivateBayesSearchCV

METHODS = ("measured", "kusner", "kusner-noise-free")
MOST_STEPS = 500
ASSUMPTIONS = (
    "the number of validation records is public",
    "models are trained without the validation records, and predict every record by itself",
    "space, loss, bounds and budget were chosen without looking at the validation records",
)
KUSNER_ASSUMPTION = (
    "assumption 1 of Kusner et al. (2015): the objectives of all validation sets are draws from one "
    "Gaussian process with the declared kernel, mean, std and correlation of neighbours; delta is in "
    "part the probability of such a draw, so this is no worst-case promise"
)
KUSNER_SAMPLER = (
    "exponential mechanism and Laplace noise on a lattice (OpenDP), cryptographic randomness"
)
FREITAS_ASSUMPTION = (
    "the assumptions of de Freitas et al. (2012), theorem 2, with the declared constants A and tau"
)


def loss_of(search: PrivateBayesSearchCV) -> Loss:
    """The loss that was asked for: accuracy unless given, for classifiers."""
    kind = search.scoring
    if kind is None:
        if not is_classifier(search.estimator):
            raise ValueError(
                "scoring must be given for a regressor: 'squared_error', 'absolute_error' or a "
                "function, with loss_bounds=(low, high)."
            )
        kind = "accuracy"
    return make_loss(kind, search.loss_bounds)


def scale_of(loss: Loss) -> tuple[float, float]:
    """(top, width): a score is ``top - width * share`` of a mean loss in [0, 1]; larger is better."""
    return (1.0, 1.0) if loss.kind == "accuracy" else (-loss.low, loss.high - loss.low)


def check_arguments(search: PrivateBayesSearchCV) -> None:
    check_budget(search.epsilon, search.delta)
    check_choice("method", search.method, METHODS)
    check_choice("acquisition", search.acquisition, ACQUISITIONS)
    whole_number("n_iter", search.n_iter, MOST_STEPS)
    for name, low, high in (("exploration", 0.0, 100.0), ("final_share", 0.0, 0.99)):
        value = getattr(search, name)
        number = isinstance(value, Real) and not isinstance(value, bool)
        if not number or not low <= value <= high:
            raise ValueError(f"{name} must be a number between {low:g} and {high:g}.")
    if not all(hasattr(search.estimator, name) for name in ("fit", "predict", "set_params")):
        raise ValueError("estimator must have fit, predict and set_params, as in scikit-learn.")
    refuse_spending(estimator=search.estimator, space=search.space)
    if search.method != "measured" and search.state_file is not None:
        raise ValueError(
            "state_file is for method='measured': the course of Kusner's algorithms is private and "
            "is not written."
        )


def plan_of(search: PrivateBayesSearchCV, rows: Any) -> SearchPlan:
    """What the budget buys on so many validation records."""
    check_arguments(search)
    rows = whole_number("n_val", rows, 2**40)
    loss, space = loss_of(search), make_space(search.space, search.candidates)
    _check_names(search.estimator, space)
    base = dict(
        method=search.method,
        epsilon=float(search.epsilon),
        delta=float(search.delta),
        rows=rows,
        space=space,
        width=scale_of(loss)[1],
    )
    if search.method == "measured":
        shares, has_final = _shares(search), search.final_share > 0
        noise = step_noise(base["epsilon"], base["delta"], shares, score_sensitivity(rows))
        return SearchPlan(**base, shares=shares, has_final=has_final, noise=noise)
    assumed = assumptions(search, scale_of(loss))
    constants = kusner_constants(search, space, assumed, rows)
    return SearchPlan(**base, constants=constants, unit_std=assumed["prior_std"])


def guarantee_of(plan: SearchPlan, *, simulated: bool) -> Guarantee:
    if plan.constants is None:
        return promise(
            VALIDATION,
            [step.event for step in plan.noise],
            epsilon=plan.epsilon,
            delta=plan.delta,
            assumptions=ASSUMPTIONS,
            mechanism=f"Gaussian noise on {len(plan.noise)} mean losses of adaptively chosen settings; "
            "the choice of setting is post-processing",
            sampler=GAUSSIAN_SAMPLER,
            simulated=simulated,
        )
    extra = (FREITAS_ASSUMPTION,) if plan.constants.noise_free else ()
    return promise(
        VALIDATION,
        [],
        epsilon=plan.epsilon,
        delta=plan.delta,
        assumptions=(KUSNER_ASSUMPTION, *extra, *ASSUMPTIONS),
        mechanism=(
            f"algorithm {2 if plan.constants.noise_free else 1} of Kusner et al. (2015): exponential "
            "mechanism for the setting and Laplace mechanism for its score, with half of epsilon and "
            "of delta each"
        ),
        sampler=KUSNER_SAMPLER,
        simulated=simulated,
    )


def _shares(search: PrivateBayesSearchCV) -> tuple[float, ...]:
    split, steps = search.budget_split, int(search.n_iter)
    if isinstance(split, str):
        check_choice("budget_split", split, ("even",))
        parts: Sequence[float] = (1.0 / steps,) * steps
    elif isinstance(split, Sequence) or hasattr(split, "tolist"):
        parts = normalised(list(split))
        if len(parts) != steps:
            raise ValueError(f"budget_split must hold n_iter={steps} numbers, got {len(parts)}.")
    else:
        raise ValueError("budget_split must be 'even' or a sequence of positive numbers.")
    last = float(search.final_share)
    if last == 0.0:
        return normalised(parts)
    return normalised([*(part * (1.0 - last) for part in parts), last])


def _check_names(estimator: Any, space: Space) -> None:
    known = estimator.get_params(deep=True)
    for name in space.names:
        if name not in known:
            raise ValueError(f"space names {name!r}, which is no parameter of the estimator.")
