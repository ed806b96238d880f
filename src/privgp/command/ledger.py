"""``privgp ledger``: budgets of datasets that cannot be overspent."""

from __future__ import annotations

from pathlib import Path
from re import fullmatch
from typing import TYPE_CHECKING, Annotated

from privgp.command import options as o
from privgp.command.errors import Failure, Refusal, one_line, plural, refusal
from privgp.command.io.files import check_files, open_own, write_json
from privgp.command.io.screen import tell

if TYPE_CHECKING:
    from privgp.ledger.account import Account

DATASET_HELP = "The dataset's name."
RESERVE_HELP = "The part of epsilon reserved for pure steps after the first Gaussian step."
HEAD_HELP = "The head in a certificate: it must be in the ledger."
KEY_HELP = (
    "The ledger's public key, .pem: every entry since the first signed one must be signed by it."
)
CERTIFICATE_HELP = (
    "A certificate (.json) or a release (.privgp) whose charge --key must have signed."
)
NO_ANCHOR = "There is no anchor: an older copy of the whole ledger would not be noticed."
DELTA_HELP = "The total delta of all releases. With 0, only pure steps are possible."
OUT_HELP = "The .json file to write: accounts, entries, and the hashes of answers."


def open(
    ledger: o.LedgerUrl,
    dataset: Annotated[str, o.plain(DATASET_HELP, metavar="NAME")],
    epsilon: Annotated[float, o.privacy("The total epsilon of all releases.")],
    delta: Annotated[float, o.privacy(DELTA_HELP)],
    reserve: Annotated[float, o.privacy(RESERVE_HELP)] = 0.0,
    json: o.Json = False,
) -> None:
    """Open the account of a dataset: one permanent total for all who release it."""
    from privgp.command.io.accounts import OPTIONS, open_ledger
    from privgp.command.io.request import public_computation
    from privgp.errors import LedgerError
    from privgp.ledger.ledger import check_terms

    with public_computation(**OPTIONS, reserve="--reserve"):
        check_terms(dataset, epsilon, delta, reserve)
    try:
        account = open_ledger(ledger, create=True).open(dataset, epsilon, delta, reserve=reserve)
    except LedgerError as problem:
        raise refusal(problem) from None
    line = f"Opened '{dataset}': epsilon = {epsilon:g}, delta = {delta:g}."
    tell(_tell_account(account)[0], [line], None, as_json=json)


def show(
    ledger: o.LedgerUrl,
    dataset: Annotated[str | None, o.plain(f"{DATASET_HELP} Default: all.", metavar="NAME")] = None,
    json: o.Json = False,
) -> None:
    """Show what was charged, and what is left."""
    from privgp.command.io.accounts import account_in, open_ledger

    found = open_ledger(ledger)
    accounts = found.accounts() if dataset is None else [account_in(found, dataset)]
    told = [_tell_account(account) for account in accounts]
    lines = [line for _, each in told for line in each] or ["There are no accounts."]
    tell({"accounts": [facts for facts, _ in told]}, lines, None, as_json=json)


