"""Headlines and units that custodians give to releases."""

from alembic import op
from sqlalchemy import Column, Text

revision = "3"
down_revision = "2"


def upgrade() -> None:
    words = [Column(name, Text, nullable=False) for name in ("headline", "unit")]
    op.create_table("server_titles", Column("release", Text, primary_key=True), *words)


def downgrade() -> None:
    raise NotImplementedError("a server's tables are never taken back.")
