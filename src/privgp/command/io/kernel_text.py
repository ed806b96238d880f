"""Kernels as short text, such as ``100*matern52(10) + 25*rbf(5, 2) + white(4)``. Numbers are
variances in squared units of the output. The text is parsed into a syntax tree of which a few
shapes are accepted; nothing is ever evaluated."""

import ast
import math
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
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

from privgp.command.errors import Refusal, refuse_on
from privgp.gp.kernels.evaluate import split_noise
from privgp.gp.kernels.registry import NOTATIONS, fold, notation_of, parts
from privgp.plan.build import SIGNAL_SHARE

LONGEST_TEXT, MOST_PARTS = 1000, 100
SMALLEST, LARGEST = 1e-50, 1e50
NAMES = {name: (row, given) for row in NOTATIONS.values() for name, given in row.names.items()}
LISTED = f"{', '.join([*NAMES][:-1])} and {[*NAMES][-1]}"


def read_kernel(text: str) -> Kernel:
    if os.path.isfile(text):  # False for what cannot be a path
        sentence = f"The kernel file '{text}' cannot be read as text."
        with refuse_on(sentence, OSError, ValueError), Path(text).open(encoding="utf-8") as file:
            text = file.read(LONGEST_TEXT + 1)
    return parse_kernel(text)


def parse_kernel(text: str) -> Kernel:
    """Text to kernel; sums, products, parentheses, positive numbers and the names above."""
    # Joined lines would fall under the first comment, so comments go first.
    text = " ".join(" ".join(line.partition("#")[0] for line in text.splitlines()).split())
    if not text:
        raise Refusal("--kernel is empty: write for example '100*matern52(10) + white(4)'.")
    if len(text) > LONGEST_TEXT:
        raise Refusal(f"--kernel is longer than {LONGEST_TEXT} characters.")
    sentence = (
        f"--kernel '{text}' is neither a kernel, such as '100*matern52(10) + white(4)', nor a file "
        "that holds one."
    )
    with (
        refuse_on(sentence, SyntaxError, ValueError, RecursionError, MemoryError),
        warnings.catch_warnings(action="ignore"),
    ):
        tree = ast.parse(text, mode="eval")
    if sum(isinstance(node, ast.Call | ast.Constant) for node in ast.walk(tree)) > MOST_PARTS:
        raise Refusal(f"--kernel has more than {MOST_PARTS} kernels and numbers.")
    return _walk(tree.body)


def write_kernel(kernel: Kernel, figures: int | None = None) -> str:
    """Kernel to text, which reads back as an equal kernel; for show, to this many ``figures``."""

    def number(value: float) -> str:
        shown = repr(float(value)) if figures is None else f"{float(value):.{figures}g}"
        return shown.removesuffix(".0")

    def leaf(part: Kernel) -> tuple[str, str]:
        if isinstance(part, ConstantKernel):
            return number(part.constant_value), ""
        for name, (notation, settings) in NAMES.items():
            if notation is notation_of(part) and all(
                getattr(part, setting) == value for setting, value in settings.items()
            ):
                values = np.hstack([np.ravel(getattr(part, each)) for each in notation.parameters])
                return f"{name}({', '.join(map(number, values))})", ""
        return str(part), ""

    def add_brackets(part: tuple[str, str], operations: str) -> str:
        text, operation = part
        return f"({text})" if operation and operation in operations else text

    # pairs of a text and its outermost operation
    text, _ = fold(
        kernel,
        leaf,
        lambda left, right: (f"{left[0]} + {add_brackets(right, '+')}", "+"),
        lambda left, right: (f"{add_brackets(left, '+')}*{add_brackets(right, '+*')}", "*"),
    )
    return text


def _walk(node: ast.expr) -> Kernel:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return Sum(_walk(node.left), _walk(node.right))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _product(_walk(node.left), _walk(node.right))
    if isinstance(node, ast.Constant):
        return ConstantKernel(_positive(node))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _call(node, node.func.id)
    if isinstance(node, ast.Name):
        raise Refusal(f"--kernel: '{node.id}' needs parentheses and numbers, such as rbf(5).")
    raise Refusal(
        "--kernel may hold sums, products, parentheses, positive numbers and the kernels "
        f"{LISTED}, and nothing else."
    )


