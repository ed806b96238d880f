"""The command ``privgp`` and its subcommands, whose files declare their options. What takes long to
import is imported when it is needed: help and refusals of missing files stay quick."""

from collections.abc import Callable
from typing import Annotated

import typer

from privgp.command import audit, function, ledger, paths
from privgp.command import options as o
from privgp.command.bounds import bounds
from privgp.command.demo import demo
from privgp.command.plan import plan
from privgp.command.published import certificate, inspect, predict
from privgp.command.release import release, update
from privgp.command.search import bayes, grid
from privgp.command.serve import serve

app = typer.Typer(
    name="privgp",
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
GROUPS = {
    "audit": "Attack the promises, on public or made-up data, and see that they hold.",
    "function": "One private function, kept by the curator: create it, then ask it at any points.",
    "ledger": "Budgets of datasets that cannot be overspent: open, show, verify and export them.",
    "paths": "Sample paths of a posterior, whole records private, kept by the curator.",
    "search": "Choose hyperparameters among candidates without telling more than the budget allows.",
}


def _group(name: str, *subcommands: Callable[..., None]) -> None:
    group = typer.Typer(name=name, help=GROUPS[name], no_args_is_help=True)
    for each in subcommands:
        group.command(cls=o.Command)(each)
    app.add_typer(group)


for subcommand in (bounds, plan, release, update, predict, inspect, certificate, demo, serve):
    app.command(cls=o.Command)(subcommand)
_group("audit", audit.trade_off, audit.membership)
_group("function", function.create, function.ask, function.inspect)
_group("ledger", ledger.open, ledger.show, ledger.verify, ledger.export)
_group(
    "paths",
    paths.calibrate,
    paths.tune,
    paths.create,
    paths.release,
    paths.excursion,
    paths.inspect,
)
_group("search", grid, bayes)


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
