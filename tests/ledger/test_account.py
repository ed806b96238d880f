"""Accounts: charged once, never over, and whatever is done to the rows is found."""

from __future__ import annotations

import json
import pickle
import shutil
import sqlite3
import stat
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
from sklearn.base import clone
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError

from privgp import BudgetExceeded, Ledger, LedgerError, LedgerTampered, PrivateGPRegressor, compose
from privgp.ledger import database
from privgp.ledger.chain import CHARGE, Entry, Opened, check, seal_row
from privgp.ledger.filter import UNIT, Cost, Spent
from privgp.ledger.migrations.versions.first import TABLES
from privgp.ledger.signing import SigningKey, check_certificate
from privgp.privacy.guarantee import Guarantee
from privgp.privacy.protected import RECORDS
from privgp.release.certificate.page import page
from privgp.release.certificate.schema import SCHEMA
from tests.ledger.promises import gaussian, of, pure


def charges(account, guarantee: Guarantee, most: int) -> int:
    for done in range(most):
        try:
            account.charge(guarantee)
        except BudgetExceeded:
            return done
    return most


def test_a_budget_is_charged_to_its_end_and_no_further(url):
    ledger = Ledger(url)
    account = ledger.open("visits", 1.0, 1e-5)
    assert account.remaining() == 1.0
    entry = account.charge(pure(0.4))
    assert (entry.number, entry.previous, entry.hash) == (1, account.opened().hash, account.head)
    assert account.remaining() == 0.6
    assert charges(account, pure(0.2), 5) == 3
    assert account.remaining() == 0.0
    with pytest.raises(BudgetExceeded, match="'visits' has epsilon = 0 left"):
        account.charge(pure(5e-324))
    assert [entry.number for entry in account.entries()] == [1, 2, 3, 4]
    assert account.entries()[0].promised == pure(0.4)
    assert ledger.verify()
    assert Ledger(url).account("visits").remaining() == 0.0


def test_gaussian_charges_compose(url):
    account = Ledger(url).open("visits", 1.0, 1e-5)
    for _ in range(3):
        account.charge(gaussian(0.3, 1e-6))
    spent = compose([gaussian(0.3, 1e-6)] * 3, 1e-5).epsilon
    assert account.remaining() == pytest.approx(1.0 - spent, abs=1e-8)


def test_an_account_is_opened_once(url):
    ledger = Ledger(url)
    ledger.open("visits", 1.0, 1e-5).charge(pure(0.5))
    assert ledger.open("visits", 1.0, 1e-5).remaining() == 0.5
    for other in ((2.0, 1e-5), (1.0, 1e-4)):
        with pytest.raises(LedgerError, match="opened once"):
            ledger.open("visits", *other)
    with pytest.raises(LedgerError, match="no account for dataset 'other'"):
        ledger.account("other")
    assert [each.dataset for each in ledger.accounts()] == ["visits"]


def test_one_budget_for_one_public_part(tmp_path):
    ledger = Ledger(f"sqlite:///{tmp_path}/budget.db")
    ledger.open("visits", 1.0, 1e-5, public=[[1.0], [2.0]])
    with pytest.raises(LedgerError, match="'visits' already"):
        ledger.open("again", 1.0, 1e-5, public=[[1.0], [2.0]])
    other = ledger.open("other", 1.0, 1e-5, public=[[1.0], [3.0]])
    ledger.account("visits").charge(pure(0.1), fingerprint="f")
    with warnings.catch_warnings():  # an error stops the draw, so it must not cost anything
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="dataset 'visits' before"):
            other.charge(pure(0.1), fingerprint="f")
    assert other.remaining() == 1.0
    with pytest.warns(UserWarning, match="dataset 'visits' before"):
        other.charge(pure(0.1), fingerprint="f")
    assert other.remaining() == 0.9


