"""API keys: 256 random bits, shown once; only a hash of them is kept, and compared in constant time."""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass

CUSTODIAN, ANALYST = "custodian", "analyst"
FORM = re.compile(r"privgp-([0-9a-f]{16})-([0-9a-f]{64})")
NOBODY = "0" * 64  # no key has this hash


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
