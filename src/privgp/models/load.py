"""Save a release to one .privgp file, and load it anywhere."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from privgp.gp.threads import one_thread
from privgp.plan.parameters import Parameters
from privgp.release.release import CODEC, Release, decode
from privgp.storage.archive import DamagedFile, check_target, damage_of, pack, read, unpack, write

__all__ = ["NOTICE", "NOTICE_INDUCING", "NOTICE_RECORDS", "DamagedFile", "load", "notice", "save"]

# Where the estimators are, which import this module.
ESTIMATORS = {
    "PrivateGPRegressor": "privgp.models.regressor",
    "PrivateGPClassifier": "privgp.models.classifier",
    "PrivateGP": "privgp.models.gp",
    "PrivateGPDensity": "privgp.models.density.estimator",
}
MOST_ENTRIES = 2**28  # of all components together, 2 GiB
PIPELINE = (
    "a file holds numbers and no code, so the steps before a model are not saved: save the last step, "
    "which takes what they make of a table, or say with columns what inputs are."
)
IF_PUBLIC = (
    "Publish it only if no column of X is private, nor computed from a private one: what is in X "
    "is not protected."
)
NOTICE = (
    "The file contains inputs: coordinates of the rows of X, which count as public. " + IF_PUBLIC
)
NOTICE_INDUCING = (
    "The file contains inducing inputs: centres of rows of X, or as they were given, and any targets. "
    "They can be inputs of rows, which count as public. " + IF_PUBLIC
)

if TYPE_CHECKING:
    from privgp.models.published import Published
NOTICE_RECORDS = "The file contains noisy sums of the records, and what was declared, such as bounds and targets."


def save(model: Published, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write what a fitted model released to one file that anybody may have; see ``notice``. Equal
    models give equal bytes. The file appears whole or not at all."""
    if hasattr(model, "steps"):
        raise ValueError(PIPELINE)
    check_is_fitted(model)
    check_target(path, overwrite=overwrite)
    write(path, pack_model(model), overwrite=overwrite)


def pack_model(model: Published) -> bytes:
    """The bytes of a fitted model's file."""
    members = CODEC.encode(model._released.for_file())
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
        return unpack_model(read(path))


def unpack_model(content: bytes) -> Any:
    """The model of a file's bytes."""
    return model_of(decode(unpack(content)))


def notice(model: Published) -> str:
    """What a file of this model holds of X."""
    release: Release = model._released
    if not release.parameters.holds_inputs:
        return NOTICE_RECORDS
    made = vars(model).get("plan_")  # past some rows, inducing inputs are taken unasked
    streamed = made is not None and made.strategy.distinct_inputs is None
    return NOTICE_INDUCING if streamed or release.parameters.inducing is not None else NOTICE


def estimator_for(parameters: Parameters) -> Any:
    """An estimator with these parameters, of the kind that they are for."""
    home = import_module(ESTIMATORS[parameters.estimator])
    return getattr(home, parameters.estimator)(**parameters.arguments())


def model_of(release: Release) -> Any:
    """An estimator that answers by a release, which it refuses if that makes no posterior."""
    models = sum(
        len(each.models) * part.functionals.weights.size
        for part in release.parts
        for each in part.functions
    )
    if models > MOST_ENTRIES:
        raise DamagedFile("it is larger than any release")
    try:
        with one_thread(), np.errstate(all="ignore"):
            model = estimator_for(release.parameters)._hold(release)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError):
        raise DamagedFile("its numbers do not make a posterior") from None
    for answer in release.answers:
        held = getattr(answer, "components", ())
        if not all(np.all(np.isfinite(p)) for c in held for p in (c.mean_weights, c.half)):
            raise DamagedFile("its numbers do not make a posterior")
    return model
