"""Why a ledger refuses. Messages hold budgets and names, which are public, and nothing else."""


class LedgerError(RuntimeError):
    """The ledger refused, and nothing was drawn."""


class LedgerUnreachable(LedgerError):
    """The database does not answer."""


class BudgetExceeded(LedgerError):
    """The charge does not fit into what is left of the account's budget."""


class LedgerTampered(LedgerError):
    """Rows were changed, removed or reordered, or an older copy of the ledger was put back."""
