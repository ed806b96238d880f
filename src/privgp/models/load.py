"""Save a release to one .privgp file, and load it anywhere."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from privgp.gp.arithmetic import one_thread
from privgp.plan.parameters import Parameters
from privgp.release.release import CODEC, Release, decode
from privgp.storage.archive import DamagedFile, check_target, damage_of, pack, read, unpack, write

__all__ = ["NOTICE", "NOTICE_INDUCING", "NOTICE_RECORDS", "DamagedFile", "load", "notice", "save"]

# Where the estimators are, which import this module.
ESTIMATORS = {
    "PrivateGPRegressor": "privgp.models.regressor",
    "PrivateGPClassifier": "privgp.models.classifier",
    "PrivateGP": "privgp.models.gp",
    "PrivateGPDensity": "privgp.models.density",
}
MOST_ENTRIES = 2**28  # of all components together, 2 GiB
PIPELINE = (
    "a file holds numbers and no code, so the steps before a model are not saved: save the last step, "
    "which takes what they make of a table, or say with columns what inputs are."
)
IF_PUBLIC = (
    "Publish it only if no column of X is private or was computed from a private one: X is not "
    "protected."
)
NOTICE = "The file contains the inputs in the rows of X, which count as public. " + IF_PUBLIC
NOTICE_INDUCING = (
    "The file contains inducing inputs, which are inputs of rows or means of them, and any targets. "
    "They count as public. " + IF_PUBLIC
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
    """Load the model of a ``.privgp`` file.

    It predicts to the last bit as the model that was saved, and has ``plan_summary_`` instead of
    ``plan_``. The hashes inside detect damage, not forgery: trust a file as far as its source.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    model
        A fitted estimator of the class that was saved.

    Raises
    ------
    DamagedFile
        A ValueError: the file is damaged, or needs a newer privgp.

    """
    with damage_of(path):
        return unpack_model(read(path))


def unpack_model(content: bytes) -> Published:
    """The model of a file's bytes."""
    return model_of(decode(unpack(content)))


def notice(model: Published) -> str:
    """What a file of this model holds of X."""
    release: Release = model._released
    if not release.parameters.holds_inputs:
        return NOTICE_RECORDS
    return NOTICE_INDUCING if release.parameters.most_nodes < np.inf else NOTICE


def estimator_of(name: str, given: Mapping[str, object]) -> Published:
    """The estimator of this name, with those of the given parameters that it takes."""
    kind = getattr(import_module(ESTIMATORS[name]), name)
    taken = {each.name for each in fields(kind)}
    made: Published = kind(**{name: value for name, value in given.items() if name in taken})
    return made


def estimator_for(parameters: Parameters) -> Published:
    """An estimator with these parameters, of the kind that they are for."""
    return estimator_of(parameters.estimator, parameters.arguments())


def model_of(release: Release) -> Published:
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
            model: Published = estimator_for(release.parameters)._hold(release)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError):
        raise DamagedFile("its numbers do not make a posterior") from None
    for answer in release.answers:
        held = getattr(answer, "components", ())
        if not all(np.all(np.isfinite(p)) for c in held for p in (c.mean_weights, c.half)):
            raise DamagedFile("its numbers do not make a posterior")
    return model
