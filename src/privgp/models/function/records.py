"""A function of private records: its arguments, its first state, and what it promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import validate_data

from privgp.gp.kernels.noise import signal_and_noise
from privgp.gp.kernels.proved import rounding_error
from privgp.gp.threads import threads_for
from privgp.plan.functions.records import RECORD_SENSITIVITIES, RecordsModel
from privgp.plan.inputs.arguments import check_bounds, check_choice, domain_pairs
from privgp.privacy.budget import check_budget
from privgp.privacy.guarantee import RECORDS_NEIGHBOURS, RECORDS_UNIT, SIMULATION, Guarantee
from privgp.privacy.lattice import LATTICE_SAMPLER
from privgp.vault.states.function_file import Contents
from privgp.vault.states.records import first_record_draws
from privgp.vault.validate import checked_inputs, checked_outputs

if TYPE_CHECKING:
    from privgp.models.function.estimator import PrivateFunction

MOST_RECORDS = 10_000


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
    function: PrivateFunction, X: Any, y: Any, columns: PrivateFunction, seed: int | None
) -> Contents:
    """A function of which nothing has been asked. Inputs and outputs go to the vault.

    ``columns`` is told the names of the columns.
    """
    check_budget(function.epsilon, function.delta)
    epsilon, delta = float(function.epsilon), float(function.delta)
    bounds = check_bounds("y_bounds", function.y_bounds)
    inputs = checked_inputs(X, len(domain_pairs("domain", function.domain)))
    y = checked_outputs(y, len(inputs))
    validate_data(columns, X, skip_check_array=True)
    model = records_model(function, len(inputs))
    norm = model.norm(function.sensitivity)
    noise = model.noise(epsilon, delta, norm)
    with threads_for(model.rows), np.errstate(all="ignore"):
        draws = first_record_draws(
            inputs, y, model.domain, bounds, model.kernel, model.noise_variance, noise, seed
        )
    del inputs, X, y
    names = getattr(columns, "feature_names_in_", None)
    return Contents(
        model=model,
        y_bounds=bounds,
        epsilon=epsilon,
        delta=delta,
        sensitivity=function.sensitivity,
        dominance=None,
        norm=norm,
        guarantee=Guarantee(
            epsilon=epsilon,
            delta=delta,
            unit=RECORDS_UNIT,
            neighbours=RECORDS_NEIGHBOURS,
            assumptions=(
                "the number of records is public",
                "kernel, noise variance, domain, bounds and budget were chosen without looking at "
                "the records",
                "no draw is made twice: the state of the function is kept and never set back",
            ),
            mechanism="one Gaussian mechanism on the posterior mean as a function, drawn where it "
            f"is asked for, at most {noise.size:,} points; all answers together are covered",
            sampler=LATTICE_SAMPLER
            if seed is None
            else f"ordinary floating-point noise: {SIMULATION}",
            noise_multipliers=(noise.multiplier,),
            delta_slack=noise.delta_slack,
        ),
        names=None if names is None else tuple(str(name) for name in names),
        draws=draws,
        points=np.empty((0, model.columns)),
        answers=np.empty(0),
    )
