"""Keys that expire, plans that are rejected, hashes of tables, and a log of events."""

from alembic import op
from sqlalchemy import Column, Integer, Text

revision = "2"
down_revision = "1"
REFUSAL = "events are never changed: rows are only added"


def upgrade() -> None:
    _add("keys", Column("ends", Integer, nullable=False, server_default="0"))
    _add("datasets", Column("digest", Text, nullable=False, server_default=""))
    for name in ("rejected_at", "rejected_by"):
        _add("plans", Column(name, Text, nullable=False, server_default=""))
    texts = [Column(name, Text, nullable=False) for name in ("at", "key", "kind", "about")]
    op.create_table("server_events", Column("number", Integer, primary_key=True), *texts)
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


def downgrade() -> None:
    raise NotImplementedError("a server's tables are never taken back.")


def _add(table: str, column: Column[str] | Column[int]) -> None:
    op.add_column(f"server_{table}", column)
