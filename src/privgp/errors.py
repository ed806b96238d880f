"""Errors that several rooms raise. Nothing is imported here, so that the command starts quickly."""


class TableError(ValueError):
    """What is wrong with a table, in a sentence that holds no private cell.

    Names of what may be declared stand between backticks: the command writes them as options.
    """


class LedgerError(RuntimeError):
    """The ledger refused, and nothing was drawn."""


class LedgerUnreachable(LedgerError):
    """The database does not answer."""


class BudgetExceeded(BaseException):
    """The charge does not fit into what is left of the account's budget.

    Inside of a cross-validation or search of scikit-learn it is raised as it is, no ``Exception``: these
    would take any ``Exception`` for a failed fit, write NaN for its score and go on. Everywhere else it
    is a ``ChargeRefused``.
    """


class ChargeRefused(BudgetExceeded, LedgerError):
    """The same as an ``Exception`` and a ``LedgerError``: what an account raises."""


class LedgerTampered(LedgerError):
    """Rows were changed, removed or reordered, or an older copy of the ledger was put back."""
