"""``privgp predict`` and ``privgp inspect``: use what was published, any number of times."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from privgp.command.io.screen import progress, table, tell
from privgp.tables.parser import list_names

if TYPE_CHECKING:
    from polars import DataFrame
    from rich.table import Table

    from privgp.command.io.documents import Answers
    from privgp.models.published import Published
    from privgp.plan.inputs.inputs import Inputs
    from privgp.release.release import Release as ReleaseValue
    from privgp.tables.source import Form
    from privgp.types import UserData

OBSERVATION_HELP = (
    "Give the standard deviation and interval of a new output instead of the function."
)
PAGE_HELP = "Also write the curve, map or slices as one .html page that can be published."
LABEL_HELP = "The name of the output on the --page, with its unit: 'height in cm'."
COVERAGE_HELP = "The probability of the interval from low to high."
OUT_HELP = "The .csv or .parquet file to write, or .geojson; of a grid also CF netCDF, .nc, or GeoTIFF, .tif."
GRID_HELP = (
    "Instead of NEW: predict on this many points along every input, over the range of the data."
)
GRID_BOUNDS_HELP = "Ends of the grid, such as age=20:80,when=2023-01-01:2023-12-31; levels such as region=north|south."
CONTOURS_HELP = (
    "In a .geojson file: areas between levels of the mean instead of the cells of the grid. Give the "
    "largest number of areas, or the levels, such as 1000,1500,2000."
)
KEEP_HELP = (
    "Whether the columns of NEW are copied, except for the private output. Default: yes, unless the release "
    "protects whole records."
)
KEPT = "{out} holds the columns of NEW: keep it private if NEW is the protected table."
NOT_KEPT = (
    "{out} holds predictions alone, in the order of the rows of NEW, as the release protects whole "
    "records: --keep copies the columns of NEW. Predictions reveal the inputs they are made at: keep "
    "{out} private if NEW is the protected table."
)
PLACES_SHOWN = (
    "A .geojson file shows the places of the rows of NEW, and the release protects places: give --keep if "
    "NEW may be shown."
)
TEMPLATE_HELP = "Write an empty JSON file for --holder instead of a certificate."
AVERAGE_HELP = (
    "Instead of predictions: averages over the rows of NEW, such as by=region, by=region,weights=people "
    "or all."
)
AREAS_HELP = (
    "Instead of predictions: averages over the polygons of a GeoJSON file, over a grid in each or over "
    "the rows of NEW; needs the extra geo."
)
SIMULTANEOUS_HELP = "Give intervals that contain the function at all rows at once."
FORM = "--average must be by=COLUMN, by=COLUMN,weights=COLUMN, weights=COLUMN or all."
AREA_TABLES = (".csv", ".parquet", ".geojson")
PUBLIC_ROWS = (
    "The rows of NEW must be public: averages tell where they are. Keep {out} private if not."
)
GRIDDED = (".nc", ".tif", ".geojson")
MAPPED = (".geojson",)  # of rows too


@dataclass(frozen=True, kw_only=True)
class PredictOptions:
    """What is predicted, where and into which files."""

    out: Annotated[Path | None, o.destination("TABLE", OUT_HELP)] = None
    inputs: Annotated[str | None, o.input_names_option("release")] = None
    grid: Annotated[int | None, o.plain(GRID_HELP, metavar="COUNT", min=1)] = None
    grid_bounds: Annotated[str | None, o.plain(GRID_BOUNDS_HELP, metavar="A=LO:HI")] = None
    contours: Annotated[str | None, o.plain(CONTOURS_HELP, metavar="COUNT|A,B")] = None
    coverage: Annotated[float, o.plain(COVERAGE_HELP)] = 0.9
    observation: Annotated[bool, o.plain(OBSERVATION_HELP, "--observation")] = False
    simultaneous: Annotated[bool, o.plain(SIMULTANEOUS_HELP, "--simultaneous")] = False
    average: Annotated[str | None, o.plain(AVERAGE_HELP, metavar="by=COLUMN")] = None
    areas: Annotated[Path | None, o.plain(AREAS_HELP, metavar="POLYGONS")] = None
    keep: Annotated[bool | None, o.results(KEEP_HELP, "--keep/--no-keep")] = None
    plot: o.Plot = None
    page: Annotated[Path | None, o.results(PAGE_HELP, metavar="PAGE")] = None
    label: Annotated[str | None, o.results(LABEL_HELP, metavar="TEXT")] = None
    force: o.Force = False
    json: o.Json = False

    @property
    def on_grid(self) -> bool:
        return self.grid is not None or self.grid_bounds is not None

    def check(self, data: Path | None) -> None:
        """Refuse options that do not go together, or with a table of new rows."""
        out, ending = self.out, "" if self.out is None else self.out.suffix
        if self.simultaneous and (self.observation or out is None):
            raise Refusal(
                "--simultaneous is for intervals of the function at rows, without --observation."
            )
        if data is not None and self.on_grid:
            raise Refusal("--grid and --grid-bounds take the place of NEW: leave out one of them.")
        if data is None and self.keep is not None:
            raise Refusal("--keep and --no-keep are for the columns of NEW, which is not given.")
        at_rows = data is not None or self.on_grid
        if at_rows != (out is not None) or (out is None and self.page is None):
            raise Refusal(
                "Missing: --out for the results together with NEW or --grid, such as --grid 20 -o curve.csv, or "
                "--page for a page of the release."
            )
        if self.label is not None and (self.page is None or not self.label.strip()):
            raise Refusal("--label is the output's name for --page, and goes with it.")
        if self.contours is not None and (ending != ".geojson" or not self.on_grid):
            raise Refusal(
                "--contours is for a .geojson file of a grid: give --grid and --out such as map.geojson."
            )
        if ending in GRIDDED and ending not in MAPPED and not self.on_grid:
            raise Refusal(f"A {ending} file holds a grid: give --grid instead of NEW.")

    def check_averages(self, data: Path | None) -> dict[str, str] | None:
        """The same for averages; returns names of columns by their use, None if none are asked for."""
        if self.average is None and self.areas is None:
            return None
        others = self.on_grid or self.contours or self.observation or self.simultaneous or self.page
        if others or self.keep is not None or (data is None and self.areas is None):
            raise Refusal(
                "--average goes with NEW, and neither --average nor --areas with a grid, --observation, "
                "--simultaneous, --keep or --page."
            )
        asked = {} if self.average is None else _read_average(self.average)
        if self.areas is not None and "by" in asked:
            raise Refusal("--areas averages over polygons: leave out by= of --average.")
        if self.areas is not None and asked and data is None:
            raise Refusal("weights= of --average are those of the rows of NEW, which is not given.")
        tables = NEW_TABLES if self.areas is None else AREA_TABLES
        if self.out is not None and self.out.suffix not in tables:
            raise Refusal(
                f"Averages cannot be written to a {self.out.suffix} file: give .csv or .parquet."
            )
        return asked


def predict(
    release: o.Release,
    asked: PredictOptions,
    form: o.TableForm,
    data: o.OptionalData = None,
) -> None:
    """Predict from a release. Writes your table with further columns: mean, std, low, high and near_data, or
    for labels the most probable label and the probability of each class with its interval. If the release
    protects whole records, your columns are left out unless you give --keep. Predicting is free."""
    files = [(asked.out, (*NEW_TABLES, *GRIDDED)), (asked.plot, PICTURES), (asked.page, PAGES)]
    reads = [(release, RELEASES), (data, TABLES), (asked.areas, (".geojson", ".json"))]
    check_files(reads, files, force=asked.force)
    columns = asked.check_averages(data)
    if columns is None:
        asked.check(data)
    from privgp.command.io.columns import refuse_questions
    from privgp.models.load import load
    from privgp.release.queries.quantities import check_coverage
    from privgp.tables.source import Form

    with refuse_questions():
        check_coverage(asked.coverage)
    written = Form(**vars(form))
    if columns is not None:
        _write_averages(open_own(release, load), release, data, asked, written, columns)
        return
    _write_predictions(open_own(release, load), release, data, asked, written)


def _write_predictions(
    model: Published, release: Path, data: Path | None, asked: PredictOptions, form: Form
) -> None:
    """Predict at new rows, on a grid, or for a page alone."""
    from polars import DataFrame

    from privgp.command.io.axes import grid_of
    from privgp.command.io.columns import columns_to_keep, question_rows
    from privgp.command.io.documents import Answers
    from privgp.command.io.maps import read_contours, write_grid, write_points
    from privgp.command.io.results import picture_lines, write_table

    contours = None if asked.contours is None else read_contours(asked.contours)
    answers, lattice, out = Answers(model), None, asked.out
    answers.check(asked.observation)
    pictures = {"plot": asked.plot, "page": asked.page}
    if out is None:
        with progress(1) as step:
            step("Drawing")
            _draw(answers, asked, release.stem)
        shown = [*picture_lines(asked.page), *picture_lines(asked.plot)]
        tell(pictures, shown, model.guarantee_, as_json=asked.json)
        return
    warnings: list[str] = []
    hidden, keep = _hides_inputs(answers.release), asked.keep
    if data is None:
        lattice = grid_of(answers.release, asked.grid, asked.grid_bounds)
        X = whole = lattice.table()
    else:
        X, whole = question_rows(model, release, data, asked.inputs, form), DataFrame()
        keep = not hidden if keep is None else keep
        if keep:
            whole = columns_to_keep(answers.release, data, X.columns, form)
        if hidden and not keep and out.suffix in MAPPED:
            raise Refusal(PLACES_SHOWN)
        if hidden:
            warnings = [(KEPT if keep else NOT_KEPT).format(out=out)]
    with progress(answers.steps(X.height) + 1) as step:
        predicted = answers.at(X, step, asked.coverage, asked.observation, asked.simultaneous)
        step("Writing")
        other = [name for name in whole.columns if name not in X.columns]
        if {*predicted} <= {*other}:  # earlier predictions, which these replace
            whole = whole.drop(*predicted, *({"simulation"} & {*other}))
        taken = not {*whole.columns}.isdisjoint(predicted)
        names = {name: f"predicted_{name}" if taken else name for name in predicted}
        values = {names[name]: column for name, column in predicted.items()}
        mapped = {shown: names[column] for shown, column in answers.map_columns().items()}
        frame = DataFrame({**whole.to_dict(), **values})
        if lattice is not None and out.suffix in GRIDDED:
            columns = write_grid(answers.release, lattice, values, out, mapped, contours)
        elif out.suffix in MAPPED:
            columns = write_points(answers.release, X, frame, out)
        else:
            columns = write_table(frame, out, simulation=model.guarantee_.is_simulation)
        _draw(answers, asked, release.stem, X if lattice is None and keep else None)
    lines = [
        f"Predicted {plural(X.height, 'row')} into {out}: {list_names([*values])}.",
        f"The interval from low to high contains {answers.describe(asked.observation)} with probability "
        f"{asked.coverage:g}.",
        *_unknown_levels(model.inputs_, X),
    ]
    if contours is not None:
        lines = [
            f"Areas between two levels of {list_names([*mapped])} are in {out}; 'band' names each."
        ]
    facts = {
        "predictions": out,
        "rows": X.height,
        "columns": columns,
        "output": model.output_,
        **answers.facts(names),
        "coverage": asked.coverage,
        "observation": asked.observation,
        **pictures,
        "warnings": warnings,
    }
    lines += [*picture_lines(asked.plot), *picture_lines(asked.page)]
    tell(facts, lines, model.guarantee_, as_json=asked.json)


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
    model: Published,
    release: Path,
    data: Path | None,
    asked: PredictOptions,
    form: Form,
    columns: dict[str, str],
) -> None:
    """Average what was published and write a table, or GeoJSON of areas. ``columns``: those of NEW by
    their use."""
    from polars import DataFrame

    from privgp.command.io.columns import as_table, columns_to_keep, question_rows, refuse_questions
    from privgp.command.io.results import picture_lines, write_picture, write_table

    out, plot, coverage = asked.out, asked.plot, asked.coverage
    X: UserData = None
    more: dict[str, UserData] = {}
    if data is not None:
        X = question_rows(model, release, data, asked.inputs, form)
        whole = columns_to_keep(model._released, data, X.columns, form)
        for name in columns.values():
            if name not in whole.columns:
                raise Refusal(f"'{data}' has no column '{name}', which --average names.")
        more = {use: whole[name] for use, name in columns.items()}
        X = as_table(model._released.names, X)
    with progress(2) as step, refuse_questions():
        step("Averaging")
        areas = None
        if asked.areas is not None:
            areas = model.areas(asked.areas, X, weights=more.get("weights"), coverage=coverage)
        found = model.average(X, coverage=coverage, **more) if areas is None else areas
        step("Writing")
        frame = DataFrame(dict(found.columns()))
        written = frame.columns
        if out is not None and areas is not None and out.suffix == ".geojson":
            write_text(out, areas.to_geojson())
        elif out is not None:
            written = write_table(frame, out, simulation=model.guarantee_.is_simulation)
        if plot is not None:
            write_picture(model.plot() if areas is None else areas.plot(), plot)
    averages = plural(len(found.labels), "average")
    where = f"Wrote {averages} into {out}" if out is not None else averages.capitalize()
    lines: list[str | Table] = [
        f"{where}: mean, std, and the interval from low to high, of probability {coverage:g}."
    ]
    if out is None:
        cells = [[f"{c:.4g}" if isinstance(c, float) else str(c) for c in r] for r in frame.rows()]
        lines = [table("", [*written, ""], cells, -1), *lines]
    shown = data is not None and out is not None and _hides_inputs(model._released)
    warnings = [PUBLIC_ROWS.format(out=out)] if shown else []
    facts = {
        "averages": frame.to_dicts() if out is None else out,
        "rows": len(found.labels),
        "columns": written,
        "output": model.output_,
        "coverage": coverage,
        "plot": plot,
        "warnings": warnings,
    }
    tell(facts, [*lines, *picture_lines(plot)], model.guarantee_, as_json=asked.json)


def _hides_inputs(release: ReleaseValue) -> bool:
    """Whether a release protects whole records, with their inputs."""
    return release.parameters.x_bounds is not None


def _draw(
    answers: Answers, asked: PredictOptions, name: str, points: DataFrame | None = None
) -> None:
    """The picture and the page that were asked for."""
    from privgp.command.io.results import write_page, write_picture

    if asked.plot is not None:
        write_picture(answers.plot(asked.observation, points), asked.plot)
    if asked.page is not None:
        write_page(answers.release, asked.page, name, asked.label)


def _unknown_levels(inputs: Inputs | None, X: DataFrame) -> list[str]:
    """A sentence about rows whose category has a level that is not in the release."""
    if inputs is None:
        return []
    from privgp.plan.inputs.inputs import unknown_rows

    rows = unknown_rows(inputs, X.to_dict(as_series=False))
    if not rows:
        return []
    return [
        f"{plural(rows, 'row')} {'has' if rows == 1 else 'have'} a level that is not in the release: "
        "the prediction there is what all levels have in common."
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
    """Write the certificate of a release, or a plan to be signed, as a page for people or as JSON."""
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
