"""Headlines and units that custodians give to releases."""

from alembic import op
from sqlalchemy import Column, ForeignKey, Text

revision = "4"
down_revision = "3"


def upgrade() -> None:
    words = [Column(name, Text, nullable=False) for name in ("headline", "unit")]
    release = Column("release", Text, ForeignKey("server_releases.id"), primary_key=True)
    op.create_table("server_titles", release, *words)


def downgrade() -> None:
    raise NotImplementedError("a server's tables are never taken back.")
