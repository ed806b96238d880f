"""The command ``privgp`` and its subcommands.

Each subcommand's file declares its options and runs it. What takes long to import is imported when it
is needed: help, and the refusal of a file that does not exist, stay quick.
"""

from __future__ import annotations

from typing import Annotated

import typer

from privgp.command import options as o
from privgp.command.audit import audit_app
from privgp.command.demo import demo
from privgp.command.function import function_app
from privgp.command.inspect import inspect
from privgp.command.paths import paths_app
from privgp.command.plan import plan
from privgp.command.predict import predict
from privgp.command.release import release
from privgp.command.search import search_app

app = typer.Typer(
    name="privgp",
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for subcommand in (plan, release, predict, inspect, demo):
    app.command()(subcommand)
for group in (audit_app, function_app, paths_app, search_app):
    app.add_typer(group)


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
