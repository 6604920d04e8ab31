"""Jobs that bulk actions put aside because somebody holds them; how long phases and jobs took, for charts."""

from pathlib import Path

from alembic import op

revision = "0118"
down_revision = "0117"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8"))


def downgrade() -> None:
    raise NotImplementedError('there is no way back: "pipeline migrate --remove" takes everything away')
