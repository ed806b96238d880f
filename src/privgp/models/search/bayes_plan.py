"""The public side of PrivateBayesSearchCV: its arguments checked, its plan made, its guarantee written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from privgp.gp.surrogate import Surrogate, robust_prior
from privgp.models.search.candidates import VALIDATION_ASSUMPTIONS, check_names, loss_of
from privgp.models.spending import refuse_spenders
from privgp.plan.inputs.arguments import check_choice, check_defaults, is_number, whole_number
from privgp.plan.search.folds import count_blocks
from privgp.plan.search.plan import (
    ACQUISITIONS,
    SETTINGS,
    SearchPlan,
    Space,
    kusner_plan,
    make_space,
)
from privgp.privacy.budget import check_budget
from privgp.privacy.guarantee import Guarantee, promise
from privgp.privacy.noise import GAUSSIAN_SAMPLER, budget_shares, noise_of_shares
from privgp.privacy.protected import VALIDATION
from privgp.vault.scores import Loss, score_sensitivity

if TYPE_CHECKING:
    from privgp.models.search.bayes import PrivateBayesSearchCV

BLOCK_LOSS = Loss("square error of blocks", 0.0, 1.0)
PRIVATE_ROWS = ("selection_share", "blocks")
VALIDATION_ALONE = ("scoring", "loss_bounds", "state_file")
METHODS = ("measured", "kusner", "kusner-noise-free")
MOST_STEPS = 500
MEASURED_ALONE = ("acquisition", "exploration", "budget_split", "final_share")
NOT_WITH: dict[str, tuple[str, ...]] = {
    "measured": ("assume",),
    "kusner": MEASURED_ALONE,
    "kusner-noise-free": MEASURED_ALONE,
    "ei": ("exploration",),
    "ucb": (),
}
KUSNER_ASSUMPTION = (
    "assumption 1 of Kusner et al. (2015): the objectives of all validation sets are draws from one "
    "Gaussian process with the declared kernel, mean, std and correlation of neighbours; delta is in "
    "part the probability of such a draw, so this is no worst-case guarantee"
)
KUSNER_SAMPLER = (
    "exponential mechanism and Laplace noise on a lattice (OpenDP), cryptographic randomness"
)
FREITAS_ASSUMPTION = (
    "the assumptions of de Freitas et al. (2012), theorem 2, with the declared constants A and tau"
)


def check_arguments(search: PrivateBayesSearchCV) -> None:
    check_budget(search.epsilon, search.delta)
    check_choice("method", search.method, METHODS)
    check_choice("acquisition", search.acquisition, ACQUISITIONS)
    whole_number("n_iter", search.n_iter, MOST_STEPS)
    for name, high in (("exploration", 100.0), ("final_share", 0.99), ("selection_share", 0.99)):
        value = getattr(search, name)
        if not is_number(value) or not 0.0 <= value <= high:
            raise ValueError(f"{name} must be a number between 0 and {high:g}.")
    check_defaults(search, NOT_WITH[search.method], f"method={search.method!r}")
    check_defaults(search, NOT_WITH[search.acquisition], f"acquisition={search.acquisition!r}")
    if search.method != "measured" and search.state_file is not None:
        raise ValueError("state_file is for method='measured': the course of others is private.")


def check_validation_search(search: PrivateBayesSearchCV) -> None:
    """Refuse arguments of a search on validation records, whose models are trained on other data."""
    check_arguments(search)
    if not all(hasattr(search.estimator, name) for name in ("fit", "predict", "set_params")):
        raise ValueError("estimator must have fit, predict and set_params, as in scikit-learn.")
    refuse_spenders(estimator=search.estimator, space=search.space)
    check_defaults(search, PRIVATE_ROWS, "validation records X_val, y_val")


def plan_of(search: PrivateBayesSearchCV, n_val: object) -> SearchPlan:
    check_validation_search(search)
    rows = whole_number("n_val", n_val, 2**40)
    loss = loss_of(search.estimator, search.scoring, search.loss_bounds)
    epsilon, delta = float(search.epsilon), float(search.delta)
    plan = SearchPlan(search.method, epsilon, delta, rows, _space_of(search), loss.width)
    if search.method != "measured":
        bounds = loss.score(1.0), loss.score(0.0)
        return kusner_plan(plan, search.assume, int(search.n_iter), bounds)
    return _with_noise(search, plan)


def block_plan(search: PrivateBayesSearchCV, n: object) -> SearchPlan:
    """What a share of the budget buys on blocks of n private rows; the rest is for the release."""
    check_arguments(search)
    if search.method != "measured":
        raise ValueError("without validation records only method='measured' is available.")
    if not 0.0 < search.selection_share < 1.0:
        raise ValueError("selection_share must be a number between 0 and 1.")
    check_defaults(search, VALIDATION_ALONE, "private rows X, y")
    refuse_spenders(space=search.space)
    space, blocks = _space_of(search), count_blocks(search.blocks, whole_number("n", n, 2**40))
    check_names(space.names)
    share = float(search.selection_share)
    budget = share * float(search.epsilon), share * float(search.delta)
    return _with_noise(search, SearchPlan("measured", *budget, blocks, space, BLOCK_LOSS.width))


def surrogate_of(plan: SearchPlan) -> Surrogate:
    """What learns from the noisy scores."""
    points = plan.space.points
    prior = robust_prior(points.shape[1], scores=len(plan.noise), settings=len(points))
    return Surrogate(points, prior)


def _space_of(search: PrivateBayesSearchCV) -> Space:
    space = make_space(search.space, search.candidates)
    if space.whole and len(space) <= SETTINGS:
        check_defaults(search, ("candidates",), f"a space of at most {SETTINGS:,} settings")
    known = search.estimator.get_params(deep=True)
    for name in space.names:
        if name not in known:
            raise ValueError(f"space names {name!r}, which is no parameter of the estimator.")
    return space


def _with_noise(search: PrivateBayesSearchCV, plan: SearchPlan) -> SearchPlan:
    """The plan of a measured search with its noise."""
    steps = int(search.n_iter)
    shares = _shares(search.budget_split, steps, float(search.final_share))
    noise = noise_of_shares(plan.epsilon, plan.delta, shares, score_sensitivity(plan.rows))
    return replace(plan, shares=shares, has_final=len(shares) > steps, noise=noise)


def _shares(split: Any, steps: int, final: float) -> tuple[float, ...]:
    """The share of every step; the last is that of the chosen setting, unless it has none."""
    if isinstance(split, str):
        check_choice("budget_split", split, ("even",))
        split = [1.0] * steps
    elif not (isinstance(split, Sequence) or hasattr(split, "tolist")):
        raise ValueError("budget_split must be 'even' or a sequence of positive numbers.")
    parts = budget_shares(list(split))
    if len(parts) != steps:
        raise ValueError(f"budget_split must hold n_iter={steps} numbers, got {len(parts)}.")
    last = [final] if final > 0 else []
    return budget_shares([*(part * (1.0 - final) for part in parts), *last])


def guarantee_of(plan: SearchPlan, *, simulated: bool) -> Guarantee:
    """The measured search adds up Gaussian events; Kusner's guarantee stands alone."""
    assumptions: tuple[str, ...] = ()
    mechanism = (
        f"Gaussian noise on {len(plan.noise)} mean losses of adaptively chosen settings; the choice "
        "of setting is post-processing"
    )
    if plan.constants is not None:
        noise_free = plan.constants.noise_free
        assumptions = (KUSNER_ASSUMPTION, *((FREITAS_ASSUMPTION,) if noise_free else ()))
        mechanism = (
            f"algorithm {2 if noise_free else 1} of Kusner et al. (2015): exponential mechanism for "
            "the setting and Laplace mechanism for its score, with half of epsilon and of delta each"
        )
    return promise(
        VALIDATION,
        [each.event for each in plan.noise],
        (plan.epsilon, plan.delta),
        assumptions=(*assumptions, *VALIDATION_ASSUMPTIONS),
        mechanism=mechanism,
        sampler=GAUSSIAN_SAMPLER if plan.constants is None else KUSNER_SAMPLER,
        simulated=simulated,
    )
