"""What a search chooses among, and the loss of validation records that it may choose by."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.gaussian_process.kernels import Kernel
from sklearn.model_selection import ParameterGrid

from privgp.gp.priors import Hyperparameters
from privgp.models.published import has_private_rows
from privgp.models.regressor import PrivateGPRegressor
from privgp.plan.build import Question, initial_priors
from privgp.question.parameters import BY_NAME, RECONSTRUCTIONS
from privgp.question.rules import check_bounds
from privgp.types import Array
from privgp.vault.scores import Loss, make_loss

MEASUREMENT = "measurement"
MOST_CANDIDATES = 10_000
# Parameters that a search by private outputs leaves at their defaults, and why.
ALONE = {
    "protect": "protects outputs",
    "likelihood": "compares candidates for numbers",
    "inducing": "holds all rows at once",
    "columns": "takes inputs that are numbers",
}
VALIDATION_ASSUMPTIONS = (
    "the number of validation records is public",
    "models are trained without the validation records, on data that are public or protected "
    "separately, and predict every record separately",
    "the settings, the loss and its bounds and the budget were chosen without looking at the "
    "validation records",
)


def loss_of(estimator: object, scoring: object, loss_bounds: object) -> Loss:
    """The loss that was asked for: accuracy by default, for classifiers."""
    if scoring is None and not is_classifier(estimator):
        raise ValueError(
            "scoring must be given for a regressor: 'squared_error', 'absolute_error' or a function "
            "(y, prediction) -> loss, with loss_bounds=(low, high)."
        )
    return make_loss("accuracy" if scoring is None else scoring, loss_bounds)


def candidates_of(param_grid: object) -> list[dict[str, Any]]:
    """Every combination of the grid (or of each grid in a list), as scikit-learn orders them."""
    try:
        grid = ParameterGrid(param_grid)
        count = len(grid)
    except (TypeError, ValueError) as problem:
        raise ValueError(
            f"param_grid must be a dict of parameter names and lists, or a list of such: {problem}"
        ) from None
    if not 1 <= count <= MOST_CANDIDATES:
        raise ValueError(f"param_grid must have 1 to {MOST_CANDIDATES} candidates, got {count}.")
    return list(grid)


def compares_outputs(estimator: object) -> bool:
    """Whether candidates are compared by outputs at public inputs, of which predictions are linear.

    An estimator that spends nothing on its own counts as one: ``check_private`` refuses it in words.
    """
    if not has_private_rows(estimator):
        return True
    linear = isinstance(estimator, PrivateGPRegressor)
    return linear and BY_NAME["protect"].is_default(getattr(estimator, "protect", None))


def check_private(estimator: object, method: str) -> None:
    """Refuse what cannot be searched by the outputs of a private regressor."""
    if not isinstance(estimator, PrivateGPRegressor):
        raise ValueError(
            f"estimator must be a PrivateGPRegressor for method={method!r} without X_val: another "
            "estimator can be searched with private validation records X_val, y_val and "
            "method='permute-and-flip'."
        )
    if estimator.ledger is not None:
        raise ValueError("ledger belongs to the search, which spends for all: give it there.")
    for name, reason in ALONE.items():
        value = getattr(estimator, name)
        if not BY_NAME[name].is_default(value):
            given = f"{name}={value!r}" if isinstance(value, str) else name
            raise ValueError(
                f"PrivateGridSearchCV {reason}: with {given} leave the hyperparameters to be learned, "
                "which costs nothing."
            )
    if method == MEASUREMENT and not RECONSTRUCTIONS[estimator.reconstruct].averages:
        raise ValueError(
            "method='measurement' needs reconstruct='posterior': the unbiased output of one "
            "candidate tells nothing about another."
        )


def kernel_grid(param_grid: object) -> list[dict[str, Any]]:
    """The candidates of a grid of kernel and noise parameters."""
    params = candidates_of(param_grid)
    check_names(name for each in params for name in each)
    return params


def check_names(names: Iterable[str]) -> None:
    """Refuse parameters of candidates other than those of kernel and noise."""
    wrong = {each for each in names if each not in ("kernel", "noise_variance")}
    others = sorted(each for each in wrong if not each.startswith("kernel__"))
    if others:
        raise ValueError(
            f"candidates have kernel and noise parameters only (kernel, kernel__..., noise_variance), "
            f"not {', '.join(others)}."
        )


def models_of(
    estimator: PrivateGPRegressor, params: Sequence[dict[str, object]], X: Array
) -> list[Hyperparameters]:
    """The kernel and noise variance of every candidate, as its ``fit`` would start with."""
    bounds, models = check_bounds("y_bounds", estimator.y_bounds), []
    for each in params:
        one = clone(estimator).set_params(**each)
        question = Question(bounds, one.kernel, one.noise_variance)
        (prior,) = initial_priors(X, question, learned=False)
        models.append(prior.start)
    return models


def centre_of(models: Sequence[Hyperparameters]) -> Hyperparameters:
    """The geometric middle of the candidates; of kernels of several forms, the middle one listed.
    What is measured is planned for it: it depends on the grid and never on how candidates rank."""
    noise = float(np.exp(np.mean([np.log(model.noise_variance) for model in models])))
    middle = models[(len(models) - 1) // 2]
    kernel = clone(middle.kernel)
    if len({_form(model.kernel) for model in models}) == 1:
        values = {
            name: np.exp(np.mean([np.log(m.kernel.get_params()[name]) for m in models], axis=0))
            for name in (parameter.name for parameter in kernel.hyperparameters)
        }
        kernel.set_params(**values)
    return Hyperparameters(kernel, noise, middle.input_map)


def _form(kernel: Kernel) -> tuple[object, ...]:
    """The names of its hyperparameters, and the kernel with all of them at 1."""
    values, names = kernel.get_params(), [each.name for each in kernel.hyperparameters]
    at_one = clone(kernel).set_params(**{name: np.ones_like(values[name]) for name in names})
    return *names, repr(at_one)
