"""Alembic's entry: the connection is handed over by db.migrate, never read from a file."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"], target_metadata=None, version_table="workflow_versions"
)
with context.begin_transaction():
    context.run_migrations()
