"""Why a record was matched, or not."""

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.get_bind().exec_driver_sql("alter table public.tasks add column why text")


def downgrade() -> None:
    op.get_bind().exec_driver_sql("alter table public.tasks drop column why")
