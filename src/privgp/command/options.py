"""The options that several subcommands share."""

from collections.abc import Callable
from dataclasses import dataclass, field, is_dataclass, make_dataclass
from functools import cached_property, wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypedDict,
    Unpack,
    get_args,
    get_type_hints,
)

import typer
from typer.models import OptionInfo

from privgp.command.errors import in_options, refuse_options
from privgp.question.parameters import BY_NAME, TABLE
from privgp.question.parameters import Parameter as Declared

if TYPE_CHECKING:
    from privgp.ledger.account import Account

# How help shows values with commas between them: such an option may be given several times.
LISTS = ("A,B", "A,B,C", "A=LO:HI", "A=PERIOD", "LAT,LON", "RANGES")


class More(TypedDict, total=False):
    """What an option may have besides its help."""

    metavar: str | None
    min: float
    max: float
    hidden: bool
    callback: Callable[[bool], None]
    is_eager: bool


class Panel:
    """Where help shows options; called, it makes one."""

    def __init__(self, title: str | None) -> None:
        self.title = title

    def __call__(self, help: str, *names: str, **more: Unpack[More]) -> OptionInfo:
        made: OptionInfo = typer.Option(*names, help=help, rich_help_panel=self.title, **more)
        return made


plain = Panel(None)
privacy = Panel("Privacy")
model = Panel("Model")
columns = Panel("Columns")
search = Panel("Search")
attack = Panel("Attack")
results = Panel("Results")


def describe_parameter(name: str) -> str:
    """What a parameter is, in words of the command."""
    return in_options(BY_NAME[name].meaning)


def destination(metavar: str, what: str) -> OptionInfo:
    return results(what, "--out", "-o", metavar=metavar)


def input_names_option(where: str, table: str = "NEW") -> OptionInfo:
    """The option for input columns of a table whose names are not those known ``where``."""
    return plain(
        f"The input columns of {table}, if their names differ from those in the {where}.",
        metavar="A,B",
    )


# The data
Data = Annotated[Path, typer.Argument(metavar="DATA", help="A .csv, .csv.gz or .parquet file.")]
MANY_DATA_HELP = (
    "A .csv, .csv.gz or .parquet file, a folder of them, or a pattern such as 'trips/*.parquet'."
)
ManyData = Annotated[Path, typer.Argument(metavar="DATA", help=MANY_DATA_HELP)]
ANY_DATA_HELP = (
    f"{MANY_DATA_HELP} Or the address of a table in a database: 'duckdb:///FILE?table=NAME' or "
    "'postgresql://USER@HOST/DATABASE?table=NAME'."
)
AnyData = Annotated[Path, typer.Argument(metavar="DATA", help=ANY_DATA_HELP)]
Scheduler = Annotated[str | None, model(describe_parameter("engine"), metavar="ADDRESS")]
NEW_DATA_HELP = "A .csv, .csv.gz or .parquet file with the input columns."
NewData = Annotated[Path, typer.Argument(metavar="NEW", help=NEW_DATA_HELP)]
OptionalData = Annotated[Path | None, typer.Argument(metavar="NEW", help=NEW_DATA_HELP)]
Output = Annotated[str, plain("The private column.", metavar="COLUMN")]
OUTPUTS_HELP = "The private column, or several such as a,b."
Outputs = Annotated[str, plain(OUTPUTS_HELP, metavar="COLUMN")]
OptionalOutputs = Annotated[str | None, plain(OUTPUTS_HELP, metavar="COLUMN")]
DENSITY_HELP = (
    "Release where the points lie, instead of an output: --inputs are private, with --x-bounds."
)
# What a density of points is asked.
WITH_DENSITY = (
    *("density", "inputs", "epsilon", "delta", "x_bounds", "kernel", "hyperparameters"),
    *("mechanism", "dates", "categories", "places", "crs", "numbers", "missing", "delimiter"),
    *("decimal_comma", "encoding"),
)
Release = Annotated[Path, typer.Argument(metavar="FILE", help="A .privgp file.")]
DOCUMENT_HELP = "A .privgp file or a .plan file."
Document = Annotated[Path, typer.Argument(metavar="FILE", help=DOCUMENT_HELP)]
OptionalDocument = Annotated[Path | None, typer.Argument(metavar="FILE", help=DOCUMENT_HELP)]

