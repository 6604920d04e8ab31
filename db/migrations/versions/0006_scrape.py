"""The scrape workflow's tables."""

from pathlib import Path

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8"))


def downgrade() -> None:
    op.execute("DROP VIEW IF EXISTS scrape_jobs")
    op.execute("DROP TABLE valuations, price_points, coin_intakes, source_failures, sources CASCADE")
