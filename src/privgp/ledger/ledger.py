"""Ledger: budgets of datasets in a database, which no program, person or crash can overspend."""

import os
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from sqlalchemy import Connection, select

from privgp.errors import LedgerError, LedgerTampered
from privgp.ledger import database as tables
from privgp.ledger.account import Account, check_text, entries_of
from privgp.ledger.chain import Anchor, Entry, Opened, check, check_anchor, seal_row
from privgp.ledger.database import ANCHOR, KEY, Database, check_url, exclude_others, has_triggers
from privgp.ledger.filter import decimal
from privgp.ledger.signing import SigningKey, check_entries
from privgp.privacy.budget import check_budget
from privgp.storage.codec import fingerprint


class Ledger:
    """A database of budgets: ``sqlite:///FILE``, or PostgreSQL by its URL.

    Parameters
    ----------
    url : url of the database, which is made if it does not exist
    anchor : a file that every charge renews, so that an older copy of the database is found;
        also given as ``?anchor=FILE`` at the url's end. By default it lies beside the file of
        SQLite, and PostgreSQL has none.
    signing_key : a PEM file with an Ed25519 key that signs every entry, made if it does not exist;
        also given as ``?key=FILE``. None: nothing is signed
    pooled : whether connections to a file of SQLite stay open, which is faster for many charges

    """

    def __init__(
        self,
        url: str,
        *,
        anchor: str | os.PathLike[str] | None = None,
        signing_key: str | os.PathLike[str] | None = None,
        pooled: bool = False,
    ) -> None:
        query = check_url(url).query
        given = query.get(ANCHOR) if anchor is None else os.fspath(anchor)
        secret = query.get(KEY) if signing_key is None else os.fspath(signing_key)
        self.database = Database(url, pooled=pooled)
        file = self.database.file
        beside = None if file is None else file.with_name(f"{file.name}.anchor")
        path = beside if given is None else Path(str(given)).absolute()
        self.anchor = None if path is None else Anchor(path)
        self.key = None if secret is None else SigningKey(Path(str(secret)).absolute())
        self._signer = None if self.key is None else self.key.public_pem

    def open(
        self,
        dataset: str,
        epsilon: float,
        delta: float,
        *,
        reserve: float = 0.0,
        public: object = None,
    ) -> Account:
        """The account of a dataset with this permanent total; the same call again finds it.

        Parameters
        ----------
        dataset
            Its name, a printable text.
        epsilon, delta
            The total; delta may be 0 for pure steps alone.
        reserve
            The part of epsilon that is kept for pure steps, such as Laplace noise, made after
            the first Gaussian one.
        public
            The public part of the data, such as the inputs; only a hash of it is kept.

        Raises
        ------
        LedgerError
            The dataset has an account with other terms, or the same public data have another
            account.
        LedgerTampered
            The anchor knows an account that the database lacks.

        """
        check_terms(dataset, epsilon, delta, reserve)
        wanted = Opened(
            dataset=dataset,
            epsilon=str(decimal(epsilon)),
            delta=str(decimal(delta)),
            reserve=str(decimal(reserve)),
            fingerprint=None if public is None else fingerprint(np.asarray(public)),
            opened_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )
        account = Account(self, dataset)
        with self.database.write() as connection:
            exclude_others(connection)
            known = {} if self.anchor is None else self.anchor.heads()
            there = _accounts(connection)
            if dataset in there:
                if not _same(there[dataset], wanted):
                    raise LedgerError(
                        f"dataset {dataset!r} has an account with another total, reserve or public "
                        "part: a budget is opened once."
                    )
                return account
            if dataset in known:
                check_anchor(dataset, known[dataset], {})
            same = [
                each.dataset
                for each in there.values()
                if wanted.fingerprint is not None and each.fingerprint == wanted.fingerprint
            ]
            if same:
                raise LedgerError(
                    f"these public data have the account {same[0]!r} already: one budget per dataset."
                )
            made = seal_row(wanted)
            connection.execute(tables.accounts.insert().values(asdict(made)))
        if self.anchor is not None:
            self.anchor.renew(dataset, 0, made.hash)
        return account

    def account(self, dataset: str) -> Account:
        """The account of a dataset that was opened; LedgerError if there is none."""
        check_text("dataset", dataset)
        account = Account(self, dataset)
        account.opened()
        return account

    def accounts(self) -> list[Account]:
        """All accounts, by the names of their datasets."""
        with self.database.read() as connection:
            return [Account(self, name) for name in sorted(_accounts(connection))]

    def verify(self, head: str | None = None, public_key: str | None = None) -> bool:
        """True if nothing was tampered with; otherwise ``LedgerTampered``.

        No row was changed, removed or reordered, nothing overspent, and the chains hold what the
        anchor and ``head`` know. Without an anchor (``anchor`` is None, or its file does not exist)
        an older copy of the whole database is not found.

        Parameters
        ----------
        head
            a hash of a certificate, which some chain must have had.
        public_key
            The key that must have signed every entry since the first signed one, as PEM; by default
            that of the ledger, if it has one.

        """
        known = {} if self.anchor is None else self.anchor.heads()
        signer = self._signer if public_key is None else public_key
        heads: set[str] = set()
        with self.database.read() as connection:
            if not has_triggers(connection):
                raise LedgerTampered("the triggers that refuse changes are gone or changed.")
            accounts = _accounts(connection)
            for table in (tables.entries, tables.answers):
                named = connection.execute(select(table.c.dataset).distinct()).scalars()
                if not set(named) <= set(accounts):
                    raise LedgerTampered("there are rows of no account.")
            for name, opened in accounts.items():
                entries = _check_account(connection, opened, known.get(name), signer)
                heads |= {opened.hash, *(entry.hash for entry in entries)}
        for name in set(known) - set(accounts):
            check_anchor(name, known[name], {})
        if head is not None and head not in heads:
            raise LedgerTampered(
                "the head is not in this ledger: an older copy was put back, or it is of another one."
            )
        return True

    def check_account(self, dataset: str) -> list[Entry]:
        """Check one account as ``verify`` does.

        Parameters
        ----------
        dataset
            Whose account it is.

        Returns
        -------
        list of Entry
            Its entries, oldest first.

        """
        known = {} if self.anchor is None else self.anchor.heads()
        with self.database.read() as connection:
            opened = _accounts(connection)[dataset]
            return _check_account(connection, opened, known.get(dataset), self._signer)

    @property
    def has_anchor(self) -> bool:
        """Whether an older copy of the database would be found."""
        return self.anchor is not None and self.anchor.path.exists()

    def export(self) -> dict[str, object]:
        """All accounts and entries, as values for JSON; of answers only their hashes."""
        with self.database.read() as connection:
            accounts = _accounts(connection)
            return {
                "ledger": "privgp",
                "version": 1,
                "units": "amounts are whole numbers of 1e-40",
                "accounts": [
                    {
                        **asdict(opened),
                        "entries": [asdict(each) for each in entries_of(connection, name)],
                    }
                    for name, opened in sorted(accounts.items())
                ],
            }

    def close(self) -> None:
        """Give back the connections to the database."""
        self.database.close()

    def __repr__(self) -> str:
        return f"Ledger({self.database.url.render_as_string(hide_password=True)!r})"