def test_a_key_is_charged_once_and_answered_once(url):
    account = Ledger(url).open("visits", 1.0, 1e-5)
    drawn = iter([b"first", b"second", b"third"])
    asked = (pure(0.3), "question 1", b"where")
    assert account.answer(*asked, lambda: next(drawn)) == b"first"
    assert account.answer(*asked, lambda: next(drawn)) == b"first"
    assert account.remaining() == 0.7
    for other in ((pure(0.2), "question 1", b"where"), (pure(0.3), "question 1", b"when")):
        with pytest.raises(LedgerError, match="used for another request"):
            account.answer(*other, lambda: next(drawn))
    assert next(drawn) == b"second"
    # charged, and killed before the answer was stored: the charge pays for the next draw
    account.charge(pure(0.3), "question 2", request=b"where")
    assert account.stored("question 2") is None
    assert account.answer(pure(0.3), "question 2", b"where", lambda: b"late") == b"late"
    assert account.remaining() == 0.4
    assert account.store("question 2", b"later still") == b"late"
    with pytest.raises(LedgerError, match="nothing was charged"):
        account.store("question 3", b"free")
    assert account.ledger.verify()


def test_two_retries_at_once_get_the_bytes_of_the_first(url):
    account = Ledger(url).open("visits", 1.0, 1e-5)

    def asked(number: int) -> bytes:
        return account.answer(pure(0.3), "question", b"where", lambda: b"%d" % number)

    with ThreadPoolExecutor(4) as pool:
        assert len({*pool.map(asked, range(8))}) == 1
    assert account.remaining() == 0.7


def test_what_does_not_add_up_is_refused(url):
    account = Ledger(url).open("visits", 1.0, 1e-5)
    account.charge(pure(0.1))
    with pytest.raises(LedgerError, match="another account is a further budget"):
        account.charge(pure(0.1, RECORDS))
    with pytest.raises(TypeError, match="Guarantee"):
        account.charge(0.1)
    with pytest.raises(ValueError, match="between 0 and 1e12"):
        account.charge(of(epsilon=1e300, delta=0.0))
    account.charge(gaussian(0.5, 1e-6))
    with pytest.raises(BudgetExceeded, match="use Gaussian noise"):
        account.charge(pure(0.3))
    assert len(account.entries()) == 2


def test_a_refusal_says_what_is_left_of_delta(empty, tmp_path):
    shutil.copy(empty, tmp_path / "budget.db")
    account = Ledger(f"sqlite:///{tmp_path}/budget.db").open("visits", 1.0, 1e-5)
    account.charge(of(epsilon=0.1, delta=8e-6))
    with pytest.raises(BudgetExceeded, match=r"epsilon = 0.9 left.*A delta of 2e-06 is left"):
        account.charge(of(epsilon=0.1, delta=8e-6))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("", 1.0, 1e-5), "dataset must"),
        (("a\nb", 1.0, 1e-5), "dataset must"),
        (("a" * 201, 1.0, 1e-5), "dataset must"),
        ((7, 1.0, 1e-5), "dataset must"),
        (("a", 0.0, 1e-5), "epsilon must"),
        (("a", float("inf"), 1e-5), "epsilon must"),
        (("a", 1.0, 1.0), "delta must"),
        (("a", 1.0, float("nan")), "delta must"),
    ],
)
def test_bad_accounts(tmp_path, arguments, words):
    ledger = Ledger(f"sqlite:///{tmp_path}/budget.db")
    with pytest.raises(ValueError, match=words):
        ledger.open(*arguments)
    with pytest.raises(ValueError, match="reserve must"):
        ledger.open("a", 1.0, 1e-5, reserve=2.0)
    assert ledger.accounts() == []


@pytest.mark.parametrize(
    "url",
    [
        *("", "nonsense", "sqlite://", "sqlite:///:memory:", "mysql://host/a", "sqlite:////no/b"),
        "sqlite:///budgets.db?mode=ro&uri=true",  # a file of another name, so another budget
    ],
)
def test_bad_addresses(url):
    with pytest.raises(ValueError, match="url"):
        Ledger(url)


