"""The files of a release, written and told of; tables, pictures, pages and certificates of anything."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from matplotlib.figure import Figure
from rich.table import Table

from privgp.command.errors import Refusal, refusal, refuse_on
from privgp.command.io.files import shown_name, suffix_of, whole_file, write_json, write_text
from privgp.command.io.request import Request
from privgp.command.io.screen import Step, tell
from privgp.command.options import ReleaseFiles
from privgp.models.load import NOTICE_RECORDS, save
from privgp.models.published import LONGEST, Published
from privgp.privacy.guarantee import Guarantee
from privgp.release.certificate import certificate, page
from privgp.release.certificate.document import holder_fields
from privgp.release.release import Release
from privgp.tables.parser import list_names


@dataclass(frozen=True)
class Results:
    """The files to write, and what the output is called."""

    release: Path
    beside: ReleaseFiles
    name: str | None = None
    units: str | None = None
    holder: Mapping[str, str] | None = None

    def check_output_names(self, request: Request) -> None:
        """Refuse a name or units that the release could not hold."""
        if len(request.output_names) > 1 and (self.name or self.units) is not None:
            raise Refusal(
                "--name and --units are for one output: several have their columns' names."
            )
        for option, text in (("--name", self.name), ("--units", self.units)):
            if text is not None and not 0 < len(text.strip()) <= LONGEST:
                raise Refusal(f"{option} must be a text of at most {LONGEST} characters.")

    def write(self, model: Published, output: str, saved: list[Path], step: Step) -> None:
        """Write what was asked for; the release comes first and is noted once it is complete."""
        known = model._released.output_names or (self.name is None and model.output_)
        if not known and (self.name or output):
            model.name_output(self.name or output, self.units, output or None)
        step("Writing the release")
        save(model, self.release, overwrite=self.beside.force)
        saved.append(self.release)
        step("Drawing and certifying")
        if self.beside.certificate is not None:
            write_certificate(model, self.beside.certificate, self.holder)
        if self.beside.plot is not None:
            write_picture(model.plot(), self.beside.plot)

    def tell(
        self,
        guarantee: Guarantee,
        request: Request,
        facts: Mapping[str, object] | None = None,
        *first: str | Table,
        as_json: bool,
    ) -> None:
        """Say what was released; ``facts`` and ``first``: what a command adds, the latter on top."""
        files = {"certificate": self.beside.certificate, "plot": self.beside.plot}
        written = [f"{name.capitalize()}: {path}" for name, path in files.items() if path]
        released = {
            "release": self.release,
            **files,
            "contains_inputs": [] if request.inputs_are_private else request.input_names,
            "guarantee": json.loads(guarantee.to_json()),
            "spent": True,
        }
        lines = [f"Released {self.release}.", contains(request), "", guarantee.describe(), *written]
        tell({**released, **(facts or {})}, [*first, *lines], guarantee, as_json=as_json)


def contains(request: Request) -> str:
    if request.inputs_are_private:
        return NOTICE_RECORDS
    what = "values" if request.inducing is None else "values, or means of values,"
    table = shown_name(request.data)
    return (
        f"The file contains {what} of {list_names(request.input_names)} from {table}. Publish it only "
        "if these columns may be public and none of them was computed from the output."
    )


def read_holder(path: Path | None) -> dict[str, str] | None:
    """What only the custodian knows, from a JSON file."""
    if path is None:
        return None
    form = "must be a JSON object, such as privgp certificate writes to be filled in."
    with refuse_on(f"'{path}' {form}", OSError, ValueError, RecursionError):
        given = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(given, dict):
            raise ValueError
    try:
        return holder_fields(given)
    except ValueError as problem:
        raise refusal(problem, holder="--holder") from None


def write_template(path: Path) -> None:
    """A JSON file with every field that only the custodian can fill in."""
    write_json(path, holder_fields(None))


def write_certificate(model: object, path: Path, holder: Mapping[str, str] | None = None) -> None:
    """What was guaranteed, as a page for people or as JSON for programs by the file's ending."""
    facts = certificate(model, holder=holder)
    if path.suffix == ".html":
        write_text(path, page(facts))
    else:
        write_json(path, facts)


def write_picture(figure: Figure, path: Path) -> None:
    from privgp.pictures.style import figure_bytes

    data = figure_bytes(figure, path.suffix.lower())
    with whole_file(path) as part:
        part.write_bytes(data)


def picture_lines(plot: Path | None) -> list[str]:
    """The sentence about a picture, if there is one."""
    return [] if plot is None else [f"Drawn in {plot}."]


def write_table(frame: pl.DataFrame, path: Path, *, simulation: bool) -> list[str]:
    """Write CSV or Parquet by the file's ending; returns the names of the columns. The table of a
    simulation has one column more, true in every row, which states this to any reader."""
    if simulation:
        name = "simulation"
        while name in frame.columns:
            name += "_"
        frame = frame.with_columns(pl.lit(True).alias(name))
    with whole_file(path) as part:
        if suffix_of(path) == ".csv":
            frame.with_columns(map(_shortly, frame)).write_csv(part)
        else:
            frame.write_parquet(part)
    return frame.columns


def _shortly(column: pl.Series) -> pl.Series:
    """Instants as text without empty parts: days where all are midnight, else whole seconds."""
    if not isinstance(column.dtype, pl.Datetime) or column.dtype.time_zone is not None:
        return column
    for every, form in (("1d", "%Y-%m-%d"), ("1s", "%Y-%m-%dT%H:%M:%S")):
        if (column.dt.truncate(every) == column).all():
            return column.dt.strftime(form)
    return column


def write_page(release: Release, path: Path, name: str, label: str | None) -> None:
    """The same view as the server's page, in one file. ``name``: its title; ``label``: the output's."""
    from privgp.server.errors import Refused
    from privgp.server.views.exports import render_release

    try:
        text = render_release(release, label or release.label(""), name)
    except Refused as refused:
        raise Refusal(refused.sentence) from None
    write_text(path, text)
