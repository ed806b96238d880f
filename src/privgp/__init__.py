"""Gaussian-process curves and maps of private data under a proved privacy guarantee."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privgp import audit
    from privgp.errors import BudgetExceeded, LedgerError, LedgerTampered
    from privgp.gp.kernels.varying import VaryingLengthscale
    from privgp.ledger.account import Account
    from privgp.ledger.ledger import Ledger
    from privgp.models.binned import BinnedGP, BinnedMeans
    from privgp.models.bounds import PrivateBounds, private_bounds
    from privgp.models.classifier import PrivateGPClassifier
    from privgp.models.density import PrivateGPDensity
    from privgp.models.function.estimator import PrivateFunction
    from privgp.models.function.tune import tune_for
    from privgp.models.gp import PrivateGP
    from privgp.models.load import load
    from privgp.models.paths import PosteriorPaths
    from privgp.models.regressor import PrivateGPRegressor
    from privgp.models.rows.database import open_table
    from privgp.models.search.bayes import PrivateBayesSearchCV
    from privgp.models.search.grid import PrivateGridSearchCV
    from privgp.plan.plan import Plan, load_plan
    from privgp.privacy.guarantee import Guarantee, compose
    from privgp.question.outcomes import Count, Label, Number, Presence
    from privgp.server.client import Client

__version__ = "0.3.0"
__all__ = [
    "Account",
    "BinnedGP",
    "BinnedMeans",
    "BudgetExceeded",
    "Client",
    "Count",
    "Guarantee",
    "Label",
    "Ledger",
    "LedgerError",
    "LedgerTampered",
    "Number",
    "Plan",
    "PosteriorPaths",
    "Presence",
    "PrivateBayesSearchCV",
    "PrivateBounds",
    "PrivateFunction",
    "PrivateGP",
    "PrivateGPClassifier",
    "PrivateGPDensity",
    "PrivateGPRegressor",
    "PrivateGridSearchCV",
    "VaryingLengthscale",
    "audit",
    "compose",
    "load",
    "load_plan",
    "open_table",
    "private_bounds",
    "tune_for",
]

_HOMES = {
    "Account": "privgp.ledger.account",
    "BinnedGP": "privgp.models.binned",
    "BinnedMeans": "privgp.models.binned",
    "BudgetExceeded": "privgp.errors",
    "Client": "privgp.server.client",
    "Count": "privgp.question.outcomes",
    "Guarantee": "privgp.privacy.guarantee",
    "Label": "privgp.question.outcomes",
    "Ledger": "privgp.ledger.ledger",
    "LedgerError": "privgp.errors",
    "LedgerTampered": "privgp.errors",
    "Number": "privgp.question.outcomes",
    "Plan": "privgp.plan.plan",
    "PosteriorPaths": "privgp.models.paths",
    "Presence": "privgp.question.outcomes",
    "PrivateBounds": "privgp.models.bounds",
    "PrivateBayesSearchCV": "privgp.models.search.bayes",
    "PrivateFunction": "privgp.models.function.estimator",
    "PrivateGP": "privgp.models.gp",
    "PrivateGPClassifier": "privgp.models.classifier",
    "PrivateGPDensity": "privgp.models.density",
    "PrivateGPRegressor": "privgp.models.regressor",
    "PrivateGridSearchCV": "privgp.models.search.grid",
    "VaryingLengthscale": "privgp.gp.kernels.varying",
    "compose": "privgp.privacy.guarantee",
    "load": "privgp.models.load",
    "load_plan": "privgp.plan.plan",
    "open_table": "privgp.models.rows.database",
    "private_bounds": "privgp.models.bounds",
    "tune_for": "privgp.models.function.tune",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that the command answers at once."""
    if name == "audit":
        return import_module("privgp.audit")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'privgp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
