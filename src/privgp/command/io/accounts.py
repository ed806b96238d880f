"""The ledger that a command charges, and a note of the tables that were released."""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from privgp.command.errors import Refusal, one_line, refusal
from privgp.command.io.files import shown_name
from privgp.errors import LedgerError

if TYPE_CHECKING:
    from rich.table import Table

    from privgp.ledger.account import Account
    from privgp.ledger.ledger import Ledger

OPTIONS = {"url": "--ledger", "dataset": "--dataset"}


def account_of(url: str | None, dataset: str | None) -> Account | None:
    """The account to charge, if one is named."""
    if (url is None) != (dataset is None):
        raise Refusal("--ledger and --dataset go together: give both or neither.")
    if url is None or dataset is None:
        return None
    return account_in(open_ledger(url), dataset)


def account_in(ledger: Ledger, dataset: str) -> Account:
    try:
        return ledger.account(dataset)
    except (ValueError, LedgerError) as problem:
        raise refusal(problem, **OPTIONS) from None


def open_ledger(url: str, *, create: bool = False) -> Ledger:
    """The ledger at an address; a file is made only to open an account."""
    from privgp.ledger.database import check_url, sqlite_file  # slow to import
    from privgp.ledger.ledger import Ledger

    try:
        file = sqlite_file(check_url(url))
        if file is not None and not file.is_file() and not create:
            raise Refusal(f"There is no ledger '{file}': privgp ledger open makes one.")
        return Ledger(url)
    except (ValueError, LedgerError) as problem:
        raise refusal(problem, **OPTIONS) from None


def charge_facts(model: object) -> tuple[dict[str, object], list[str | Table]]:
    """What is told of a charge: facts for JSON, and lines."""
    charge = vars(model).get("charged_")
    if charge is None:
        return {}, []
    return {"ledger": charge}, [f"Charged to '{charge['dataset']}' as entry {charge['entry']}."]


def note_release(table: Path, account: Account | None, seed: int | None) -> None:
    """Note that a table was released, and warn if it was before and no ledger was charged.

    The note is a hash of the table's place, in the user's state folder. It does not know copies,
    other users and other programs: a ledger does. Simulations are not noted."""
    if seed is not None:
        return
    notes = _notes()
    mark = hashlib.sha256(f"table {table.resolve()}".encode("utf-8", "replace")).hexdigest()
    with suppress(OSError, ValueError):
        before = notes.read_text(encoding="ascii").split() if notes.exists() else []
        if mark not in before:
            notes.parent.mkdir(parents=True, exist_ok=True)
            with open(notes, "a", encoding="ascii") as file:
                file.write(mark + "\n")
        elif account is None:
            sentence = (
                f"Warning: '{shown_name(table)}' was released before, and releases add up: --ledger keeps a "
                "budget for all of them."
            )
            print(one_line(sentence), file=sys.stderr)


def _notes() -> Path:
    state = os.environ.get("XDG_STATE_HOME")
    folder = Path(state) if state else Path.home() / ".local" / "state"
    return folder / "privgp" / "released"
