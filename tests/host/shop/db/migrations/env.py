"""Alembic for the shop: its two schemas, its own version table where Alembic puts it."""

from alembic import context

from db import connect
from db.models import Base

OWN = {None, "billing"}

with connect().connect() as connection:
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        include_schemas=True,
        include_name=lambda name, kind, _: name in OWN if kind == "schema" else True,
        compare_server_default=True,
    )
    with context.begin_transaction():
        context.run_migrations()
