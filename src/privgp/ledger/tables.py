"""The tables of a ledger. Amounts are texts: whole numbers too large for a database's integers."""

from sqlalchemy import Column, ForeignKey, Integer, LargeBinary, MetaData, Table, Text
from sqlalchemy.schema import PrimaryKeyConstraint, UniqueConstraint

VERSIONS = "alembic_version"
REVISION = "1"  # of the newest migration; a database that has it is not migrated
GUARDED = ("accounts", "entries", "answers")  # rows are added, never changed or removed

metadata = MetaData()

accounts = Table(
    "accounts",
    metadata,
    Column("dataset", Text, primary_key=True),
    Column("epsilon", Text, nullable=False),
    Column("delta", Text, nullable=False),
    Column("reserve", Text, nullable=False),
    Column("fingerprint", Text),
    Column("opened_at", Text, nullable=False),
    Column("hash", Text, nullable=False),
)

entries = Table(
    "entries",
    metadata,
    Column("dataset", Text, ForeignKey("accounts.dataset"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("key", Text),
    Column("request", Text),
    Column("guarantee", Text),
    Column("fingerprint", Text),
    Column("answer", Text),
    Column("epsilon", Text, nullable=False),
    Column("mu2", Text, nullable=False),
    Column("delta", Text, nullable=False),
    Column("spent_epsilon", Text, nullable=False),
    Column("spent_mu2", Text, nullable=False),
    Column("spent_delta", Text, nullable=False),
    Column("most_epsilon", Text),
    Column("most_delta", Text),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
    PrimaryKeyConstraint("dataset", "number"),
    UniqueConstraint("dataset", "kind", "key"),
)

answers = Table(
    "answers",
    metadata,
    Column("dataset", Text, ForeignKey("accounts.dataset"), nullable=False),
    Column("key", Text, nullable=False),
    Column("answer", LargeBinary, nullable=False),
    PrimaryKeyConstraint("dataset", "key"),
)
