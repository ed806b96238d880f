"""Kernels as trees of sums and products: how what holds of the parts combines for the whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sklearn.gaussian_process.kernels import Kernel, Product, Sum

T = TypeVar("T")


def fold(
    kernel: Any, part: Callable[[Any], T], add: Callable[[T, T], T], multiply: Callable[[T, T], T]
) -> T:
    """``part`` of every leaf, combined by ``add`` at sums and by ``multiply`` at products."""
    if not isinstance(kernel, Sum | Product):
        return part(kernel)
    left, right = (fold(k, part, add, multiply) for k in (kernel.k1, kernel.k2))
    return add(left, right) if isinstance(kernel, Sum) else multiply(left, right)


def leaves(kernel: Any) -> list[Any]:
    """All kernels of the tree that are neither sums nor products, from left to right."""
    return fold(kernel, lambda leaf: [leaf], list.__add__, list.__add__)


def operands(kernel: Any, operation: type[Kernel]) -> list[Any]:
    """The terms of a nested sum, or the factors of a nested product."""
    if not isinstance(kernel, operation):
        return [kernel]
    return operands(kernel.k1, operation) + operands(kernel.k2, operation)
