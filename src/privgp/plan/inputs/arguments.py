"""Public arguments, checked before anything is spent. Their values may appear in errors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, Self, TypeGuard

import numpy as np

from privgp.gp.priors import collapse
from privgp.question.parameters import MOST_INDUCING, Choice, Span
from privgp.types import Array, Pair, UserData

LARGEST = 1e50
MOST_OUTPUTS = 100
SMALLEST_SHARE = 1e-6  # of the largest
MOST_RATIO = 1e6  # of the largest sample weight over the least
AnyBounds = Pair | tuple[Pair, ...]


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    Choice(tuple(choices)).check(name, value)


def check_defaults(given: UserData, names: Sequence[str], where: str) -> None:
    """Refuse parameters that would be ignored, unless they have their defaults.

    Parameters
    ----------
    given : dataclass
        An estimator, whose fields are its parameters.
    names : sequence of str
        The parameters, of which the estimator may have some.
    where : str
        Where they would be ignored, such as "method='measured'".

    """
    for each in fields(given):
        value = getattr(given, each.name)
        is_default = value is each.default or (
            isinstance(value, Real | str) and value == each.default
        )
        if each.name in names and not is_default:
            raise ValueError(
                f"{each.name} does not go with {where}: leave {each.name}={each.default!r}."
            )


def check_bounds(name: str, bounds: Any) -> Pair:
    """(low, high), finite, low < high, of a width that arithmetic can hold."""
    if bounds is None:
        raise ValueError(
            f"{name} must be given as (low, high): bounds are declared, never read from the data."
        )
    try:
        low, high = (float(value) for value in bounds)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be two numbers (low, high), got {bounds!r}.") from None
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ValueError(f"{name} must be finite, got ({low}, {high}).")
    if not low < high:
        raise ValueError(f"{name} must have low < high, got ({low}, {high}).")
    most = max(abs(low), abs(high))
    if most > LARGEST or high - low < max(1.0 / LARGEST, 1e-12 * most):
        raise ValueError(f"{name} must have a width that numbers of their size resolve.")
    return low, high


def whole_number(name: str, value: Any, most: int) -> int:
    Span(1, most, whole=True).check(name, value)
    return int(value)


def domain_pairs(name: str, given: object, columns: int | None = None) -> tuple[Pair, ...]:
    """The declared domain, one (low, high) per input; one input's pair may stand alone."""
    if given is None:
        raise ValueError(
            f"{name} must be given as (low, high), one pair per input: bounds of inputs are declared, "
            "never read from the data."
        )
    wrong = f"{name} must be (low, high), or one such pair per input."
    try:
        pairs = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(wrong) from None
    pairs = pairs[None, :] if pairs.shape == (2,) else pairs
    if pairs.ndim != 2 or pairs.shape[1] != 2 or len(pairs) == 0:
        raise ValueError(wrong)
    if columns is not None and len(pairs) != columns:
        raise ValueError(f"{name} must have {columns} pairs, one per column of X.")
    return tuple(check_bounds(name, pair) for pair in pairs)


def check_inside(X: Array, domain: Sequence[Pair]) -> None:
    """Refuse points outside the declared domain, one (low, high) per column."""
    low, high = np.array(domain).T
    if not np.all((low <= X) & (high >= X)):
        raise ValueError("these points lie outside the declared domain, at least in part.")


def target_points(targets: object, columns: int) -> Array | None:
    """Targets as an array (points, columns); one column may come as a plain list."""
    return None if targets is None else _points("targets", targets, columns)


def _points(name: str, given: object, columns: int) -> Array:
    try:
        points = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers.") from None
    if points.ndim == 1 and columns == 1:
        points = points[:, None]
    if points.ndim != 2 or points.shape[1] != columns or len(points) == 0:
        raise ValueError(
            f"{name} must be points, {columns} columns like X, got shape {points.shape}."
        )
    if not np.all(np.isfinite(points)):
        raise ValueError(f"{name} contain NaN or infinity.")
    return points


def check_inducing_inputs(inducing: Any, columns: int) -> int | Array:
    """A number of inducing inputs, or points (distinct, columns)."""
    if isinstance(inducing, Integral) and not isinstance(inducing, bool):
        return whole_number("inducing", inducing, MOST_INDUCING)
    if isinstance(inducing, bool | str) or np.ndim(inducing) == 0:
        raise ValueError("inducing must be a whole number of inducing inputs, or points like X.")
    points = _points("inducing", inducing, columns)
    if len(points) > MOST_INDUCING:
        raise ValueError(f"inducing has more than {MOST_INDUCING} points.")
    return collapse(points)[0]


def is_number(value: object) -> bool:
    """Whether it is a real number, not a truth value nor NaN."""
    return isinstance(value, Real) and not isinstance(value, bool) and value == value


def are_several(y_bounds: object) -> TypeGuard[Sequence[Any]]:
    """Whether bounds are one pair per output, not one pair."""
    if isinstance(y_bounds, str) or not isinstance(y_bounds, Sequence | np.ndarray):
        return False
    return len(y_bounds) > 0 and any(np.ndim(end) > 0 for end in y_bounds)


