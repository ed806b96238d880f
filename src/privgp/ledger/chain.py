"""The rows of an account as a chain: every entry's hash covers the entry and the hash before it.

The anchor is a small file that knows the newest head of every account: an older copy of the ledger, put back,
is behind it. It holds numbers and hashes only. Keep it where the ledger's backups are not.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path
from typing import Self, TypeVar

from privgp.errors import LedgerError, LedgerTampered
from privgp.ledger.filter import Budget, Cost, Spent, ways
from privgp.privacy.guarantee import Guarantee
from privgp.storage.parts import PRIVATE, PUBLIC, part_beside, write_through
from privgp.storage.state_file import lock_folder

CHARGE, ANSWER = "charge", "answer"
APPROVAL, REJECTION = DECISIONS = ("approval", "rejection")
UNHASHED = ("hash", "signature")  # which are made of the other fields

Row = TypeVar("Row", bound="Opened | Entry")


@dataclass(frozen=True)
class Opened:
    """An account as it was opened; amounts are whole numbers of 1e-40, as texts.

    Attributes
    ----------
    dataset : its name
    epsilon, delta : the total
    reserve : the part of epsilon that Gaussian noise never gets
    fingerprint : hash of the public part of the data, if it was given
    opened_at : a time in UTC, ISO 8601
    hash : hash of all this; the head of the chain before the first entry

    """

    dataset: str
    epsilon: str
    delta: str
    reserve: str
    fingerprint: str | None
    opened_at: str
    hash: str = ""

    @property
    def budget(self) -> Budget:
        """The total as numbers."""
        return Budget(int(self.epsilon), int(self.delta), int(self.reserve))


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One charge, one stored answer, or one decision about a plan, of an account.

    Attributes
    ----------
    dataset : name of the account
    number : from 1 on
    kind : "charge", "answer", "approval" or "rejection"
    at : a time in UTC, ISO 8601
    key : under which a charge is made once, if it has one
    request : SHA-256 of what was asked
    guarantee : guarantee of the charge, as JSON
    fingerprint : hash of the public part of the data
    answer : SHA-256 of a stored answer
    epsilon, mu2, delta : the cost, in whole numbers of 1e-40
    spent_epsilon, spent_mu2, spent_delta : the sums of all costs up to this one
    most_epsilon, most_delta : the limits of steps that are not Gaussian, once they are fixed
    previous : the head before
    hash : the head of the chain once this was added
    signature : of the head, by the ledger's key, if it has one

    """

    dataset: str
    number: int
    kind: str
    at: str
    key: str | None = None
    request: str | None = None
    guarantee: str | None = None
    fingerprint: str | None = None
    answer: str | None = None
    epsilon: str
    mu2: str
    delta: str
    spent_epsilon: str
    spent_mu2: str
    spent_delta: str
    most_epsilon: str | None
    most_delta: str | None
    previous: str
    hash: str = ""
    signature: str | None = None

    @classmethod
    def of(cls, cost: Cost, spent: Spent, number: int, **others: str | None) -> Self:
        """A sealed entry from amounts and the other fields."""
        most = (spent.most_epsilon, spent.most_delta)
        made = cls(
            number=number,
            epsilon=str(cost.epsilon),
            mu2=str(cost.mu2),
            delta=str(cost.delta),
            spent_epsilon=str(spent.epsilon),
            spent_mu2=str(spent.mu2),
            spent_delta=str(spent.delta),
            most_epsilon=None if most[0] is None else str(most[0]),
            most_delta=None if most[1] is None else str(most[1]),
            **others,  # type: ignore[arg-type]
        )
        return seal_row(made)

    @property
    def spent(self) -> Spent:
        """The total spent up to this entry, as numbers."""
        most = (self.most_epsilon, self.most_delta)
        sums = (int(self.spent_epsilon), int(self.spent_mu2), int(self.spent_delta))
        return Spent(*sums, *(None if each is None else int(each) for each in most))

    @property
    def promised(self) -> Guarantee | None:
        """The guarantee that was charged for; None for a stored answer."""
        return None if self.guarantee is None else Guarantee.from_json(self.guarantee)


def seal_row(row: Row) -> Row:
    """The row with its hash, which covers all other fields."""
    return replace(row, hash=_hash(asdict(row)))


