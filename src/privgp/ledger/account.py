"""The budget of one dataset: charged before anything is drawn, never refunded, never overspent."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

from sqlalchemy import Connection, and_, select

from privgp.errors import ChargeRefused, LedgerError
from privgp.ledger import database as tables
from privgp.ledger.chain import ANSWER, CHARGE, DECISIONS, Entry, Opened, check_anchor, digest
from privgp.ledger.filter import Cost, Spent, decimal_below
from privgp.ledger.signing import state_entry
from privgp.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from privgp.ledger.ledger import Ledger

LONGEST = 200


class Account:
    """The budget of one dataset in a ``Ledger``. Estimators take it as ``ledger=``.

    Parameters
    ----------
    ledger : the ledger that the account was opened in
    dataset : its name

    """

    def __init__(self, ledger: Ledger, dataset: str) -> None:
        self.ledger, self.dataset = ledger, dataset

    def charge(
        self,
        guarantee: Guarantee,
        key: str | None = None,
        *,
        request: bytes = b"",
        fingerprint: str | None = None,
    ) -> Entry:
        """Spend what the guarantee costs, in one transaction, before anything is drawn.

        Parameters
        ----------
        guarantee
            Guarantee of the release that will be drawn.
        key
            a charge with this key is made once; made again for the same guarantee and
            ``request`` it costs nothing, for another one it is refused. It pays for one answer:
            give out only what ``store`` returned under the key, as ``answer`` does.
        request
            Bytes of the request, of which a hash is kept.
        fingerprint
            Hash of the public part of the data; a warning is given if another dataset was
            charged with the same one.

        Raises
        ------
        ChargeRefused
            A ``BudgetExceeded``: the charge does not fit into what is left.
        LedgerError
            The key was used otherwise, or the guarantee protects another unit than those before.

        """
        if not isinstance(guarantee, Guarantee):
            raise TypeError("charge takes a Guarantee, such as model.guarantee_.")
        if key is not None:
            check_text("key", key)
        promised = guarantee.to_json()
        asked = digest(promised.encode("utf-8") + b"\0" + request)
        with self.ledger.database.write() as connection:
            opened, last = self._lock_account(connection)
            entry = None if key is None else self._entry(connection, CHARGE, key)
            if entry is not None:
                if entry.request != asked:
                    raise LedgerError(
                        f"key {key!r} was used for another request of dataset {self.dataset!r}."
                    )
                return entry
            self._check_unit(connection, guarantee)
            fits = opened.budget.after(_spent(last), guarantee)
            if fits is None:
                raise ChargeRefused(self._refusal(opened, last, guarantee))
            entry = self._add(
                connection, opened, last, CHARGE, key, asked, fits,
                guarantee=promised, fingerprint=fingerprint,
            )  # fmt: skip
            # a warning that somebody made an error undoes the charge, as nothing is drawn then
            if others := _find_other_charge(connection, self.dataset, fingerprint):
                warnings.warn(
                    f"these public inputs were charged to dataset {others!r} before: if they are about "
                    "the same people, charge one account for both.",
                    UserWarning,
                    stacklevel=2,
                )
        self._renew_anchor(entry)
        return entry

    def answer(
        self, guarantee: Guarantee, key: str, request: bytes, draw: Callable[[], bytes]
    ) -> bytes:
        """The answer to a request, drawn and paid for once: charge, draw, store, return.

        A retry gets the stored bytes.

        Parameters
        ----------
        guarantee, key, request
            As in ``charge``.
        draw
            Makes the answer; it may run again if its answer was lost before it was stored, and
            nobody may have seen anything of it (docs/proofs/ledger.md).

        Returns
        -------
        bytes
            The answer, new or stored.

        """
        self.charge(guarantee, key, request=request)
        found = self.stored(key)
        return self.store(key, draw()) if found is None else found

    def stored(self, key: str) -> bytes | None:
        """The answer that was stored under a key.

        Parameters
        ----------
        key : str
            As in ``charge``.

        Returns
        -------
        bytes or None
            None if no answer is stored.

        """
        with self.ledger.database.read() as connection:
            return self._read_answer(connection, key)

    def store(self, key: str, answer: bytes) -> bytes:
        """Store the answer of a charge. The first answer stays, and every caller gets it.

        Parameters
        ----------
        key : str
            As in ``charge``.
        answer : bytes
            What was drawn.

        Returns
        -------
        bytes
            The stored answer.

        Raises
        ------
        LedgerError
            Nothing was charged under the key.

        """
        with self.ledger.database.write() as connection:
            opened, last = self._lock_account(connection)
            found = self._read_answer(connection, key)
            if found is not None:
                return found
            charge = self._entry(connection, CHARGE, key)
            if charge is None:
                raise LedgerError(f"nothing was charged under key {key!r}.")
            row = {"dataset": self.dataset, "key": key, "answer": answer}
            connection.execute(tables.answers.insert().values(row))
            paid = charge.request
            entry = self._add(connection, opened, last, ANSWER, key, paid, answer=digest(answer))
        self._renew_anchor(entry)
        return answer

    def decide(
        self,
        kind: str,
        key: str,
        request: bytes,
        beside: Callable[[Connection], bool] | None = None,
    ) -> Entry | None:
        """Write a decision about a plan into the chain, which costs nothing.

        Parameters
        ----------
        kind
            "approval" or "rejection".
        key
            Which decision this is; made again it is the same entry.
        request
            Bytes of what was decided, of which a hash is kept.
        beside
            What else is written in the same transaction; False: there is nothing to decide.

        """
        if kind not in DECISIONS:
            raise ValueError(f"kind must be one of {', '.join(DECISIONS)}.")
        check_text("key", key)
        with self.ledger.database.write() as connection:
            opened, last = self._lock_account(connection)
            if beside is not None and not beside(connection):
                return None
            entry = self._entry(connection, kind, key)
            if entry is None:
                entry = self._add(connection, opened, last, kind, key, digest(request))
        self._renew_anchor(entry)
        return entry

    def remaining(self) -> float:
        """The epsilon that is left at the account's delta, rounded down."""
        with self.ledger.database.read() as connection:
            return self._read_account(connection).budget.left(_spent(self._last(connection)))

    def forecast(self) -> Callable[[Guarantee], float | None]:
        """Tells, of the account as it is now, the epsilon that a charge would leave; None if it does not
        fit."""
        with self.ledger.database.read() as connection:
            budget, spent = self._read_account(connection).budget, _spent(self._last(connection))

        def balance_after(guarantee: Guarantee) -> float | None:
            after = budget.after(spent, guarantee)
            return None if after is None else budget.left(after[1])

        return balance_after

    def entries(self) -> list[Entry]:
        """All charges and stored answers, oldest first."""
        with self.ledger.database.read() as connection:
            return entries_of(connection, self.dataset)

    def opened(self) -> Opened:
        """The account's total and when it was opened."""
        with self.ledger.database.read() as connection:
            return self._read_account(connection)

    @property
    def head(self) -> str:
        """The hash of the newest entry: of all that was charged."""
        with self.ledger.database.read() as connection:
            last = self._last(connection)
            return self._read_account(connection).hash if last is None else last.hash

    def _lock_account(self, connection: Connection) -> tuple[Opened, Entry | None]:
        """The account and its newest entry; other charges wait until this transaction ends."""
        opened, last = self._read_account(connection, lock=True), self._last(connection)
        anchor = self.ledger.anchor
        known = None if anchor is None else anchor.heads().get(self.dataset)
        if known is not None:
            heads = {0: opened.hash}
            if known[0]:
                where = and_(
                    tables.entries.c.dataset == self.dataset, tables.entries.c.number == known[0]
                )
                found = connection.execute(select(tables.entries.c.hash).where(where)).scalar()
                heads[known[0]] = str(found)
            check_anchor(self.dataset, known, heads)
        return opened, last

    def _read_account(self, connection: Connection, *, lock: bool = False) -> Opened:
        asked = select(tables.accounts).where(tables.accounts.c.dataset == self.dataset)
        row = connection.execute(asked.with_for_update() if lock else asked).mappings().first()
        if row is None:
            raise LedgerError(f"the ledger has no account for dataset {self.dataset!r}: open it.")
        return Opened(**row)

    def _last(self, connection: Connection) -> Entry | None:
        asked = select(tables.entries).where(tables.entries.c.dataset == self.dataset)
        newest = asked.order_by(tables.entries.c.number.desc()).limit(1)
        row = connection.execute(newest).mappings().first()
        return None if row is None else Entry(**row)

    def _entry(self, connection: Connection, kind: str, key: str) -> Entry | None:
        c = tables.entries.c
        where = and_(c.dataset == self.dataset, c.kind == kind, c.key == key)
        row = connection.execute(select(tables.entries).where(where)).mappings().first()
        return None if row is None else Entry(**row)

    def _read_answer(self, connection: Connection, key: str) -> bytes | None:
        c = tables.answers.c
        where = and_(c.dataset == self.dataset, c.key == key)
        found = connection.execute(select(c.answer).where(where)).scalar()
        return None if found is None else bytes(found)

    def _check_unit(self, connection: Connection, guarantee: Guarantee) -> None:
        """Refuse what protects something else than the charges before: they do not add up."""
        c = tables.entries.c
        charges = and_(c.dataset == self.dataset, c.kind == CHARGE)
        first = select(c.guarantee).where(charges).order_by(c.number).limit(1)
        text = connection.execute(first).scalar()
        if text is None:
            return
        before = Guarantee.from_json(text)
        if (before.unit, before.neighbours) != (guarantee.unit, guarantee.neighbours):
            raise LedgerError(
                f"the account of dataset {self.dataset!r} protects {before.unit}, this would protect "
                f"{guarantee.unit}: such guarantees do not add up, and another account is a further budget."
            )

    def _add(
        self,
        connection: Connection,
        opened: Opened,
        last: Entry | None,
        kind: str,
        key: str | None,
        request: str | None,
        fits: tuple[Cost, Spent] | None = None,
        *,
        guarantee: str | None = None,
        fingerprint: str | None = None,
        answer: str | None = None,
    ) -> Entry:
        """Write an entry. ``fits``: what it costs and what is spent then; None: it costs nothing."""
        entry = Entry.of(
            *(fits or (Cost(), _spent(last))),
            1 if last is None else last.number + 1,
            dataset=self.dataset,
            kind=kind,
            at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            key=key,
            request=request,
            guarantee=guarantee,
            fingerprint=fingerprint,
            answer=answer,
            previous=opened.hash if last is None else last.hash,
        )
        if self.ledger.key is not None:
            entry = replace(entry, signature=self.ledger.key.sign(state_entry(entry)))
        connection.execute(tables.entries.insert().values(vars(entry)))
        return entry

    def _renew_anchor(self, entry: Entry) -> None:
        if self.ledger.anchor is not None:
            self.ledger.anchor.renew(self.dataset, entry.number, entry.hash)

    def _refusal(self, opened: Opened, last: Entry | None, guarantee: Guarantee) -> str:
        spent = _spent(last)
        left = opened.budget.left(spent)
        told = (
            f"the budget of dataset {self.dataset!r} has epsilon = {left:.6g} left, and this charge of "
            f"epsilon = {guarantee.epsilon:.6g}, delta = {guarantee.delta:g} does not fit; nothing was "
            "drawn."
        )
        delta = decimal_below(max(0, opened.budget.delta - spent.delta))
        if spent.most_epsilon is None and guarantee.delta > delta:
            told += f" A delta of {delta:g} is left."
        if spent.most_epsilon is not None and guarantee.pure_epsilons:
            told += (
                " After Gaussian noise, noise of another kind needs epsilon that the account reserved "
                "when it was opened: use Gaussian noise, or open accounts with reserve."
            )
        return told

    def __sklearn_clone__(self) -> Self:
        return self  # a copy of an estimator charges the same account

    def __repr__(self) -> str:
        return f"Account({self.dataset!r})"


def entries_of(connection: Connection, dataset: str) -> list[Entry]:
    """All entries of a dataset, oldest first, in a transaction that is under way."""
    asked = select(tables.entries).where(tables.entries.c.dataset == dataset)
    rows = connection.execute(asked.order_by(tables.entries.c.number)).mappings()
    return [Entry(**row) for row in rows]


def check_text(name: str, value: object) -> None:
    """Refuse a name or a key that is no printable text of 1 to 200 characters; ValueError."""
    if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) <= LONGEST:
        raise ValueError(f"{name} must be a printable text of 1 to {LONGEST} characters.")


def _spent(last: Entry | None) -> Spent:
    return Spent() if last is None else last.spent


def _find_other_charge(connection: Connection, dataset: str, fingerprint: str | None) -> str | None:
    """Another dataset whose public part was the same."""
    if fingerprint is None:
        return None
    c = tables.entries.c
    asked = select(c.dataset).where(and_(c.fingerprint == fingerprint, c.dataset != dataset))
    found = connection.execute(asked.limit(1)).scalar()
    return None if found is None else str(found)
