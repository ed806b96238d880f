"""Save a release to one .privgp file, and load it anywhere."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_is_fitted

from privgp.gp.inference.posterior import Posterior
from privgp.gp.threads import one_thread
from privgp.models.counts.rates import answer_to
from privgp.models.kept import names_of
from privgp.release.certificate import certificate
from privgp.release.file import CODEC, Contents, decode
from privgp.release.rates import RatePosterior
from privgp.storage.archive import DamagedFile, check_target, pack, read, unpack, write

if TYPE_CHECKING:
    from privgp.models.regressor import PrivateGPRegressor

__all__ = ["NOTICE", "NOTICE_INDUCING", "NOTICE_RECORDS", "DamagedFile", "load", "notice", "save"]

MOST_ENTRIES = 2**28  # of all components together, 2 GiB
NOTICE = (
    "The file contains inputs: coordinates of the rows of X, which count as public. "
    "It contains no output."
)
NOTICE_INDUCING = (
    "The file contains inducing inputs: centres of rows of X, or as they were given, and any targets. "
    "They can be inputs of rows, which count as public. It contains no output."
)
NOTICE_RECORDS = "The file contains no input and no output of any record."


def save(
    model: PrivateGPRegressor, path: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    """Write what a fitted model released to one file that anybody may have; see ``notice``. Equal
    models give equal bytes. The file appears whole or not at all."""
    check_is_fitted(model)
    check_target(path, overwrite=overwrite)
    members = CODEC.encode(_contents_of(model))
    try:
        decode(members)  # a file that could not be read back is never written
    except DamagedFile as problem:
        raise ValueError(f"this model cannot be saved: {problem}.") from None
    write(path, pack(members), overwrite=overwrite)


def load(path: str | os.PathLike[str]) -> PrivateGPRegressor:
    """The model of a .privgp file; it predicts to the last bit as the model that was saved, and has
    ``plan_summary_`` instead of ``plan_``. A damaged file, or one that needs a newer privgp, raises
    ``DamagedFile``, a ValueError. The hashes inside detect damage, not forgery: trust a file
    as far as the place it came from."""
    try:
        return _model_from(decode(unpack(read(path))))
    except DamagedFile as problem:
        raise DamagedFile(f"{os.fspath(path)!r} cannot be loaded: {problem}.") from None


def notice(model: PrivateGPRegressor) -> str:
    """What a file of this model holds of X. It never holds an output."""
    if model.protect == "records":
        return NOTICE_RECORDS
    return NOTICE if model.inducing is None else NOTICE_INDUCING


def _contents_of(model: PrivateGPRegressor) -> Contents:
    loaded: Contents | None = vars(model).get("loaded_")
    if loaded is not None:
        return loaded
    if len(model.measurements_) != 1:
        raise ValueError("only a model of one measurement can be saved.")
    plan = model.plan_
    return Contents(
        # The epsilon of the whole, should part of it have been spent on a choice of hyperparameters.
        parameters=replace(
            model._asked,
            epsilon=model.guarantee_.epsilon,
            x_bounds=plan.x_bounds or model._asked.x_bounds,
        ),
        columns=int(model.n_features_in_),
        names=names_of(model),
        guarantee=model.guarantee_,
        measurement=model.measurements_[0],
        functionals=model.functionals_,
        models=model._models,
        at_targets=model._at_targets,
        noise_variance=model.noise_variance_,
        plan_summary=model.plan_summary_,
        certificate=certificate(model),
        unit_rate=plan.unit,
    )


def _model_from(contents: Contents) -> PrivateGPRegressor:
    from privgp.models.regressor import PrivateGPRegressor  # which imports this module's save

    c = contents
    model = PrivateGPRegressor(**vars(c.parameters))
    model.n_features_in_ = c.columns
    if c.names is not None:
        model.feature_names_in_ = np.array(c.names, dtype=object)
    model.guarantee_ = c.guarantee
    model.measurements_ = (c.measurement,)
    model.functionals_ = c.functionals
    model._answer_by(c.at_targets or _posterior(c), c.models, c.at_targets)
    model.noise_variance_ = c.noise_variance
    model.released_at_ = c.certificate["date"]
    model.loaded_ = c
    return model


def _posterior(c: Contents) -> Posterior | RatePosterior:
    low, high = c.parameters.y_bounds
    if len(c.models) * c.functionals.weights.size > MOST_ENTRIES:
        raise DamagedFile("it is larger than any release")
    try:
        with one_thread(), np.errstate(all="ignore"):
            centre = 0.5 * low + 0.5 * high
            result = answer_to(c.functionals, c.measurement, c.models, centre, c.unit_rate)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError):
        raise DamagedFile("its numbers do not make a posterior") from None
    parts = [part for each in result.components for part in (each.mean_weights, each.half)]
    if not all(np.all(np.isfinite(part)) for part in parts):
        raise DamagedFile("its numbers do not make a posterior")
    return result