# Privacy
BOUNDS_HELP = describe_parameter("y_bounds")
OUTPUTS_BOUNDS_HELP = (
    f"{BOUNDS_HELP} With several outputs, plan and release take it once for each, in their order."
)
Bounds = Annotated[tuple[float, float], privacy(BOUNDS_HELP, metavar="LO HI")]
Epsilon = Annotated[float, privacy(describe_parameter("epsilon"))]
Delta = Annotated[float, privacy(describe_parameter("delta"))]
Protect = Annotated[Literal["outputs", "records"], privacy(describe_parameter("protect"))]
DOMAIN_HELP = (
    "Public ranges of the inputs, such as age=0:90,bmi=15:50. Inputs outside are moved into them."
)

LEDGER_HELP = "The ledger to charge, such as sqlite:///budget.db; goes with --dataset."
LEDGER_URL_HELP = "The ledger: sqlite:///FILE or postgresql://USER@HOST/DATABASE."
LedgerUrl = Annotated[str, plain(LEDGER_URL_HELP, "--ledger", metavar="URL")]

# The model
_KERNEL = model(
    "Such as '100*matern52(10) + white(4)', or a text file that holds it.", metavar="TEXT|FILE"
)
Kernel = Annotated[str, _KERNEL]
NoiseVariance = Annotated[float | None, model(describe_parameter("noise_variance"))]
Law = Literal["auto", "gaussian", "laplace"]

# Results
Plot = Annotated[Path | None, results("Also draw it: .png or .svg.", metavar="PICTURE")]
CERTIFICATE_HELP = "Also write the certificate: .html or .json."
Certificate = Annotated[Path | None, results(CERTIFICATE_HELP, metavar="PAGE")]
HOLDER_HELP = (
    "For the certificate: the JSON file that privgp certificate --template wrote, filled in."
)
Holder = Annotated[Path | None, results(HOLDER_HELP, metavar="JSON")]
NAME_HELP = (
    "The name of the output in pictures and in the certificate. Default: that of its column."
)
Name = Annotated[str | None, results(NAME_HELP, metavar="TEXT")]
Units = Annotated[str | None, results("The units of the output, such as cm.", metavar="TEXT")]
Force = Annotated[bool, results("Replace files that exist.", "--force")]
Json = Annotated[bool, results("Print one JSON object instead of text.", "--json")]
Seed = Annotated[int | None, plain(describe_parameter("random_state"), min=0, max=2**32 - 1)]

# Functions and paths, which the custodian keeps
State = Annotated[Path, typer.Argument(metavar="STATE", help="A .private-state file.")]
NewState = Annotated[Path, destination("STATE", "The .private-state file to write; it is private.")]
Answers = Annotated[
    Path, destination("TABLE", "The .csv or .parquet file to write; it may be published.")
]

