"""What a server knows beside its ledger, in the same database: keys, datasets, plans, jobs, releases.

Keys are 256 random bits, shown once; only a hash of them is kept, and compared in constant time.
"""

import hashlib
import hmac
import json
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    LargeBinary,
    Select,
    Table,
    and_,
    case,
    func,
    insert,
    or_,
    select,
    true,
    update,
)

from privgp.ledger.database import Database, exclude_others
from privgp.server.errors import Refused, absent
from privgp.server.store import schema as s

CUSTODIAN, ANALYST = "custodian", "analyst"
FORM = re.compile(r"privgp-([0-9a-f]{16})-([0-9a-f]{64})")
NOBODY = "0" * 64  # no key has this hash
WAITING, RUNNING, DONE, FAILED = "waiting", "running", "done", "failed"
SESSION = 12 * 3600  # seconds
DAY = 24 * 3600
REVOKED = "The key that asked for this was revoked or has expired. A custodian can try again."
Row = dict[str, Any]
AGAIN: Row = {"state": WAITING, "error": "", "progress": 0.0, "doing": ""}  # of a job to be run


@dataclass(frozen=True)
class Who:
    """Whose key a request came with. ``by_cookie``: signed in on the page."""

    key: str
    name: str
    role: str
    by_cookie: bool = False

    @property
    def is_custodian(self) -> bool:
        return self.role == CUSTODIAN


def new_key() -> tuple[str, str, str]:
    """The public number of a key, the key, and the hash to keep."""
    number, secret = secrets.token_hex(8), secrets.token_hex(32)
    return number, f"privgp-{number}-{secret}", hash_of(secret)


def parts(text: str) -> tuple[str, str]:
    """The number and the secret in a key; of no key where it is none."""
    found = FORM.fullmatch(text)
    return ("", "") if found is None else (found[1], found[2])


def hash_of(secret: str) -> str:
    return hashlib.sha256(secret.encode("ascii")).hexdigest()


def agrees(secret: str, kept: str | None) -> bool:
    """Whether the secret has this hash. A key that does not exist takes as long as a wrong one."""
    return hmac.compare_digest(hash_of(secret), NOBODY if kept is None else kept)


class Rows:
    """Rows of the server's tables."""

    def __init__(self, database: Database) -> None:
        self.database = database
        database.migrate(s.SCRIPTS, s.VERSIONS, s.REVISION)

    def _all(self, asked: Select[Any]) -> list[Row]:
        with self.database.read() as connection:
            return [dict(row) for row in connection.execute(asked).mappings()]

    def _found(self, asked: Select[Any]) -> Row | None:
        return next(iter(self._all(asked)), None)

    def _first(self, asked: Select[Any]) -> Row:
        row = self._found(asked)
        if row is None:
            raise absent()
        return row

    def _write(self, *done: Executable) -> int:
        """Carry these out together; the number of rows that the first of them changed."""
        with self.database.write() as connection:
            changed = [int(getattr(connection.execute(each), "rowcount", 0)) for each in done]
        return changed[0]


