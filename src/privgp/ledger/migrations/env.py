"""Runs migrations on the connection that ``privgp.ledger.database`` hands over, in its transaction."""

from alembic import context

given = context.config.attributes
context.configure(connection=given["connection"], version_table=given["version_table"])
context.run_migrations()