# A release
GROUPS_HELP = (
    "Person identifiers: all rows of one person are protected together. They are public; if records "
    "are protected, only the number of people is."
)
X_BOUNDS_HELP = (
    f"{describe_parameter('x_bounds')} Once per input, in their order, or by name, such as "
    "when=2024-01-01:2024-12-31,age=0:90."
)
TARGETS_HELP = (
    f"{describe_parameter('targets')} A table with the inputs, or a grid such as age=0:90:50 (start:stop:count), "
    "when=2024-01-01:2024-12-31:12, region=north|south."
)
INPUTS_HELP = "Columns to predict from: public, unless records are protected."
CLASSES_HELP = f"Instead of --bounds. {describe_parameter('classes')} Such as yes,no."
EXPOSURE_HELP = "With --likelihood poisson: the public column by which counts are divided, such as a population."
WEIGHTS_HELP = "The column of survey weights, public unless records are protected. The target is then the weighted mean."
DATES_HELP = "Inputs that are dates or times, in ISO 8601; UTC where no time zone is given."
CATEGORIES_HELP = (
    "Inputs that are categories, such as region, or with their levels, region=north|south. By default "
    "levels are read from the table, if inputs are public."
)
PLACES_HELP = "Two inputs that are a place: latitude and longitude in degrees, such as lat,lon."
PERIODIC_HELP = "Inputs that start again after a period, such as hour=24."
BOOLEANS_HELP = "Inputs that are true or false."
CRS_HELP = "With --places: their coordinate reference system, such as EPSG:27700; needs pyproj."
MISSING_HELP = (
    "What to do with rows where a value is missing: refuse the table, or leave such rows out. Leaving "
    "them out makes public which rows they are."
)
DELIMITER_HELP = "The character between the fields of a CSV file. Default: the one in its header."
DECIMAL_HELP = (
    "Whether numbers are written 1.250,5 or 1,250.5. Default: as the public columns show."
)
ENCODING_HELP = "The encoding of a CSV file, such as windows-1252. Default: UTF-8."
DATE_FORMAT_HELP = (
    "The format of dates that are not in ISO 8601: '%d.%m.%Y', '%m/%d/%Y %I:%M %p', or seconds or "
    "milliseconds since 1970."
)
NUMBERS_HELP = "Inputs that are numbers although they have leading zeros."
Missing = Annotated[Literal["refuse", "drop"], columns(MISSING_HELP)]


@dataclass(frozen=True, kw_only=True)
class NumberForm:
    """How numbers are written in a CSV file."""

    delimiter: Annotated[str | None, columns(DELIMITER_HELP, metavar="CHARACTER")] = None
    decimal_comma: Annotated[
        bool | None, columns(DECIMAL_HELP, "--decimal-comma/--decimal-point")
    ] = None
    encoding: Annotated[str | None, columns(ENCODING_HELP, metavar="NAME")] = None


@dataclass(frozen=True, kw_only=True)
class TableForm(NumberForm):
    """How a CSV file is written."""

    date_format: Annotated[str | None, columns(DATE_FORMAT_HELP, metavar="FORMAT")] = None


def _option(each: Declared) -> tuple[str, object, object]:
    """The option of a parameter that is a word or a number."""
    asked = Panel(each.panel)(in_options(each.meaning), metavar=each.metavar)
    return each.name, Annotated[each.type, asked], field(default=each.default)


# What goes to the estimator as it is; other commands have the basic ones too.
PASSED = tuple(each.name for each in TABLE if each.values is not None)
BASIC = ("epsilon", "delta", "protect")
MADE = tuple(name for name in PASSED if name not in BASIC)
Passed: Any = make_dataclass(
    "Passed", [_option(BY_NAME[name]) for name in MADE], frozen=True, kw_only=True
)


@dataclass(frozen=True, kw_only=True)
class ReleaseOptions(Passed, TableForm):  # type: ignore[misc]
    """What a release is planned by, as given on the command line."""

    inputs: Annotated[str, plain(INPUTS_HELP, metavar="A,B")]
    bounds: Annotated[tuple[float, float], privacy(OUTPUTS_BOUNDS_HELP, metavar="LO HI")]
    epsilon: Epsilon
    delta: Delta
    protect: Protect = "outputs"
    classes: Annotated[str | None, privacy(CLASSES_HELP, metavar="A,B")] = None
    further_bounds: Annotated[list[str] | None, privacy("", hidden=True)] = None
    density: Annotated[bool, plain(DENSITY_HELP, "--density")] = False
    shares: Annotated[
        str | None, privacy(f"{describe_parameter('shares')} Such as 2,1.", metavar="A,B")
    ] = None
    groups: Annotated[str | None, privacy(GROUPS_HELP, metavar="COLUMN")] = None
    x_bounds: Annotated[list[str] | None, privacy(X_BOUNDS_HELP, metavar="LO HI")] = None
    kernel: Annotated[str | None, _KERNEL] = None
    targets: Annotated[str | None, model(TARGETS_HELP, metavar="FILE|GRID")] = None
    exposure: Annotated[str | None, model(EXPOSURE_HELP, metavar="COLUMN")] = None
    weights: Annotated[str | None, model(WEIGHTS_HELP, metavar="COLUMN")] = None
    dates: Annotated[str | None, columns(DATES_HELP, metavar="A,B")] = None
    categories: Annotated[str | None, columns(CATEGORIES_HELP, metavar="A,B")] = None
    places: Annotated[str | None, columns(PLACES_HELP, metavar="LAT,LON")] = None
    crs: Annotated[str | None, columns(CRS_HELP, metavar="NAME")] = None
    periodic: Annotated[str | None, columns(PERIODIC_HELP, metavar="A=PERIOD")] = None
    booleans: Annotated[str | None, columns(BOOLEANS_HELP, metavar="A,B")] = None
    numbers: Annotated[str | None, columns(NUMBERS_HELP, metavar="A,B")] = None
    missing: Missing = "refuse"


