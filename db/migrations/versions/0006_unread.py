"""Unread prices of a source, latest first."""

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(
        "create index unread_latest on public.unread_prices (source_id, last_seen_at desc) include (reason)"
    )


def downgrade() -> None:
    op.get_bind().exec_driver_sql("drop index public.unread_latest")
