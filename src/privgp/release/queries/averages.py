"""Averages of a released function over rows: of districts, of age groups, of a whole population."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from privgp.gp.inference.averages import Sums
from privgp.privacy.guarantee import Guarantee
from privgp.release.queries.quantities import Averages, check_coverage, each_quantities, is_single
from privgp.release.release import Release
from privgp.tables.table import frame_of
from privgp.types import STAMP, Array, Column, Integers, UserData

ALL = "all"  # the label of an average over all rows
SHOWN, SHOWN_ROWS = 5, 20  # labels in a message, averages in a text
STATISTICS = ("mean", "std", "low", "high")


@dataclass(frozen=True)
class Difference:
    """How much larger one average is than another.

    Attributes
    ----------
    a, b : labels of the two averages
    mean, std, low, high : float, or array (quantities,)
        Of ``a`` minus ``b``, with the coverage of the averages.
    above : float, or array (quantities,)
        The probability that ``a`` is larger.

    """

    a: Hashable
    b: Hashable
    mean: float | Array
    std: float | Array
    low: float | Array
    high: float | Array
    above: float | Array


@dataclass(frozen=True, repr=False, eq=False)
class Average:
    """Weighted averages of a released function, rate or probability, and how uncertain they are.

    With several outcomes, or the classes of a label, arrays have a last axis for these quantities.

    Attributes
    ----------
    labels : tuple
        What every average is of.
    mean, std, low, high : array (averages,) or (averages, quantities)
        The ends of the interval have the probability ``coverage`` between them.
    covariance : array (averages, averages) or (averages, averages, quantities)
        Of the averages: what two districts have in common is in it.
    coverage : float
    quantities : tuple of str
        The names of the quantities; empty where there is one.
    draws : array (averages, draws) or (averages, quantities, draws)
        Joint draws, for anything else: ratios, ranks, the largest.
    guarantee : Guarantee
        Of the release. Averages cost nothing further.
    by : str
        The name of the column that holds the labels.
    table : object, optional
        The table that was averaged over, which sets the library of ``to_frame``.

    """

    labels: tuple[Hashable, ...]
    mean: Array
    std: Array
    low: Array
    high: Array
    covariance: Array
    coverage: float
    quantities: tuple[str, ...]
    draws: Array
    guarantee: Guarantee
    by: str = "label"
    table: object = field(default=None)

    def difference(self, a: Hashable, b: Hashable) -> Difference:
        """How much larger the average of ``a`` is than that of ``b``.

        What both share is certain to cancel, so this is less uncertain than two intervals suggest.

        Parameters
        ----------
        a : label
            Of the average that the other one is taken from.
        b : label
            Of the other one.

        """
        i, j = self._place(a), self._place(b)
        mean = self.mean[i] - self.mean[j]
        C = self.covariance
        std = np.sqrt(np.maximum(C[i, i] + C[j, j] - C[i, j] - C[j, i], 0.0))
        drawn = self.draws[i] - self.draws[j]
        about = drawn - drawn.mean(axis=-1, keepdims=True)
        scale = std / np.maximum(drawn.std(axis=-1, ddof=1), np.finfo(float).tiny)
        exact = mean[..., None] + about * scale[..., None]
        low, high = np.quantile(exact, check_coverage(self.coverage), axis=-1)
        above = np.mean(exact > 0.0, axis=-1)
        return Difference(a, b, *(_plain(each) for each in (mean, std, low, high, above)))

    def to_frame(self) -> Any:
        """A data frame with a row for every average: its label, mean, std, low and high.

        It is of the library of the table that was averaged; for arrays of pandas, if that is installed.
        """
        return frame_of(self.columns(), self.table)

    def columns(self) -> dict[str, object]:
        """The same by the names of the columns."""
        columns: dict[str, object] = {self.by: list(self.labels)}
        for place, name in enumerate(self.quantities):
            for statistic in STATISTICS:
                columns[f"{name}_{statistic}"] = getattr(self, statistic)[:, place]
        if not self.quantities:
            columns |= {statistic: getattr(self, statistic) for statistic in STATISTICS}
        return columns

    def _place(self, label: Hashable) -> int:
        try:
            return self.labels.index(label)
        except ValueError:
            known = ", ".join(map(repr, self.labels[:SHOWN]))
            more = ", ..." if len(self.labels) > SHOWN else ""
            raise ValueError(f"{label!r} is not a label: the labels are {known}{more}.") from None

    def _cells(self, *statistics: str) -> list[list[str]]:
        """Columns of texts: the labels, and these statistics of the averages."""
        columns = (self.labels, *(getattr(self, each) for each in statistics))
        return [[_short(cell) for cell in column] for column in columns]

    def __repr__(self) -> str:
        stamp = f", {STAMP}" if self.guarantee.is_simulation else ""
        head = f"Average by {self.by!r}: mean, {100 * self.coverage:.4g}% interval{stamp}"
        rows = [*map("{}: {} ({} to {})".format, *self._cells("mean", "low", "high"))]
        more = [f"and {len(rows) - SHOWN_ROWS} more"] if len(rows) > SHOWN_ROWS else []
        return "\n  ".join([head, *rows[:SHOWN_ROWS], *more])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(each)}</th>" for each in (self.by, *STATISTICS))
        rows = zip(*self._cells(*STATISTICS), strict=True)
        each = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
        body = "".join(f"<tr>{row}</tr>" for row in each)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def average(
    release: Release,
    X: Array,
    weights: Column | None = None,
    by: object = None,
    coverage: float = 0.9,
    *,
    name: str = "label",
    table: UserData = None,
) -> Average:
    """Weighted averages of everything that was released, over rows that are equal in ``by``.

    Parameters
    ----------
    release : Release
        Of one or several outcomes.
    X : array (rows, columns)
        Where the kernel has the rows.
    weights : array (rows,), optional
        Public, not negative, such as inhabitants. None: equal.
    by : array (rows,), optional
        The label of every row. None: one average of all.
    coverage : float
        Of the intervals.
    name, table
        What the labels are called, and the table whose library frames are of.

    """
    levels = check_coverage(coverage)
    labels, places = group_rows(by, len(X))
    sums = Sums.of(X, check_weights(weights, places, labels), places)
    rng = np.random.RandomState(0)
    each = each_quantities(release)
    found = [one.average(sums, levels, rng) for one in each]
    return of_parts(release, found, labels, float(coverage), name, table)


def of_parts(
    release: Release,
    found: Sequence[Averages],
    labels: tuple[object, ...],
    coverage: float,
    name: str,
    table: UserData,
) -> Average:
    """The averages of all outcomes as one value."""
    single = is_single(release)
    along = {"covariance": 2, "draws": 1, **dict.fromkeys(STATISTICS, 1)}
    arrays = {
        key: np.concatenate([getattr(one, key) for one in found], axis=axis)
        for key, axis in along.items()
    }
    if single:
        arrays = {key: values.squeeze(along[key]) for key, values in arrays.items()}
    names = () if single else quantity_names(release)
    return Average(
        labels=labels, **arrays, coverage=coverage, quantities=names,
        guarantee=release.guarantee, by=name, table=table,
    )  # fmt: skip


def quantity_names(release: Release) -> tuple[str, ...]:
    """A name for every quantity: the outcome's, the class's, or both."""
    outcomes = release.output_names or ("",)
    pairs = zip(outcomes, each_quantities(release), strict=True)
    return tuple(
        "_".join(filter(None, (outcome, name))) for outcome, each in pairs for name in each.names
    )


def group_rows(by: object, rows: int) -> tuple[tuple[object, ...], Integers]:
    """The labels in their order, and the place of the label of every row."""
    if by is None:
        return (ALL,), np.zeros(rows, dtype=np.int64)
    ordered = getattr(getattr(by, "cat", None), "categories", None)  # of a category of pandas
    cells = np.asarray(by)
    if cells.ndim != 1 or len(cells) != rows or not rows:
        raise ValueError(f"by must have a label for each of the {rows} rows.")
    missing = [cell is None or cell != cell for cell in cells.tolist()]
    if any(missing):
        raise ValueError(f"by has no label in row {missing.index(True) + 1}.")
    try:
        found, places = np.unique(cells, return_inverse=True)
        labels = found.tolist()
    except TypeError:
        labels = [*dict.fromkeys(cells.tolist())]
        at = {label: place for place, label in enumerate(labels)}
        places = np.array([at[cell] for cell in cells.tolist()])
    if ordered is not None:
        there = [label for label in list(ordered) if label in labels]
        moved = np.array([there.index(label) for label in labels])
        labels, places = there, moved[places]
    return tuple(labels), np.asarray(places, dtype=np.int64)


def check_weights(weights: Column | None, places: Integers, labels: Sequence[object]) -> Array:
    """Weights of rows, each positive or 0, that leave every average something."""
    if weights is None:
        return np.ones(len(places))
    try:
        found = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.empty((0, 0))
    if found.shape != places.shape or not np.all(np.isfinite(found)) or np.any(found < 0.0):
        raise ValueError(
            f"weights must be {len(places)} finite numbers, one for each row, none negative."
        )
    scaled = found / max(float(found.max()), np.finfo(float).tiny)
    empty = np.bincount(places, scaled, len(labels)) <= 0.0
    if empty.any():
        raise ValueError(f"weights are 0 for all rows of {labels[int(empty.argmax())]!r}.")
    return scaled


def _plain(value: Array) -> float | Array:
    return float(value) if np.ndim(value) == 0 else np.asarray(value)


def _short(cell: object) -> str:
    if isinstance(cell, float):
        return np.format_float_positional(cell, precision=4, fractional=False, trim="-")
    return ", ".join(map(_short, cell)) if isinstance(cell, np.ndarray) else str(cell)
