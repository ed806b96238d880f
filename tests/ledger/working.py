"""What processes do that share a ledger. They are started from a server of forks, so that starting
one takes no time."""

from __future__ import annotations

import multiprocessing
import os
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from privgp import BudgetExceeded, Ledger
from privgp.ledger.account import Account
from privgp.ledger.chain import CHARGE
from privgp.ledger.filter import Spent
from tests.ledger.promises import pure

FORKS: Any = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.ledger.working", "psycopg"])


def charge(account: Account) -> None:
    account.charge(pure(0.01))


def charge_without_lock(account: Account) -> None:
    """Look, and then write, whatever was written in between."""
    guarantee = pure(0.01)
    with account.ledger.database.read() as connection:
        opened, last = account._read_account(connection), account._last(connection)
    if opened.budget.after(last.spent if last else Spent(), guarantee) is None:
        raise BudgetExceeded
    cost, first = opened.budget.after(Spent(), guarantee)
    with account.ledger.database.write() as connection:
        _, last = account._lock_account(connection)  # the rows are in order, but nobody looks again
        then = first if last is None else Spent(last.spent.epsilon + cost.epsilon)
        account._add(
            connection, opened, last, CHARGE, None, None, (cost, then),
            guarantee=guarantee.to_json(),
        )  # fmt: skip


def requests(url: str, count: int, start: Any, charging: Any, charged: Any) -> None:
    """Ask this many times, once all are there, and tell how often it was charged."""
    try:
        account = Ledger(url).account("visits")
        start.wait()
        done = 0
        for _ in range(count):
            with suppress(BudgetExceeded):
                charging(account)
                done += 1
        charged.put(done)
    except Exception as problem:
        start.abort()
        charged.put(repr(problem))


def together(url: str, processes: int, count: int, charging: Any) -> int:
    """So many processes, this many requests each; how many were charged in total."""
    start, charged = FORKS.Barrier(processes), FORKS.SimpleQueue()
    working = [
        FORKS.Process(target=requests, args=(url, count, start, charging, charged))
        for _ in range(processes)
    ]
    for each in working:
        each.start()
    done = [charged.get() for _ in working]
    for each in working:
        each.join()
    assert all(isinstance(each, int) for each in done), done
    return sum(done)


def answers(url: str, name: str, seen: Connection) -> None:
    """Answer one question after the other until killed; anyone who asked has seen what is sent."""
    account = Ledger(url).account("visits")
    number = 0
    while True:
        key = f"{name} {number}"
        seen.send((key, None))
        seen.send((key, account.answer(pure(1e-6), key, key.encode(), lambda: os.urandom(16))))
        number += 1
