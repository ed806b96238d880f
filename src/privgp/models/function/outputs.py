"""A function of private outputs: its arguments, its first state, and what it promises."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import validate_data

from privgp.gp.input_maps import collapse
from privgp.gp.kernels.noise import signal_and_noise
from privgp.gp.smoothers import choose_nodes
from privgp.gp.threads import threads_for
from privgp.plan.functions.outputs import SENSITIVITIES, FunctionModel
from privgp.plan.inputs.arguments import check_bounds, check_choice, inducing_inputs
from privgp.privacy.budget import check_budget
from privgp.privacy.guarantee import OUTPUTS_NEIGHBOURS, OUTPUTS_UNIT, SIMULATION, Guarantee
from privgp.privacy.lattice import LATTICE_SAMPLER
from privgp.types import Array
from privgp.vault.states.function_file import Contents
from privgp.vault.states.outputs import Draws, first_draws
from privgp.vault.validate import checked_outputs

if TYPE_CHECKING:
    from privgp.models.function.estimator import PrivateFunction


def fit_outputs(
    function: PrivateFunction, X: Any, y: Any, columns: PrivateFunction, seed: int | None
) -> Contents:
    """A function of which nothing has been asked. Outputs go to the vault.

    ``columns`` is told the names of the columns.
    """
    X = validate_data(columns, X, dtype=np.float64) + 0.0  # no negative zeros
    y = checked_outputs(y, len(X))
    check_budget(function.epsilon, function.delta)
    epsilon, delta = float(function.epsilon), float(function.delta)
    bounds = check_bounds("y_bounds", function.y_bounds)
    if function.domain is not None:
        raise ValueError("domain goes with protect='records' only.")
    inputs, index = collapse(X)
    with threads_for(len(inputs)), np.errstate(all="ignore"):
        model = _model(function, inputs, np.bincount(index).astype(np.float64))
        norm = model.norm(function.sensitivity, function.dominance)
    if not (np.isfinite(norm) and norm > 0):
        raise ValueError("the sensitivity is not finite: choose other units for the kernel.")
    noise = model.noise(epsilon, delta, norm)
    draws = first_draws(y, bounds, index, noise, norm, seed)
    del y
    names = getattr(columns, "feature_names_in_", None)
    return Contents(
        model=model,
        y_bounds=bounds,
        epsilon=epsilon,
        delta=delta,
        sensitivity=function.sensitivity,
        dominance=None if function.dominance is None else float(function.dominance),
        norm=norm,
        guarantee=_guarantee(epsilon, delta, model, draws),
        names=None if names is None else tuple(str(name) for name in names),
        draws=draws,
        points=np.empty((0, model.columns)),
        answers=np.empty(0),
    )


def _model(function: PrivateFunction, inputs: Array, counts: Array) -> FunctionModel:
    """The public model on these distinct inputs, each of which occurs ``counts`` times."""
    sensitivity, inducing = function.sensitivity, function.inducing
    check_choice("sensitivity", sensitivity, SENSITIVITIES)
    _check_dominance(sensitivity, function.dominance)
    kernel, noise = signal_and_noise(function.kernel, function.noise_variance, inputs.shape[1])
    if inducing is None:
        return FunctionModel(kernel, noise, inputs, counts)
    if sensitivity != "exact":
        raise ValueError("inducing inputs go with sensitivity='exact' only.")
    return FunctionModel(kernel, noise, inputs, counts, _nodes(inducing, kernel, inputs))


def _check_dominance(sensitivity: str, dominance: Any) -> None:
    """Refuse a declared dominance that is no positive number, or goes with no other argument."""
    if dominance is None:
        return
    if sensitivity != "varah":
        raise ValueError("dominance goes with sensitivity='varah' only.")
    if isinstance(dominance, bool) or not isinstance(dominance, Real):
        raise ValueError("dominance must be a positive number.")
    if not 0.0 < float(dominance) < np.inf:
        raise ValueError(f"dominance must be positive and finite, got {dominance}.")


def _nodes(inducing: Any, kernel: Kernel, inputs: Array) -> Array:
    """Inducing inputs as given, or so many of the inputs, chosen by the kernel."""
    given = inducing_inputs(inducing, inputs.shape[1])
    return inputs[choose_nodes(kernel, inputs, given)] if isinstance(given, int) else given


def _guarantee(epsilon: float, delta: float, model: FunctionModel, draws: Draws) -> Guarantee:
    """What is promised of all answers together."""
    noise = draws.noise
    how = (
        f"in {noise.size:,} numbers through inducing inputs"
        if model.nodes is not None
        else f"drawn where it is asked for, at most {noise.size:,} points"
    )
    return Guarantee(
        epsilon=epsilon,
        delta=delta,
        unit=OUTPUTS_UNIT,
        neighbours=OUTPUTS_NEIGHBOURS,
        assumptions=(
            "the inputs and the number of rows are public",
            "kernel, noise variance, bounds, inducing inputs and budget were chosen without "
            "looking at the outputs",
            "no draw is made twice: the state of the function is kept and never set back",
        ),
        mechanism=f"one Gaussian mechanism on the posterior mean as a function, {how}; all answers "
        "together are covered",
        sampler=LATTICE_SAMPLER
        if draws.seed is None
        else f"ordinary floating-point noise: {SIMULATION}",
        noise_multipliers=(noise.multiplier,),
        delta_slack=noise.delta_slack,
    )
