"""``python -m papers NAME``: repeat tables and figures of the papers, and write reports on them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from privgp.command import run_application

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Name(StrEnum):
    kung = "kung"
    citibike = "citibike"
    london = "london"
    lengthscales = "lengthscales"
    excursion = "excursion"
    attack = "attack"
    optimisation = "optimisation"
    all = "all"


NAMES = [name.value for name in Name if name is not Name.all]


@app.command()
def papers(
    name: Annotated[
        Name, typer.Argument(metavar="NAME", help=f"One of {', '.join(Name)}.", show_choices=False)
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Where the data files are; ../shared/data if that is there."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer repetitions: minutes instead of an hour.")
    ] = False,
    out: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Where the reports go.")
    ] = Path("papers-reports"),
) -> None:
    """Repeat a table or figure of the papers, by their method and by the default, as a report."""
    from papers.reports import write_reports

    together = name is Name.all
    names = NAMES if together else [name.value]
    write_reports(names, data=data, quick=quick, out=out, together=together)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    return run_application(app, given, "python -m papers")


if __name__ == "__main__":
    sys.exit(main())
