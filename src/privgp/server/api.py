"""Endpoints of keys, private tables, datasets, the ledger and jobs. Every one asks for a key; a custodian's
are marked so."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query, Request, Response

from privgp.errors import LedgerTampered
from privgp.server import shapes
from privgp.server.declared import Declared, KeyAsked
from privgp.server.errors import Refused, absent, explain, first_line
from privgp.server.service import Anybody, Custodian, Served, Service, keep_table, new_router
from privgp.server.store.keys import Who
from privgp.server.store.schema import Row
from privgp.server.store.tables import describe_columns

MOST_EVENTS, LAST = 500, 2**31 - 1
NO_ANCHOR = "There is no anchor: an older copy of the whole ledger would not be found."
router = new_router()


@router.get("/me", response_model=shapes.Me)
def me(who: Anybody) -> Row:
    """Whose key this is."""
    return {"name": who.name, "role": who.role}


@router.get("/keys", response_model=list[shapes.Key])
def keys(s: Served, _: Custodian) -> list[Row]:
    return s.store.keys()


@router.post("/keys", status_code=201, response_model=shapes.NewKey)
def add_key(s: Served, who: Custodian, asked: KeyAsked) -> Row:
    """A new key, shown this once."""
    number, key = s.store.add_key(**asked.model_dump())
    s.store.log(who, "key made", number)
    return {"id": number, "key": key}


@router.delete("/keys/{number}", response_model=shapes.Id)
def revoke_key(s: Served, who: Custodian, number: str) -> Row:
    """Revoke a key: it opens nothing more, and its jobs that wait are not carried out."""
    s.store.revoke(number)
    s.store.log(who, "key revoked", number)
    return {"id": number}


@router.get("/events", response_model=list[shapes.Event])
def events(
    s: Served, _: Custodian, before: Annotated[int, Query(ge=1, le=LAST)] = LAST
) -> list[Row]:
    """Sign-ins, keys, approvals, releases and downloads, the newest first: those ``before`` a number."""
    return s.store.events(before, MOST_EVENTS)


@router.post("/tables", status_code=201, response_model=shapes.Table)
async def add_table(
    s: Served, who: Custodian, request: Request, ending: Literal["csv", "parquet"] = "csv"
) -> Row:
    """Upload a private table, as the body of the request; it stays on the server."""
    name, _ = await keep_table(s, who, request, ending)
    return {"table": name}


@router.get("/tables", response_model=list[shapes.Table])
def unused_tables(s: Served, _: Custodian) -> list[Row]:
    """Uploaded private tables that no dataset is made of; the log knows who uploaded them, and when."""
    used = s.store.tables_in_use()
    names = sorted(path.name for path in s.settings.tables.iterdir())
    return [{"table": name} for name in names if name not in used]


@router.delete("/tables/{name}", response_model=shapes.Table)
def delete_table(s: Served, who: Custodian, name: str) -> Row:
    """Delete a private table that no dataset is made of."""
    unused = {row["table"] for row in unused_tables(s, who)}
    if name not in unused:
        raise absent()
    (s.settings.tables / name).unlink()
    s.store.log(who, "table deleted", name)
    return {"table": name}


@router.get("/tables/{name}/columns", response_model=list[shapes.Column])
def columns(s: Served, who: Custodian, name: str) -> list[Row]:
    """The columns of an uploaded table that no dataset is made of. No cell is read."""
    if name not in {row["table"] for row in unused_tables(s, who)}:
        raise absent()
    return describe_columns(s.settings.tables / name)


@router.get("/datasets", response_model=list[shapes.Dataset])
def datasets(s: Served, who: Anybody) -> list[Row]:
    return [_dataset(s, who, row) for row in s.store.datasets(who)]


@router.post("/datasets", status_code=201, response_model=shapes.Dataset)
def add_dataset(s: Served, who: Custodian, asked: Declared) -> Row:
    """Register a table of the server's folder: kinds of columns, bounds, and a permanent budget."""
    if asked.find_bounds is not None:
        if asked.bounds is not None:
            raise Refused(422, "Give either bounds or find_bounds.")
        asked = asked.with_bounds(asked.find_bounds.widest)
    asked.check(s.settings)
    digests = asked.digests(s.settings)
    s.store.check_new(asked.model_dump(mode="json"), digests)
    with explain(ValueError):
        if asked.account is None:
            # The same public inputs are about the same people, who have one budget.
            known = asked.public_rows(asked.path(s.settings))
            total = asked.epsilon, asked.delta
            s.work.ledger.open(asked.name, *total, reserve=asked.reserve, public=known)
        else:
            _check_same_table(s, asked)
    if asked.find_bounds is not None:
        asked = s.work.find_bounds(asked)
    s.store.add_dataset(asked.model_dump(mode="json"), digests)
    s.store.log(who, "dataset registered", asked.name)
    return _dataset(s, who, s.store.dataset(who, asked.name))


