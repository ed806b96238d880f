"""The options that several subcommands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

PRIVACY, MODEL, RESULTS, SEARCH = "Privacy", "Model", "Results", "Search"


class Objective(StrEnum):
    posterior = "posterior"
    trace = "trace"
    max = "max"
    logdet = "logdet"


class Reconstruct(StrEnum):
    posterior = "posterior"
    unbiased = "unbiased"


class Mechanism(StrEnum):
    auto = "auto"
    gaussian = "gaussian"
    laplace = "laplace"


class Hyperparameters(StrEnum):
    learned = "learned"
    fixed = "fixed"


class Protect(StrEnum):
    outputs = "outputs"
    records = "records"


def destination(metavar: str, what: str) -> Any:
    """The option for the file that a command writes."""
    return typer.Option("--out", "-o", metavar=metavar, help=what, rich_help_panel=RESULTS)


def named_otherwise(where: str) -> Any:
    """The option for input columns of NEW whose names are not those known ``where``."""
    return typer.Option(
        metavar="A,B", help=f"The input columns of NEW, when named otherwise than in the {where}."
    )


_KERNEL = typer.Option(
    "--kernel",
    metavar="TEXT|FILE",
    help="Such as '100*matern52(10) + white(4)', or a text file that holds it.",
    rich_help_panel=MODEL,
)

Data = Annotated[Path, typer.Argument(metavar="DATA", help="A .csv or .parquet file.")]
NewData = Annotated[
    Path, typer.Argument(metavar="NEW", help="A .csv or .parquet file with the input columns.")
]
Release = Annotated[Path, typer.Argument(metavar="FILE", help="A .privgp file.")]
Inputs = Annotated[
    str,
    typer.Option(
        metavar="A,B", help="Columns to predict from: public, unless records are protected."
    ),
]
Output = Annotated[str, typer.Option(metavar="COLUMN", help="The private column.")]
Bounds = Annotated[
    tuple[float, float],
    typer.Option(
        metavar="LO HI",
        help="Public bounds of the output, chosen without looking at it; values outside are clipped.",
        rich_help_panel=PRIVACY,
    ),
]
Epsilon = Annotated[
    float, typer.Option(help="The budget: smaller is more private.", rich_help_panel=PRIVACY)
]
Delta = Annotated[
    float,
    typer.Option(
        help="The probability left to chance: well below one over the number of people; 0 with "
        "Laplace noise.",
        rich_help_panel=PRIVACY,
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Public person identifiers: all rows of one person are protected together.",
        rich_help_panel=PRIVACY,
    ),
]
ProtectOption = Annotated[
    Protect, typer.Option("--protect", help="What is private.", rich_help_panel=PRIVACY)
]
XBounds = Annotated[
    list[str] | None,
    typer.Option(
        "--x-bounds",
        metavar="LO HI",
        help="With --protect records: public bounds of an input, chosen without looking at it; "
        "once per input, in their order. Inputs outside are moved to them.",
        rich_help_panel=PRIVACY,
    ),
]
KernelText = Annotated[str | None, _KERNEL]
KernelNeeded = Annotated[str, _KERNEL]
NoiseVariance = Annotated[
    float | None,
    typer.Option(help="Variance of an output about the function.", rich_help_panel=MODEL),
]
Targets = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|GRID",
        help="Where to be accurate: a table with the inputs, or a grid such as age=0:90:50 "
        "(start:stop:count). Default: at the rows of DATA; with --protect records, all over the "
        "bounds.",
        rich_help_panel=MODEL,
    ),
]
ObjectiveOption = Annotated[
    Objective,
    typer.Option("--objective", help="What the measurement makes least.", rich_help_panel=MODEL),
]
ReconstructOption = Annotated[
    Reconstruct,
    typer.Option(
        "--reconstruct",
        help="A function that predicts anywhere, or unbiased values at the targets only.",
        rich_help_panel=MODEL,
    ),
]
HyperparametersOption = Annotated[
    Hyperparameters,
    typer.Option(
        "--hyperparameters",
        help="Learned from the private measurement at no cost, or as given.",
        rich_help_panel=MODEL,
    ),
]
MechanismOption = Annotated[
    Mechanism,
    typer.Option(
        "--mechanism",
        help="The law of the noise; auto takes the one with the smaller expected error.",
        rich_help_panel=MODEL,
    ),
]
Inducing = Annotated[
    int | None,
    typer.Option(
        metavar="COUNT",
        help="For many rows: so many inducing inputs. The table is then read a part at a time.",
        rich_help_panel=MODEL,
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option(metavar="PICTURE", help="Also draw it: .png or .svg.", rich_help_panel=RESULTS),
]
Certificate = Annotated[
    Path | None,
    typer.Option(
        metavar="PAGE",
        help="Also write what was promised: .html or .json.",
        rich_help_panel=RESULTS,
    ),
]
Force = Annotated[
    bool, typer.Option("--force", help="Replace files that exist.", rich_help_panel=RESULTS)
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object instead of text.", rich_help_panel=RESULTS),
]
Seed = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=2**32 - 1,
        help="For simulations only: repeatable noise that protects nobody.",
    ),
]

# Functions and paths, which the curator keeps.
State = Annotated[Path, typer.Argument(metavar="STATE", help="A .private-state file.")]
NewState = Annotated[Path, destination("STATE", "The .private-state file to write; it is private.")]
Answers = Annotated[
    Path, destination("TABLE", "The .csv or .parquet file to write; it may be published.")
]
DOMAIN_HELP = (
    "Public ranges of the inputs, such as age=0:90,bmi=15:50; inputs outside are projected."
)
