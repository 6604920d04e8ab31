"""What only shows with default settings: unstarted messages, stuck threads, waits, ends of children."""

from pathlib import Path

from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8"))


def downgrade() -> None:
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".down.sql").read_text(encoding="utf-8"))
