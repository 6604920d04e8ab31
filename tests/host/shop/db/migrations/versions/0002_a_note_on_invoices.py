"""The shop keeps migrating while the engine is a guest."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("invoices", sa.Column("note", sa.String), schema="billing")


def downgrade() -> None:
    op.drop_column("invoices", "note", schema="billing")
