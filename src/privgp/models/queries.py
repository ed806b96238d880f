"""Questions that every released model answers: averages, areas, bands, draws, and its page in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from html import escape
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from privgp.gp.arithmetic import one_thread
from privgp.models.rows.tables import rows_at
from privgp.privacy.guarantee import facts_table
from privgp.release.queries.areas import LEAST_POINTS, MOST_POINTS, Areas, Plane, Polygons
from privgp.release.queries.averages import Average, average
from privgp.release.queries.quantities import (
    NEAR_DATA,
    NOT_OBSERVATION,
    band,
    check_coverage,
    exceed,
    near_data,
    prediction_columns,
    sample,
)
from privgp.release.release import Release
from privgp.tables.table import absent, columns_by_name, frame_of
from privgp.types import Array, Column, RandomState, Table, UserData


def model_html(name: str, release: Release, unnamed: str) -> str:
    """A table of what an estimator of this name released; ``unnamed``: an output without a name."""
    promise, asked = release.guarantee, release.parameters
    called: Any = release.facts.called or {}
    outputs = ", ".join(release.output_names or (called.get("name", unnamed),))
    facts: dict[str, object] = {"output": outputs}
    if "units" in called:
        facts["units"] = called["units"]
    facts["inputs"] = "\n".join(release.kinds.describe())
    if release.ranges():
        facts["range"] = "\n".join(release.ranges())
    if asked.labels():
        facts["classes"] = ", ".join(asked.labels() or ())
    facts |= {
        "epsilon": f"{promise.epsilon:g}",
        "delta": f"{promise.delta:g}",
        "protects": promise.unit,
    }
    facts["rows"] = release.facts.statement(release)["data"]["rows"]
    return facts_table(name, facts, simulation=promise.is_simulation)


MOST_TOGETHER = 4_000_000  # points of all areas


def _check_points(points: object, areas: int) -> int:
    """About how many points of a grid are in each area. ``areas``: the number of areas."""
    count = int(points) if isinstance(points, Integral) and not isinstance(points, bool) else 0
    if not LEAST_POINTS <= count <= MOST_POINTS:
        raise ValueError(f"points must be a whole number from {LEAST_POINTS} to {MOST_POINTS}.")
    if count * areas > MOST_TOGETHER:
        raise ValueError(f"points must be at most {MOST_TOGETHER // areas} for this many areas.")
    return count


def _rows(
    plane: Plane, at: Array, names: Any, count: int, fixed: Mapping[str, object] | None
) -> Any:
    """Rows of inputs at points of a plane, with all other inputs fixed."""
    others = {} if fixed is None else dict(fixed)
    if names is None:
        if count != 2 or others:
            raise ValueError("fixed goes by names, and this model was fitted without them.")
        return at
    place = (names[plane.east], names[plane.north])
    missing = [name for name in names if name not in place and name not in others]
    if missing:
        raise ValueError(
            f"fixed must have a value for {missing[0]!r}, such as fixed={{{missing[0]!r}: ...}}, or give X."
        )
    wrong = [name for name in others if name not in names or name in place]
    if wrong:
        raise ValueError(f"fixed has {wrong[0]!r}, which is none of the other inputs.")
    columns: dict[str, object] = {
        name: at[:, place.index(name)] if name in place else [others[name]] * len(at)
        for name in names
    }
    return columns


def _read_rows(
    X: UserData, weights: UserData, plane: Plane, names: Any
) -> tuple[object, Array, object]:
    """The rows of X as the model takes them, where they lie, and their weights."""
    if names is None:
        rows = np.asarray(X, dtype=np.float64)
        return rows, rows[:, [plane.east, plane.north]], weights
    given = columns_by_name(X)
    if isinstance(weights, str):
        if absent(given, [weights]):
            raise ValueError(f"X has no column {weights!r}, which weights names.")
        weights = np.asarray(given[weights], dtype=np.float64)
    missing = absent(given, names)
    if missing:
        raise ValueError(f"X has no column {missing[0]!r}: the inputs are {', '.join(names)}.")
    place = [given[names[each]] for each in (plane.east, plane.north)]
    at = np.column_stack([np.asarray(each, dtype=np.float64) for each in place])
    return {name: given[name] for name in names}, at, weights


class Queries:
    """Draws, tables, thresholds and averages of what a model released."""

    _unnamed: ClassVar[str] = "output"
    if TYPE_CHECKING:
        _released: Release
        feature_names_in_: Any
        n_features_in_: Any

    def sample_y(self, X: Table, n_samples: int = 1, random_state: RandomState = 0) -> Array:
        """Joint draws of the released function at the rows of X: public randomness, free.

        Every draw is a function that the release holds for plausible, noise for privacy included. The
        mean of many is what ``predict`` says; like that, a draw may pass the bounds of the outputs.

        Parameters
        ----------
        X : table (rows, inputs)
            At most 10,000 rows.
        n_samples : int
            How many draws.
        random_state : int, RandomState or None
            The seed. None: other draws every time.

        Returns
        -------
        array (rows, n_samples)
            With several outcomes, or the probabilities of classes: (rows, quantities, n_samples).

        """
        rows = self._locate(X)
        with one_thread():
            return sample(self._released, rows, n_samples, random_state)

    def exceeds(self, X: Table, t: object) -> Array:
        """The probability that the released function exceeds ``t`` at every row of X.

        Parameters
        ----------
        X : table (rows, inputs)
            Where to ask.
        t : float
            In units of the output, of the rate, or a probability of classes. With several outcomes one
            for all, one each, or a dict by their names.

        Returns
        -------
        array (rows,)
            With several outcomes, or the probabilities of classes: (rows, quantities).

        """
        rows = self._locate(X)
        with one_thread():
            return exceed(self._released, rows, t)

    def predict_frame(
        self,
        X: Table,
        coverage: float = 0.9,
        *,
        observation: bool = False,
        simultaneous: bool = False,
    ) -> Any:
        """Predictions as a data frame with the columns mean, std, low, high and near_data.

        ``near_data`` is 0 where no data are near, so that the prediction is an extrapolation. Labels have
        the most probable one, and the probability of each with low and high. With several
        outcomes every column begins with the name of its outcome.

        Parameters
        ----------
        X : table (rows, inputs)
            Where to predict.
        coverage : float
            Of the intervals from low to high.
        observation : bool
            Whether intervals are those of new outputs.
        simultaneous : bool
            Whether intervals contain the function at all rows at once.

        Returns
        -------
        data frame
            Of the library of X, with its index; of pandas where X is no data frame.

        """
        levels = check_coverage(coverage)
        rows, release = self._locate(X), self._released
        with one_thread():
            each = prediction_columns(
                release, rows, levels, observation=observation, simultaneous=simultaneous
            )
        prefixes = [f"{name}_" for name in self._prefixes()]
        found = {
            f"{prefix}{name}": column
            for prefix, columns in zip(prefixes or [""], each, strict=True)
            for name, column in columns.items()
        }
        near = near_data(release, rows)
        found |= {} if near is None else {NEAR_DATA: near}
        return _with_index(frame_of(found, X), X)

    def average(
        self, X: Table, weights: Column | None = None, by: object = None, coverage: float = 0.9
    ) -> Average:
        """Weighted averages of the released function: of districts, of groups, of a population.

        With more than 4,000 different rows, rows that lie close stand for one another.

        Parameters
        ----------
        X : table (rows, inputs)
            Public points to average over, such as addresses, or the inhabitants of a census.
        weights : array (rows,) or str, optional
            Public weights of the rows, or the name of a column of X. None: equal.
        by : array (rows,) or str, optional
            What to average over each: a label per row, or the name of a column of X. None: all rows.
        coverage : float
            Of the intervals.

        Returns
        -------
        Average

        """
        name = by if isinstance(by, str) else str(getattr(by, "name", None) or "label")
        table: object = X
        inputs: object = X
        if isinstance(by, str) or isinstance(weights, str):
            given = columns_by_name(X)
            weights, by = (_column(given, each) for each in (weights, by))
            known = [str(each) for each in getattr(self, "feature_names_in_", given)]
            inputs = {each: given[each] for each in given if each in known}
        rows = self._locate(inputs)
        with one_thread():
            return average(self._released, rows, weights, by, coverage, name=name, table=table)

    def areas(
        self,
        polygons: UserData,
        X: Table | None = None,
        *,
        weights: Column | None = None,
        name: str | None = None,
        fixed: Mapping[str, object] | None = None,
        points: int = 400,
        coverage: float = 0.9,
    ) -> Areas:
        """Averages of the released function over areas, such as districts.

        The inputs must hold a place: one that was declared, or two named as coordinates are. Needs the
        extra ``geo``.

        Parameters
        ----------
        polygons : GeoDataFrame, path of a GeoJSON file, or what is in one
            GeoJSON has longitudes and latitudes. Polygons are in the units of inputs that are two plain
            numbers.
        X : table (rows, inputs), optional
            Points to average over in the areas that hold them, such as addresses. None: a regular grid in
            every area.
        weights : array (rows,) or str, optional
            Public weights of the rows of X, such as inhabitants, or the name of a column of X.
        name : str, optional
            The property that names the areas. None: name, label, id or code, or their numbers from 1.
        fixed : dict, optional
            A value for every other input, by its name, where X is not given.
        points : int
            About how many points of a grid are in each area.
        coverage : float
            Of the intervals.

        Returns
        -------
        Areas
            An ``Average`` with ``to_geojson()`` and ``plot()``.

        """
        check_is_fitted(self)
        release, names, count = self._released, self._released.names, int(self.n_features_in_)
        plane = Plane.of(release.parameters.columns, names, count)
        found = Polygons.read(polygons, name, plane)
        own: Any = weights
        if X is None:
            if own is not None:
                raise ValueError("weights are those of the rows of X: give X.")
            at, own, places = found.grid(_check_points(points, len(found.shapes)), plane.degrees)
            table = _rows(plane, at, names, count, fixed)
        else:
            if fixed is not None:
                raise ValueError("fixed is for inputs that X does not have: X has all of them.")
            table, at, own = _read_rows(X, own, plane, names)
            places = found.holding(at)
            empty = np.bincount(places[places >= 0], minlength=len(found.shapes)) == 0
            if empty.any():
                label = found.labels[int(empty.argmax())]
                raise ValueError(f"X has no row in the area {label!r}: leave it out of polygons.")
        rows, inside = self._locate(table), places >= 0
        own = None if own is None else np.asarray(own)[inside]
        with one_thread():
            made = average(release, rows[inside], own, places[inside], coverage, name="area")
        given = {each.name: getattr(made, each.name) for each in fields(Average)}
        given |= {"labels": found.labels, "table": X}
        return Areas(**given, polygons=found, output=release.label("output"))

    def _repr_html_(self) -> str:
        """What was released, as a table for notebooks; nothing but the name before a fit."""
        name = type(self).__name__
        if "_released" not in vars(self):
            return f"<pre>{escape(repr(self))}</pre>"
        return model_html(name, self._released, self._unnamed)

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """The same, as notebooks ask for it."""
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _band(self, X: Table, coverage: float, observation: bool) -> tuple[Array, Array]:
        """A band that contains the function at all rows of X at once."""
        if observation:
            raise ValueError(NOT_OBSERVATION)
        levels = check_coverage(coverage)
        rows = self._locate(X)
        with one_thread():
            return band(self._released, rows, levels)

    def _locate(self, X: UserData) -> Array:
        """Where the kernel has the rows of X."""
        check_is_fitted(self)
        return rows_at(self, X)

    def _prefixes(self) -> tuple[str, ...]:
        """The names that columns begin with; none where there is one outcome."""
        return self._released.output_names or ()


def _column(given: dict[str, object], asked: object) -> Any:
    if not isinstance(asked, str):
        return asked
    if absent(given, [asked]):
        raise ValueError(f"X has no column {asked!r}: its columns are {', '.join(given)}.")
    return given[asked]


def _with_index(frame: UserData, X: Table) -> Any:
    """A frame with the index of a table that has one, as those of pandas do."""
    if hasattr(frame, "index") and hasattr(X, "index") and hasattr(X, "columns"):
        frame.index = X.index
    return frame