def output_bounds(y_bounds: UserData, least: int = 1) -> tuple[Pair, ...]:
    """One (low, high) per output."""
    if not least <= len(y_bounds) <= MOST_OUTPUTS:
        raise ValueError(
            f"y_bounds must be one pair (low, high), or 2 to {MOST_OUTPUTS} pairs, one per output, "
            f"got {len(y_bounds)}."
        )
    return tuple(check_bounds("y_bounds", pair) for pair in y_bounds)


def check_any_bounds(y_bounds: AnyBounds) -> None:
    """Refuse bounds that are neither a pair nor one pair per output."""
    if are_several(y_bounds):
        output_bounds(y_bounds)
    else:
        check_bounds("bounds", y_bounds)


def check_output_shares(shares: object, count: int) -> tuple[float, ...]:
    """The share of every output as it was declared; equal ones where none were."""
    if shares is None:
        return (1.0,) * count
    wrong = f"shares must be {count} positive numbers, one per output."
    if not isinstance(shares, Sequence | np.ndarray) or np.ndim(shares) != 1:
        raise ValueError(wrong)
    values = [float(s) for s in shares if isinstance(s, Real) and not isinstance(s, bool)]
    if len(values) != count or len(shares) != count or not all(0 < v < math.inf for v in values):
        raise ValueError(wrong)
    if min(values) < SMALLEST_SHARE * max(values):
        raise ValueError(f"shares has one below {SMALLEST_SHARE:g} of the largest.")
    return tuple(values)


def per_output(name: str, value: object, count: int) -> tuple[Any, ...]:
    """A value for every output: the same for all, or a list or tuple of one for each."""
    if not isinstance(value, list | tuple):
        return (value,) * count
    if len(value) != count:
        raise ValueError(f"{name} must be one for all outputs, or {count}, one per output.")
    return tuple(value)


def check_row_noise(given: UserData, rows: int) -> Array | None:
    """Noise variances, one per row, (rows,); None where one number, or none, is given.

    Raises
    ------
    ValueError
        They are not positive numbers, or not as many as there are rows.

    """
    if given is None or is_number(given):
        return None
    try:
        noise = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("noise_variance must be a number, or one number per row.") from None
    if noise.shape != (rows,):
        many = f": {rows:,} numbers" if rows else " of X"
        raise ValueError(f"noise_variance must be one number, or one per row{many}.")
    if not np.all((noise > 0.0) & (noise < np.inf)):
        raise ValueError("noise_variance must be positive and finite in every row.")
    return noise


@dataclass(frozen=True)
class Exposures:
    """``unit``: a rate that fits the bounds; ``expected``: (rows,), the counts that it would give."""

    unit: float
    expected: Array

    @classmethod
    def of(cls, exposure: Array, bounds: Pair, unit: float | None = None) -> Self:
        """At the unit rate, unless one is given, the largest exposure gives the middle of the bounds."""
        if unit is None:
            unit = (0.5 * bounds[0] + 0.5 * bounds[1]) / float(exposure.max())
        return cls(unit, exposure * unit)


@dataclass(frozen=True, repr=False)
class Beside:
    """Public numbers of every row beside its inputs.

    Attributes
    ----------
    exposures : mapping
        What counts are counted over, (rows,), by the place of the outcome.
    weights : array, (rows,), optional
        Sample weights, positive; None: all rows count alike.
    of_records : column, optional
        Sample weights of private records, which are private too: for the vault alone.

    """

    exposures: Mapping[int, Array] = field(default_factory=dict)
    weights: Array | None = None
    of_records: UserData = None

    @property
    def columns(self) -> Array | None:
        """All of them, the weights last, (rows, columns); None: there are none."""
        each = [*self.exposures.values()]
        each += [] if self.weights is None else [self.weights]
        return np.column_stack(each) if each else None

    @property
    def shares(self) -> Array | None:
        """The weights over the largest of them."""
        return None if self.weights is None else self.weights / self.weights.max()


def check_exposure(exposure: UserData, rows: int) -> Array:
    """One positive, finite number for every row; 1 where none are given. (rows,)"""
    if exposure is None:
        return np.ones(rows)
    values = _public_column("exposure", exposure, rows)
    if not np.all((values >= 1.0 / LARGEST) & (values <= LARGEST)):
        raise ValueError("exposure must be positive and finite in every row.")
    return values


def check_weights(weights: UserData, rows: int) -> Array | None:
    """Public sample weights, (rows,); None: all rows count alike."""
    if weights is None:
        return None
    values = _public_column("sample_weight", weights, rows)
    if not np.all((values > 0.0) & (values <= LARGEST)):
        raise ValueError(
            "sample_weight must be positive and finite in every row: leave out rows of weight zero."
        )
    if values.max() > MOST_RATIO * values.min():
        raise ValueError(
            f"sample_weight must not differ by more than a factor of {MOST_RATIO:g}: the rows with the "
            "smallest weights would count nothing."
        )
    return values


def _public_column(name: str, given: UserData, rows: int) -> Array:
    """One number for every row, (rows,)."""
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers.") from None
    if values.shape != (rows,):
        raise ValueError(f"{name} must be one number for each of the {rows} rows of X.")
    return values
