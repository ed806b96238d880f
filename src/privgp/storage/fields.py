"""Values of a file that nobody vouches for, turned into checked ones, and back.

Every reader takes what was found and what it is called, and returns it as the type it should have
or raises ``DamagedFile``.
"""

from __future__ import annotations

import io
import math
from collections.abc import Collection
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    ExpSineSquared,
    Kernel,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
    WhiteKernel,
)

from privgp.storage.archive import DamagedFile
from privgp.types import Array

LONGEST_TEXT = 2**20
MOST_ITEMS = 10_000
DEEPEST_KERNEL = 100

# Matern is an RBF to Python, so it comes first.
_KERNELS: dict[str, tuple[type[Kernel], tuple[str, ...]]] = {
    "Matern": (Matern, ("length_scale",)),
    "RBF": (RBF, ("length_scale",)),
    "RationalQuadratic": (RationalQuadratic, ("length_scale", "alpha")),
    "ExpSineSquared": (ExpSineSquared, ("length_scale", "periodicity")),
    "ConstantKernel": (ConstantKernel, ("constant_value",)),
    "WhiteKernel": (WhiteKernel, ("noise_level",)),
}
_PAIRS: dict[str, type[Kernel]] = {"Sum": Sum, "Product": Product}


def record(value: Any, what: str, names: Collection[str]) -> dict[str, Any]:
    """An object with exactly these names."""
    if not isinstance(value, dict) or {*value} != {*names}:
        raise DamagedFile(f"its {what} does not have the parts it should")
    return value


def items(value: Any, what: str, *, least: int = 0) -> list[Any]:
    if not isinstance(value, list) or not least <= len(value) <= MOST_ITEMS:
        raise DamagedFile(f"its {what} is not a list of the right length")
    return value


def text(value: Any, what: str) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        raise DamagedFile(f"its {what} is not a text")
    return value


def choice(value: Any, what: str, choices: Collection[str]) -> str:
    if text(value, what) not in choices:
        raise DamagedFile(f"its {what} is none of the known ones")
    return str(value)


def number(value: Any, what: str, low: float = -math.inf, high: float = math.inf) -> float:
    """A finite number in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DamagedFile(f"its {what} is not a number")
    try:
        result = float(value)
    except OverflowError:
        raise DamagedFile(f"its {what} is out of range") from None
    if not math.isfinite(result) or not low <= result <= high:
        raise DamagedFile(f"its {what} is out of range")
    return result


def positive(value: Any, what: str, high: float = math.inf) -> float:
    if number(value, what, 0.0, high) == 0.0:
        raise DamagedFile(f"its {what} is out of range")
    return float(value)


def whole(value: Any, what: str, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise DamagedFile(f"its {what} is not a whole number in range")
    return value


def array_bytes(values: Array) -> bytes:
    """The format of ``numpy.save``, version 1, C order, little-endian float64."""
    buffer = io.BytesIO()
    plain = np.array(values, dtype="<f8", order="C")
    np.lib.format.write_array(buffer, plain, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def array(data: bytes, what: str, shape: tuple[int | None, ...]) -> Array:
    """A finite float64 array of this shape; None stands for any length."""
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        found, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
        plain = version == (1, 0) and not fortran and dtype == np.dtype("<f8")
    except Exception:  # the header is a Python literal: whatever its parser trips over
        raise DamagedFile(f"its array {what} is broken") from None
    if not plain or len(data) - stream.tell() != 8 * math.prod(found):
        raise DamagedFile(f"its array {what} is broken")
    if len(found) != len(shape) or any(
        want is not None and got != want for got, want in zip(found, shape, strict=True)
    ):
        raise DamagedFile(f"its array {what} has a wrong shape")
    # A copy, so that the array is aligned and laid out like any other.
    values = np.frombuffer(data, "<f8", offset=stream.tell()).reshape(found)
    result = np.array(values, dtype=np.float64, order="C")
    if not np.all(np.isfinite(result)):
        raise DamagedFile(f"its array {what} holds NaN or infinity")
    return result


def kernel_tree(kernel: Kernel) -> dict[str, Any]:
    """A kernel as type, values and bounds."""
    for name, pair in _PAIRS.items():
        if isinstance(kernel, pair):
            return {"type": name, "k1": kernel_tree(kernel.k1), "k2": kernel_tree(kernel.k2)}
    for name, (kind, parameters) in _KERNELS.items():
        if isinstance(kernel, kind):
            tree: dict[str, Any] = {"type": name}
            given = kernel.get_params()
            for parameter in parameters:
                tree[parameter] = np.asarray(given[parameter], dtype=float).tolist()
                bounds = given[f"{parameter}_bounds"]
                tree[f"{parameter}_bounds"] = _with_infinity(bounds)
            return {**tree, "nu": _with_infinity(kernel.nu)} if kind is Matern else tree
    raise ValueError(f"kernel {type(kernel).__name__} cannot be saved.")


def kernel_from(value: Any, depth: int = 0) -> Kernel:
    """The kernel of a tree; only known types, whose values make sense."""
    if not isinstance(value, dict) or depth > DEEPEST_KERNEL:
        raise DamagedFile("its kernel is broken")
    name = choice(value.get("type"), "kernel", (*_PAIRS, *_KERNELS))
    if name in _PAIRS:
        record(value, "kernel", ("type", "k1", "k2"))
        return _PAIRS[name](*(kernel_from(value[k], depth + 1) for k in ("k1", "k2")))
    kind, parameters = _KERNELS[name]
    names = [*parameters, *(f"{parameter}_bounds" for parameter in parameters)]
    record(value, "kernel", ("type", *names, *(("nu",) if kind is Matern else ())))
    arguments: dict[str, Any] = {}
    for parameter in parameters:
        found = value[parameter]
        if isinstance(found, list) and kind in (RBF, Matern):
            arguments[parameter] = np.array(
                [positive(v, "lengthscale") for v in items(found, "lengthscales", least=1)]
            )
        else:
            arguments[parameter] = positive(found, "kernel's value")
        arguments[f"{parameter}_bounds"] = _bounds(value[f"{parameter}_bounds"])
    if kind is Matern:
        nu = value["nu"]
        arguments["nu"] = math.inf if nu == "inf" else positive(nu, "nu")
    return kind(**arguments)


def _bounds(value: Any) -> Any:
    if isinstance(value, str):
        return choice(value, "kernel's bounds", ("fixed",))
    pairs = items(value, "kernel's bounds", least=1)
    if isinstance(pairs[0], list):
        return np.array([_pair(pair) for pair in pairs])
    return _pair(pairs)


def _pair(value: Any) -> tuple[float, float]:
    if len(items(value, "kernel's bounds")) != 2:
        raise DamagedFile("its kernel's bounds are not pairs")
    low, high = value
    what = "kernel's bounds"
    return number(low, what), math.inf if high == "inf" else number(high, what)


def _with_infinity(value: Any) -> Any:
    """Numbers for JSON, which has no infinity."""
    if isinstance(value, str):
        return value
    plain = np.asarray(value, dtype=float).tolist()
    if isinstance(plain, list):
        return [_with_infinity(entry) for entry in plain]
    return "inf" if plain == math.inf else plain