class Keys(Rows):
    """Keys, and who is signed in."""

    def add_key(
        self,
        name: str,
        role: str,
        datasets: tuple[str, ...] = (),
        days: int | None = None,
        identity: str = "",
    ) -> tuple[str, str]:
        """A new key's number and the key itself, which is kept nowhere. ``days``: until it expires."""
        number, key, kept = new_key()
        ends = 0 if days is None else int(time.time()) + days * DAY
        row: Row = {"id": number, "name": name, "role": role, "hash": kept, "ends": ends}
        row |= {"made_at": now(), "identity": identity}
        with self.database.write() as connection:
            known = set(connection.execute(select(s.datasets.c.name)).scalars())
            if not set(datasets) <= known:
                raise Refused(422, "The key names a dataset that is not registered.")
            if identity and connection.execute(select(s.keys.c.id).where(_is_of(identity))).first():
                raise Refused(409, "This identity has a key: revoke it first.")
            connection.execute(insert(s.keys).values(revoked_at="", **row))
            for dataset in sorted(set(datasets)):
                connection.execute(insert(s.grants).values(key=number, dataset=dataset))
        return number, key

    def has_custodian(self) -> bool:
        where = and_(s.keys.c.role == CUSTODIAN, _is_valid())
        return self._found(select(s.keys.c.id).where(where)) is not None

    def keys(self) -> list[Row]:
        granted, c = self._all(select(s.grants)), s.keys.c
        shown = c.id, c.name, c.role, c.made_at, c.revoked_at, c.ends, c.identity
        rows = self._all(select(*shown).order_by(c.made_at))
        held = [[g["dataset"] for g in granted if g["key"] == row["id"]] for row in rows]
        pairs = zip(rows, held, strict=True)
        return [{**row, "ends": moment(row["ends"]), "datasets": own} for row, own in pairs]

    def revoke(self, number: str) -> None:
        """End a key, who is signed in with it, and its jobs that wait."""
        waits = and_(s.jobs.c.key == number, s.jobs.c.state == WAITING)
        changed = self._write(
            update(s.keys).where(s.keys.c.id == number).values(revoked_at=now()),
            update(s.sessions).where(s.sessions.c.key == number).values(ends=0),
            update(s.jobs).where(waits).values(state=FAILED, error=REVOKED),
        )
        if changed == 0:
            raise absent()

    def who(self, key: str) -> Who | None:
        """Whose key this is, if it is one."""
        number, secret = parts(key)
        row = self._found(select(s.keys).where(s.keys.c.id == number))
        known = agrees(secret, None if row is None else row["hash"])  # as long for any key
        if row is None or not known or row["revoked_at"] or 0 < row["ends"] < time.time():
            return None
        return Who(row["id"], row["name"], row["role"])

    def who_is(self, identity: str) -> Who | None:
        """Whose key was made for somebody whom the provider vouches for."""
        row = self._found(select(s.keys).where(_is_of(identity)))
        return None if row is None else Who(row["id"], row["name"], row["role"])

    def sign_in(self, who: Who) -> str:
        """A token for a cookie, of the form of a key."""
        number, token, kept = new_key()
        row = {"id": number, "key": who.key, "hash": kept, "ends": int(time.time()) + SESSION}
        self._write(insert(s.sessions).values(**row))
        return token

    def who_has_session(self, token: str) -> Who | None:
        number, secret = parts(token)
        joined = s.sessions.join(s.keys, s.sessions.c.key == s.keys.c.id)
        columns = (s.sessions.c.hash, s.sessions.c.ends, s.keys.c.id, s.keys.c.name, s.keys.c.role)
        asked = select(*columns).select_from(joined)
        where = and_(s.sessions.c.id == number, _is_valid())
        row = self._found(asked.where(where))
        known = agrees(secret, None if row is None else row["hash"])
        if row is None or not known or row["ends"] < time.time():
            return None
        return Who(row["id"], row["name"], row["role"], by_cookie=True)

    def sign_out(self, token: str) -> None:
        number, _ = parts(token)
        self._write(update(s.sessions).where(s.sessions.c.id == number).values(ends=0))


