"""What is done with many jobs, in the background."""

from pathlib import Path

from alembic import op

revision = "0112"
down_revision = "0111"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8"))


def downgrade() -> None:
    raise NotImplementedError('there is no way back: "pipeline migrate --remove" takes everything away')
