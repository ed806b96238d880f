"""One SHA-256 of public values of any kind: numbers, text, arrays, kernels, dataclasses."""

import hashlib
from dataclasses import Field, fields, is_dataclass
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from privgp.types import Array


def fingerprint(*values: object) -> str:
    """Equal for equal values: ``1`` is ``1.0``, and a list of numbers is the array of them."""
    digest = hashlib.sha256(b"privgp values 1")
    _add(digest, values)
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    """Every value with its kind and length, so that none can be mistaken for another."""
    if isinstance(value, Kernel):
        value = [type(value).__name__, value.get_params(deep=False)]
    elif is_dataclass(value):
        value = {
            each.name: getattr(value, each.name)
            for each in fields(value)
            if _counts_for_hash(value, each)
        }
    if isinstance(value, dict):
        value = [part for name in sorted(value) for part in (name, value[name])]
    if value is None or isinstance(value, bool | str):
        digest.update(f"{type(value).__name__} {len(str(value))} {value}".encode())
        return
    numbers = _numbers(value)
    if numbers is not None:
        digest.update(f"numbers {numbers.shape}".encode())
        digest.update(numbers.tobytes())
        return
    digest.update(f"parts {len(value)}".encode())
    for part in value:
        _add(digest, part)


def _counts_for_hash(value: object, each: Field[object]) -> bool:
    """Whether a field counts: one that came later does not while it is None, or the number or text
    that it is by default, so that fingerprints of older versions stay what they were."""
    held = getattr(value, each.name)
    plain = isinstance(held, str | float) or each.metadata.get("silent", False)
    usual = held is None or (plain and held == each.default)
    return "later" not in each.metadata or not usual


def _numbers(value: Any) -> Array | None:
    """An array, a number or sequences of numbers as an array; None for anything else."""
    try:
        array = np.asarray(value)
    except ValueError:  # sequences of several lengths
        return None
    return np.array(array, dtype="<f8", order="C") if array.dtype.kind in "fiu" else None
