"""What a server knows beside its ledger, in the same database: keys, datasets, plans, jobs, releases."""

import json
from collections import Counter
from collections.abc import Mapping

from sqlalchemy import Connection, LargeBinary, Table, and_, func, insert, select, update

from privgp.ledger.database import exclude_others
from privgp.server.errors import Refused
from privgp.server.store import schema as s
from privgp.server.store.jobs import Jobs, jobs_that
from privgp.server.store.keys import Keys, Who, sees
from privgp.server.store.schema import FAILED, RUNNING, WAITING, Row, Rows, now


class Events(Rows):
    """An append-only log: who did what, by the number of the key."""

    def log(self, who: Who, kind: str, about: str) -> None:
        with self.database.write() as connection:
            exclude_others(connection)
            last = connection.execute(select(func.max(s.events.c.number))).scalar() or 0
            row = {"number": last + 1, "at": now(), "key": who.key, "kind": kind, "about": about}
            connection.execute(insert(s.events).values(**row))

    def events(self, before: int, most: int) -> list[Row]:
        """The newest events before a number, the newest first."""
        number = s.events.c.number
        asked = select(s.events).where(number < before)
        return self._all(asked.order_by(number.desc()).limit(most))


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

    def check_new(self, declared: Mapping[str, object], digests: tuple[str, ...]) -> None:
        """Refuse a name that is taken, and a table whose people have a budget that is not shared."""
        with self.database.read() as connection:
            _check_new(connection, declared, digests)

    def add_dataset(self, declared: Mapping[str, object], digests: tuple[str, ...]) -> None:
        """Register a dataset. ``digests``: SHA-256 of its table; the first one is kept."""
        with self.database.write() as connection:
            exclude_others(connection)
            _check_new(connection, declared, digests)
            row = {"name": declared["name"], "declared": json.dumps(dict(declared))}
            connection.execute(insert(s.datasets).values(made_at=now(), digest=digests[0], **row))

    def tables_in_use(self) -> set[str]:
        """The names of the tables that datasets are made of, or that jobs are about to read."""
        ahead = s.jobs.c.state.in_((WAITING, RUNNING))
        jobs = self._all(select(s.jobs.c.asked).where(ahead))
        kept = [*(row["declared"] for row in self._all(select(s.datasets)))]
        texts = [*kept, *(row["asked"] for row in jobs)]
        return {str(json.loads(text).get("table", "")) for text in texts}

    def datasets(self, who: Who) -> list[Row]:
        """All that the key may see."""
        asked = select(s.datasets).where(sees(who, s.datasets.c.name)).order_by(s.datasets.c.name)
        return [{**row, "declared": json.loads(row["declared"])} for row in self._all(asked)]

    def dataset(self, who: Who, name: str) -> Row:
        """One dataset; what the key may not see is as absent as what does not exist, and is looked
        for in the same way."""
        c = s.datasets.c
        row = self._first(select(s.datasets).where(and_(c.name == name, sees(who, c.name))))
        return {**row, "declared": json.loads(row["declared"])}

    def read_declaration(self, name: str) -> Row:
        """What was declared of a dataset, for the server's own use."""
        asked = select(s.datasets.c.declared).where(s.datasets.c.name == name)
        found: Row = json.loads(self._first(asked)["declared"])
        return found

    # plans and releases

    def add_plan(self, **row: object) -> None:
        self._add_once(s.plans, row)

    def plan(self, who: Who, number: str) -> Row:
        return self._visible(who, s.plans, number)

    def plans(self, dataset: str) -> list[Row]:
        return self._of_dataset(s.plans, dataset)

    def count_waiting(self, who: Who) -> Counter[str]:
        """How many plans wait for somebody, by dataset: for a custodian to decide, for an analyst to
        release them. Comparisons of budgets are none."""
        p = s.plans.c
        wanted = (
            and_(p.approved_at == "", p.rejected_at == "")
            if who.is_custodian
            else p.approved_at != ""
        )
        rows = self._all(select(p.id, p.dataset, p.told).where(wanted, sees(who, p.dataset)))
        if who.is_custodian:
            return Counter(
                row["dataset"] for row in rows if len(json.loads(row["told"])["options"]) == 1
            )
        jobs = self._all(select(s.jobs.c.asked).where(s.jobs.c.kind == "release"))
        started = {json.loads(job["asked"]).get("plan") for job in jobs}
        return Counter(row["dataset"] for row in rows if row["id"] not in started)

    def plan_file(self, number: str) -> bytes:
        return bytes(self._first(select(s.plans.c.file).where(s.plans.c.id == number))["file"])

    def decide(self, connection: Connection, who: Who, number: str, *, approved: bool) -> bool:
        """Approve a plan, unless it is; or reject it, which withdraws an approval, unless it is being
        carried out or was. Whether anything was decided."""
        made, undone = ("approved", "rejected") if approved else ("rejected", "approved")
        values = {f"{made}_at": now(), f"{made}_by": who.name}
        values |= {f"{undone}_at": "", f"{undone}_by": ""}
        c = s.plans.c
        where = and_(c.id == number, c.approved_at == "") if approved else c.id == number
        exclude_others(connection)
        started = jobs_that("release", {"plan": number}).where(s.jobs.c.state != FAILED)
        if not approved and connection.execute(started).first():
            raise Refused(409, "The plan is being carried out, or was.")
        return connection.execute(update(s.plans).where(where).values(**values)).rowcount > 0

    def add_release(self, **row: object) -> None:
        self._add_once(s.releases, row)

    def release(self, who: Who, number: str) -> Row:
        return self._visible(who, s.releases, number)

    def any_release(self, number: str) -> Row:
        """A release, for the server's own use."""
        return self._first(select(s.releases).where(s.releases.c.id == number))

    def releases(self, dataset: str) -> list[Row]:
        return self._of_dataset(s.releases, dataset)

    # functions and paths

    def add_function(self, **row: object) -> None:
        self._add_once(s.functions, {"points": 0, **row})

    def has_function(self, number: str) -> bool:
        return self._find(select(s.functions.c.id).where(s.functions.c.id == number)) is not None

    def function(self, who: Who, number: str) -> Row:
        return self._visible(who, s.functions, number)

    def functions(self, dataset: str) -> list[Row]:
        return self._of_dataset(s.functions, dataset)

    def note_points(self, number: str, points: int) -> None:
        """Know that this many points were answered, or more."""
        fewer = and_(s.functions.c.id == number, s.functions.c.points < points)
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
        return self._first(select(*columns).where(and_(c.id == number, sees(who, c.dataset))))

    def _of_dataset(self, table: Table, dataset: str) -> list[Row]:
        columns = [each for each in table.c if not isinstance(each.type, LargeBinary)]
        asked = select(*columns).where(table.c.dataset == dataset).order_by(table.c.made_at)
        return self._all(asked)


def _check_new(
    connection: Connection, declared: Mapping[str, object], digests: tuple[str, ...]
) -> None:
    rows = connection.execute(select(s.datasets)).mappings().all()
    if any(declared["name"] == row["name"] for row in rows):
        raise Refused(409, "A dataset of this name is registered already.")
    for row in rows:
        known = json.loads(row["declared"])
        if known["table"] != declared["table"] and row["digest"] not in digests:
            continue
        account = known.get("account") or known["name"]
        if declared.get("account") != account:
            raise Refused(
                409,
                f"This table is registered already, and its people have one budget: give "
                f"account = {account} to ask for something else within it.",
            )
