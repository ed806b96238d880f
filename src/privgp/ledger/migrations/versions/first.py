"""Accounts, entries and answers, with triggers that refuse to change or remove a row."""

from alembic import op
from sqlalchemy import Column, ForeignKey, Integer, LargeBinary, Text
from sqlalchemy.schema import PrimaryKeyConstraint, UniqueConstraint

revision = "1"
down_revision = None

TABLES = ("accounts", "entries", "answers")
REFUSAL = "a ledger is never changed: rows are only added"
BODY = f"BEGIN RAISE EXCEPTION '{REFUSAL}'; END"  # of PostgreSQL's function


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
        for made in trigger_texts("sqlite"):
            op.execute(made)
        return
    op.execute(f"CREATE FUNCTION privgp_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ {BODY} $$")
    for table in TABLES:
        op.execute(
            f"CREATE TRIGGER {table}_update_delete BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION privgp_refuse()"
        )


def trigger_texts(dialect: str) -> list[str]:
    """How the database states the triggers: SQLite their text; of PostgreSQL their names, kinds (before
    update, delete or truncate, once for a statement), tables and what they call."""
    if dialect == "sqlite":
        return [
            f"CREATE TRIGGER {table}_{change.lower()} BEFORE {change} ON {table} "
            f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
            for table in TABLES
            for change in ("UPDATE", "DELETE")
        ]
    kind = 2 + 8 + 16 + 32  # of pg_trigger.tgtype
    return [f"{table}_update_delete {kind} ON {table} {BODY}" for table in TABLES]


def downgrade() -> None:
    raise NotImplementedError("a ledger is never taken back.")
