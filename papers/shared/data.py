"""The papers' data, read from a folder beside the project; they are public and no part of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from papers.shared.report import Request
from privgp.types import Array

JUNE_2016, JUNE_2017 = "citibike_201606_systematic.csv", "citibike_201706.csv.gz"
SOURCES = {
    "kung.csv": "Dobe !Kung census, N. Howell (University of Toronto T-Space)",
    JUNE_2017: "Citi Bike NYC system data, June 2017",
    JUNE_2016: "Citi Bike NYC system data, every 1000th trip of June 2016",
    "london_prices.csv.gz": "HM Land Registry price paid data",
}


class MissingData(Exception):
    """A data file is not there; the message is one sentence that says where it is from."""


def data_file(request: Request, name: str) -> Path:
    """The path of a data file, or MissingData."""
    source = SOURCES.get(name, "see the documentation")
    if request.data is None:
        raise MissingData(
            f"No data folder was found: give --data with the folder that holds '{name}' ({source})."
        )
    path = request.data / name
    if not path.is_file():
        raise MissingData(f"The folder '{request.data}' holds no '{name}' ({source}).")
    return path


def kung(request: Request) -> tuple[Array, Array]:
    """Ages, (287, 1), and heights in cm of the women of the Dobe !Kung."""
    table = _table(request, "kung.csv", ["age", "height"])
    return table.select("age").to_numpy(), table["height"].to_numpy()


def citi_bike(request: Request, name: str = JUNE_2017) -> tuple[Array, Array]:
    """Start and end of subscribers' trips in degrees, (trips, 4), and durations clipped to 0-2000 s."""
    places = ["start_lat", "start_lon", "end_lat", "end_lon"]
    table = _table(request, name, [*places, "duration_s", "subscriber"])
    table = table.filter(pl.col("subscriber") == 1)
    return table.select(places).to_numpy(), np.clip(table["duration_s"].to_numpy(), 0.0, 2000.0)


def london(request: Request) -> tuple[Array, Array]:
    """Eastings and northings in km, (2182, 2), and prices since 2013 in thousands of pounds."""
    numbers = ["easting", "northing", "price"]
    table = _table(request, "london_prices.csv.gz", numbers, ["date", "source"])
    table = table.filter((pl.col("source") == "smith") & (pl.col("date") >= "2013"))
    places = table.select("easting", "northing").to_numpy() / 1000.0
    return places, table["price"].to_numpy() / 1000.0


def _table(
    request: Request, name: str, numbers: list[str], words: list[str] | None = None
) -> pl.DataFrame:
    """These columns of a file, as float64 and as text."""
    path = data_file(request, name)
    try:
        return pl.read_csv(path).select(
            pl.col(numbers).cast(pl.Float64), *(pl.col(w).cast(pl.String) for w in words or ())
        )
    except (OSError, pl.exceptions.PolarsError):
        raise MissingData(f"'{path}' cannot be read as the table it should be.") from None
