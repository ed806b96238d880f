"""Predictions on a grid as a netCDF file by the CF conventions, which maps and climate tools open."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from privgp.command.io.cells.grid import Grid
from privgp.types import Array

CONVENTIONS = "CF-1.8"


def write_netcdf(
    path: Path, grid: Grid, values: Mapping[str, Array], facts: Mapping[str, str], units: str
) -> None:
    """``values``: a column for every point of the grid, by its name; ``facts``: about the whole;
    ``units``: of the values."""
    from scipy.io import netcdf_file

    axes, order = _axes(grid), _order(grid)
    with netcdf_file(path, "w", version=2) as file:
        file.Conventions = CONVENTIONS
        for name, text in facts.items():
            setattr(file, name, text.encode("utf-8"))
        for name, numbers, attributes in axes:
            file.createDimension(name, len(numbers))
            _put(file, name, numbers, (name,), attributes)
        mapping = _projection(file, grid)
        for name, column in values.items():
            attributes = {"long_name": name, "units": units, **mapping}
            cells = column.reshape(grid.shape).transpose(order)
            _put(file, name, cells, tuple(axes[k][0] for k in order), attributes)


def _order(grid: Grid) -> list[int]:
    """The inputs in the order of the conventions: the other ones, north, east. Readers put the last
    axis across a map, and the one before it upwards."""
    from privgp.release.exports.geojson import places_in

    names = grid.inputs.names
    found = places_in(names)
    pairs = [] if found is None else [found]
    for column in grid.inputs.columns:
        if len(column.names) == 2:
            east, north = (names.index(column.names[k]) for k in column.drawn)
            pairs.append((east, north))
    if len({*pairs}) != 1:
        return [*range(len(names))]
    east, north = pairs[0]
    return [k for k in range(len(names)) if k not in (east, north)] + [north, east]


def _axes(grid: Grid) -> list[tuple[str, Array, dict[str, Any]]]:
    """Name, numbers and attributes of every axis."""
    told = [
        {**_units(column.system), **attributes}
        for column in grid.inputs.columns
        for attributes in column.conventions()
    ]
    triples = zip(grid.inputs.names, grid.axes, told, strict=True)
    return [(name, numbers, {"long_name": name, **more}) for name, numbers, more in triples]


def _units(system: str | None) -> dict[str, str]:
    """The units of east and north in a coordinate reference system."""
    if system is None:
        return {}
    from pyproj import CRS

    unit = CRS.from_user_input(system).axis_info[0].unit_name
    return {"units": "m" if unit == "metre" else unit}


def _projection(file: Any, grid: Grid) -> dict[str, str]:
    """The variable that tells the coordinate reference system, where there is one."""
    systems = [column.system for column in grid.inputs.columns if column.system is not None]
    if not systems:
        return {}
    from pyproj import CRS

    variable = file.createVariable("crs", "i", ())
    for name, value in CRS.from_user_input(systems[0]).to_cf().items():
        exact = value.encode("utf-8") if isinstance(value, str) else np.asarray(value, dtype="d")
        setattr(variable, name, exact)
    return {"grid_mapping": "crs"}


def _put(
    file: Any, name: str, numbers: Array, axes: tuple[str, ...], attributes: Mapping[str, Any]
) -> None:
    variable = file.createVariable(name, "d", axes)
    variable[:] = numbers
    for key, value in attributes.items():
        setattr(variable, key, value.encode("utf-8") if isinstance(value, str) else value)
