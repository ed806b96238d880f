"""Runs migrations on the connection that ``privgp.ledger.database`` hands over, in its transaction."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
