"""``privgp search``: choose hyperparameters without telling more than the budget allows."""

from __future__ import annotations

import typer

from privgp.command.search.bayes import bayes
from privgp.command.search.grid import grid

search_app = typer.Typer(
    name="search",
    help="Choose hyperparameters among candidates without telling more than the budget allows.",
    no_args_is_help=True,
)
search_app.command()(grid)
search_app.command()(bayes)
