"""Kernels as short text, such as ``100*matern52(10) + 25*rbf(5, 2) + white(4)``.

Numbers are constants: variances in squared units of the output. The text is parsed into a syntax
tree of which a few shapes are accepted; nothing is ever evaluated.
"""

from __future__ import annotations

import ast
import math
import warnings
from pathlib import Path
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

from privgp.command.errors import Refusal

LONGEST_TEXT, DEEPEST, MOST_PARTS = 1000, 20, 100
SMALLEST, LARGEST = 1e-50, 1e50
MATERN = {"exp": 0.5, "matern12": 0.5, "matern32": 1.5, "matern52": 2.5}
NAMES = "rbf, matern12 (or exp), matern32, matern52, rq, periodic and white"
SHAPES = {
    "rq": "rq(lengthscale, alpha)",
    "periodic": "periodic(lengthscale, period)",
    "white": "white(variance)",
}


def read_kernel(text: str) -> Kernel:
    """The kernel of an expression, or of a text file that holds one."""
    try:
        is_file = Path(text).is_file()
    except (OSError, ValueError):
        is_file = False
    if is_file:
        try:
            with Path(text).open(encoding="utf-8") as file:
                text = file.read(LONGEST_TEXT + 1)
        except (OSError, ValueError):
            raise Refusal(f"The kernel file '{text}' cannot be read as text.") from None
    return parse_kernel(text)


def parse_kernel(text: str) -> Kernel:
    """Text to kernel; sums, products, parentheses, positive numbers and the names above."""
    # Joined lines would fall under the first comment, so comments go first.
    text = " ".join(" ".join(line.partition("#")[0] for line in text.splitlines()).split())
    if not text:
        raise Refusal("--kernel is empty: write for example '100*matern52(10) + white(4)'.")
    if len(text) > LONGEST_TEXT:
        raise Refusal(f"--kernel is longer than {LONGEST_TEXT} characters.")
    if _depth(text) > DEEPEST:
        raise Refusal(f"--kernel is nested more than {DEEPEST} deep.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise Refusal(
            f"--kernel '{text}' is neither a kernel, such as '100*matern52(10) + white(4)', "
            "nor a file that holds one."
        ) from None
    if sum(isinstance(node, ast.Call | ast.Constant) for node in ast.walk(tree)) > MOST_PARTS:
        raise Refusal(f"--kernel has more than {MOST_PARTS} kernels and numbers.")
    return _as_kernel(_walk(tree.body))


def write_kernel(kernel: Kernel, figures: int | None = None) -> str:
    """Kernel to text, which reads back as an equal kernel; for show, to this many ``figures``."""

    def number(value: float) -> str:
        shown = repr(float(value)) if figures is None else f"{float(value):.{figures}g}"
        return shown.removesuffix(".0")

    def grouped(part: Kernel, kinds: Any) -> str:
        text = write_kernel(part, figures)
        return f"({text})" if isinstance(part, kinds) else text

    if isinstance(kernel, Sum):
        return f"{write_kernel(kernel.k1, figures)} + {grouped(kernel.k2, Sum)}"
    if isinstance(kernel, Product):
        return f"{grouped(kernel.k1, Sum)}*{grouped(kernel.k2, Sum | Product)}"
    if isinstance(kernel, ConstantKernel):
        return number(kernel.constant_value)
    if isinstance(kernel, WhiteKernel):
        return f"white({number(kernel.noise_level)})"
    if isinstance(kernel, RationalQuadratic):
        return f"rq({number(kernel.length_scale)}, {number(kernel.alpha)})"
    if isinstance(kernel, ExpSineSquared):
        return f"periodic({number(kernel.length_scale)}, {number(kernel.periodicity)})"
    if isinstance(kernel, RBF):
        name = "rbf"
        if isinstance(kernel, Matern):
            name = {nu: name for name, nu in MATERN.items()}.get(kernel.nu, "")
        if name:
            return f"{name}({', '.join(number(scale) for scale in np.ravel(kernel.length_scale))})"
    return str(kernel)


def _walk(node: ast.expr) -> Kernel | float:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return Sum(_as_kernel(_walk(node.left)), _as_kernel(_walk(node.right)))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _product(_walk(node.left), _walk(node.right))
    if isinstance(node, ast.Constant):
        return _positive(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _call(node, node.func.id)
    if isinstance(node, ast.Name):
        raise Refusal(f"--kernel: '{node.id}' needs parentheses and numbers, such as rbf(5).")
    raise Refusal(
        "--kernel may hold sums, products, parentheses, positive numbers and the kernels "
        f"{NAMES}, and nothing else."
    )


def _product(left: Kernel | float, right: Kernel | float) -> Kernel | float:
    if isinstance(left, float) and isinstance(right, float):
        return _sized(left * right)
    for number, kernel in ((left, right), (right, left)):
        # A scaled noise is a noise: left as a product it would not be recognised as one.
        if isinstance(number, float) and isinstance(kernel, WhiteKernel):
            return WhiteKernel(_sized(number * kernel.noise_level))
    return Product(_as_kernel(left), _as_kernel(right))


def _call(node: ast.Call, name: str) -> Kernel:
    if name not in SHAPES and name != "rbf" and name not in MATERN:
        raise Refusal(f"--kernel: '{name}' is unknown; the kernels are {NAMES}.")
    arguments: list[ast.expr] = list(node.args)
    listed = len(arguments) == 1 and isinstance(arguments[0], ast.List)
    if listed and isinstance(arguments[0], ast.List) and name not in SHAPES:
        arguments = list(arguments[0].elts)
    shape = SHAPES.get(name, f"{name}(lengthscale) or {name}(lengthscale, lengthscale, ...)")
    count = shape.count(",") + 1 if name in SHAPES else max(1, len(arguments))
    if node.keywords or len(arguments) != count:
        raise Refusal(f"--kernel: write {shape}.")
    if any(not isinstance(argument, ast.Constant) for argument in arguments):
        raise Refusal(f"--kernel: write {shape} with positive numbers.")
    values = [_positive(argument) for argument in arguments]
    if name == "white":
        return WhiteKernel(values[0])
    if name == "rq":
        return RationalQuadratic(values[0], values[1])
    if name == "periodic":
        return ExpSineSquared(values[0], values[1])
    scale = values if len(values) > 1 else values[0]
    return RBF(scale) if name == "rbf" else Matern(scale, nu=MATERN[name])


def _positive(node: ast.expr) -> float:
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Refusal("--kernel: only numbers and kernels may be added and multiplied.")
    try:
        return _sized(float(value))
    except OverflowError:
        return _sized(math.inf)


def _sized(value: float) -> float:
    if not SMALLEST <= value <= LARGEST:
        raise Refusal(f"--kernel: numbers must be positive, between {SMALLEST:g} and {LARGEST:g}.")
    return value


def _as_kernel(part: Kernel | float) -> Kernel:
    return ConstantKernel(part) if isinstance(part, float) else part


def _depth(text: str) -> int:
    deepest = depth = 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    return deepest
