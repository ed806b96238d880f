"""Keys, datasets, plans, jobs, releases, functions, and how far functions were drawn."""

from alembic import op
from sqlalchemy import Column, Float, Integer, LargeBinary, Text
from sqlalchemy.schema import PrimaryKeyConstraint, SchemaItem, UniqueConstraint

revision = "1"
down_revision = None


def upgrade() -> None:
    _create("keys", _number(), *_text("name", "role", "hash", "made_at", "revoked_at"))
    _create("grants", *_text("key", "dataset"), PrimaryKeyConstraint("key", "dataset"))
    ends = Column("ends", Integer, nullable=False)
    _create("sessions", _number(), *_text("key", "hash"), ends)
    _create("datasets", Column("name", Text, primary_key=True), *_text("declared", "made_at"))
    about = ("dataset", "key", "told", "guarantee", "made_at", "approved_at", "approved_by")
    _create("plans", _number(), *_text(*about), Column("file", LargeBinary, nullable=False))
    _create(
        "jobs",
        _number(),
        Column("place", Integer, nullable=False),
        *_text("dataset", "key", "kind", "asked", "retry", "digest"),
        *_text("state", "doing", "result", "error", "made_at"),
        Column("progress", Float, nullable=False),
        UniqueConstraint("key", "kind", "retry"),
    )
    _create("releases", _number(), *_text("dataset", "ledger_key", "previous", "made_at"))
    points = Column("points", Integer, nullable=False)
    _create("functions", _number(), *_text("dataset", "kind", "told", "made_at"), points)


def downgrade() -> None:
    raise NotImplementedError("a server's tables are never taken back.")


def _create(name: str, *columns: SchemaItem) -> None:
    op.create_table(f"server_{name}", *columns, if_not_exists=True)


def _number() -> Column[str]:
    return Column("id", Text, primary_key=True)


def _text(*names: str) -> list[Column[str]]:
    return [Column(name, Text, nullable=False) for name in names]