def verify(
    ledger: Annotated[str | None, o.plain(o.LEDGER_URL_HELP, "--ledger", metavar="URL")] = None,
    head: Annotated[str | None, o.plain(HEAD_HELP, metavar="HASH")] = None,
    key: Annotated[Path | None, o.plain(KEY_HELP, metavar="FILE")] = None,
    certificate: Annotated[Path | None, o.plain(CERTIFICATE_HELP, metavar="FILE")] = None,
    json: o.Json = False,
) -> None:
    """Check that no row was changed, removed or reordered and that no older copy was put back, or
    that a certificate was signed by the ledger's key."""
    if head is not None and not fullmatch("[0-9a-f]{64}", head):
        raise Refusal("--head must be the 64 hexadecimal digits that a certificate names.")
    if ledger is None and (certificate is None or key is None):
        raise Refusal("Give --ledger, or --certificate and --key to check without a ledger.")
    check_files([(certificate, (".json", ".privgp")), (key, (".pem", ".pub"))], [], force=None)
    from privgp.command.io.accounts import open_ledger
    from privgp.errors import LedgerError, LedgerTampered

    public = None if key is None else open_own(key, Path.read_text)
    lines = []
    try:
        if certificate is not None:
            lines.append(_check_certificate(certificate, public))
        if ledger is not None:
            found = open_ledger(ledger)
            found.verify(head, public)
            accounts = plural(len(found.accounts()), "account")
            lines.append(f"Verified: {accounts}, every chain is whole.")
            lines += [] if found.has_anchor else [NO_ANCHOR]
    except LedgerTampered as problem:
        raise Failure(one_line(f"Tampered: {problem}")) from None
    except LedgerError as problem:
        raise refusal(problem) from None
    anchored = None if ledger is None else found.has_anchor
    tell({"verified": True, "anchored": anchored}, lines, None, as_json=json)


def _check_certificate(path: Path, public: str | None) -> str:
    """What the ledger's key signed of a certificate, in words."""
    from json import loads

    from privgp.ledger.signing import check_certificate
    from privgp.models.load import load

    if public is None:
        raise Refusal("--certificate needs --key, the ledger's public key.")
    is_json = path.suffix == ".json"
    facts = open_own(
        path, lambda p: loads(p.read_text("utf-8")) if is_json else load(p).certificate()
    )
    if not isinstance(facts, dict):
        raise Refusal(f"'{path}' is not a certificate.")
    stated = check_certificate(facts, public)
    spent = f"epsilon = {stated['epsilon']:g}, delta = {stated['delta']:g}"
    signed = f"Signed: entry {stated['entry']} of '{stated['dataset']}', {stated['at']}, {spent}."
    return f"{signed} Nothing else in it is, such as the total budget and what was left."


def export(
    ledger: o.LedgerUrl,
    out: Annotated[Path, o.destination("FILE", OUT_HELP)],
    force: o.Force = False,
    json: o.Json = False,
) -> None:
    """Write all accounts and entries as JSON, for an auditor."""
    check_files([], [(out, (".json",))], force=force)
    from privgp.command.io.accounts import open_ledger

    found = open_ledger(ledger)
    write_json(out, found.export())
    entries = sum(len(account.entries()) for account in found.accounts())
    line = f"Wrote {plural(entries, 'entry').replace('entrys', 'entries')} into {out}."
    tell({"export": out, "entries": entries}, [line], None, as_json=json)


def _tell_account(account: Account) -> tuple[dict[str, object], list[str]]:
    """What may be known of an account: for programs, and in lines."""
    from privgp.ledger.filter import decimal_below
    from privgp.types import STAMP

    opened, head, left = account.opened(), account.head, account.remaining()
    total = {n: decimal_below(int(getattr(opened, n))) for n in ("epsilon", "delta", "reserve")}
    lines = [
        f"{account.dataset}: epsilon = {total['epsilon']:g}, delta = {total['delta']:g}; "
        f"epsilon = {left:.6g} is left."
    ]
    charges: list[dict[str, object]] = []
    for entry in account.entries():
        promised = entry.promised
        if promised is None:
            continue
        told = {name: getattr(promised, name) for name in ("epsilon", "delta", "mechanism")}
        charges.append(
            {"entry": entry.number, "at": entry.at, **told, "simulation": promised.is_simulation}
        )
        stamp = f"{STAMP}: " if promised.is_simulation else ""
        spent = f"epsilon = {promised.epsilon:g}, delta = {promised.delta:g}"
        lines.append(f"  {entry.number}. {entry.at}: {stamp}{spent}: {promised.mechanism}")
    facts = {"dataset": account.dataset, **total, "opened_at": opened.opened_at}
    return {**facts, "remaining": left, "head": head, "charges": charges}, [
        *lines,
        f"  head {head}",
    ]
