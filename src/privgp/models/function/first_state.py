"""From arguments and data to the first state of a function, of private outputs or of records."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import validate_data

from privgp.gp.input_maps import collapse
from privgp.gp.kernels.noise import signal_and_noise
from privgp.gp.kernels.proved import rounding_error
from privgp.gp.smoothers import choose_nodes
from privgp.gp.threads import threads_for
from privgp.models.kept import names_of
from privgp.plan.functions.outputs import SENSITIVITIES, FunctionModel
from privgp.plan.functions.records import RECORD_SENSITIVITIES, RecordsModel
from privgp.plan.inputs.arguments import (
    check_bounds,
    check_choice,
    domain_pairs,
    inducing_inputs,
)
from privgp.privacy.budget import check_budget
from privgp.privacy.guarantee import OUTPUTS, RECORDS, Guarantee, Protected, promise
from privgp.types import Array
from privgp.vault.states.outputs import Draws, OutputsContents, first_draws
from privgp.vault.states.records import RecordDraws, RecordsContents, first_record_draws
from privgp.vault.validate import checked_inputs, checked_outputs

if TYPE_CHECKING:
    from privgp.models.function.estimator import PrivateFunction

MOST_RECORDS = 10_000


def fit_outputs(
    function: PrivateFunction, X: Any, y: Any, tried: PrivateFunction, seed: int | None
) -> OutputsContents:
    """A function of which nothing has been asked. Outputs go to the vault.

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


def records_model(function: PrivateFunction, rows: int) -> RecordsModel:
    """The public model, from the arguments and the number of records alone."""
    check_choice("sensitivity", function.sensitivity, RECORD_SENSITIVITIES)
    if function.inducing is not None or function.dominance is not None:
        raise ValueError("inducing and dominance are not available with protect='records'.")
    domain = domain_pairs("domain", function.domain)
    kernel, noise = signal_and_noise(function.kernel, function.noise_variance, len(domain))
    if not 1 <= rows <= MOST_RECORDS:
        raise ValueError(f"X must hold 1 to {MOST_RECORDS:,} records, got {rows}.")
    model = RecordsModel(kernel, noise, domain, rows)
    rounding_error(model.kernel, model.widths)  # refuses what has no proved error
    return model


def fit_records(
    function: PrivateFunction, X: Any, y: Any, tried: PrivateFunction, seed: int | None
) -> RecordsContents:
    """A function of which nothing has been asked. Inputs and outputs go to the vault.

    ``tried`` is told the names of the columns.
    """
    asked = asked_of(function)
    inputs = checked_inputs(X, len(domain_pairs("domain", function.domain)))
    y = checked_outputs(y, len(inputs))
    validate_data(tried, X, skip_check_array=True)
    model = records_model(function, len(inputs))
    norm = model.norm(function.sensitivity)
    noise = model.noise(asked["epsilon"], asked["delta"], norm)
    with threads_for(model.rows), np.errstate(all="ignore"):
        draws = first_record_draws(inputs, y, model, asked["y_bounds"], noise, seed)
    del inputs, X, y
    guarantee = promised(
        RECORDS,
        asked,
        draws,
        public="the number of records is public",
        chosen="kernel, noise variance, domain, bounds and budget were chosen without looking at the "
        "records",
        how="drawn where it is asked for, at most {} points",
    )
    return RecordsContents(guarantee, names_of(tried), model, draws, norm=norm, **asked)


def asked_of(function: PrivateFunction) -> dict[str, Any]:
    """What was asked for, checked, as every function keeps it."""
    check_budget(function.epsilon, function.delta)
    dominance = function.dominance
    return {
        "y_bounds": check_bounds("y_bounds", function.y_bounds),
        "epsilon": float(function.epsilon),
        "delta": float(function.delta),
        "sensitivity": function.sensitivity,
        "dominance": float(dominance) if isinstance(dominance, Real) else dominance,
    }


def promised(
    protected: Protected,
    asked: dict[str, Any],
    draws: Draws | RecordDraws,
    *,
    public: str,
    chosen: str,
    how: str,
) -> Guarantee:
    """What is promised of all answers together; ``how``: the function is drawn, {} for its size."""
    noise = draws.noise
    return promise(
        protected,
        [noise.event],
        epsilon=asked["epsilon"],
        delta=asked["delta"],
        assumptions=(
            public,
            chosen,
            "no draw is made twice: the state of the function is kept and never set back",
        ),
        mechanism=f"{noise.describe()} on the posterior mean as a function, "
        f"{how.format(f'{noise.size:,}')}; all answers together are covered",
        sampler=noise.sampler,
        simulated=draws.seed is not None,
    )
