"""Keys that expire or belong to an identity, plans that are rejected, hashes of tables, a log of events,
foreign keys, indexes, the order in which jobs were started, and titles of releases."""

from alembic import op
from sqlalchemy import Column, ForeignKey, Integer, Text

revision = "4"
down_revision = "1"

REFUSAL = "events are never changed: rows are only added"
KEY, DATASET = ("key", "server_keys", "id"), ("dataset", "server_datasets", "name")
REFERENCES = {
    "grants": (KEY, DATASET),
    "sessions": (KEY,),
    "plans": (KEY, DATASET),
    "jobs": (KEY, DATASET),
    "releases": (DATASET,),
    "functions": (DATASET,),
}
TEXTS = {"keys": ("identity",), "datasets": ("digest",), "plans": ("rejected_at", "rejected_by")}


def upgrade() -> None:
    for table, name in (("keys", "ends"), ("jobs", "started")):
        whole = Column(name, Integer, nullable=False, server_default="0")
        op.add_column(f"server_{table}", whole)
    for table, names in TEXTS.items():
        for name in names:
            text = Column(name, Text, nullable=False, server_default="")
            op.add_column(f"server_{table}", text)
    _add_events()
    for table, references in REFERENCES.items():
        with op.batch_alter_table(f"server_{table}") as batch:  # SQLite copies the table
            for column, other, named in references:
                name = f"server_{table}_{column}_fkey"
                batch.create_foreign_key(name, other, [column], [named])
        for column, *_ in references:
            op.create_index(f"ix_server_{table}_{column}", f"server_{table}", [column])
    op.create_index("ix_server_jobs_state", "server_jobs", ["state"])
    release = Column("release", Text, ForeignKey("server_releases.id"), primary_key=True)
    op.create_table("server_titles", release, *_texts("headline", "unit"))


def _add_events() -> None:
    """A table to which rows are only added."""
    number = Column("number", Integer, primary_key=True)
    op.create_table("server_events", number, *_texts("at", "key", "kind", "about"))
    if op.get_bind().dialect.name == "sqlite":
        for change in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER server_events_{change.lower()} BEFORE {change} ON server_events "
                f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
            )
        return
    op.execute(  # the function is the ledger's
        "CREATE TRIGGER server_events_update_delete BEFORE UPDATE OR DELETE OR TRUNCATE ON "
        "server_events FOR EACH STATEMENT EXECUTE FUNCTION privgp_refuse()"
    )


def _texts(*names: str) -> list[Column[str]]:
    return [Column(name, Text, nullable=False) for name in names]


def downgrade() -> None:
    raise NotImplementedError("a server's tables are never taken back.")
