"""Save a release to one .privgp file, and load it anywhere."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import singledispatch
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from privgp.gp.threads import one_thread
from privgp.models.kept import names_of
from privgp.models.kinds.several.stored import answer_from, joint_contents
from privgp.models.tables import remember
from privgp.plan.parameters import Parameters
from privgp.release.certificate import stored
from privgp.release.file import CODEC, Contents, decode
from privgp.release.several import JointContents, OutputContents
from privgp.storage.archive import DamagedFile, check_target, damage_of, pack, read, unpack, write

__all__ = ["NOTICE", "NOTICE_INDUCING", "NOTICE_RECORDS", "DamagedFile", "load", "notice", "save"]

# Where the estimators are, which import this module's save.
ESTIMATORS = {
    "PrivateGPRegressor": "privgp.models.regressor",
    "PrivateGPClassifier": "privgp.models.classifier",
    "PrivateGP": "privgp.models.gp",
}
MOST_ENTRIES = 2**28  # of all components together, 2 GiB
PIPELINE = (
    "a file holds numbers and no code, so the steps before a model are not saved: save the last step, "
    "which takes what they make of a table, or say with columns what inputs are."
)
IF_PUBLIC = (
    "Publish it only if no column of X is private, nor computed from a private one: what stands in X "
    "is not protected."
)
NOTICE = (
    "The file contains inputs: coordinates of the rows of X, which count as public. " + IF_PUBLIC
)
NOTICE_INDUCING = (
    "The file contains inducing inputs: centres of rows of X, or as they were given, and any targets. "
    "They can be inputs of rows, which count as public. " + IF_PUBLIC
)
NOTICE_RECORDS = "The file contains noisy sums of the records, and what was declared, such as bounds and targets."


def save(model: Any, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write what a fitted model released to one file that anybody may have; see ``notice``. Equal
    models give equal bytes. The file appears whole or not at all."""
    if hasattr(model, "steps"):
        raise ValueError(PIPELINE)
    check_is_fitted(model)
    check_target(path, overwrite=overwrite)
    write(path, packed(model), overwrite=overwrite)


def packed(model: Any) -> bytes:
    """The bytes of a fitted model's file."""
    members = CODEC.encode(_contents_of(model))
    try:
        decode(members)  # a file that could not be read back is never written
    except DamagedFile as problem:
        raise ValueError(f"this model cannot be saved: {problem}.") from None
    return pack(members)


def load(path: str | os.PathLike[str]) -> Any:
    """The model of a .privgp file; it predicts to the last bit as the model that was saved, and has
    ``plan_summary_`` instead of ``plan_``. A damaged file, or one that needs a newer privgp, raises
    ``DamagedFile``, a ValueError. The hashes inside detect damage, not forgery: trust a file
    as far as the place it came from."""
    with damage_of(path):
        return unpacked(read(path))


def unpacked(content: bytes) -> Any:
    """The model of a file's bytes."""
    return _model_from(decode(unpack(content)))


def notice(model: Any) -> str:
    """What a file of this model holds of X."""
    if model.protect == "records":
        return NOTICE_RECORDS
    made = vars(model).get("plan_")  # past some rows, inducing inputs are taken unasked
    streamed = made is not None and made.strategy.distinct_inputs is None
    return NOTICE_INDUCING if streamed or vars(model).get("inducing") is not None else NOTICE


def _contents_of(model: Any) -> Contents | JointContents:
    loaded: Contents | JointContents | None = vars(model).get("loaded_")
    if loaded is not None:
        return loaded
    if model._each:
        return joint_contents(model)
    plan, epsilon = model.plan_, model._asked.epsilon
    if len(model._spent) < 2:
        # The epsilon of the whole, should part of it have been spent on a choice of hyperparameters.
        epsilon = model.guarantee_.epsilon
    parts = {
        "parameters": replace(
            model._asked, epsilon=epsilon, x_bounds=plan.x_bounds or model._asked.x_bounds
        ),
        "columns": int(model.functionals_.nodes.shape[1]),
        "names": names_of(model),
        "guarantee": model.guarantee_,
        "functionals": model.functionals_,
        "plan_summary": model.plan_summary_,
        "certificate": stored(model),
    }
    contents: Contents = model._contents(parts)
    return contents


def estimator_for(parameters: Parameters) -> Any:
    """An estimator with these parameters, of the kind that they are for."""
    home = import_module(ESTIMATORS[parameters.estimator])
    return getattr(home, parameters.estimator)(**parameters.arguments())


@singledispatch
def _model_from(contents: Any) -> Any:
    c: Contents = contents
    model = estimator_for(c.parameters)
    model._asked, model.inputs_ = c.parameters, c.parameters.columns
    remember(model, c.names, c.columns)
    model.guarantee_ = c.guarantee
    model.functionals_ = c.functionals
    answered(model, c)
    model.released_at_ = c.certificate["date"]
    model.output_ = c.certificate.get("output")
    model.loaded_ = c
    return model


@_model_from.register(JointContents)
def _(contents: JointContents) -> Any:
    model = estimator_for(contents.parameters)
    answer_from(model, contents, answered)
    return model


def answered(model: Any, c: Contents | OutputContents) -> None:
    """Let a model answer by what a file holds, or refuse that."""
    if len(c.models) * c.functionals.weights.size > MOST_ENTRIES:
        raise DamagedFile("it is larger than any release")
    try:
        with one_thread(), np.errstate(all="ignore"):
            model._answer_from(c)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError):
        raise DamagedFile("its numbers do not make a posterior") from None
    if c.at_targets is None:
        held = model.release_.components
        if not all(np.all(np.isfinite(p)) for c in held for p in (c.mean_weights, c.half)):
            raise DamagedFile("its numbers do not make a posterior")
