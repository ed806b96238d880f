"""What may be declared, checked before anything is spent: values may appear in errors, as they are public.

First what does not go together, once, with the reason and the proof page that states it. The estimators, the
command and the server check these rules and report them: Python names parameters, the command the options
that say them. Then what every argument must be: bounds, points, exposures and sample weights.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, Self, TypeGuard

import numpy as np

from privgp.gp.priors import collapse
from privgp.question.outcomes import has_private_inputs
from privgp.question.parameters import BY_NAME, MOST_INDUCING, Choice, Parameter, Span, choices
from privgp.types import Array, Pair, UserData

OUTCOME = "outcome"  # what is private: one of the next three
ONE, SEVERAL, LABELS = "one output", "several outputs", "labels"
# What is given beside the parameters: columns of the table.
COLUMNS = {name: Parameter(name, "") for name in ("groups", "exposure", "sample_weight")}
GIVEN = "given"  # instead of a column
# What is protected where inputs are public, and where they are private.
PUBLIC = tuple(word for word in choices("protect") if not has_private_inputs(word))
PRIVATE = tuple(word for word in choices("protect") if has_private_inputs(word))


@dataclass(frozen=True)
class Rule:
    """Parameters that must be left out.

    Attributes
    ----------
    names : tuple of str
        The parameters, or columns, that keep their defaults.
    where : str
        The parameter or column that this depends on, or "outcome".
    values : tuple
        What it is where the rule holds.
    reason : str
    proof : str
        The page of ``docs/proofs`` that states it.
    allows : type, or none
        Values of this type are allowed.
    harmless : tuple
        Values that are allowed, as they ask for what is done anyway.

    """

    names: tuple[str, ...]
    where: str
    values: tuple[str | None, ...]
    reason: str
    proof: str
    allows: type | tuple[type, ...] = ()
    harmless: tuple[str, ...] = ()

    def check(self, given: Mapping[str, object]) -> None:
        where = given.get(self.where, "")
        if not isinstance(where, str | None) or where not in self.values:
            return
        words = f"rows without {self.where}" if where is None else f"{self.where}={where!r}"
        words = self.where if where == GIVEN else words
        words = words if self.where != OUTCOME else str(where)
        for name in self.names:
            own = BY_NAME.get(name) or COLUMNS[name]
            value = given.get(name, own.default)
            allowed = isinstance(value, self.allows) or (
                isinstance(value, str) and value in self.harmless
            )
            if not own.is_default(value) and not allowed:
                raise ValueError(
                    f"{name} does not go with {words}: {self.reason} "
                    f"(docs/proofs/{self.proof}.md). Leave {name}={own.default!r}."
                )


RULES = (
    Rule(("x_bounds",), "protect", PUBLIC,
         "public inputs need no bounds", "measure"),
    Rule(("objective", "reconstruct"), "protect", PRIVATE,
         "they weigh noise at the inputs of rows, which are private", "records"),
    Rule(("most_rows",), "protect", PRIVATE,
         "all records of a person count as one, whatever their number", "features"),
    Rule(("max_change",), "protect", PRIVATE,
         "a person changes a whole record", "records"),
    Rule(("inducing",), "protect", PRIVATE,
         "points are inputs of rows, which are private; a whole number limits the bins or "
         "features", "records", Integral),
    Rule(("exposure",), "protect", PRIVATE,
         "exposures are public, and that of a private record is as private as the record; every "
         "record counts over one unit", "counts"),
    Rule(("noise_variance",), "protect", PRIVATE,
         "a private record has no public noise variance", "records", Real),
    Rule(("noise_variance",), "likelihood", ("poisson",),
         "how counts scatter follows from their rate", "counts", Real),
    Rule(("exposure",), "likelihood", ("gaussian",),
         "it is what counts are counted over", "counts"),
    Rule(("objective", "reconstruct", "most_rows"), "likelihood", ("poisson",),
         "a rate is no linear function of the counts", "counts"),
    Rule(("objective", "reconstruct", "most_rows"), OUTCOME, (SEVERAL,),
         "the noise of all outputs is chosen together, for posteriors", "several_outputs"),
    Rule(("shares",), OUTCOME, (ONE, LABELS),
         "one output has the whole budget", "several_outputs"),
    Rule(("link", "prevalence"), OUTCOME, (ONE, SEVERAL),
         "it is for labels, and others are no probabilities", "classes"),
    Rule(("y_bounds", "noise_variance", "objective", "reconstruct", "max_change",
          "likelihood", "most_rows", "exposure"), OUTCOME, (LABELS,),
         "a label is one of the classes, and no number", "classes"),
    Rule(("sample_weight",), "protect", PRIVATE,
         "the weight of a private record is as private as the record, so declare max_weight", "weights"),
    Rule(("max_weight",), "protect", PUBLIC,
         "public weights need no bound", "weights"),
    Rule(("reconstruct",), "sample_weight", (GIVEN,),
         "unbiased values are what a model without weights would predict, plus noise", "weights"),
    Rule(("residuals",), "protect", PRIVATE,
         "what is subtracted from an output would depend on its private input", "residuals",
         harmless=("never",)),
    Rule(("residuals",), "likelihood", ("poisson",),
         "how counts scatter follows from their rate, so no width is learned", "residuals",
         harmless=("never",)),
    Rule(("residuals",), OUTCOME, (SEVERAL,),
         "the budget is shared between outputs, and not between stages", "residuals",
         harmless=("never",)),
    Rule(("objective", "reconstruct"), "residuals", ("always",),
         "the first stage has to tell a curve, which unbiased values are not", "residuals"),
    Rule(("max_change",), "residuals", ("always",),
         "what one person changes is declared, and need not be clipped", "residuals"),
    Rule(("most_rows",), "groups", (None,),
         "it is for people with several rows, so give groups", "inducing"),
    Rule(("objective", "reconstruct"), "mechanism", ("laplace",),
         "its sums are over groups of inputs, and these weigh every input separately", "partition"),
)  # fmt: skip


def check_rules(given: Mapping[str, object], outcome: str) -> None:
    """Refuse what does not go together.

    Parameters
    ----------
    given : mapping
        Parameters by name, and columns: ``groups`` and ``exposure``, None where there are none. What is
        absent is not checked.
    outcome : {"one output", "several outputs", "labels"}
        What is private.

    """
    for rule in RULES:
        rule.check({**given, OUTCOME: outcome})


def check_column_roles(
    inputs: Sequence[str],
    outputs: Sequence[str],
    groups: str | None = None,
    exposure: str | None = None,
    weights: str | None = None,
    *,
    private: bool = False,
) -> None:
    """Refuse columns of a table in two roles. ``private``: whether inputs and people are private as well."""
    if len({*inputs}) < len(inputs) or not inputs:
        raise ValueError("inputs must be names of different columns.")
    if len({*outputs}) < len(outputs):
        raise ValueError("output must be names of different columns.")
    others = {
        "be among the inputs": inputs,
        "name the people": (groups,),
        "be the exposure": (exposure,),
        "be the sample weights": (weights,),
    }
    for role, names in others.items():
        for name in outputs:
            if name in names:
                raise ValueError(f"the private output {name!r} cannot {role}.")
    if private and groups in inputs:
        raise ValueError(f"the private identifiers {groups!r} cannot be among the inputs.")


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
