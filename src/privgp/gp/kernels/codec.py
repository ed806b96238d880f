"""Kernels as trees of plain values for files, and back; readers refuse whatever is not a kernel."""

from __future__ import annotations

import math
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
from privgp.storage.codec import Leaf
from privgp.storage.fields import choice, items, number, positive, record

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


KERNELS = {Kernel: Leaf(Any, kernel_tree, kernel_from)}
