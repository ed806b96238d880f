"""Many processes on one ledger, and processes that are killed."""

from __future__ import annotations

import random
import time

from privgp import Ledger
from tests.ledger import working
from tests.ledger.promises import pure

PROCESSES, REQUESTS = 8, 30  # more than twice as many as the budget is for
KILLS = 25


def test_eight_processes_charge_to_the_end_of_the_budget(url):
    ledger = Ledger(url)
    account = ledger.open("visits", 1.0, 1e-5)
    ledger.close()
    assert working.together(url, PROCESSES, REQUESTS, working.charge) == 100
    assert len(account.entries()) == 100
    assert account.remaining() == 0.0
    assert ledger.verify()


def test_without_the_lock_they_overspend(url):
    """The same requests, looked up and written in two steps: so the test above can fail."""
    ledger = Ledger(url)
    account = ledger.open("visits", 0.2, 1e-5)
    ledger.close()
    charged = working.together(url, PROCESSES, 20, working.charge_without_lock)
    assert charged == len(account.entries()) > 20


def test_killed_at_any_moment(url):
    """Whatever anybody saw was charged, and stays what it is."""
    ledger = Ledger(url)
    account = ledger.open("visits", 1.0, 1e-5)
    ledger.close()
    rng, seen, asked = random.Random(0), {}, set()
    load = [started(url, "load")]
    for kill in range(KILLS):
        process, ends = started(url, f"kill {kill}")
        received(ends, seen, asked, first=True)
        time.sleep(rng.uniform(0.0, 0.06))
        process.kill()
        process.join()
        received(ends, seen, asked)
    for process, ends in load:
        process.kill()
        process.join()
        received(ends, seen, asked)
    assert len(seen) >= KILLS / 2
    assert ledger.verify()
    charged = {entry.key for entry in account.entries() if entry.kind == "charge"}
    assert seen.keys() <= charged <= asked
    before = account.remaining()
    sample = rng.sample(sorted(seen), min(20, len(seen)))
    for key in sample:
        answer = account.answer(pure(1e-6), key, key.encode(), lambda: b"another")
        assert answer == seen[key]
    assert account.remaining() == before
    lost = [key for key in charged if account.stored(key) is None]
    for key in lost:  # paid for, and never seen: the retry is free
        assert key not in seen
        assert account.answer(pure(1e-6), key, key.encode(), lambda: b"late") == b"late"
    assert account.remaining() == before
    assert ledger.verify()


def started(url: str, name: str):
    ends, sending = working.FORKS.Pipe(duplex=False)
    process = working.FORKS.Process(target=working.answers, args=(url, name, sending))
    process.start()
    sending.close()
    return process, ends


def received(ends, seen: dict[str, bytes], asked: set[str], *, first: bool = False) -> None:
    """Read what a process has sent: all of it, or the word that it began."""
    while first or ends.poll():
        try:
            key, answer = ends.recv()
        except (EOFError, OSError):
            return
        asked.add(key)
        if answer is not None:
            seen[key] = answer
        if first:
            return
