"""Identities at an OpenID Connect provider that keys are made for."""

from alembic import op
from sqlalchemy import Column, Text

revision = "4"
down_revision = "3"


def upgrade() -> None:
    op.add_column("server_keys", Column("identity", Text, nullable=False, server_default=""))


def downgrade() -> None:
    raise NotImplementedError("a server's tables are never taken back.")
