"""What was asked for that takes long."""

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Select, and_, func, insert, select, true, update

from privgp.ledger.database import exclude_others
from privgp.server.errors import Refused
from privgp.server.store import schema as s
from privgp.server.store.keys import Who, is_valid
from privgp.server.store.schema import Row, Rows, new_id, now

AGAIN: Row = {"state": s.WAITING, "error": "", "progress": 0.0, "doing": ""}  # of a job to be run


class Jobs(Rows):
    """What was asked for that takes long."""

    def add_job(
        self,
        who: Who,
        kind: str,
        dataset: str,
        asked: Mapping[str, object],
        *,
        retry: str,
        digest: str,
        max_jobs_per_key: int,
    ) -> Row:
        """The job of this key and retry key: a new one, or the one there is; a failed one is tried
        again. The same retry key with another request is refused. A plan is carried out by one job."""
        c = s.jobs.c
        same = and_(c.key == who.key, c.kind == kind, c.retry == retry)
        with self.database.write() as connection:
            exclude_others(connection)
            row = connection.execute(select(s.jobs).where(same)).mappings().first()
            if row is not None:
                if row["digest"] != digest:
                    raise Refused(409, "This Idempotency-Key was used for another request.")
                if row["state"] == s.FAILED:
                    return _run_again(connection, who, dict(row), max_jobs_per_key)
                return dict(row)
            if "plan" in asked and connection.execute(jobs_that(kind, asked)).first():
                raise Refused(409, "This plan was carried out already: make another one.")
            _check_start(connection, who, asked, max_jobs_per_key)
            last = connection.execute(select(func.max(c.place))).scalar() or 0
            made = {
                "id": new_id(), "place": last + 1, "dataset": dataset, "key": who.key, "kind": kind,
                "asked": to_text(asked), "retry": retry, "digest": digest,
                "result": "", "made_at": now(), **AGAIN,
            }  # fmt: skip
            connection.execute(insert(s.jobs).values(**made))
            return made

    def count_jobs(self) -> list[tuple[str, str, int]]:
        """How many jobs there are, by kind and state."""
        c = s.jobs.c
        asked = select(c.kind, c.state, func.count().label("jobs")).group_by(c.kind, c.state)
        return [(row["kind"], row["state"], int(row["jobs"])) for row in self._all(asked)]

    def job_of(self, kind: str, asked: Mapping[str, object]) -> Row | None:
        """The job that was asked for this, if there is one."""
        return self._find(jobs_that(kind, asked))

    def jobs_of(self, kind: str, dataset: str) -> list[Row]:
        """All jobs of a kind about a dataset."""
        c = s.jobs.c
        return self._all(select(s.jobs).where(c.kind == kind, c.dataset == dataset))

    def retry(self, who: Who, number: str, max_jobs_per_key: int) -> Row:
        """Let a failed job run again, under the key that asks: what it charged is charged once."""
        failed = and_(s.jobs.c.id == number, s.jobs.c.state == s.FAILED)
        with self.database.write() as connection:
            exclude_others(connection)
            row = connection.execute(select(s.jobs).where(failed)).mappings().first()
            if row is None:
                raise Refused(409, "Only a job that failed can be tried again.")
            return _run_again(connection, who, dict(row), max_jobs_per_key)

    def has_job(self, who: Who, kind: str, retry: str) -> bool:
        c = s.jobs.c
        same = and_(c.key == who.key, c.kind == kind, c.retry == retry)
        return self._find(select(c.id).where(same)) is not None

    def job(self, who: Who, number: str) -> Row:
        """A job of this key; a custodian sees all."""
        c = s.jobs.c
        own = true() if who.is_custodian else c.key == who.key
        return self._first(select(s.jobs).where(and_(c.id == number, own)))

    def next_job(self) -> Row | None:
        """The job that runs next: of the key that waits longest for a job to start, the oldest. Jobs of
        keys that are no longer valid fail, also those that ran when the server was killed."""
        ready, valid = s.jobs.c.state == s.WAITING, select(s.keys.c.id).where(is_valid())
        stale = update(s.jobs).where(ready, s.jobs.c.key.not_in(valid))
        before = s.jobs.alias("before")
        newest = func.coalesce(func.max(before.c.started), 0)
        turn = select(newest).where(before.c.key == s.jobs.c.key).scalar_subquery()
        asked = select(s.jobs).where(ready).order_by(turn, s.jobs.c.place)
        last = select(func.coalesce(func.max(s.jobs.c.started), 0))
        with self.database.write() as connection:
            exclude_others(connection)
            connection.execute(stale.values(state=s.FAILED, error=s.REVOKED))
            row = connection.execute(asked.limit(1)).mappings().first()
            if row is None:
                return None
            number = int(connection.execute(last).scalar_one()) + 1
            taken = update(s.jobs).where(s.jobs.c.id == row["id"])
            connection.execute(taken.values(state=s.RUNNING, started=number))
            return {**row, "asked": json.loads(row["asked"])}

    def note(self, job: str, **values: object) -> None:
        self._write(update(s.jobs).where(s.jobs.c.id == job).values(**values))

    def end(self, job: str, **values: object) -> None:
        """Write down how a job ended that runs; an end that is written stays."""
        running = and_(s.jobs.c.id == job, s.jobs.c.state == s.RUNNING)
        self._write(update(s.jobs).where(running).values(**values))

    def requeue(self) -> None:
        """Jobs that ran when the server ended wait again. What they charged, they charged once."""
        self._write(update(s.jobs).where(s.jobs.c.state == s.RUNNING).values(**AGAIN))


def jobs_that(kind: str, asked: Mapping[str, object]) -> Select[Any]:
    """The jobs that were asked for this."""
    return select(s.jobs).where(s.jobs.c.kind == kind, s.jobs.c.asked == to_text(asked))


def _run_again(connection: Connection, who: Who, row: Row, max_jobs_per_key: int) -> Row:
    """Let a failed job wait again, under the key that asks."""
    _check_start(connection, who, json.loads(row["asked"]), max_jobs_per_key)
    once = row["retry"] if row["key"] == who.key else new_id()  # the new key may have used it
    again = {"key": who.key, "retry": once, **AGAIN}
    connection.execute(update(s.jobs).where(s.jobs.c.id == row["id"]).values(**again))
    return {**row, **again}


def _check_start(
    connection: Connection, who: Who, asked: Mapping[str, object], max_jobs_per_key: int
) -> None:
    """Refuse a job whose plan is not approved, or whose key has too many others."""
    p, c = s.plans.c, s.jobs.c
    approved = select(p.id).where(p.id == asked.get("plan"), p.approved_at != "")
    if "plan" in asked and not connection.execute(approved).first():
        raise Refused(409, "The plan is not approved by a custodian.")
    busy = and_(c.key == who.key, c.state.in_((s.WAITING, s.RUNNING)))
    if (connection.execute(select(func.count()).where(busy)).scalar() or 0) >= max_jobs_per_key:
        raise Refused(429, "This key has too many jobs waiting: try again later.")


def to_text(asked: Mapping[str, object]) -> str:
    """What a job was asked for, as its row has it."""
    return json.dumps(dict(asked), sort_keys=True)
