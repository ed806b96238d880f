"""Predictions on a grid as files for maps: CF netCDF, or GeoJSON of its cells or of contours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from privgp.command.errors import Refusal, refusal
from privgp.command.io.cells.grid import Grid
from privgp.command.io.files import whole_file
from privgp.release.release import Release
from privgp.types import Array

MOST_BANDS = 50
CONTOURS = (
    f"--contours must be a number of areas from 2 to {MOST_BANDS}, or at least two rising levels such "
    "as 1000,1500,2000."
)
NO_PLACES = (
    "A .geojson file needs exactly two inputs, a place (--places) or longitude and latitude or lon and "
    "lat, in degrees, and at least two points along each."
)

Asked = int | tuple[float, ...]  # how many areas, or between which levels


def read_contours(text: str) -> Asked:
    """What --contours asks for."""
    try:
        if "," not in text:
            count = int(text)
            if 2 <= count <= MOST_BANDS:
                return count
            raise ValueError
        levels = tuple(float(each) for each in text.split(","))
    except ValueError:
        raise Refusal(CONTOURS) from None
    if len(levels) >= MOST_BANDS or not np.all(np.isfinite(levels)) or np.any(np.diff(levels) <= 0):
        raise Refusal(CONTOURS)
    return levels


def write_grid(
    release: Release,
    grid: Grid,
    values: Mapping[str, Any],
    path: Path,
    mapped: Mapping[str, str],
    contours: Asked | None,
) -> list[str]:
    """Predictions as CF netCDF or GeoJSON, by the file's ending; returns the names of its columns.

    ``mapped``: the columns that contours are of, by what they show."""
    numbers = {name: column for name, column in values.items() if column.dtype.kind == "f"}
    if path.suffix == ".geojson":
        try:
            text, columns = _geojson(release, grid, numbers, mapped, contours)
        except ValueError as problem:
            raise refusal(problem) from None
        with whole_file(path) as part:
            part.write_text(text, encoding="utf-8")
        return columns
    from privgp.command.io.cells.netcdf import write_netcdf

    facts = {
        "title": _title(release),
        "comment": release.guarantee.describe(),
        "simulation": str(release.guarantee.is_simulation).lower(),
    }
    units = (release.facts.called or {}).get("units", "1")
    with whole_file(path) as part:
        write_netcdf(part, grid, numbers, facts, units)
    return [*grid.inputs.names, *numbers]


def _title(release: Release) -> str:
    """What is shown: of counts their rate."""
    from privgp.models.picture import rate_of

    called = release.label("output")
    return rate_of(called) if release.parameters.likelihood == "poisson" else called


def _geojson(
    release: Release,
    grid: Grid,
    numbers: Mapping[str, Any],
    mapped: Mapping[str, str],
    contours: Asked | None,
) -> tuple[str, list[str]]:
    """The text of a file, and the names of its properties."""
    from privgp.release.exports.contours import bands_between, open_bands, round_levels
    from privgp.release.exports.contours import contours as contours_of
    from privgp.release.exports.geojson import collection, edges, quads

    east, north = order = _east_north(grid)
    columns = {
        name: np.reshape(column, grid.shape).transpose(order) for name, column in numbers.items()
    }
    promise = release.guarantee
    about = {
        "output": _title(release),
        "epsilon": promise.epsilon,
        "delta": promise.delta,
        "simulation": promise.is_simulation,
    }
    if contours is None:
        spread = edges if grid.inputs.columns[0].system is None else _halfway
        corners = _mesh(grid, order, *spread(grid.axes[east], grid.axes[north]))
        return quads(corners, columns, about), [*grid.inputs.names, *numbers]
    mesh = _mesh(grid, order, grid.axes[east], grid.axes[north])
    units = (release.facts.called or {}).get("units")
    features = []
    for name, column in mapped.items():
        found = columns[column]
        bands = (
            bands_between(round_levels(found, contours))
            if isinstance(contours, int)
            else open_bands(contours)
        )
        features += contours_of(mesh, found, bands, {"name": name, "units": units})
    return collection(features, mesh.bbox, about), [*features[0]["properties"]]


def _east_north(grid: Grid) -> tuple[int, int]:
    """Which of the two inputs goes east, and which north."""
    from privgp.release.exports.geojson import check_degrees, places_in

    column = grid.inputs.columns[0]
    if len(grid.shape) != 2 or min(grid.shape) < 2:
        raise Refusal(NO_PLACES)
    if column.degrees(np.empty((0, column.name_count))) is not None:
        first, second = column.drawn
        return first, second
    found = places_in(grid.inputs.names)
    if found is None:
        raise Refusal(NO_PLACES)
    check_degrees(grid.axes[found[0]], grid.axes[found[1]])
    return found


def _halfway(east: Array, north: Array) -> tuple[Array, Array]:
    """Edges of cells in a plane."""
    from privgp.release.exports.geojson import halfway

    return halfway(east), halfway(north)


def _mesh(grid: Grid, order: Sequence[int], east: Array, north: Array) -> Any:
    """Points of these numbers on the globe, (east, north)."""
    from privgp.release.exports.mesh import Mesh

    column = grid.inputs.columns[0]
    if column.system is None:
        return Mesh.of_axes(east, north)
    numbers = np.stack([each.ravel() for each in np.meshgrid(east, north, indexing="ij")], axis=1)
    degrees: Any = column.degrees(numbers[:, list(order)])
    return Mesh.of_degrees(degrees, (len(east), len(north)))
