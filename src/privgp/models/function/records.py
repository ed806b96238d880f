"""A function of private records: its arguments, its first state, and what it promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import validate_data

from privgp.gp.kernels.proved import careful_error
from privgp.gp.threads import threads_for
from privgp.models.function.common import kernel_and_noise
from privgp.plan.functions.records import RECORD_SENSITIVITIES, RecordsModel
from privgp.plan.inputs.arguments import check_bounds, check_choice
from privgp.privacy.budget import check_budget
from privgp.privacy.guarantee import RECORDS_NEIGHBOURS, RECORDS_UNIT, SIMULATED_SAMPLER, Guarantee
from privgp.privacy.lattice import LATTICE_SAMPLER
from privgp.vault.states.records import RecordsContents, first_record_draws
from privgp.vault.validate import checked_inputs, checked_outputs

if TYPE_CHECKING:
    from privgp.models.function.estimator import PrivateFunction

MOST_RECORDS = 10_000


def declared_domain(domain: Any) -> tuple[tuple[float, float], ...]:
    """One (low, high) per input."""
    if domain is None:
        raise ValueError(
            "domain must be given as (low, high), one pair per input: with protect='records' it is "
            "declared, never read from the data."
        )
    try:
        pairs = np.asarray(domain, dtype=float)
    except (TypeError, ValueError):
        raise ValueError("domain must be (low, high), or one such pair per input.") from None
    pairs = pairs[None, :] if pairs.shape == (2,) else pairs
    if pairs.ndim != 2 or pairs.shape[1] != 2 or len(pairs) == 0:
        raise ValueError("domain must be (low, high), or one such pair per input.")
    return tuple(check_bounds("domain", pair) for pair in pairs)


def records_model(function: PrivateFunction, rows: int) -> RecordsModel:
    """The public model, from the arguments and the number of records alone."""
    check_choice("sensitivity", function.sensitivity, RECORD_SENSITIVITIES)
    if function.inducing is not None or function.dominance is not None:
        raise ValueError("inducing and dominance are not available with protect='records'.")
    domain = declared_domain(function.domain)
    kernel, noise = kernel_and_noise(function.kernel, function.noise_variance, len(domain))
    if not 1 <= rows <= MOST_RECORDS:
        raise ValueError(f"X must hold 1 to {MOST_RECORDS:,} records, got {rows}.")
    model = RecordsModel(kernel, noise, domain, rows)
    careful_error(model.kernel, model.widths)  # refuses what has no proved error
    return model


def fit_records(
    function: PrivateFunction, X: Any, y: Any, columns: PrivateFunction, seed: int | None
) -> RecordsContents:
    """A function of which nothing has been asked. Inputs and outputs go to the vault.

    ``columns`` is told the names of the columns.
    """
    check_budget(function.epsilon, function.delta)
    epsilon, delta = float(function.epsilon), float(function.delta)
    bounds = check_bounds("y_bounds", function.y_bounds)
    inputs = checked_inputs(X, len(declared_domain(function.domain)))
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
    return RecordsContents(
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
            sampler=LATTICE_SAMPLER if seed is None else SIMULATED_SAMPLER,
            noise_multipliers=(noise.multiplier,),
            delta_slack=noise.delta_slack,
        ),
        names=None if names is None else tuple(str(name) for name in names),
        draws=draws,
    )
