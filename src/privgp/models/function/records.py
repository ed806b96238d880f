"""A function of private records: its arguments, its first state, and what it promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import validate_data

from privgp.gp.kernels.noise import signal_and_noise
from privgp.gp.kernels.proved import rounding_error
from privgp.gp.threads import threads_for
from privgp.models.function.common import asked_of, promised
from privgp.models.kept import names_of
from privgp.plan.functions.records import RECORD_SENSITIVITIES, RecordsModel
from privgp.plan.inputs.arguments import check_choice, domain_pairs
from privgp.privacy.guarantee import RECORDS
from privgp.vault.states.records import RecordsContents, first_record_draws
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
    function: PrivateFunction, X: Any, y: Any, tried: PrivateFunction, seed: int | None
) -> RecordsContents:
    """A function that has not been asked yet. Inputs and outputs go to the vault.

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
