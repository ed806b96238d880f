"""Values of a file that nobody vouches for, turned into checked ones, and back. Readers take what
was found and its name, and return it as the type it should be, or raise ``DamagedFile``."""

import io
import math
import sys
from collections.abc import Collection
from typing import Any

import numpy as np

from privgp.storage.archive import DamagedFile, require
from privgp.types import Array

LONGEST_TEXT = 2**20
MOST_ITEMS = 10_000


def record(value: object, what: str, names: Collection[str]) -> dict[str, Any]:
    """An object with exactly these names."""
    if not isinstance(value, dict) or {*value} != {*names}:
        raise DamagedFile(f"its {what} does not have the parts it should")
    return value


def items(value: object, what: str, *, least: int = 0) -> list[Any]:
    """A list of at least ``least`` and at most 10,000 entries."""
    if not isinstance(value, list) or not least <= len(value) <= MOST_ITEMS:
        raise DamagedFile(f"its {what} is not a list of the right length")
    return value


def text(value: object, what: str) -> str:
    """A text of at most 2^20 characters."""
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        raise DamagedFile(f"its {what} is not a text")
    return value


def choice(value: object, what: str, choices: Collection[str]) -> str:
    """One of these texts."""
    if text(value, what) not in choices:
        raise DamagedFile(f"its {what} is none of the known ones")
    return str(value)


def number(value: object, what: str, low: float = -math.inf, high: float = math.inf) -> float:
    """A finite number in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DamagedFile(f"its {what} is not a number")
    if not (abs(value) <= sys.float_info.max and low <= value <= high):  # an int may be larger
        raise DamagedFile(f"its {what} is out of range")
    return float(value)


def positive(value: object, what: str) -> float:
    """A finite number above 0."""
    return number(value, what, math.ulp(0.0))


def whole(value: object, what: str, low: float, high: float) -> int:
    """A whole number in [low, high]; 1.0 is none."""
    if type(value) is not int or not low <= value <= high:
        raise DamagedFile(f"its {what} is not a whole number in range")
    return value


def array_bytes(values: Array) -> bytes:
    """An array in the format of ``numpy.save``, version 1, C order, little-endian float64."""
    buffer = io.BytesIO()
    plain = np.array(values, dtype="<f8", order="C")
    np.lib.format.write_array(buffer, plain, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def array(data: bytes, what: str, dimensions: int | None) -> Array:
    """A finite float64 array from the bytes of ``array_bytes``.

    Parameters
    ----------
    data
        Trusted in nothing.
    what
        Its name in an error.
    dimensions
        How many it must have; None stands for any number.

    """
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
        plain = version == (1, 0) and not fortran and dtype == np.dtype("<f8")
    except Exception:  # the header is a Python literal: whatever its parser trips over
        raise DamagedFile(f"its array {what} is broken") from None
    if not plain or len(data) - stream.tell() != 8 * math.prod(shape):
        raise DamagedFile(f"its array {what} is broken")
    require(dimensions in (None, len(shape)), f"its array {what} has a wrong shape")
    # A copy, so that the array is aligned and laid out like any other.
    values = np.frombuffer(data, "<f8", offset=stream.tell()).reshape(shape)
    result = np.array(values, dtype=np.float64, order="C")
    require(bool(np.all(np.isfinite(result))), f"its array {what} holds NaN or infinity")
    return result
