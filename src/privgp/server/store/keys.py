"""Keys, and who is signed in.

Keys are 256 random bits, shown once; only a hash of them is kept, and compared in constant time.
"""

import hashlib
import hmac
import re
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, and_, insert, or_, select, true, update

from privgp.server.errors import Refused, absent
from privgp.server.store import schema as s
from privgp.server.store.schema import FAILED, REVOKED, WAITING, Row, Rows, now

CUSTODIAN, ANALYST = "custodian", "analyst"
FORM = re.compile(r"privgp-([0-9a-f]{16})-([0-9a-f]{64})")
NOBODY = "0" * 64  # no key has this hash
SESSION = 12 * 3600  # seconds
DAY = 24 * 3600


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
        return bool(self._find(select(s.keys.c.id).where(s.keys.c.role == CUSTODIAN, is_valid())))

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
        row = self._find(select(s.keys).where(s.keys.c.id == number))
        known = agrees(secret, None if row is None else row["hash"])  # as long for any key
        if row is None or not known or row["revoked_at"] or 0 < row["ends"] < time.time():
            return None
        return Who(row["id"], row["name"], row["role"])

    def who_is(self, identity: str) -> Who | None:
        """Whose key was made for somebody whom the provider vouches for."""
        row = self._find(select(s.keys).where(_is_of(identity)))
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
        asked = select(*columns).select_from(joined).where(s.sessions.c.id == number, is_valid())
        row = self._find(asked)
        known = agrees(secret, None if row is None else row["hash"])
        if row is None or not known or row["ends"] < time.time():
            return None
        return Who(row["id"], row["name"], row["role"], by_cookie=True)

    def sign_out(self, token: str) -> None:
        number, _ = parts(token)
        self._write(update(s.sessions).where(s.sessions.c.id == number).values(ends=0))


def is_valid() -> ColumnElement[bool]:
    """Whether a key is neither revoked nor expired."""
    c = s.keys.c
    return and_(c.revoked_at == "", or_(c.ends == 0, c.ends > int(time.time())))


def _is_of(identity: str) -> ColumnElement[bool]:
    """Whether a key is valid and was made for somebody."""
    return and_(s.keys.c.identity == identity, is_valid())


def moment(seconds: float) -> str:
    """A moment as text, from seconds since 1970; nothing for never."""
    return datetime.fromtimestamp(seconds, UTC).isoformat() if seconds else ""


def sees(who: Who, name: ColumnElement[str]) -> ColumnElement[bool]:
    """Whether a key may see the dataset of this name: a custodian's, or one that it was made for."""
    granted = select(s.grants.c.dataset).where(s.grants.c.key == who.key)
    return true() if who.role == CUSTODIAN else name.in_(granted)
