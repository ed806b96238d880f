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
from privgp.models.function.common import asked_of, promised
from privgp.models.kept import names_of
from privgp.plan.functions.outputs import SENSITIVITIES, FunctionModel
from privgp.plan.inputs.arguments import check_choice, inducing_inputs
from privgp.privacy.guarantee import OUTPUTS
from privgp.types import Array
from privgp.vault.states.outputs import OutputsContents, first_draws
from privgp.vault.validate import checked_outputs

if TYPE_CHECKING:
    from privgp.models.function.estimator import PrivateFunction


def fit_outputs(
    function: PrivateFunction, X: Any, y: Any, tried: PrivateFunction, seed: int | None
) -> OutputsContents:
    """A function that has not been asked yet. Outputs go to the vault.

    ``tried`` is told the names of the columns.
    """
    X = validate_data(tried, X, dtype=np.float64) + 0.0  # no negative zeros
    y = checked_outputs(y, len(X))
    asked = asked_of(function)
    if function.domain is not None:
        raise ValueError("domain goes with protect='records' only.")
    inputs, index = collapse(X)
    with threads_for(len(inputs)), np.errstate(all="ignore"):
        model = _model(function, inputs, np.bincount(index).astype(np.float64))
        norm = model.norm(function.sensitivity, function.dominance)
    if not (np.isfinite(norm) and norm > 0):
        raise ValueError("the sensitivity is not finite: choose other units for the kernel.")
    noise = model.noise(asked["epsilon"], asked["delta"], norm)
    draws = first_draws(y, asked["y_bounds"], index, noise, norm, seed, model.columns)
    del y
    how = "drawn where it is asked for, at most {} points"
    guarantee = promised(
        OUTPUTS,
        asked,
        draws,
        public="the inputs and the number of rows are public",
        chosen="kernel, noise variance, bounds, inducing inputs and budget were chosen without "
        "looking at the outputs",
        how=how if model.nodes is None else "in {} numbers through inducing inputs",
    )
    return OutputsContents(guarantee, names_of(tried), model, draws, norm=norm, **asked)


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
    """Inducing inputs as given, or this number of inputs, chosen by the kernel."""
    given = inducing_inputs(inducing, inputs.shape[1])
    return inputs[choose_nodes(kernel, inputs, given)] if isinstance(given, int) else given
