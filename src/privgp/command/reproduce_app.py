"""The subcommand ``privgp reproduce`` and its options."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

reproduce_app = typer.Typer()


class Name(StrEnum):
    kung = "kung"
    citibike = "citibike"
    london = "london"
    lengthscales = "lengthscales"
    excursion = "excursion"
    attack = "attack"
    optimisation = "optimisation"
    all = "all"


@reproduce_app.command()
def reproduce(
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
    ] = Path("privgp-reproduce"),
) -> None:
    """Repeat a table or figure of the papers, by their method and by the default, as a report."""
    from privgp.command.reproduce import run_reproduce

    names = [part.value for part in Name if part is not Name.all]
    run_reproduce(
        names if name is Name.all else [name.value],
        data=data,
        quick=quick,
        out=out,
        together=name is Name.all,
    )
