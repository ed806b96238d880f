"""Kernels as trees of plain values for files, and back; readers refuse whatever is not a kernel."""

import math
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel, Product, Sum

from privgp.gp.kernels.kind import GeneralKind
from privgp.gp.kernels.registry import NOTATIONS, notation_of
from privgp.storage.archive import DamagedFile
from privgp.storage.codec import Leaf
from privgp.storage.fields import choice, items, number, positive, record
from privgp.types import Array

DEEPEST_KERNEL = 100
BOUNDS = "kernel's bounds"
_NOTATIONS = {notation.kernel_class.__name__: notation for notation in NOTATIONS.values()}
_PAIRS: dict[str, type[Kernel]] = {"Sum": Sum, "Product": Product}


def kernel_tree(kernel: Kernel) -> dict[str, Any]:
    """A kernel as a tree of plain values for JSON; ``kernel_from`` reads it.

    Raises
    ------
    ValueError
        The kernel is of a kind that privgp does not support.

    """
    if isinstance(kernel, Sum | Product):
        parts = {"k1": kernel_tree(kernel.k1), "k2": kernel_tree(kernel.k2)}
        return {"type": type(kernel).__name__, **parts}
    notation = notation_of(kernel)
    if notation is None:
        raise ValueError(
            f"kernel {type(kernel).__name__} cannot be saved: files hold numbers and no code, so only "
            f"{', '.join(_NOTATIONS)}, and their sums and products, can be read back."
        )
    names: list[str] = []
    for parameter in notation.parameters:
        names += [parameter, f"{parameter}_bounds"]
    names += [*notation.settings, *notation.arrays]
    values = {name: _with_infinity(getattr(kernel, name)) for name in names}
    return {"type": notation.kernel_class.__name__, **values}


def kernel_from(value: Any, depth: int = 0) -> Kernel:
    """The kernel of a tree; only known types, whose values make sense.

    Parameters
    ----------
    value
        The value of JSON, trusted in nothing.
    depth
        How many sums and products it stands in.

    Raises
    ------
    DamagedFile
        It is no tree that ``kernel_tree`` writes.

    """
    if not isinstance(value, dict) or depth > DEEPEST_KERNEL:
        raise DamagedFile("its kernel is broken")
    name = choice(value.get("type"), "kernel", (*_PAIRS, *_NOTATIONS))
    if name in _PAIRS:
        record(value, "kernel", ("type", "k1", "k2"))
        return _PAIRS[name](*(kernel_from(value[k], depth + 1) for k in ("k1", "k2")))
    notation = _NOTATIONS[name]
    bounds = tuple(f"{parameter}_bounds" for parameter in notation.parameters)
    record(
        value,
        "kernel",
        ("type", *notation.parameters, *bounds, *notation.settings, *notation.arrays),
    )
    arguments: dict[str, Any] = {bound: _bounds(value[bound]) for bound in bounds}
    for parameter in notation.parameters:
        if notation.per_input and isinstance(value[parameter], list):
            scales = items(value[parameter], "lengthscales", least=1)
            arguments[parameter] = np.array([positive(scale, "lengthscale") for scale in scales])
        else:
            arguments[parameter] = positive(value[parameter], "kernel's value")
    for setting in notation.settings:
        infinite = value[setting] == "inf"
        arguments[setting] = math.inf if infinite else positive(value[setting], setting)
    for name, axes in notation.arrays.items():
        arguments[name] = _numbers(value[name], name, axes)
    kernel = notation.kernel_class(**arguments)
    if isinstance(notation, GeneralKind) and notation.arrays:
        try:
            notation.check(kernel, np.shape(kernel.places)[-1])
        except ValueError:
            raise DamagedFile("its kernel is broken") from None
    return kernel


def _numbers(value: Any, name: str, axes: int) -> Array:
    """An array of finite numbers with this many axes, one or two."""
    rows = items(value, name, least=1)
    if axes > 1:
        rows = [_numbers(row, name, axes - 1) for row in rows]
        if len({len(row) for row in rows}) != 1:
            raise DamagedFile(f"its {name} are broken")
        return np.array(rows)
    return np.array([number(each, name) for each in rows])


def _bounds(value: Any) -> Any:
    if isinstance(value, str):
        return choice(value, BOUNDS, ("fixed",))
    pairs = items(value, BOUNDS, least=1)
    return np.array([_pair(p) for p in pairs]) if isinstance(pairs[0], list) else _pair(pairs)


def _pair(value: Any) -> tuple[float, float]:
    if len(items(value, BOUNDS)) != 2:
        raise DamagedFile(f"its {BOUNDS} are not pairs")
    low, high = value
    return number(low, BOUNDS), math.inf if high == "inf" else number(high, BOUNDS)


def _with_infinity(value: Any) -> Any:
    """Numbers for JSON, which has no infinity."""
    if isinstance(value, str):
        return value
    plain = np.asarray(value, dtype=float).tolist()
    if isinstance(plain, list):
        return [_with_infinity(entry) for entry in plain]
    return "inf" if plain == math.inf else plain


KERNELS = {Kernel: Leaf(Any, kernel_tree, kernel_from)}