@dataclass(frozen=True, kw_only=True)
class Charge:
    """Who pays for a release: an account in a ledger, or nobody for a simulation with a seed."""

    ledger: Annotated[str | None, privacy(LEDGER_HELP, "--ledger", metavar="URL")] = None
    dataset: Annotated[
        str | None, privacy("The account in the ledger to charge.", metavar="NAME")
    ] = None
    seed: Seed = None

    @cached_property
    def account(self) -> "Account | None":
        """The account, once it is needed."""
        from privgp.command.io.accounts import account_of

        return account_of(self.ledger, self.dataset)

    def open(self) -> "Account | None":
        """The account, refused now if it is not there."""
        return self.account

    def note(self, table: Path) -> None:
        """Note that a table was released."""
        from privgp.command.io.accounts import note_release

        note_release(table, self.account, self.seed)


@dataclass(frozen=True, kw_only=True)
class ReleaseFiles:
    """What is written beside a release."""

    certificate: Certificate = None
    plot: Plot = None
    force: Force = False


def check_density(context: typer.Context, asked: ReleaseOptions) -> None:
    """Refuse options that a density of points, if one is asked for, would ignore."""
    if asked.density:
        refuse_options(context, ["output", *sorted({*vars(asked)} - {*WITH_DENSITY})], "--density")


class Pick:
    """Beside the type of a parameter that is a group: which fields are options, all if none is named, and
    their other defaults."""

    def __init__(self, only: str = "", **defaults: object) -> None:
        self.only, self.defaults = only.split(), defaults


def _options_of(group: type, picked: Pick) -> list[Parameter]:
    """The fields of a dataclass as parameters of a command."""
    types, kind = get_type_hints(group, include_extras=True), Parameter.KEYWORD_ONLY
    parts = signature(group).parameters.items()
    return [  # what is made of the table of parameters comes last
        Parameter(
            name, kind, default=picked.defaults.get(name, each.default), annotation=types[name]
        )
        for name, each in sorted(parts, key=lambda part: part[0] in MADE)
        if not picked.only or name in picked.only
    ]


def spread_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each field of its parameters that are dataclasses."""
    declaration = signature(command, eval_str=True)
    groups: dict[str, type] = {}
    options: dict[str, list[Parameter]] = {}
    for name, each in declaration.parameters.items():
        group, *picked = get_args(each.annotation) or [each.annotation]
        if is_dataclass(group) and isinstance(group, type):
            groups[name], options[name] = group, _options_of(group, *(picked or [Pick()]))

    @wraps(command)
    def run(**given: object) -> None:
        for name, group in groups.items():
            given[name] = group(**{each.name: given.pop(each.name) for each in options[name]})
        command(**given)

    spread = [
        part for name, each in declaration.parameters.items() for part in options.get(name, [each])
    ]
    parameters = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in spread]
    vars(run)["__signature__"] = declaration.replace(parameters=parameters)
    return run
