"""``privgp predict`` and ``privgp inspect``: use what was published, any number of times."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from privgp.command import options as o
from privgp.command.errors import Refusal, plural
from privgp.command.io.files import (
    CERTIFICATES,
    DOCUMENTS,
    NEW_TABLES,
    PAGES,
    PICTURES,
    RELEASES,
    TABLES,
    check_files,
    open_own,
    write_text,
)
from privgp.command.io.screen import progress, table, tell, warn
from privgp.tables.parser import list_names

if TYPE_CHECKING:
    from polars import DataFrame

    from privgp.command.io.documents import Answers
    from privgp.plan.inputs.inputs import Inputs
    from privgp.release.release import Release as ReleaseValue

OBSERVATION_HELP = "Give the std and the interval of a new output instead of the function's."
PAGE_HELP = "Also write the curve, map or slices as one page for publishing: .html."
LABEL_HELP = "What --page calls the output, with its unit: 'height in cm'."
COVERAGE_HELP = "The probability of the interval from low to high."
OUT_HELP = "The .csv or .parquet file to write, or .geojson; of a grid also CF netCDF, .nc, or GeoTIFF, .tif."
GRID_HELP = (
    "Instead of NEW: predict on this many points along every input, over the range of the data."
)
GRID_BOUNDS_HELP = "Ends of the grid, such as age=20:80,when=2023-01-01:2023-12-31; levels such as region=north|south."
CONTOURS_HELP = (
    "In a .geojson file: instead of the cells of the grid, the areas between levels of the mean; how many "
    "of them at most, at round levels, or levels such as 1000,1500,2000."
)
KEEP_HELP = (
    "Whether the columns of NEW are copied too, except for the private output. Default: they are, unless the "
    "release protects whole records."
)
KEPT = "{out} holds the columns of NEW: keep it private if NEW is the protected table."
NOT_KEPT = (
    "{out} holds predictions alone, in the order of the rows of NEW, as the release protects whole "
    "records: --keep copies the columns of NEW. Predictions tell about the inputs they are made at: keep "
    "{out} private if NEW is the protected table."
)
PLACES_SHOWN = (
    "A .geojson file shows the places of the rows of NEW, and the release protects places: give --keep if "
    "NEW may be shown."
)
TEMPLATE_HELP = "Write such a JSON file to fill in, and no certificate."
AVERAGE_HELP = (
    "Instead of predictions: averages over the rows of NEW, such as by=region, by=region,weights=people "
    "or all."
)
AREAS_HELP = (
    "Instead of predictions: averages over the polygons of a GeoJSON file, over a grid in each or over "
    "the rows of NEW; needs the extra geo."
)
SIMULTANEOUS_HELP = "Give intervals that hold the function at all rows at once."
FORM = "--average must be by=COLUMN, by=COLUMN,weights=COLUMN, weights=COLUMN or all."
AREA_TABLES = (".csv", ".parquet", ".geojson")
PUBLIC_ROWS = (
    "The rows of NEW must be public: averages tell where they are. Keep {out} private if not."
)
GRIDDED = (".nc", ".tif", ".geojson")
MAPPED = (".geojson",)  # of rows too


def predict(
    release: o.Release,
    written: o.TableForm,
    data: o.OptionalData = None,
    out: Annotated[Path | None, o.destination("TABLE", OUT_HELP)] = None,
    inputs: Annotated[str | None, o.input_names_option("release")] = None,
    grid: Annotated[int | None, o.plain(GRID_HELP, metavar="COUNT", min=1)] = None,
    grid_bounds: Annotated[str | None, o.plain(GRID_BOUNDS_HELP, metavar="A=LO:HI")] = None,
    contours: Annotated[str | None, o.plain(CONTOURS_HELP, metavar="COUNT|A,B")] = None,
    coverage: Annotated[float, o.plain(COVERAGE_HELP)] = 0.9,
    observation: Annotated[bool, o.plain(OBSERVATION_HELP, "--observation")] = False,
    simultaneous: Annotated[bool, o.plain(SIMULTANEOUS_HELP, "--simultaneous")] = False,
    average: Annotated[str | None, o.plain(AVERAGE_HELP, metavar="by=COLUMN")] = None,
    areas: Annotated[Path | None, o.plain(AREAS_HELP, metavar="POLYGONS")] = None,
    keep: Annotated[bool | None, o.results(KEEP_HELP, "--keep/--no-keep")] = None,
    plot: o.Plot = None,
    page: Annotated[Path | None, o.results(PAGE_HELP, metavar="PAGE")] = None,
    label: Annotated[str | None, o.results(LABEL_HELP, metavar="TEXT")] = None,
    force: o.Force = False,
    json: o.Json = False,
) -> None:
    """Predict from a release: the table with further columns mean, std, low and high; of labels, the
    most probable one and the probability of each with its interval. For a release that protects whole
    records these columns alone, unless you say --keep. Free, as often as you like."""
    files = [(out, (*NEW_TABLES, *GRIDDED)), (plot, PICTURES), (page, PAGES)]
    reads = [(release, RELEASES), (data, TABLES), (areas, (".geojson", ".json"))]
    check_files(reads, files, force=force)
    on_grid = grid is not None or grid_bounds is not None
    if average is not None or areas is not None:
        _write_averages(
            release, data, out, inputs, vars(written), average, areas, coverage, plot, json,
            others=on_grid or contours or observation or simultaneous or keep is not None or page,
        )  # fmt: skip
        return
    if simultaneous and (observation or out is None):
        raise Refusal(
            "--simultaneous is for intervals of the function at rows, without --observation."
        )
    if data is not None and on_grid:
        raise Refusal("--grid and --grid-bounds take the place of NEW: leave out one of them.")
    if data is None and keep is not None:
        raise Refusal("--keep and --no-keep are for the columns of NEW, which is not given.")
    asked_for_rows = data is not None or on_grid
    if asked_for_rows != (out is not None) or (out is None and page is None):
        raise Refusal(
            "Missing: NEW or --grid with --out, to predict at rows, or --page, for a page of the "
            "release."
        )
    if label is not None and (page is None or not label.strip()):
        raise Refusal("--label is the output's name for --page, and goes with it.")
    if contours is not None and (out is None or out.suffix != ".geojson" or not on_grid):
        raise Refusal(
            "--contours is for a .geojson file of a grid: give --grid and --out such as map.geojson."
        )
    if out is not None and out.suffix in GRIDDED and out.suffix not in MAPPED and not on_grid:
        raise Refusal(f"A {out.suffix} file holds a grid: give --grid instead of NEW.")
    from polars import DataFrame

    from privgp.command.io.axes import grid_of
    from privgp.command.io.columns import kept_columns, question_rows, refuse_questions
    from privgp.command.io.documents import Answers
    from privgp.command.io.maps import read_contours, write_grid, write_points
    from privgp.command.io.results import picture_lines, write_table
    from privgp.models.load import load as load_release
    from privgp.release.prediction import check_coverage
    from privgp.tables.source import Form

    with refuse_questions():
        check_coverage(coverage)
    asked = None if contours is None else read_contours(contours)
    model = open_own(release, load_release)
    answers, lattice = Answers(model), None
    answers.check(observation)
    if out is None:
        with progress(1) as step:
            step("Drawing")
            _draw(answers, plot, page, release.stem, label, observation)
        shown = [*picture_lines(page), *picture_lines(plot)]
        tell({"page": page, "plot": plot}, shown, model.guarantee_, as_json=json)
        return
    warnings: list[str] = []
    hidden = _hides_inputs(answers.release)
    if data is None:
        lattice = grid_of(answers.release, grid, grid_bounds)
        X = whole = lattice.table()
    else:
        form = Form(**vars(written))
        X, whole = question_rows(model, release, data, inputs, form), DataFrame()
        keep = not hidden if keep is None else keep
        if keep:
            whole = kept_columns(answers.release, data, X.columns, form)
        if hidden and not keep and out.suffix in MAPPED:
            raise Refusal(PLACES_SHOWN)
        if hidden:
            warnings = [(KEPT if keep else NOT_KEPT).format(out=out)]
    with progress(answers.steps(X.height) + 1) as step:
        predicted = answers.at(X, step, coverage, observation, simultaneous)
        step("Writing")
        other = [name for name in whole.columns if name not in X.columns]
        if {*predicted} <= {*other}:  # earlier predictions, which these replace
            whole = whole.drop(*predicted, *({"simulation"} & {*other}))
        taken = not {*whole.columns}.isdisjoint(predicted)
        names = {name: f"predicted_{name}" if taken else name for name in predicted}
        values = {names[name]: column for name, column in predicted.items()}
        mapped = {shown: names[column] for shown, column in answers.map_columns().items()}
        if lattice is not None and out.suffix in GRIDDED:
            near = answers.near_data(X)
            columns = write_grid(answers.release, lattice, {**values, **near}, out, mapped, asked)
        elif out.suffix in MAPPED:
            frame = DataFrame({**whole.to_dict(), **values, **answers.near_data(X)})
            columns = write_points(answers.release, X, frame, out)
        else:
            frame = DataFrame({**whole.to_dict(), **values})
            columns = write_table(frame, out, simulation=model.guarantee_.is_simulation)
        points = X if lattice is None and keep else None
        _draw(answers, plot, page, release.stem, label, observation, points)
    lines = [
        f"Predicted {plural(X.height, 'row')} into {out}: {list_names([*values])}.",
        f"Intervals, from low to high, have probability {coverage:g}; they and each std are those of "
        f"{answers.describe(observation)}.",
        *_unknown_levels(model.inputs_, X),
    ]
    if asked is not None:
        lines = [
            f"Areas between two levels of {list_names([*mapped])} are in {out}; 'band' names each."
        ]
    facts = {
        "predictions": out,
        "rows": X.height,
        "columns": columns,
        "output": model.output_,
        **answers.facts(names),
        "coverage": coverage,
        "observation": observation,
        "plot": plot,
        "page": page,
        "warnings": warnings,
    }
    tell(
        facts, [*lines, *picture_lines(plot), *picture_lines(page)], model.guarantee_, as_json=json
    )
    if not json:
        warn(warnings)


def _read_average(text: str) -> dict[str, str]:
    """What --average asks for: names of columns, by their use."""
    if text.strip() == "all":
        return {}
    parts = [part.partition("=") for part in text.split(",")]
    found = {key.strip(): value.strip() for key, _, value in parts}
    wrong = len(found) != len(parts) or not all(found.values()) or not {*found} <= {"by", "weights"}
    if wrong:
        raise Refusal(FORM)
    return found


def _write_averages(
    release: Path,
    data: Path | None,
    out: Path | None,
    inputs: str | None,
    written: dict[str, Any],
    average: str | None,
    areas: Path | None,
    coverage: float,
    plot: Path | None,
    json: bool,
    others: object,
) -> None:
    """Average what was published and write a table, or GeoJSON of areas. ``others``: options that do not
    go with it."""
    if others or (data is None and areas is None):
        raise Refusal(
            "--average goes with NEW, and neither --average nor --areas with a grid, --observation, "
            "--simultaneous, --keep or --page."
        )
    asked = {} if average is None else _read_average(average)
    if areas is not None and "by" in asked:
        raise Refusal("--areas averages over polygons: leave out by= of --average.")
    if areas is not None and asked and data is None:
        raise Refusal("weights= of --average are those of the rows of NEW, which is not given.")
    if out is not None and out.suffix not in (AREA_TABLES if areas is not None else NEW_TABLES):
        raise Refusal(f"Averages cannot be written to a {out.suffix} file: give .csv or .parquet.")
    from polars import DataFrame

    from privgp.command.io.columns import as_table, kept_columns, question_rows, refuse_questions
    from privgp.command.io.results import picture_lines, write_picture, write_table
    from privgp.models.load import load
    from privgp.release.prediction import check_coverage
    from privgp.tables.source import Form

    with refuse_questions():
        check_coverage(coverage)
    form = Form(**written)
    model = open_own(release, load)
    X: Any = None
    more: dict[str, Any] = {}
    if data is not None:
        X = question_rows(model, release, data, inputs, form)
        whole = kept_columns(model._released, data, X.columns, form)
        for name in asked.values():
            if name not in whole.columns:
                raise Refusal(f"'{data}' has no column '{name}', which --average names.")
        more = {use: whole[name] for use, name in asked.items()}
        X = as_table(model._released.names, X)
    with progress(2) as step, refuse_questions():
        step("Averaging")
        if areas is not None:
            found = model.areas(areas, X, weights=more.get("weights"), coverage=coverage)
        else:
            found = model.average(X, coverage=coverage, **more)
        step("Writing")
        frame = DataFrame(dict(found.columns()))
        columns = frame.columns
        if out is not None and out.suffix == ".geojson":
            write_text(out, found.to_geojson())
        elif out is not None:
            columns = write_table(frame, out, simulation=model.guarantee_.is_simulation)
        if plot is not None:
            write_picture(found.plot() if areas is not None else model.plot(), plot)
    averages = plural(len(found.labels), "average")
    where = f"Wrote {averages} into {out}" if out is not None else averages.capitalize()
    lines: list[Any] = [
        f"{where}: mean, std, and from low to high intervals of probability {coverage:g}."
    ]
    if out is None:
        cells = [[f"{c:.4g}" if isinstance(c, float) else str(c) for c in r] for r in frame.rows()]
        lines = [table("", [*columns, ""], cells, -1), *lines]
    shown = data is not None and out is not None and _hides_inputs(model._released)
    warnings = [PUBLIC_ROWS.format(out=out)] if shown else []
    facts = {
        "averages": frame.to_dicts() if out is None else out,
        "rows": len(found.labels),
        "columns": columns,
        "output": model.output_,
        "coverage": coverage,
        "plot": plot,
        "warnings": warnings,
    }
    tell(facts, [*lines, *picture_lines(plot)], model.guarantee_, as_json=json)
    if not json:
        warn(warnings)


def _hides_inputs(release: ReleaseValue) -> bool:
    """Whether a release protects whole records, with their inputs."""
    return release.parameters.x_bounds is not None


def _draw(
    answers: Answers,
    plot: Path | None,
    page: Path | None,
    name: str,
    label: str | None,
    observation: bool,
    points: DataFrame | None = None,
) -> None:
    """The picture and the page that were asked for."""
    from privgp.command.io.results import write_page, write_picture

    if plot is not None:
        write_picture(answers.plot(observation, points), plot)
    if page is not None:
        write_page(answers.release, page, name, label)


def _unknown_levels(inputs: Inputs | None, X: DataFrame) -> list[str]:
    """A sentence about rows whose category has a level that the release does not know."""
    if inputs is None:
        return []
    from privgp.plan.inputs.inputs import unknown_rows

    rows = unknown_rows(inputs, X.to_dict(as_series=False))
    if not rows:
        return []
    return [
        f"{plural(rows, 'row')} {'has' if rows == 1 else 'have'} a level that the release does not "
        "know: what is predicted there is what its levels have in common."
    ]


def inspect(
    file: o.Document,
    certificate: o.Certificate = None,
    holder: o.Holder = None,
    force: o.Force = False,
    json: o.Json = False,
) -> None:
    """Show what a release guarantees and contains, or what a plan would spend."""
    check_files(
        [(file, DOCUMENTS), (holder, (".json",))], [(certificate, CERTIFICATES)], force=force
    )
    from privgp.command.io.documents import open_document
    from privgp.command.io.results import read_holder

    document, known = open_document(file), read_holder(holder)
    lines = document.describe()
    if certificate is not None:
        document.write(certificate, known)
        lines.append(f"Certificate: {certificate}")
    tell(document.facts(), lines, document.guarantee, as_json=json)


def certificate(
    out: Annotated[Path, o.destination("PAGE", "The .html or .json file to write.")],
    file: o.OptionalDocument = None,
    holder: o.Holder = None,
    template: Annotated[bool, o.results(TEMPLATE_HELP, "--template")] = False,
    force: o.Force = False,
    json: o.Json = False,
) -> None:
    """Write what a release guarantees, or a plan to be signed, as a page for people or as JSON."""
    endings = (".json",) if template else CERTIFICATES
    check_files([(file, DOCUMENTS), (holder, (".json",))], [(out, endings)], force=force)
    if template == (file is not None):
        raise Refusal("Give either a FILE or --template.")
    if template and holder is not None:
        raise Refusal("--holder does not go with --template.")
    from privgp.command.io.documents import open_document
    from privgp.command.io.results import read_holder, write_template

    if file is None:
        write_template(out)
        tell({"template": out}, [f"To be filled in: {out}."], None, as_json=json)
        return
    document = open_document(file)
    document.write(out, read_holder(holder))
    tell({"certificate": out}, [f"Certificate: {out}"], document.guarantee, as_json=json)