class Jobs(Rows):
    """What was asked for that takes long."""

    def add_job(
        self,
        who: Who,
        kind: str,
        dataset: str,
        asked: Mapping[str, Any],
        *,
        retry: str,
        digest: str,
        max_jobs_per_key: int,
        alone: bool = False,
    ) -> Row:
        """The job of this key and retry key: a new one, or the one there is; a failed one is tried
        again. The same retry key with another request is refused. ``alone``: so is a second job that
        asks the same, by whomever."""
        c = s.jobs.c
        same = and_(c.key == who.key, c.kind == kind, c.retry == retry)
        with self.database.write() as connection:
            exclude_others(connection)
            row = connection.execute(select(s.jobs).where(same)).mappings().first()
            if row is not None:
                if row["digest"] != digest:
                    raise Refused(409, "This Idempotency-Key was used for another request.")
                if row["state"] == FAILED:
                    connection.execute(update(s.jobs).where(c.id == row["id"]).values(**AGAIN))
                    return {**row, **AGAIN}
                return dict(row)
            twice = and_(c.kind == kind, c.asked == _to_text(asked))
            if alone and connection.execute(select(c.id).where(twice)).first():
                raise Refused(409, "This plan was carried out already: make another one.")
            busy = and_(c.key == who.key, c.state.in_((WAITING, RUNNING)))
            waiting = connection.execute(select(func.count()).where(busy)).scalar() or 0
            if waiting >= max_jobs_per_key:
                raise Refused(429, "This key has too many jobs waiting: try again later.")
            last = connection.execute(select(func.max(c.place))).scalar() or 0
            made = {
                "id": new_id(), "place": last + 1, "dataset": dataset, "key": who.key, "kind": kind,
                "asked": _to_text(asked), "retry": retry, "digest": digest,
                "result": "", "made_at": now(), **AGAIN,
            }  # fmt: skip
            connection.execute(insert(s.jobs).values(**made))
            return made

    def count_jobs(self) -> list[tuple[str, str, int]]:
        """How many jobs there are, by kind and state."""
        c = s.jobs.c
        rows = self._all(
            select(c.kind, c.state, func.count().label("jobs")).group_by(c.kind, c.state)
        )
        return [(row["kind"], row["state"], int(row["jobs"])) for row in rows]

    def job_of(self, kind: str, asked: Mapping[str, Any]) -> Row | None:
        """The job that was asked for this, if there is one."""
        where = and_(s.jobs.c.kind == kind, s.jobs.c.asked == _to_text(asked))
        return self._found(select(s.jobs).where(where))

    def retry(self, who: Who, number: str) -> Row:
        """Let a failed job run again, under the key that asks: what it charged is charged once."""
        c = s.jobs.c
        failed = and_(c.id == number, c.state == FAILED)
        once = case((c.key == who.key, c.retry), else_=new_id())  # the new key may have used it
        again = update(s.jobs).where(failed).values(key=who.key, retry=once, **AGAIN)
        if self._write(again) == 0:
            raise Refused(409, "Only a job that failed can be tried again.")
        return self._first(select(s.jobs).where(c.id == number))

    def has_job(self, who: Who, kind: str, retry: str) -> bool:
        c = s.jobs.c
        same = and_(c.key == who.key, c.kind == kind, c.retry == retry)
        return self._found(select(c.id).where(same)) is not None

    def job(self, who: Who, number: str) -> Row:
        """A job of this key; a custodian sees all."""
        c = s.jobs.c
        own = true() if who.is_custodian else c.key == who.key
        return self._first(select(s.jobs).where(and_(c.id == number, own)))

    def next_job(self) -> Row | None:
        """The job that runs next: of the key that waits longest for a job to start, the oldest. Jobs of
        keys that are no longer valid fail, also those that ran when the server was killed."""
        ready, valid = s.jobs.c.state == WAITING, select(s.keys.c.id).where(_is_valid())
        stale = update(s.jobs).where(ready, s.jobs.c.key.not_in(valid))
        before = s.jobs.alias("before")
        newest = func.coalesce(func.max(before.c.started), 0)
        turn = select(newest).where(before.c.key == s.jobs.c.key).scalar_subquery()
        asked = select(s.jobs).where(ready).order_by(turn, s.jobs.c.place)
        last = select(func.coalesce(func.max(s.jobs.c.started), 0))
        with self.database.write() as connection:
            exclude_others(connection)
            connection.execute(stale.values(state=FAILED, error=REVOKED))
            row = connection.execute(asked.limit(1)).mappings().first()
            if row is None:
                return None
            number = int(connection.execute(last).scalar_one()) + 1
            taken = update(s.jobs).where(s.jobs.c.id == row["id"])
            connection.execute(taken.values(state=RUNNING, started=number))
            return {**row, "asked": json.loads(row["asked"])}

    def note(self, job: str, **values: Any) -> None:
        self._write(update(s.jobs).where(s.jobs.c.id == job).values(**values))

    def end(self, job: str, **values: Any) -> None:
        """Write down how a job ended that runs; an end that is written stays."""
        running = and_(s.jobs.c.id == job, s.jobs.c.state == RUNNING)
        self._write(update(s.jobs).where(running).values(**values))

    def requeue(self) -> None:
        """Jobs that ran when the server ended wait again. What they charged, they charged once."""
        self._write(update(s.jobs).where(s.jobs.c.state == RUNNING).values(**AGAIN))


