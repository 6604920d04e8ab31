"""What only shows with default settings: unstarted messages, stuck threads, waits, ends of children."""

from pathlib import Path

from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8"))


def downgrade() -> None:
    op.execute("DROP INDEX outbox_lane_sent, outbox_lane, turns_of_lane")
    op.execute("CREATE INDEX outbox_lane ON outbox (lane, seq) WHERE lane IS NOT NULL AND sent_at IS NULL")
    op.execute("UPDATE outbox SET due_at = NULL WHERE due_at = 'infinity'")
    op.execute("DROP VIEW maintenance_leader")
    op.execute("DROP TABLE batch_ends")
    op.execute("DROP VIEW IF EXISTS running_jobs")
    op.execute("ALTER TABLE jobs DROP COLUMN waits")
    op.execute("ALTER TABLE workers DROP COLUMN unstarted, DROP COLUMN stuck")