def _hash(fields: Mapping[str, object]) -> str:
    shown = {name: value for name, value in fields.items() if name not in UNHASHED}
    text = json.dumps(["privgp ledger 1", shown], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def check(opened: Opened, entries: Sequence[Entry], answers: Mapping[str, bytes]) -> None:
    """Refuse a chain with a changed, missing, added or reordered row, or one that overspends.

    Parameters
    ----------
    opened
        The account.
    entries
        Oldest first.
    answers
        Stored bytes by key.

    Raises
    ------
    LedgerTampered
        It names the dataset and the entry.

    """
    name = opened.dataset

    def require(holds: bool, problem: str) -> None:
        if not holds:
            raise LedgerTampered(f"the ledger of dataset {name!r} {problem}.")

    require(_hash(asdict(opened)) == opened.hash, "has a changed account")
    previous, spent, digests = opened.hash, Spent(), {}
    for place, entry in enumerate(entries, start=1):
        require(entry.number == place, f"lacks entry {place}")
        require(
            entry.previous == previous, f"has an entry {place} that does not follow {place - 1}"
        )
        require(_hash(asdict(entry)) == entry.hash, f"has a changed entry {place}")
        amounts = _amounts(entry)
        require(amounts is not None, f"has no amounts at entry {place}")
        cost, then = amounts or (Cost(), spent)
        sums = (spent.epsilon + cost.epsilon, spent.mu2 + cost.mu2, spent.delta + cost.delta)
        added = (then.epsilon, then.mu2, then.delta) == sums
        fixed = spent.most_epsilon is None or (
            (spent.most_epsilon, spent.most_delta) == (then.most_epsilon, then.most_delta)
        )
        within = opened.budget.holds(then) and min(astuple(cost)) >= 0
        require(added and fixed and within, f"does not add up at entry {place}")
        if entry.kind == ANSWER:
            require(cost == Cost(), f"charges for an answer at entry {place}")
            digests[entry.key] = entry.answer
        elif entry.kind in DECISIONS:
            free = cost == Cost() and entry.guarantee is None
            require(free, f"charges for a decision at entry {place}")
        else:
            require(_is_paid(entry, cost, opened.budget), f"charges too little at entry {place}")
        previous, spent = entry.hash, then
    found = {key: digest(answer) for key, answer in answers.items()}
    require(found == digests, "has a changed, added or missing answer")


def _amounts(entry: Entry) -> tuple[Cost, Spent] | None:
    """The cost of an entry and what is spent with it; None where they are no whole numbers."""
    try:
        return Cost(int(entry.epsilon), int(entry.mu2), int(entry.delta)), entry.spent
    except (ValueError, TypeError):
        return None


def _is_paid(entry: Entry, cost: Cost, budget: Budget) -> bool:
    """Whether a charge costs what its steps spend, counted anew in one of the ways there are."""
    try:
        promised = entry.promised
        return promised is not None and any(cost.covers(way) for way in ways(promised, budget))
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError):
        return False


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


Known = dict[str, tuple[int, str]]  # of a dataset: the number of its newest entry, and the head
PUT_BACK = (
    "the ledger of dataset {!r} lacks what its anchor knows: an older copy was put back, or rows are "
    "gone"
)


class Anchor:
    """The newest head of every account, in a file that is replaced as a whole.

    Parameters
    ----------
    path : path of the file, which need not exist

    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def heads(self) -> Known:
        """By dataset the number of its newest entry and the head; empty if there is no file.

        Raises
        ------
        LedgerTampered
            The file is damaged.

        """
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        except OSError:
            raise LedgerError(f"the anchor '{self.path}' cannot be read.") from None
        try:
            return {
                str(name): (int(at), str(head)) for name, (at, head) in json.loads(text).items()
            }
        except (ValueError, TypeError, AttributeError):
            raise LedgerTampered(f"the anchor '{self.path}' is damaged.") from None

    def renew(self, dataset: str, number: int, head: str) -> None:
        """Know this entry, unless a later one is known. Called once it is committed.

        Parameters
        ----------
        dataset
            Name of the account.
        number
            Number of the entry, 0 for the account itself.
        head
            Its hash.

        """
        try:
            with lock_folder(self.path) as folder:
                known = self.heads()
                if known.get(dataset, (-1, ""))[0] >= number:
                    return
                text = json.dumps({**known, dataset: (number, head)}, indent=1)
                alone = not os.fstat(folder).st_mode & 0o077  # the folder is nobody else's
                with part_beside(self.path, mode=PRIVATE if alone else PUBLIC) as part:
                    write_through(part, text.encode())
                    os.replace(part, self.path)
                os.fsync(folder)
        except OSError:
            raise LedgerError(f"the anchor '{self.path}' cannot be written.") from None


def check_anchor(dataset: str, known: tuple[int, str] | None, heads: Mapping[int, str]) -> None:
    """Refuse a chain that lacks the entry which the anchor knows; LedgerTampered.

    Parameters
    ----------
    dataset
        Named in the error.
    known
        Number and head of the newest known entry, or None.
    heads
        Hashes of the chain, by entry number.

    """
    if known is not None and heads.get(known[0]) != known[1]:
        raise LedgerTampered(PUT_BACK.format(dataset) + ".")