def test_what_is_no_database_is_refused(tmp_path):
    (tmp_path / "budget.db").write_text("age,cost\n" * 1000)
    with pytest.raises(LedgerError, match="nothing was drawn"):
        Ledger(f"sqlite:///{tmp_path}/budget.db")


def test_copies_of_an_estimator_charge_one_account(url):
    account = Ledger(url).open("visits", 1.0, 1e-5)
    model = PrivateGPRegressor(y_bounds=(0, 1), ledger=account)
    assert clone(model).ledger is account
    assert model.get_params()["ledger"] is account
    assert "Account('visits')" in repr(model)
    there = pickle.loads(pickle.dumps(model)).ledger
    there.charge(pure(0.5))
    assert account.remaining() == 0.5


# rows


def three_charges(url: str) -> Ledger:
    ledger = Ledger(url)
    account = ledger.open("visits", 1.0, 1e-5)
    account.charge(pure(0.1))
    account.answer(pure(0.2), "question", b"where", lambda: b"here")
    account.charge(pure(0.1))
    ledger.open("others", 1.0, 1e-5).charge(pure(0.1))
    assert ledger.verify()
    return ledger


def test_rows_are_neither_changed_nor_removed(url):
    ledger = three_charges(url)
    engine = create_engine(ledger.database.url)
    for table in TABLES:
        for change in (f"UPDATE {table} SET dataset = 'x'", f"DELETE FROM {table}"):
            with engine.connect() as connection, pytest.raises(DBAPIError, match="only added"):
                connection.execute(text(change))
    engine.dispose()
    assert ledger.verify()


CHANGES = {
    "a smaller cost": ["UPDATE entries SET epsilon = '1' WHERE number = 2 AND dataset = 'visits'"],
    "a later date": ["UPDATE entries SET at = 'never' WHERE number = 1 AND dataset = 'visits'"],
    "another guarantee": ["UPDATE entries SET guarantee = '{}' WHERE number = 4"],
    "a larger budget": ["UPDATE accounts SET epsilon = epsilon || '0' WHERE dataset = 'visits'"],
    "a row gone": ["DELETE FROM entries WHERE number = 2 AND dataset = 'visits'"],
    "the last row gone": ["DELETE FROM entries WHERE number = 4 AND dataset = 'visits'"],
    "all rows gone": ["DELETE FROM entries WHERE dataset = 'others'"],
    "an account gone": [
        "DELETE FROM entries WHERE dataset = 'others'",
        "DELETE FROM accounts WHERE dataset = 'others'",
    ],
    "rows in another order": [
        "UPDATE entries SET number = 9 WHERE number = 1 AND dataset = 'visits'",
        "UPDATE entries SET number = 1 WHERE number = 4 AND dataset = 'visits'",
        "UPDATE entries SET number = 4 WHERE number = 9 AND dataset = 'visits'",
    ],
    "a row moved": ["UPDATE entries SET dataset = 'visits', number = 5 WHERE dataset = 'others'"],
    "another answer": ["UPDATE answers SET answer = CAST('there' AS {bytes})"],
    "an answer gone": ["DELETE FROM answers"],
}


ON_BOTH = ("a row gone", "a smaller cost", "another answer")


@pytest.mark.parametrize(
    ("url", "change"),
    [*(("sqlite", change) for change in CHANGES), *(("postgresql", change) for change in ON_BOTH)],
    indirect=["url"],
)
def test_changed_rows_are_found(url, tamper, change):
    ledger = three_charges(url)
    kind = "BLOB" if url.startswith("sqlite") else "BYTEA"
    tamper(*(each.replace("{bytes}", kind) for each in CHANGES[change]))
    with pytest.raises(LedgerTampered):
        ledger.verify()


