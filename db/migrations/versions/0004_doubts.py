"""Pages whose text may be wrong, and why."""

from pathlib import Path

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8").replace("%", "%%"))


def downgrade() -> None:
    raise NotImplementedError("going back would make doubtful text look certain")
