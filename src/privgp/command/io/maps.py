"""Predictions on a grid as files for maps: netCDF by the CF conventions, which maps and climate tools
open, or GeoJSON of the grid's cells or of contours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from privgp.command.errors import Failure, Refusal, refusal
from privgp.command.io.axes import Grid
from privgp.command.io.columns import refuse_questions
from privgp.command.io.files import whole_file, write_text
from privgp.question.outcomes import BY_LIKELIHOOD
from privgp.release.release import Release
from privgp.types import Array

if TYPE_CHECKING:
    from scipy.io import netcdf_file

    from privgp.release.geojson import Mesh

CONVENTIONS = "CF-1.8"
MOST_BANDS = 50
CONTOURS = (
    f"--contours must be a number of areas from 2 to {MOST_BANDS}, or at least two rising levels such "
    "as 1000,1500,2000."
)
NO_PLACES = (
    "A .geojson file needs exactly two inputs, a place (--places) or longitude and latitude or lon and "
    "lat, in degrees, and at least two points along each."
)

NO_POINTS = (
    "A .geojson file needs inputs that are a place (--places), or longitude and latitude or lon and lat, "
    "in degrees."
)

PLAIN_NUMBER = r"^-?(0|[1-9]\d{0,14})(\.\d+)?$"

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
    values: Mapping[str, Array],
    path: Path,
    mapped: Mapping[str, str],
    contours: Asked | None,
) -> list[str]:
    """Predictions as CF netCDF or GeoJSON, by the file's ending; returns the names of its columns.

    ``mapped``: the columns that contours are of, by what they show."""
    numbers = {name: column for name, column in values.items() if column.dtype.kind == "f"}
    if path.suffix == ".tif":
        write_geotiff(release, grid, numbers, path)
        return [*numbers]
    if path.suffix == ".geojson":
        try:
            text, columns = _geojson(release, grid, numbers, mapped, contours)
        except ValueError as problem:
            raise refusal(problem) from None
        write_text(path, text)
        return columns
    facts = {
        "title": _title(release),
        "comment": release.guarantee.describe(),
        "simulation": str(release.guarantee.is_simulation).lower(),
    }
    units = (release.facts.called or {}).get("units", "1")
    with whole_file(path) as part:
        write_netcdf(part, grid, numbers, facts, units)
    return [*grid.inputs.names, *numbers]


def write_geotiff(release: Release, grid: Grid, numbers: Mapping[str, Array], path: Path) -> None:
    """A GeoTIFF with a band for every column, north upwards.

    Parameters
    ----------
    release : Release
        What was predicted from.
    grid : Grid
        Of two inputs that are a place.
    numbers : mapping
        A number for every point of the grid, by the names of the columns.
    path : Path
        The file to write.

    """
    try:
        import rasterio
        from rasterio.transform import from_origin
    except ImportError:
        raise Failure("A .tif file needs more packages: pip install privgp[geo].") from None
    with refuse_questions():
        order = east, north = _east_north(grid)
    across, upwards = grid.axes[east], grid.axes[north]
    width, height = across[1] - across[0], upwards[1] - upwards[0]
    system = grid.inputs.columns[0].system or "EPSG:4326"
    shape = {"width": len(across), "height": len(upwards), "count": len(numbers)}
    corner = from_origin(across[0] - width / 2, upwards[-1] + height / 2, width, height)
    promise = release.guarantee
    with (
        whole_file(path) as part,
        rasterio.open(
            part, "w", driver="GTiff", dtype="float64", crs=system, transform=corner,
            compress="deflate", **shape,
        ) as file,
    ):  # fmt: skip
        for band, (name, column) in enumerate(numbers.items(), 1):
            cells = np.reshape(column, grid.shape).transpose(order)
            file.write(cells.T[::-1], band)
            file.set_band_description(band, name)
        file.update_tags(
            output=_title(release), epsilon=promise.epsilon, delta=promise.delta,
            simulation=str(promise.is_simulation).lower(),
        )  # fmt: skip


def write_points(release: Release, X: pl.DataFrame, told: pl.DataFrame, path: Path) -> list[str]:
    """Rows as GeoJSON points, with the columns of ``told`` as properties; returns their names.

    Parameters
    ----------
    release : Release
        What was predicted from.
    X : DataFrame
        The inputs of the rows, in the order of the release.
    told : DataFrame
        What is told of every row.
    path : Path
        The file to write.

    """
    from privgp.release.geojson import about_release, places_in, points

    names, kinds = release.names or tuple(X.columns), release.parameters.columns
    table = X.rename(dict(zip(X.columns, names, strict=True)))
    found: tuple[Array, Array] | None = None
    for column in () if kinds is None else kinds.columns:
        numbers = column.numbers([table[name].to_numpy() for name in column.names])
        degrees = column.degrees(numbers)
        if degrees is not None:
            found = degrees[:, 1], degrees[:, 0]  # latitudes come first
    place = places_in(names)
    if found is None and place is not None:
        found = table[names[place[0]]].to_numpy(), table[names[place[1]]].to_numpy()
    if found is None:
        raise Refusal(NO_POINTS)
    columns = {each.name: _json_values(each) for each in told}
    with refuse_questions():
        about = about_release(release.guarantee, _title(release))
        text = points(*found, columns, about)
    write_text(path, text)
    return told.columns


def _json_values(column: pl.Series) -> list[object]:
    """As JSON can hold them: columns that are written as plain numbers as numbers, dates as text."""
    plain = column.dtype == pl.String and column.str.contains(PLAIN_NUMBER).all()
    values = (column.cast(pl.Float64) if plain else column).to_list()
    return [
        value if isinstance(value, int | float | str | None) else str(value) for value in values
    ]


def _title(release: Release) -> str:
    """What is shown: of counts their rate."""
    from privgp.models.picture import rate_of

    called = release.label("output")
    return rate_of(called) if BY_LIKELIHOOD[release.parameters.likelihood].has_rate else called


def _geojson(
    release: Release,
    grid: Grid,
    numbers: Mapping[str, Array],
    mapped: Mapping[str, str],
    contours: Asked | None,
) -> tuple[str, list[str]]:
    """The text of a file, and the names of its properties."""
    from privgp.release import geojson

    east, north = order = _east_north(grid)
    columns = {
        name: np.reshape(column, grid.shape).transpose(order) for name, column in numbers.items()
    }
    about = geojson.about_release(release.guarantee, _title(release))
    if contours is None:
        spread = geojson.edges if grid.inputs.columns[0].system is None else _halfway
        corners = _mesh(grid, order, *spread(grid.axes[east], grid.axes[north]))
        return geojson.quads(corners, columns, about), [*grid.inputs.names, *numbers]
    mesh = _mesh(grid, order, grid.axes[east], grid.axes[north])
    units = (release.facts.called or {}).get("units")
    features = []
    for name, column in mapped.items():
        found = columns[column]
        bands = (
            geojson.bands_between(geojson.round_levels(found, contours))
            if isinstance(contours, int)
            else geojson.open_bands(contours)
        )
        features += geojson.contours(mesh, found, bands, {"name": name, "units": units})
    return geojson.collection(features, mesh.bbox, about), [*features[0]["properties"]]


def _east_north(grid: Grid) -> tuple[int, int]:
    """Which of the two inputs goes east, and which north."""
    from privgp.release.geojson import check_degrees, places_in

    column = grid.inputs.columns[0]
    if len(grid.shape) != 2 or min(grid.shape) < 2:
        raise Refusal(NO_PLACES)
    if column.degrees(np.empty((0, column.name_count))) is not None:
        first, second = column.picture_order
        return first, second
    found = places_in(grid.inputs.names)
    if found is None:
        raise Refusal(NO_PLACES)
    check_degrees(grid.axes[found[0]], grid.axes[found[1]])
    return found


def _halfway(east: Array, north: Array) -> tuple[Array, Array]:
    """Edges of cells in a plane."""
    from privgp.release.geojson import halfway

    return halfway(east), halfway(north)


def _mesh(grid: Grid, order: Sequence[int], east: Array, north: Array) -> Mesh:
    """Points of these numbers on the globe, (east, north)."""
    from privgp.release.geojson import Mesh

    column = grid.inputs.columns[0]
    if column.system is None:
        return Mesh.of_axes(east, north)
    numbers = np.stack([each.ravel() for each in np.meshgrid(east, north, indexing="ij")], axis=1)
    degrees = column.degrees(numbers[:, list(order)])
    assert degrees is not None  # as it has a system
    return Mesh.of_degrees(degrees, (len(east), len(north)))


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
    from privgp.release.geojson import places_in

    names = grid.inputs.names
    found = places_in(names)
    pairs = [] if found is None else [found]
    for column in grid.inputs.columns:
        if len(column.names) == 2:
            east, north = (names.index(column.names[k]) for k in column.picture_order)
            pairs.append((east, north))
    if len({*pairs}) != 1:
        return [*range(len(names))]
    east, north = pairs[0]
    return [k for k in range(len(names)) if k not in (east, north)] + [north, east]


def _axes(grid: Grid) -> list[tuple[str, Array, dict[str, object]]]:
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


def _projection(file: netcdf_file, grid: Grid) -> dict[str, str]:
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
    file: netcdf_file,
    name: str,
    numbers: Array,
    axes: tuple[str, ...],
    attributes: Mapping[str, object],
) -> None:
    variable = file.createVariable(name, "d", axes)
    variable[:] = numbers
    for key, value in attributes.items():
        setattr(variable, key, value.encode("utf-8") if isinstance(value, str) else value)