@pytest.mark.parametrize("kind", ["pure", "gaussian"])
def test_a_chain_that_was_sealed_anew_with_smaller_costs_is_found(kind):
    """Anyone who owns the database can write a chain whose hashes are right: the costs are counted
    again from what was guaranteed."""
    budget = dict(epsilon=str(2 * UNIT), delta=str(UNIT // 10**5), reserve="0")
    opened = seal_row(Opened(dataset="visits", fingerprint=None, opened_at="then", **budget))
    promised = pure(0.5) if kind == "pure" else gaussian(0.5, 1e-6)
    cost, spent = opened.budget.after(Spent(), promised)
    others = dict(
        dataset="visits", number=1, kind=CHARGE, at="then", key=None, request="", fingerprint=None,
        answer=None, guarantee=promised.to_json(), previous=opened.hash,
    )  # fmt: skip
    check(opened, [Entry.of(cost, spent, **others)], {})
    less = Cost(cost.epsilon * 9 // 10, cost.mu2 * 9 // 10, cost.delta)
    spent = replace(spent, epsilon=less.epsilon, mu2=less.mu2)
    with pytest.raises(LedgerTampered, match="too little"):
        check(opened, [Entry.of(less, spent, **others)], {})


def test_missing_triggers_are_found(url):
    ledger = three_charges(url)
    drop = "DROP TRIGGER entries_delete"
    if not url.startswith("sqlite"):
        drop = "DROP TRIGGER entries_update_delete ON entries"
    engine = create_engine(ledger.database.url)
    with engine.begin() as connection:
        connection.execute(text(drop))
    engine.dispose()
    with pytest.raises(LedgerTampered, match="triggers"):
        ledger.verify()


# an older copy


def test_an_older_copy_is_found_by_the_anchor_and_by_a_certificate(tmp_path):
    path = tmp_path / "budget.db"
    ledger = Ledger(f"sqlite:///{path}")
    account = ledger.open("visits", 1.0, 1e-5)
    account.charge(pure(0.1))
    shutil.copy(path, tmp_path / "older.db")
    older_anchor = (tmp_path / "budget.db.anchor").read_text()
    head = account.charge(pure(0.8)).hash
    assert ledger.verify(head)
    shutil.copy(tmp_path / "older.db", path)
    with pytest.raises(LedgerTampered, match="an older copy was put back"):
        ledger.verify()
    with pytest.raises(LedgerTampered, match="an older copy was put back"):
        account.charge(pure(0.1))
    # with the anchor put back too, only a certificate's head knows more
    (tmp_path / "budget.db.anchor").write_text(older_anchor)
    assert ledger.verify()
    with pytest.raises(LedgerTampered, match="the head is not in this ledger"):
        ledger.verify(head)


def test_rows_taken_from_postgresql_are_found_at_the_next_charge(url, tamper):
    ledger = three_charges(url)
    account = ledger.account("visits")
    tamper("DELETE FROM entries WHERE number = 4 AND dataset = 'visits'")
    with pytest.raises(LedgerTampered, match="anchor"):
        account.charge(pure(0.1))


def test_an_account_opened_again_after_it_was_removed_is_found(url, tamper):
    ledger = three_charges(url)
    tamper(*CHANGES["an account gone"])
    with pytest.raises(LedgerTampered, match="anchor"):
        ledger.open("others", 1.0, 1e-5)


def test_the_anchor_lies_where_it_is_asked_for(tmp_path):
    elsewhere = tmp_path / "elsewhere.anchor"
    Ledger(f"sqlite:///{tmp_path}/budget.db", anchor=elsewhere).open("visits", 1.0, 1e-5)
    assert elsewhere.exists()
    assert not (tmp_path / "budget.db.anchor").exists()
    elsewhere.write_text("[")
    with pytest.raises(LedgerTampered, match="damaged"):
        Ledger(f"sqlite:///{tmp_path}/budget.db?anchor={elsewhere}").verify()


# the database


def test_a_commit_is_on_the_disk(tmp_path):
    """Write-ahead log, and synchronous FULL on every connection."""
    ledger = Ledger(f"sqlite:///{tmp_path}/budget.db")
    with ledger.database.write() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        assert connection.execute(text("PRAGMA synchronous")).scalar() == 2
        other = sqlite3.connect(tmp_path / "budget.db", timeout=0)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")  # so a charge reads and writes without another between
        other.close()


def test_a_ledger_stays_where_it_was_opened(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    account = Ledger("sqlite:///budget.db").open("visits", 1.0, 1e-5)
    monkeypatch.chdir(tmp_path / "elsewhere")
    account.charge(pure(0.5))
    assert account.remaining() == 0.5
    assert [*(tmp_path / "elsewhere").iterdir()] == []


def test_an_account_that_many_open_at_once_is_one(url):
    def opened(_: int) -> float:
        return Ledger(url).open("visits", 1.0, 1e-5).remaining()

    with ThreadPoolExecutor(4) as pool:
        assert {*pool.map(opened, range(8))} == {1.0}


def test_migrations_make_the_tables_that_the_code_uses(url):
    from alembic.autogenerate import compare_metadata
    from alembic.config import Config
    from alembic.migration import MigrationContext
    from alembic.script import ScriptDirectory

    ledger = Ledger(url)
    with ledger.database.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), database.metadata) == []
    config = Config()
    config.set_main_option("script_location", "privgp.ledger:migrations")
    assert ScriptDirectory.from_config(config).get_current_head() == database.REVISION


def test_addresses_are_told_without_their_passwords(tmp_path):
    ledger = Ledger(f"sqlite:///{tmp_path}/budget.db")
    ledger.database.url = database.check_url("postgresql://me:secret@host/a")
    assert ledger.database.url.password == "secret"
    assert "secret" not in repr(ledger)


def test_a_pickled_estimator_holds_no_password(tmp_path):
    ledger = Ledger(f"sqlite:///{tmp_path}/budget.db")
    account = ledger.open("visits", 1.0, 1e-5)
    ledger.database.url = database.check_url("postgresql://me:secret@host:5/a?sslmode=require")
    model = PrivateGPRegressor(y_bounds=(0, 1), epsilon=1.0, delta=1e-6, ledger=account)
    kept = pickle.dumps(model)
    assert b"secret" not in kept
    assert "secret" not in repr(model) + repr(vars(ledger.database))
    url = pickle.loads(kept).ledger.ledger.database.url
    assert (url.username, url.host, url.port, url.database) == ("me", "host", 5, "a")
    assert dict(url.query) == {"sslmode": "require"}
    with pytest.raises(ValueError, match="password"):
        Ledger("postgresql://me@host/a?password=secret")


# signatures and decisions


@pytest.fixture
def signed(tmp_path):
    """A ledger with a key, an approval and a charge; and the receipt of the charge."""
    ledger = Ledger(f"sqlite:///{tmp_path / 'signed.db'}?key={tmp_path / 'key.pem'}")
    account = ledger.open("visits", epsilon=2.0, delta=1e-5)
    account.decide("approval", "plan 1 by key 2", b"hash")
    X = np.linspace(0.0, 1.0, 12)[:, None]
    settings = {"y_bounds": (0, 1), "epsilon": 0.5, "delta": 1e-6, "hyperparameters": "fixed"}
    model = PrivateGPRegressor(**settings, ledger=account).fit(X, np.linspace(0.0, 1.0, 12))
    return ledger, model.certificate()


def test_a_certificate_is_checked_against_a_public_key_alone(signed, tmp_path):
    ledger, certificate = signed
    public = ledger.key.public_pem
    assert "PRIVATE" not in public
    assert stat.S_IMODE((tmp_path / "key.pem").stat().st_mode) == 0o600
    stated = check_certificate(json.loads(json.dumps(certificate)), public)
    assert (stated["dataset"], stated["entry"], stated["epsilon"]) == ("visits", 2, 0.5)
    jsonschema.validate(certificate, SCHEMA)
    charged = certificate["ledger"]
    forged = [
        {**certificate, "ledger": {**charged, "head": "0" * 64}},
        {**certificate, "ledger": {**charged, "epsilon": 0.1}},
        {**certificate, "ledger": {**charged, "signature": "00" * 64}},
        {**certificate, "ledger": {**charged, "signature": "nonsense"}},
        {**certificate, "ledger": {k: v for k, v in charged.items() if k != "signature"}},
        {**certificate, "epsilon": 0.1},
        {**certificate, "epsilon": None},
        {**certificate, "simulation": True},
        {**certificate, "unit": "nobody"},
        {**certificate, "neighbours": "datasets that differ in everything"},
        {},
    ]
    for each in forged:
        with pytest.raises(LedgerTampered):
            check_certificate(each, public)
    # The total and what was left are not signed, so nobody is told that they are.
    unsigned = {"total_epsilon": 9.0, "total_delta": 0.5, "left": 9.0}
    generous = {**certificate, "ledger": {**charged, **unsigned}}
    assert not unsigned.keys() & check_certificate(generous, public).keys()
    assert "The charge is signed; the total budget and the remaining budget are not" in page(
        generous
    )
    other = SigningKey(tmp_path / "other.pem").public_pem
    with pytest.raises(LedgerTampered, match="not signed by this key"):
        check_certificate(certificate, other)
    with pytest.raises(LedgerTampered, match="not signed by this key"):
        ledger.verify(public_key=other)
    with pytest.raises(LedgerError, match="Ed25519"):
        check_certificate(certificate, "nonsense")


def test_signatures_go_on_and_those_before_the_key_are_not_asked_for(tmp_path):
    url = f"sqlite:///{tmp_path / 'later.db'}"
    Ledger(url).open("visits", epsilon=2.0, delta=1e-5).decide("approval", "first", b"")
    ledger = Ledger(url, signing_key=tmp_path / "key.pem")
    with pytest.raises(LedgerTampered, match="no entry of dataset 'visits' is signed"):
        ledger.verify()  # as little as a ledger that somebody wrote anew
    ledger.account("visits").decide("approval", "second", b"")
    again = Ledger(url, signing_key=tmp_path / "key.pem")
    assert again.key.public_pem == ledger.key.public_pem
    assert again.verify()
    Ledger(url).account("visits").decide("rejection", "third", b"")  # by a program without the key
    with pytest.raises(LedgerTampered, match="entry 3"):
        again.verify()


def test_decisions_are_in_the_chain_and_cost_nothing(signed):
    ledger, _ = signed
    account = ledger.account("visits")
    first = account.entries()[0]
    assert (first.kind, first.guarantee) == ("approval", None)
    assert account.decide("approval", "plan 1 by key 2", b"hash") == first
    assert ledger.verify()
    with pytest.raises(ValueError, match="approval, rejection"):
        account.decide("charge", "free", b"")


def test_a_decision_before_the_first_charge_does_not_change_what_an_account_protects(signed):
    ledger, _ = signed
    records = replace(
        Guarantee.from_json(ledger.account("visits").entries()[1].guarantee), unit="another unit"
    )
    with pytest.raises(LedgerError, match="do not add up"):
        ledger.account("visits").charge(records)


def test_a_trigger_that_does_something_else_is_found(tmp_path):
    ledger = Ledger(f"sqlite:///{tmp_path / 'l.db'}")
    ledger.open("visits", epsilon=1.0, delta=1e-5)
    assert ledger.verify()
    with ledger.database.write() as connection:
        connection.exec_driver_sql("DROP TRIGGER entries_update")
        connection.exec_driver_sql(
            "CREATE TRIGGER entries_update BEFORE UPDATE ON entries WHEN 0 "
            "BEGIN SELECT RAISE(ABORT, 'never'); END"
        )
    with pytest.raises(LedgerTampered, match="triggers"):
        ledger.verify()


def test_a_ledger_without_an_anchor_is_known_as_such(tmp_path):
    ledger = Ledger(f"sqlite:///{tmp_path / 'l.db'}")
    assert not ledger.has_anchor
    ledger.open("visits", epsilon=1.0, delta=1e-5)
    assert ledger.has_anchor