def check_terms(dataset: str, epsilon: float, delta: float, reserve: float) -> None:
    """Refuse an account that cannot be opened; parameters as in ``Ledger.open``."""
    check_text("dataset", dataset)
    check_budget(epsilon, delta, pure=True)
    if not 0 <= reserve <= epsilon:
        raise ValueError(f"reserve must lie between 0 and epsilon, got {reserve!r}.")


def _accounts(connection: Connection) -> dict[str, Opened]:
    rows = connection.execute(select(tables.accounts)).mappings()
    return {row["dataset"]: Opened(**row) for row in rows}


def _check_account(
    connection: Connection, opened: Opened, known: tuple[int, str] | None, signer: str | None
) -> list[Entry]:
    """The entries of one chain, which is whole."""
    entries = entries_of(connection, opened.dataset)
    if signer is not None:
        check_entries(entries, signer)
    c = tables.answers.c
    stored = connection.execute(select(c.key, c.answer).where(c.dataset == opened.dataset))
    check(opened, entries, {key: bytes(answer) for key, answer in stored})
    heads = {0: opened.hash, **{entry.number: entry.hash for entry in entries}}
    check_anchor(opened.dataset, known, heads)
    return entries


def _same(opened: Opened, wanted: Opened) -> bool:
    """Whether an account is the one that is wanted; with no public part given, any will do."""
    total = (opened.epsilon, opened.delta, opened.reserve)
    public = wanted.fingerprint in (None, opened.fingerprint)
    return public and total == (wanted.epsilon, wanted.delta, wanted.reserve)