@router.get("/datasets/{name}", response_model=shapes.Dataset)
def dataset(s: Served, who: Anybody, name: str) -> Row:
    return _dataset(s, who, s.store.dataset(who, name))


@router.get(
    "/datasets/{name}/ledger", response_model=shapes.Chain, response_model_exclude_unset=True
)
def ledger(s: Served, who: Anybody, name: str) -> Row:
    """What was charged, in the order of the chain."""
    s.store.dataset(who, name)
    account = s.work.account_of(name)
    entries = []
    for each in account.entries():
        shown = {name: getattr(each, name) for name in ("number", "kind", "at", "hash", "previous")}
        entries.append(shown | (shapes.budget_of(each.promised) if each.promised else {}))
    return {"dataset": name, "remaining": account.remaining(), "entries": entries}


@router.get("/ledger/verify", response_model=shapes.Verified)
def verify(s: Served, _: Custodian) -> Row:
    """Whether every chain is whole and signed, and whether an older copy would be found."""
    found = s.work.ledger
    try:
        found.verify()
    except LedgerTampered as problem:
        return {"whole": False, "anchored": found.has_anchor, "told": first_line(problem)}
    told = "Every chain is whole." if found.has_anchor else f"Every chain is whole. {NO_ANCHOR}"
    return {"whole": True, "anchored": found.has_anchor, "told": told}


@router.get("/ledger/key", response_class=shapes.file_of("application/x-pem-file"))
def public_key(s: Served, _: Anybody) -> Response:
    """The public key of the ledger, by which certificates are checked anywhere."""
    assert s.work.ledger.key is not None
    pem = s.work.ledger.key.public_pem
    return shapes.download(pem.encode("ascii"), "ledger-key.pem", "application/x-pem-file")


@router.get("/jobs/{number}", response_model=shapes.Job)
def job(s: Served, who: Anybody, number: str) -> Row:
    return shapes.only(s.store.job(who, number), shapes.Job)


@router.post("/jobs/{number}/retry", status_code=202, response_model=shapes.Job)
def retry(s: Served, who: Anybody, number: str) -> Row:
    """Carry out a failed job again: its own key's, or any as a custodian. Nothing is charged twice."""
    s.store.job(who, number)
    job = s.store.retry(who, number, s.settings.max_jobs_per_key)
    s.store.log(who, "job retried", number)
    s.worker.wake()
    return shapes.only(job, shapes.Job)


def _dataset(s: Service, who: Who, row: Row) -> Row:
    declared = Declared.from_store(row["declared"])
    remaining = s.work.ledger.account(declared.payer).remaining()
    shown = declared.public_part(names=who.is_custodian)
    return {**shown, "remaining": remaining, "made_at": row["made_at"]}


def _check_same_table(s: Service, asked: Declared) -> None:
    """Refuse a dataset whose people have another budget than the one it wants to share."""
    first = s.work.declaration_of(asked.payer)
    if (asked.epsilon, asked.delta) != (first.epsilon, first.delta):
        total = f"epsilon = {first.epsilon:g}, delta = {first.delta:g}"
        raise Refused(422, f"The budget of {first.name} is {total}.")
    if asked.digests(s.settings)[0] != first.digests(s.settings)[0]:
        raise Refused(422, f"An account is shared by one table: that of {first.name} is another.")
