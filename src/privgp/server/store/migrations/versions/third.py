"""Foreign keys, indexes, the order in which jobs were started, and titles of releases."""

from alembic import op
from sqlalchemy import Column, ForeignKey, Integer, Text

revision = "3"
down_revision = "2"

KEY, DATASET = ("key", "server_keys", "id"), ("dataset", "server_datasets", "name")
REFERENCES = {
    "grants": (KEY, DATASET),
    "sessions": (KEY,),
    "plans": (KEY, DATASET),
    "jobs": (KEY, DATASET),
    "releases": (DATASET,),
    "functions": (DATASET,),
}


def upgrade() -> None:
    op.add_column("server_jobs", Column("started", Integer, nullable=False, server_default="0"))
    for table, references in REFERENCES.items():
        with op.batch_alter_table(f"server_{table}") as batch:  # SQLite copies the table
            for column, other, named in references:
                name = f"server_{table}_{column}_fkey"
                batch.create_foreign_key(name, other, [column], [named])
        for column, *_ in references:
            op.create_index(f"ix_server_{table}_{column}", f"server_{table}", [column])
    op.create_index("ix_server_jobs_state", "server_jobs", ["state"])
    words = [Column(name, Text, nullable=False) for name in ("headline", "unit")]
    release = Column("release", Text, ForeignKey("server_releases.id"), primary_key=True)
    op.create_table("server_titles", release, *words)


def downgrade() -> None:
    raise NotImplementedError("a server's tables are never taken back.")
