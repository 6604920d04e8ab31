"""Alembic's entry: the connection is handed over by pipeline.store.migrate, never read from a file."""

from alembic import context

options = context.config.attributes
context.configure(
    connection=options["connection"],
    target_metadata=None,
    version_table=options["version_table"],
    version_table_schema=options["version_schema"],
)
with context.begin_transaction():
    context.run_migrations()
