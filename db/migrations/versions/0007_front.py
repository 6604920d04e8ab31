"""What the HTTP door and the metrics read."""

from pathlib import Path

from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8"))


def downgrade() -> None:
    op.execute("DROP TABLE rollups, counter_totals CASCADE")
    op.execute("DROP INDEX jobs_finished, jobs_retryable, jobs_dead, attempts_finished, batches_open")
    op.execute("ALTER TABLE jobs DROP COLUMN cause")
