"""The command ``privgp``: its subcommands, whose files declare their options, how a line of words is read,
and help. What takes long to import is imported when it is needed: help and refusals of missing files stay
quick."""

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from privgp.command import audit, function, ledger, paths
from privgp.command import options as o
from privgp.command.bounds import bounds
from privgp.command.demo import demo
from privgp.command.errors import Refusal, is_number
from privgp.command.plan import plan
from privgp.command.published import certificate, inspect, predict
from privgp.command.release import release, update
from privgp.command.search import bayes, grid
from privgp.command.serve import serve


class Group(TyperGroup):
    """A command that has subcommands: its help names them, each with what it does."""

    def format_help(self, ctx: typer.Context, formatter: object) -> None:  # type: ignore[override]
        """Print them."""
        options = [
            each for each in self.params if isinstance(each, TyperOption) and not each.hidden
        ]
        names = self.list_commands(ctx)
        what = {each: self.commands[each].get_short_help_str(limit=400) for each in names}
        words = "" if ctx.parent else EXAMPLES["release"]
        show_help(ctx, self.help or "", what, options, words, 0)


app = typer.Typer(
    name="privgp",
    cls=Group,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS = (bounds, plan, release, update, predict, inspect, certificate, demo, serve)
AUDIT = "Attack the guarantees on public or simulated data, to test whether they hold."
FUNCTION = "Keep one private function: create it, then answer from it at any points."
LEDGER = "Track budgets that cannot be overspent: open, show, verify and export them."
PATHS = "Draw sample paths of a posterior, with whole records private."
SEARCH = "Choose hyperparameters among candidates, within a budget."


RELEASE = "--inputs age --output cost --bounds 0 3000 --epsilon 1 --delta 1e-5"
STATE = "--kernel '1e5*rbf(20)+white(9e4)'"
EXAMPLES = {
    "bounds": "privgp bounds visits.csv --output cost --low 0 --epsilon 0.1",
    "plan": f"privgp plan visits.csv {RELEASE} -o visits.plan",
    "release": f"privgp release visits.csv {RELEASE} -o visits.privgp",
    "update": "privgp update visits.privgp may.csv --output cost -o visits-may.privgp",
    "predict": "privgp predict visits.privgp ages.csv -o predicted.csv",
    "inspect": "privgp inspect visits.privgp",
    "certificate": "privgp certificate visits.privgp -o visits.html",
    "demo": "privgp demo",
    "serve": "privgp serve --data privgp-server",
    "audit trade-off": "privgp audit trade-off visits.csv --inputs age --bounds 0 3000 --epsilon 1 "
    "--delta 1e-5 --targets age=40:40:1 --reconstruct unbiased",
    "audit membership": "privgp audit membership --noise-variance 1",
    "function create": f"privgp function create visits.csv {RELEASE} {STATE} -o cost.private-state",
    "function ask": "privgp function ask cost.private-state ages.csv -o answers.csv",
    "function inspect": "privgp function inspect cost.private-state",
    "ledger open": "privgp ledger open --ledger sqlite:///budget.db --dataset visits --epsilon 3 "
    "--delta 1e-5",
    "ledger show": "privgp ledger show --ledger sqlite:///budget.db --dataset visits",
    "ledger verify": "privgp ledger verify --ledger sqlite:///budget.db",
    "ledger export": "privgp ledger export --ledger sqlite:///budget.db -o budget.json",
    "paths calibrate": "privgp paths calibrate --rows 300 --domain age=18:90 --bounds 0 3000 --epsilon 1 "
    "--delta 1e-5 --kernel '1e5*matern12(20)'",
    "paths tune": "privgp paths tune --rows 300 --domain age=18:90 --bounds 0 3000 --epsilon 1 --delta 1e-5 "
    "--kernel '1e5*matern32(20)+white(9e4)' --task mean",
    "paths create": f"privgp paths create visits.csv {RELEASE} --domain age=18:90 "
    "--kernel '1e5*matern12(20)' -o cost.private-state",
    "paths release": "privgp paths release cost.private-state age=20:80:30 -o paths.csv",
    "paths excursion": "privgp paths excursion cost.private-state age=20:80:30 --threshold 900 -o above.csv",
    "paths inspect": "privgp paths inspect cost.private-state",
    "search grid": f"privgp search grid visits.csv {RELEASE} --lengthscales 5,20,60 -o visits.privgp",
    "search bayes": "privgp search bayes --train open.csv --validation private.csv --inputs age,bmi "
    "--output ill --space C=1e-3:1e3:log --epsilon 1 --delta 1e-5 -o tuned.json",
}


# The options that --help shows besides those that are required, in the order of what is needed most.
MAIN = """output inputs bounds epsilon delta density classes plan protect x_bounds groups out for_error share
    low grid average areas page same_rows certificate plot ledger dataset kernel coverage method steps template
    holder noise_std reconstruct targets draws json force"""
MOST_SHOWN = 12
HELP_ALL = "--help-all"


class Command(TyperCommand):
    """A subcommand that takes every option once. One that is given again says two things: those that
    are lists are joined, and others are refused, as the last would silently take the place of all."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Read the words of a line; --help-all shows all options in place of that."""
        if HELP_ALL in args:
            self._show_help(ctx, whole=True)
            ctx.exit()
        return super().parse_args(ctx, args)

    def format_help(self, ctx: typer.Context, formatter: object) -> None:  # type: ignore[override]
        """Print the options that are needed most."""
        self._show_help(ctx, whole=False)

    def _show_help(self, ctx: typer.Context, *, whole: bool) -> None:
        options = [each for each in self.params if isinstance(each, TyperOption)]
        options = [each for each in options if not each.hidden]
        first = sorted(options, key=lambda each: (not each.required, _rank(each.name)))
        chosen = options if whole else [each for each in options if each in first[:MOST_SHOWN]]
        left = len(options) - len(chosen)
        arguments = [each for each in self.params if isinstance(each, TyperArgument)]
        words = {str(each.metavar): each.help or "" for each in arguments}
        optional = {str(each.metavar) for each in arguments if not each.required}
        show_help(ctx, self.help or "", words, chosen, self.epilog or "", left, optional)

    def make_parser(self, ctx):  # type: ignore[no-untyped-def] # of a class that typer does not export
        """The parser of this command's words, which reads options as above."""
        parser = super().make_parser(ctx)
        options = [each for each in self.params if isinstance(each, TyperOption)]
        lists = [each for each in options if each.metavar in o.LISTS and not each.multiple]
        for option in lists:
            parser.add_option(option, option.opts, option.name, "append")
        read = parser.parse_args

        def parse_args(args: list[str]):  # type: ignore[no-untyped-def]
            for option in options:
                _check_numbers(option, args)
            values, left, order = read(args)
            for option in options:
                if order.count(option) > 1 and not (option.multiple or option in lists):
                    names = "/".join([*option.opts[:1], *option.secondary_opts[:1]])
                    raise Refusal(f"{names} must be given once.")
            joined = {each.name: values[each.name] for each in lists if each.name in values}
            return values | {name: ",".join(given) for name, given in joined.items()}, left, order

        parser.parse_args = parse_args  # type: ignore[method-assign]
        return parser


def _rank(name: str | None) -> int:
    first = MAIN.split()
    return first.index(name) if name in first else len(first)


def _check_numbers(option: TyperOption, words: list[str]) -> None:
    """Refuse an option of two numbers that other words follow."""
    for place, word in enumerate(words):
        name, equals, first = word.partition("=")
        if option.nargs != 2 or name not in option.opts:
            continue
        given = [*([first] if equals else []), *words[place + 1 :]][:2]
        if len(given) < 2 or not all(map(is_number, given)):
            raise Refusal(
                f"{name} must be two numbers with a space between them, such as {name} 0 3000."
            )


PANELS = [
    "Arguments",
    "Commands",
    "Options",
    "Privacy",
    "Model",
    "Columns",
    "Search",
    "Attack",
    "Results",
]


def show_help(
    ctx: typer.Context,
    text: str,
    words: Mapping[str, str],
    options: Sequence[TyperOption],
    example: str,
    left: int,
    optional: Set[str] = frozenset(),
) -> None:
    """Print what a command does and takes.

    Parameters
    ----------
    ctx : context
        Of the command, with the path by which it is called.
    text : str
        What it does.
    words : mapping
        Its arguments, or its subcommands, each with its meaning.
    options : sequence of options
        Those that are shown, by their panels.
    example : str
        A line that works.
    left : int
        How many options are not shown.
    optional : set
        Arguments that may be left out.

    """
    console = Console(highlight=False, soft_wrap=False)
    is_group = isinstance(ctx.command, Group)
    given = ["COMMAND"] if is_group else [f"[{w}]" if w in optional else w for w in words]
    console.print(f"Usage: {' '.join([ctx.command_path, *given])} [OPTIONS]", markup=False)
    console.print(f"\n{' '.join(text.split())}", markup=False)
    panels: dict[str, list[tuple[str, str]]] = {title: [] for title in PANELS}
    panels["Commands" if is_group else "Arguments"] = [*words.items()]
    for each in options:
        name = "/".join([", ".join(each.opts), *each.secondary_opts])
        value = "" if each.is_flag else f" {_value_of(each, ctx)}"
        default = "" if each.is_flag or each.default in (None, ()) else f" Default: {each.default}."
        required = " Required." if each.required else ""
        said = f"{each.help or ''}{'' if 'Default:' in (each.help or '') else default}{required}"
        panels.setdefault(each.rich_help_panel or "Options", []).append((name + value, said))
    for title, rows in panels.items():
        if not rows:
            continue
        console.print(f"\n[bold]{title}[/bold]")
        shown = Table.grid(padding=(0, 2))
        shown.add_column(max_width=34, overflow="fold")
        shown.add_column()
        for name, said in rows:
            shown.add_row(Text(f"  {name}"), Text(said))
        console.print(shown)
    if example:
        console.print(f"\n[bold]Example[/bold]\n  {example}", soft_wrap=True)
    if left:
        console.print(f"\n{left} more options: {ctx.command_path} --help-all", markup=False)


# What versions of typer call kinds of values, and what help does.
VALUES = {
    "float": "NUMBER",
    "int": "COUNT",
    "integer": "COUNT",
    "str": "TEXT",
    "path": "FILE",
}


def _value_of(option: TyperOption, ctx: typer.Context) -> str:
    """What an option takes: its own word, its choices, or its kind."""
    if option.metavar:
        return str(option.metavar)
    newer = hasattr(option, "display_type_rich")  # versions of typer differ
    show = getattr(option, "display_type_rich" if newer else "make_metavar")
    word = str(show(ctx=ctx)).strip("<>[]").lower().removesuffix(" range")
    return word if "|" in word else VALUES.get(word, word.upper())


def _add_group(name: str, help: str, *subcommands: Callable[..., None]) -> None:
    group = typer.Typer(name=name, cls=Group, help=help, no_args_is_help=True)
    _add_commands(group, subcommands, f"{name} ")
    app.add_typer(group)


def _add_commands(place: typer.Typer, each: Sequence[Callable[..., None]], path: str = "") -> None:
    for subcommand in each:
        example = EXAMPLES[path + subcommand.__name__.replace("_", "-")]
        place.command(cls=Command, epilog=example)(o.spread_groups(subcommand))


_add_commands(app, COMMANDS)
_add_group("audit", AUDIT, audit.trade_off, audit.membership)
_add_group("function", FUNCTION, function.create, function.ask, function.inspect)
_add_group("ledger", LEDGER, ledger.open, ledger.show, ledger.verify, ledger.export)
_add_group(
    "paths", PATHS, paths.calibrate, paths.tune, paths.create, paths.release, paths.excursion,
    paths.inspect,
)  # fmt: skip
_add_group("search", SEARCH, grid, bayes)


def _version(asked: bool) -> None:
    if asked:
        from privgp import __version__

        typer.echo(f"privgp {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def privgp(
    context: typer.Context,
    version: Annotated[
        bool, o.plain("Show the version.", "--version", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Publish curves and maps of private data under a proved guarantee, and use what was published."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
