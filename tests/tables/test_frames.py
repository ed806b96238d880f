"""Tables of any library are one table: the same plan, fit and predictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privgp import Number, PrivateGP, PrivateGPRegressor

ROWS = 24
RNG = np.random.default_rng(0)
NUMBERS = pd.DataFrame({"a": RNG.uniform(size=ROWS), "b": RNG.uniform(size=ROWS)})
KINDS = NUMBERS.assign(
    when=pd.date_range("2024-01-01", periods=ROWS), region=["north", "south"] * (ROWS // 2)
)
OUTPUTS = RNG.uniform(size=ROWS)


class Stream:
    """Something that has nothing but an Arrow stream, which is read once."""

    def __init__(self, table: pa.Table) -> None:
        self.left = [table]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.left.pop().__arrow_c_stream__(requested_schema)


FORMS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "polars": pl.from_pandas,
    "lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "arrow": pa.Table.from_pandas,
    "stream": lambda frame: Stream(pa.Table.from_pandas(frame)),
    "dict": lambda frame: {name: frame[name].to_numpy() for name in frame},
}


def model(**options: Any) -> PrivateGPRegressor:
    asked = {"hyperparameters": "fixed", "random_state": 0, **options}
    return PrivateGPRegressor(y_bounds=(0, 1), epsilon=1.0, delta=1e-5, **asked)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("frame", [NUMBERS, KINDS], ids=["numbers", "kinds"])
def test_any_frame_is_the_same_table(frame: pd.DataFrame, form: str) -> None:
    make = FORMS[form]
    expected = model().fit(frame, OUTPUTS)
    plan = model().plan(make(frame))
    found = model().fit(make(frame), OUTPUTS, plan=plan)
    assert [*found.feature_names_in_] == [*frame.columns]
    for each in ("predict", "interval"):
        left, right = getattr(found, each)(make(frame)), getattr(expected, each)(frame)
        np.testing.assert_allclose(left, right, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("form", ["polars", "lazy", "arrow", "stream"])
def test_any_frame_holds_private_records(form: str) -> None:
    options: dict[str, Any] = {"protect": "records", "x_bounds": [(0, 1), (0, 1)]}
    make, expected = FORMS[form], model(**options).fit(NUMBERS, OUTPUTS)
    found = model(**options).fit(make(NUMBERS), OUTPUTS)
    np.testing.assert_allclose(found.predict(NUMBERS), expected.predict(NUMBERS), rtol=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_the_private_column_is_found_among_the_inputs_of_any_frame(form: str) -> None:
    y = pd.Series(OUTPUTS, name="b")
    with pytest.raises(ValueError, match="like a column of X"):
        model().fit(FORMS[form](NUMBERS), y)


@pytest.mark.parametrize("form", FORMS)
def test_one_table_holds_inputs_and_outcomes(form: str) -> None:
    table = NUMBERS.assign(y=OUTPUTS)
    released = PrivateGP({"y": Number(0, 1)}, inputs=["a", "b"], random_state=0)
    released.set_params(hyperparameters="fixed").fit(FORMS[form](table))
    assert len(released.predict(FORMS[form](NUMBERS))) == ROWS


@pytest.mark.parametrize("crs", [None, "EPSG:4326", "EPSG:27700"])
def test_points_of_a_geodataframe_are_a_place(crs: str | None) -> None:
    geopandas = pytest.importorskip("geopandas")
    lon, lat = RNG.uniform(-2, 0, ROWS), RNG.uniform(51, 53, ROWS)
    points = geopandas.GeoSeries(geopandas.points_from_xy(lon, lat), crs="EPSG:4326")
    points = points if crs is None else points.to_crs(crs)
    frame = geopandas.GeoDataFrame(NUMBERS[["a"]], geometry=points.values, crs=crs)
    by_hand = NUMBERS[["a"]].assign(latitude=lat, longitude=lon)
    place = {("latitude", "longitude"): "place"}
    expected = model(columns=place).fit(by_hand, OUTPUTS).predict(by_hand)
    found = model().fit(frame, OUTPUTS)
    np.testing.assert_allclose(found.predict(frame), expected, rtol=1e-5)
    assert found.inputs_.columns[-1].system == (crs if crs == "EPSG:27700" else None)
    shapes = frame.assign(geometry=frame.geometry.buffer(1.0))
    with pytest.raises(ValueError, match="must hold points"):
        model().fit(shapes, OUTPUTS)
    with pytest.raises(ValueError, match="rename the column"):
        model().fit(frame.assign(latitude=1.0, northing=1.0), OUTPUTS)
