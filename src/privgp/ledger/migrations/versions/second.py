"""Signatures of entries, and indexes of what is looked for."""

from alembic import op
from sqlalchemy import Column, Text

revision = "2"
down_revision = "1"


def upgrade() -> None:
    op.add_column("entries", Column("signature", Text))
    for column in ("hash", "fingerprint"):
        op.create_index(f"entries_{column}", "entries", [column])


def downgrade() -> None:
    raise NotImplementedError("a ledger is never taken back.")
