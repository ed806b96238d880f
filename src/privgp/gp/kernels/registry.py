"""The kernels that privgp supports: one row each, and their sums and products."""

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from sklearn.gaussian_process.kernels import (
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    Kernel,
    Product,
    Sum,
    WhiteKernel,
)

from privgp.gp.kernels.kind import GeneralKind, KernelKind, Notation
from privgp.gp.kernels.matern import MATERN_KIND, RBF_KIND
from privgp.gp.kernels.periodic import PERIODIC
from privgp.gp.kernels.rational_quadratic import RATIONAL_QUADRATIC
from privgp.gp.kernels.varying import VARYING
from privgp.storage.archive import DamagedFile
from privgp.storage.codec import Leaf
from privgp.storage.fields import choice, items, number, positive, record
from privgp.types import Array

T = TypeVar("T")

CONSTANT = KernelKind(
    ConstantKernel,
    ("constant_value",),
    unit=None,
    profile=lambda kernel, s: np.full(s.shape, float(kernel.constant_value)),
    derivatives={"constant_value": lambda kernel, s, K: K},
    error_units=lambda kernel, widths: 0.0,
    limits=(1e-100, 1e100),
    exponential_rate=lambda kernel: 0.0,
    shortest_scale=lambda kernel: np.inf,
)
KINDS: tuple[KernelKind, ...] = (RBF_KIND, MATERN_KIND, RATIONAL_QUADRATIC, PERIODIC, CONSTANT)
# Noise is no kernel of the function, but it is written like one.
WHITE = Notation(WhiteKernel, ("noise_level",), ("variance",), {"white": {}})
DOT_PRODUCT = GeneralKind(DotProduct, ("sigma_0",), ("offset",), {"dot": {}})
ANY = GeneralKind(Kernel, ())  # a class that privgp does not know: evaluated, never in files
GENERAL: tuple[GeneralKind, ...] = (DOT_PRODUCT, VARYING)
NOTATIONS: dict[type[Kernel], Notation] = {
    kind.kernel_class: kind for kind in (*KINDS, *GENERAL, WHITE)
}
SUPPORTED = ", ".join(kind.kernel_class.__name__ for kind in KINDS)


def notation_of(kernel: Any) -> Notation | None:
    """The row of a kernel, or of the nearest class it was derived from and has its values from."""
    given = type(kernel)
    known = next((c for c in given.__mro__ if c in NOTATIONS), None)
    if known is None or (given.__call__, given.diag) != (known.__call__, known.diag):
        return None
    return NOTATIONS[known]


def row_of(kernel: object) -> KernelKind | GeneralKind:
    """How one leaf of a kernel is evaluated.

    Raises
    ------
    ValueError
        It is no kernel of one function, or a WhiteKernel inside a product.

    """
    kind = notation_of(kernel)
    if kind is WHITE:
        raise ValueError(
            "kernel holds a WhiteKernel inside a product: put it into the top-level sum, where it "
            "becomes the noise variance, or give noise_variance."
        )
    if isinstance(kind, KernelKind | GeneralKind):
        return kind
    if not isinstance(kernel, Kernel) or isinstance(kernel, CompoundKernel):
        raise ValueError(
            f"kernel must be a kernel of scikit-learn for one function, such as RBF(5.0), got "
            f"{type(kernel).__name__}."
        )
    return ANY


def kind_of(kernel: object) -> KernelKind:
    """The mathematics of one leaf, a function of the distance whose rounding error is proved.

    Raises
    ------
    ValueError
        It is another kernel, or a WhiteKernel inside a product.

    """
    kind = row_of(kernel)
    if not isinstance(kind, KernelKind):
        raise ValueError(
            f"kernel {type(kernel).__name__} is not available here, as the error of its values is "
            f"not proved: use {SUPPORTED}, and their sums and products."
        )
    return kind


def fold(
    kernel: object,
    part: Callable[[object], T],
    add: Callable[[T, T], T],
    multiply: Callable[[T, T], T],
) -> T:
    """``part`` of every leaf, combined by ``add`` at sums and by ``multiply`` at products.

    Parameters
    ----------
    kernel
        a leaf, a sum or a product.
    part
        Function of a leaf.
    add, multiply
        Functions of two results, left and right.

    """
    if not isinstance(kernel, Sum | Product):
        return part(kernel)
    left, right = (fold(k, part, add, multiply) for k in (kernel.k1, kernel.k2))
    return add(left, right) if isinstance(kernel, Sum) else multiply(left, right)


def parts(kernel: Any, operations: Any = Sum | Product) -> list[Any]:
    """The leaves of the tree; the terms of a nested sum; or the factors of a nested product.

    Parameters
    ----------
    kernel
        a leaf, a sum or a product.
    operations
        The classes to take apart: sums and products by default.

    """
    if not isinstance(kernel, operations):
        return [kernel]
    return parts(kernel.k1, operations) + parts(kernel.k2, operations)


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


def kernel_from(value: object, depth: int = 0) -> Kernel:
    """The kernel of a tree; only known types, whose values make sense.

    Parameters
    ----------
    value
        The value of JSON, trusted in nothing.
    depth
        How many sums and products contain it.

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
    arguments: dict[str, object] = {bound: _bounds(value[bound]) for bound in bounds}
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


def _numbers(value: object, name: str, axes: int) -> Array:
    """An array of finite numbers with this many axes, one or two."""
    rows = items(value, name, least=1)
    if axes > 1:
        rows = [_numbers(row, name, axes - 1) for row in rows]
        if len({len(row) for row in rows}) != 1:
            raise DamagedFile(f"its {name} are broken")
        return np.array(rows)
    return np.array([number(each, name) for each in rows])


def _bounds(value: object) -> Any:
    if isinstance(value, str):
        return choice(value, BOUNDS, ("fixed",))
    pairs = items(value, BOUNDS, least=1)
    return np.array([_pair(p) for p in pairs]) if isinstance(pairs[0], list) else _pair(pairs)


def _pair(value: Any) -> tuple[float, float]:
    if len(items(value, BOUNDS)) != 2:
        raise DamagedFile(f"its {BOUNDS} are not pairs")
    low, high = value
    return number(low, BOUNDS), math.inf if high == "inf" else number(high, BOUNDS)


def _with_infinity(value: object) -> Any:
    """Numbers for JSON, which has no infinity."""
    if isinstance(value, str):
        return value
    plain = np.asarray(value, dtype=float).tolist()
    if isinstance(plain, list):
        return [_with_infinity(entry) for entry in plain]
    return "inf" if plain == math.inf else plain


KERNELS = {Kernel: Leaf(Any, kernel_tree, kernel_from)}