def _product(left: Kernel, right: Kernel) -> Kernel:
    """A scaled number is a number, and a scaled noise is a noise: as a product it would not be."""
    for number, other in ((left, right), (right, left)):
        if isinstance(number, ConstantKernel) and isinstance(other, ConstantKernel | WhiteKernel):
            value = getattr(other, NOTATIONS[type(other)].parameters[0])
            return type(other)(_check_size(number.constant_value * value))
    return Product(left, right)


def _call(node: ast.Call, name: str) -> Kernel:
    if name not in NAMES:
        raise Refusal(f"--kernel: '{name}' is unknown; the kernels are {LISTED}.")
    notation, settings = NAMES[name]
    arguments: list[ast.expr] = list(node.args)
    shape = f"{name}({', '.join(notation.words)})"
    count = len(notation.parameters)
    if notation.per_input:
        shape += f" or {name}(lengthscale, lengthscale, ...)"
        if len(arguments) == 1 and isinstance(arguments[0], ast.List):
            arguments = list(arguments[0].elts)
        count = max(1, len(arguments))
    if node.keywords or len(arguments) != count:
        raise Refusal(f"--kernel: write {shape}.")
    if any(not isinstance(argument, ast.Constant) for argument in arguments):
        raise Refusal(f"--kernel: write {shape} with positive numbers.")
    values = [_positive(argument) for argument in arguments]
    given = values if count == len(notation.parameters) else [values]
    return notation.kernel_class(**dict(zip(notation.parameters, given, strict=True)), **settings)


def _positive(node: ast.expr) -> float:
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Refusal("--kernel: only numbers and kernels may be added and multiplied.")
    try:
        return _check_size(float(value))
    except OverflowError:
        return _check_size(math.inf)


def _check_size(value: float) -> float:
    if not SMALLEST <= value <= LARGEST:
        raise Refusal(f"--kernel: numbers must be positive, between {SMALLEST:g} and {LARGEST:g}.")
    return value


# candidates for a search

MOST_CANDIDATES = 200
SCALED = (RBF, RationalQuadratic, ExpSineSquared)


def read_candidates(
    lengthscales: str, noise_std: str | None, kernel: Kernel, columns: int
) -> dict[str, list[Any]]:
    """A grid for the regressor: one kernel per lengthscale, and the noise variances."""
    scales = [_scales(entry, columns) for entry in lengthscales.split(",")]
    candidates: dict[str, list[Any]] = {"kernel": [_with_scales(kernel, each) for each in scales]}
    if noise_std is not None:
        if split_noise(kernel)[1] is not None:
            raise Refusal("Give the noise once: as --noise-std or as white(...) in --kernel.")
        stds = [_positive_number(entry, "--noise-std") for entry in noise_std.split(",")]
        candidates["noise_variance"] = [std**2 for std in stds]
    if math.prod(len(values) for values in candidates.values()) > MOST_CANDIDATES:
        raise Refusal(f"There are more than {MOST_CANDIDATES} candidates: name fewer.")
    return candidates


def default_kernel(bounds: tuple[float, float]) -> Kernel:
    """As without a kernel: Matern 5/2 about an unknown constant, both of std d/4."""
    signal = (SIGNAL_SHARE * (bounds[1] - bounds[0])) ** 2
    return ConstantKernel(signal) * Matern(1.0, nu=2.5) + ConstantKernel(signal)


def find_scale_part(kernel: Kernel) -> Any:
    scaled = [part for part in parts(kernel) if isinstance(part, SCALED)]
    if len(scaled) != 1:
        raise Refusal(f"--kernel must have one part with a lengthscale, not {len(scaled)}.")
    return scaled[0]


def _with_scales(kernel: Kernel, scales: list[float]) -> Kernel:
    changed = clone(kernel)
    part = find_scale_part(changed)
    if len(scales) > 1 and not isinstance(part, RBF):
        raise Refusal("--lengthscales: rq and periodic have one lengthscale for all inputs.")
    part.length_scale = scales[0] if len(scales) == 1 else scales
    return changed


def _scales(text: str, columns: int) -> list[float]:
    values = [_positive_number(part, "--lengthscales") for part in text.split(":")]
    if len(values) not in (1, columns):
        raise Refusal(
            f"--lengthscales: give one number, or as many as there are inputs ({columns}) joined by "
            f"colons, not {len(values)}."
        )
    return values


def _positive_number(text: str, option: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 1e-50 <= value <= 1e50:
        raise Refusal(f"{option} must be positive numbers separated by commas, such as 3,9,27.")
    return value