class Events(Rows):
    """An append-only log: who did what, by the number of the key."""

    def log(self, key: str, kind: str, about: str) -> None:
        with self.database.write() as connection:
            exclude_others(connection)
            last = connection.execute(select(func.max(s.events.c.number))).scalar() or 0
            row = {"number": last + 1, "at": now(), "key": key, "kind": kind, "about": about}
            connection.execute(insert(s.events).values(**row))

    def events(self, most: int) -> list[Row]:
        """The newest events, the newest first."""
        return self._all(select(s.events).order_by(s.events.c.number.desc()).limit(most))


class Titles(Rows):
    """Headlines and units of releases."""

    def set_title(self, number: str, headline: str, unit: str) -> None:
        """Give a release a headline and a unit."""
        t, words = s.titles, {"headline": headline, "unit": unit}
        with self.database.write() as connection:
            exclude_others(connection)
            changed = connection.execute(update(t).where(t.c.release == number).values(**words))
            if changed.rowcount == 0:
                connection.execute(insert(t).values(release=number, **words))

    def titles(self, *numbers: str) -> dict[str, Row]:
        """The headlines and units of those releases that were given some, by their numbers."""
        rows = self._all(select(s.titles).where(s.titles.c.release.in_(numbers)))
        return {row["release"]: row for row in rows}


class Store(Keys, Jobs, Events, Titles):
    """All that is remembered."""

    # datasets

    def check_new(self, declared: Mapping[str, Any], digest: str) -> None:
        """Refuse a name that is taken, and a table whose people have a budget that is not shared."""
        with self.database.read() as connection:
            _check_new(connection, declared, digest)

    def add_dataset(self, declared: Mapping[str, Any], digest: str) -> None:
        """Register a dataset. ``digest``: SHA-256 of its table."""
        with self.database.write() as connection:
            exclude_others(connection)
            _check_new(connection, declared, digest)
            row = {"name": declared["name"], "declared": json.dumps(dict(declared))}
            connection.execute(insert(s.datasets).values(made_at=now(), digest=digest, **row))

    def tables_in_use(self) -> set[str]:
        """The names of the tables that datasets are made of, or that jobs have yet to read."""
        ahead = s.jobs.c.state.in_((WAITING, RUNNING, FAILED))
        jobs = self._all(select(s.jobs.c.asked).where(ahead))
        kept = [*(row["declared"] for row in self._all(select(s.datasets)))]
        texts = [*kept, *(row["asked"] for row in jobs)]
        return {str(json.loads(text).get("table", "")) for text in texts}

    def datasets(self, who: Who) -> list[Row]:
        """All that the key may see."""
        asked = select(s.datasets).where(_sees(who, s.datasets.c.name)).order_by(s.datasets.c.name)
        return [{**row, "declared": json.loads(row["declared"])} for row in self._all(asked)]

    def dataset(self, who: Who, name: str) -> Row:
        """One dataset; what the key may not see is as absent as what does not exist, and is looked
        for in the same way."""
        c = s.datasets.c
        row = self._first(select(s.datasets).where(and_(c.name == name, _sees(who, c.name))))
        return {**row, "declared": json.loads(row["declared"])}

    def read_declaration(self, name: str) -> Row:
        """What was declared of a dataset, for the server's own use."""
        asked = select(s.datasets.c.declared).where(s.datasets.c.name == name)
        found: Row = json.loads(self._first(asked)["declared"])
        return found

    # plans and releases

    def add_plan(self, **row: Any) -> None:
        self._add_once(s.plans, row)

    def plan(self, who: Who, number: str) -> Row:
        return self._visible(who, s.plans, number)

    def plans(self, dataset: str) -> list[Row]:
        return self._of_dataset(s.plans, dataset)

    def plan_file(self, number: str) -> bytes:
        return bytes(self._first(select(s.plans.c.file).where(s.plans.c.id == number))["file"])

    def approve(self, who: Who, number: str) -> None:
        self._decide(who, number, "approved", "rejected", s.plans.c.approved_at == "")

    def reject(self, who: Who, number: str) -> None:
        """Reject a plan, or withdraw its approval: it is not carried out until it is approved again."""
        self._decide(who, number, "rejected", "approved", true())

    def _decide(
        self, who: Who, number: str, made: str, undone: str, where: ColumnElement[bool]
    ) -> None:
        self.plan(who, number)
        values = {
            f"{made}_at": now(),
            f"{made}_by": who.name,
            f"{undone}_at": "",
            f"{undone}_by": "",
        }
        self._write(update(s.plans).where(s.plans.c.id == number, where).values(**values))

    def add_release(self, **row: Any) -> None:
        self._add_once(s.releases, row)

    def release(self, who: Who, number: str) -> Row:
        return self._visible(who, s.releases, number)

    def any_release(self, number: str) -> Row:
        """A release, for the server's own use."""
        return self._first(select(s.releases).where(s.releases.c.id == number))

    def releases(self, dataset: str) -> list[Row]:
        return self._of_dataset(s.releases, dataset)

    # functions and paths

    def add_function(self, **row: Any) -> None:
        self._add_once(s.functions, {"points": 0, **row})

    def has_function(self, number: str) -> bool:
        return self._found(select(s.functions.c.id).where(s.functions.c.id == number)) is not None

    def function(self, who: Who, number: str) -> Row:
        return self._visible(who, s.functions, number)

    def functions(self, dataset: str) -> list[Row]:
        return self._of_dataset(s.functions, dataset)

    def note_points(self, number: str, points: int) -> None:
        """Know that this many points were answered, or more."""
        c = s.functions.c
        fewer = and_(c.id == number, c.points < points)
        self._write(update(s.functions).where(fewer).values(points=points))

    def _add_once(self, table: Table, row: Row) -> None:
        """Add a row, unless a run of the same job before has."""
        with self.database.write() as connection:
            exclude_others(connection)
            same = select(table.c.id).where(table.c.id == row["id"])
            if not connection.execute(same).first():
                connection.execute(insert(table).values(made_at=now(), **row))

    def _visible(self, who: Who, table: Table, number: str) -> Row:
        """A row of a dataset that the key may see, without the file it may have."""
        c = table.c
        columns = [each for each in c if not isinstance(each.type, LargeBinary)]
        return self._first(select(*columns).where(and_(c.id == number, _sees(who, c.dataset))))

    def _of_dataset(self, table: Table, dataset: str) -> list[Row]:
        columns = [each for each in table.c if not isinstance(each.type, LargeBinary)]
        asked = select(*columns).where(table.c.dataset == dataset).order_by(table.c.made_at)
        return self._all(asked)


