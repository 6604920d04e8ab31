"""Lanes: named rates and pauses shared by all workers."""

from pathlib import Path

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8"))


def downgrade() -> None:
    op.execute("ALTER TABLE outbox DROP COLUMN lane; ALTER TABLE jobs DROP COLUMN lane; DROP TABLE turns, lanes")
