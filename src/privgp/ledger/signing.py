"""Signed entries: anyone who has the public key of a ledger can check a certificate without the ledger.

Ed25519 keys are PEM files, the private one readable by its owner alone (extra ``server``).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from privgp.errors import LedgerError, LedgerTampered
from privgp.storage.parts import PRIVATE, part_beside, write_through

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    from privgp.ledger.chain import Entry

Stated = dict[str, str | float | bool]
SIGNATURE = "signature"
UNSIGNED = (SIGNATURE, "total_epsilon", "total_delta", "left")  # in receipts
NAMED = ("unit", "neighbours", "simulation")
NOT_SIGNED = "is not signed by this key"


class SigningKey:
    """The private key of a ledger.

    Parameters
    ----------
    path : path of the PEM file, which is made if it does not exist

    """

    def __init__(self, path: Path) -> None:
        try:
            from cryptography.hazmat.primitives import serialization as s
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        except ImportError:
            raise LedgerError("signatures need cryptography: install privgp[server].") from None
        if not path.exists():
            fresh = Ed25519PrivateKey.generate()
            own = (s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption())
            _write_once(path, fresh.private_bytes(*own))
        try:
            found = s.load_pem_private_key(path.read_bytes(), None)
        except (OSError, ValueError, TypeError):
            raise LedgerError(f"the signing key '{path}' cannot be read.") from None
        if not isinstance(found, Ed25519PrivateKey):
            raise LedgerError(f"the signing key '{path}' is no Ed25519 key.")
        self._key = found
        public = found.public_key()
        self.public_pem = public.public_bytes(
            s.Encoding.PEM, s.PublicFormat.SubjectPublicKeyInfo
        ).decode("ascii")

    def sign(self, stated: Mapping[str, object]) -> str:
        """The signature of what is stated, as hexadecimal digits."""
        return self._key.sign(_statement(stated)).hex()


def state_entry(entry: Entry) -> Stated:
    """What is signed of an entry: its place, its head, and what a charge guarantees."""
    stated: Stated = {
        "dataset": entry.dataset,
        "entry": entry.number,
        "head": entry.hash,
        "at": entry.at,
    }
    promised = entry.promised
    if promised is None:
        return stated
    return {
        **stated,
        "epsilon": promised.epsilon,
        "delta": promised.delta,
        "unit": promised.unit,
        "neighbours": promised.neighbours,
        "simulation": promised.is_simulation,
    }


def check_entries(entries: list[Entry], public_pem: str) -> None:
    """Refuse a chain with an entry that this key did not sign; LedgerTampered.

    Parameters
    ----------
    entries
        Of one account, oldest first. The first ones may have no signature, being older than the key, but
        not all: anyone who cannot sign could have replaced them.
    public_pem
        The public key, as PEM.

    """
    key, begun = read_public_key(public_pem), False
    for entry in entries:
        begun = begun or entry.signature is not None
        if begun and not _verifies(key, state_entry(entry), entry.signature or ""):
            raise LedgerTampered(f"entry {entry.number} of dataset {entry.dataset!r} {NOT_SIGNED}.")
    if entries and not begun:
        raise LedgerTampered(
            f"no entry of dataset {entries[0].dataset!r} is signed: all are older than the key, or were "
            "replaced."
        )


def check_certificate(certificate: Mapping[str, object], public_pem: str) -> Stated:
    """What a ledger signed of the release that a certificate is about.

    Parameters
    ----------
    certificate
        As ``certificate()`` makes it.
    public_pem
        The public key of the custodian's ledger, as PEM.

    Returns
    -------
    dict
        The place of the charge, and what it guarantees.

    Raises
    ------
    LedgerTampered
        The charge is not signed by this key, or the certificate states less than was charged.

    """
    found = certificate.get("ledger")
    if not isinstance(found, Mapping) or SIGNATURE not in found:
        raise LedgerTampered("the certificate names no charge with a signature.")
    stated = {name: value for name, value in found.items() if name not in UNSIGNED}
    if not _verifies(read_public_key(public_pem), stated, found[SIGNATURE]):
        raise LedgerTampered(f"the charge of the certificate {NOT_SIGNED}.")
    same = all(certificate.get(name) == stated.get(name) for name in NAMED)
    if not same or not _at_least(certificate, stated):
        raise LedgerTampered("the certificate states another guarantee than was charged.")
    return stated


def read_public_key(public_pem: str) -> Ed25519PublicKey:
    """A public key from PEM; LedgerError if it is none."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        found = load_pem_public_key(public_pem.encode("utf-8"))
    except (ValueError, TypeError):
        found = None
    if not isinstance(found, Ed25519PublicKey):
        raise LedgerError("the public key must be an Ed25519 key in PEM.")
    return found


def _at_least(certificate: Mapping[str, object], stated: Mapping[str, object]) -> bool:
    """Whether a certificate admits to what was charged: several charges may add up to it."""
    pairs = [(certificate.get(name), stated.get(name)) for name in ("epsilon", "delta")]
    return all(
        isinstance(own, float | int) and isinstance(charged, float | int) and own >= charged
        for own, charged in pairs
    )


def _verifies(key: Ed25519PublicKey, stated: Mapping[str, object], signature: object) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(bytes.fromhex(str(signature)), _statement(stated))
    except (InvalidSignature, ValueError):
        return False
    return True


def _statement(stated: Mapping[str, object]) -> bytes:
    text = json.dumps(["privgp entry 1", dict(stated)], sort_keys=True, separators=(",", ":"))
    return text.encode("ascii")


def _write_once(path: Path, data: bytes) -> None:
    """Write a file that its owner alone may read, unless another program was faster."""
    try:
        with part_beside(path, mode=PRIVATE) as part, suppress(FileExistsError):
            write_through(part, data)
            os.link(part, path)
    except OSError:
        raise LedgerError(f"the signing key '{path}' cannot be written.") from None
