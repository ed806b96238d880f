"""A plan as one .plan file: a public document that can be approved before anything is spent."""

import os
from typing import Any

import numpy as np

from privgp.gp.kernels.codec import KERNELS
from privgp.plan.plan import Plan
from privgp.plan.several.plan import JointPlan
from privgp.storage.archive import (
    PLAN,
    DamagedFile,
    check_target,
    damage_of,
    pack,
    read,
    unpack,
    write,
)
from privgp.storage.codec import Codec

CODEC = Codec(Plan | JointPlan, "plan", KERNELS)


def save_plan(
    plan: Plan | JointPlan, path: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    """Write a plan that a model made. Equal plans give equal bytes."""
    if plan.made_for is None or not plan.fingerprint:
        raise ValueError("only a plan that a model made with plan(X) can be saved.")
    check_target(path, overwrite=overwrite, form=PLAN)
    write(path, pack_plan(plan), overwrite=overwrite, form=PLAN)


def pack_plan(plan: Plan | JointPlan) -> bytes:
    """The bytes of a plan's file."""
    members = CODEC.encode(plan)
    try:
        _check_plan(CODEC.decode(members))  # a file that could not be read back is never written
    except DamagedFile as problem:
        raise ValueError(f"this plan cannot be saved: {problem}.") from None
    return pack(members, PLAN)


def load_plan(path: str | os.PathLike[str]) -> Any:
    """The plan of a .plan file, which ``fit(X, y, plan=plan)`` takes like the one that was saved. A
    damaged file, or noise or weights beyond its budget, raise ``DamagedFile``, a ValueError.
    ``fit`` refuses a plan made for other rows or parameters."""
    with damage_of(path):
        return unpack_plan(read(path))


def unpack_plan(data: bytes) -> Any:
    """The plan of a file's bytes."""
    return _check_plan(CODEC.decode(unpack(data, PLAN)))


def _check_plan(plan: Plan | JointPlan) -> Plan | JointPlan:
    """The plan, if its parts belong together, with the noise that its strategy needs."""
    try:
        with np.errstate(all="ignore"):
            plan.check_parts()
            return plan.with_noise_for(plan.epsilon, plan.delta)
    except (ValueError, TypeError, AttributeError, ArithmeticError, IndexError):
        raise DamagedFile("its parts do not make a plan") from None