def _check_new(connection: Connection, declared: Mapping[str, Any], digest: str) -> None:
    rows = connection.execute(select(s.datasets)).mappings().all()
    if any(declared["name"] == row["name"] for row in rows):
        raise Refused(409, "A dataset of this name is registered already.")
    for row in rows:
        known = json.loads(row["declared"])
        if known["table"] != declared["table"] and (not digest or digest != row["digest"]):
            continue
        account = known.get("account") or known["name"]
        if declared.get("account") != account:
            raise Refused(
                409,
                f"This table is registered already, and its people have one budget: give "
                f"account = {account} to ask for something else within it.",
            )


def _is_valid() -> ColumnElement[bool]:
    """Whether a key is neither revoked nor expired."""
    c = s.keys.c
    return and_(c.revoked_at == "", or_(c.ends == 0, c.ends > int(time.time())))


def _is_of(identity: str) -> ColumnElement[bool]:
    """Whether a key is valid and was made for somebody."""
    return and_(s.keys.c.identity == identity, _is_valid())


def moment(seconds: float) -> str:
    """A moment as text, from seconds since 1970; nothing for never."""
    return datetime.fromtimestamp(seconds, UTC).isoformat() if seconds else ""


def _sees(who: Who, name: ColumnElement[str]) -> ColumnElement[bool]:
    """Whether a key may see the dataset of this name: a custodian's, or one that it was made for."""
    granted = select(s.grants.c.dataset).where(s.grants.c.key == who.key)
    return true() if who.role == CUSTODIAN else name.in_(granted)


def _to_text(asked: Mapping[str, Any]) -> str:
    return json.dumps(dict(asked), sort_keys=True)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def new_id() -> str:
    return secrets.token_hex(16)
