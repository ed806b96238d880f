"""Accounts, entries and answers, with triggers that refuse to change or remove a row."""

from alembic import op
from sqlalchemy import Column, ForeignKey, Integer, LargeBinary, Text
from sqlalchemy.schema import PrimaryKeyConstraint, UniqueConstraint

revision = "1"
down_revision = None

TABLES = ("accounts", "entries", "answers")
REFUSAL = "a ledger is never changed: rows are only added"


def upgrade() -> None:
    op.create_table(
        "accounts",
        Column("dataset", Text, primary_key=True),
        *(Column(name, Text, nullable=False) for name in ("epsilon", "delta", "reserve")),
        Column("fingerprint", Text),
        Column("opened_at", Text, nullable=False),
        Column("hash", Text, nullable=False),
    )
    spent = ("epsilon", "mu2", "delta", "spent_epsilon", "spent_mu2", "spent_delta")
    op.create_table(
        "entries",
        Column("dataset", Text, ForeignKey("accounts.dataset"), nullable=False),
        Column("number", Integer, nullable=False),
        Column("kind", Text, nullable=False),
        Column("at", Text, nullable=False),
        *(Column(name, Text) for name in ("key", "request", "guarantee", "fingerprint", "answer")),
        *(Column(name, Text, nullable=False) for name in spent),
        *(Column(name, Text) for name in ("most_epsilon", "most_delta")),
        Column("previous", Text, nullable=False),
        Column("hash", Text, nullable=False),
        PrimaryKeyConstraint("dataset", "number"),
        UniqueConstraint("dataset", "kind", "key"),
    )
    op.create_table(
        "answers",
        Column("dataset", Text, ForeignKey("accounts.dataset"), nullable=False),
        Column("key", Text, nullable=False),
        Column("answer", LargeBinary, nullable=False),
        PrimaryKeyConstraint("dataset", "key"),
    )
    if op.get_bind().dialect.name == "sqlite":
        for table in TABLES:
            for change in ("UPDATE", "DELETE"):
                op.execute(
                    f"CREATE TRIGGER {table}_{change.lower()} BEFORE {change} ON {table} "
                    f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
                )
        return
    op.execute(
        "CREATE FUNCTION privgp_refuse() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{REFUSAL}'; END $$"
    )
    for table in TABLES:
        op.execute(
            f"CREATE TRIGGER {table}_update_delete BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION privgp_refuse()"
        )


def downgrade() -> None:
    raise NotImplementedError("a ledger is never taken back.")
