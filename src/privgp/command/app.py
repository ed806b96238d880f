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
    "audit": "Attack the promises, on public or simulated data, and see that they hold.",
    "function": "One private function, kept by the curator: create it, then ask it at any points.",
    "ledger": "Budgets of datasets that cannot be overspent: open, show, verify and export them.",
    "paths": "Sample paths of a posterior, whole records private, kept by the curator.",
    "search": "Choose hyperparameters among candidates without telling more than the budget allows.",
}


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


def _group(name: str, *subcommands: Callable[..., None]) -> None:
    group = typer.Typer(name=name, help=GROUPS[name], no_args_is_help=True)
    for each in subcommands:
        word = each.__name__.replace("_", "-")
        group.command(cls=o.Command, epilog=EXAMPLES[f"{name} {word}"])(o.spread_groups(each))
    app.add_typer(group)


for subcommand in (bounds, plan, release, update, predict, inspect, certificate, demo, serve):
    app.command(cls=o.Command, epilog=EXAMPLES[subcommand.__name__])(o.spread_groups(subcommand))
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
