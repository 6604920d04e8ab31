"""Tables, a schema with functions and a trigger, and a function with a name that the engine once used."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "projects",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String, nullable=False, unique=True),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("project_id", sa.Integer, sa.ForeignKey("projects.id"), nullable=False, index=True),
        sa.Column("copies", sa.Integer, nullable=False),
        sa.Column("status", sa.String, nullable=False, server_default=sa.text("'ordered'")),
    )
    op.create_table(
        "tasks",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("attempts", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("signed", sa.Integer, nullable=False, server_default=sa.text("0")),
    )
    op.execute("CREATE SCHEMA billing")
    op.create_table(
        "invoices",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("job_id", sa.Integer, sa.ForeignKey("jobs.id"), nullable=False, unique=True),
        sa.Column("cents", sa.Integer, nullable=False),
        schema="billing",
    )
    op.execute("CREATE FUNCTION billing.price(copies int) RETURNS int LANGUAGE sql AS 'SELECT 7 * copies'")
    op.execute(
        "CREATE FUNCTION billing.mark_billed() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN UPDATE jobs SET status = 'billed' WHERE id = NEW.job_id; RETURN NEW; END $$"
    )
    op.execute(
        "CREATE TRIGGER invoices_mark_billed AFTER INSERT ON billing.invoices "
        "FOR EACH ROW EXECUTE FUNCTION billing.mark_billed()"
    )
    op.execute(
        "CREATE FUNCTION pipeline_report() RETURNS text LANGUAGE sql AS "
        "$$ SELECT format('%s print jobs', (SELECT count(*) FROM jobs)) $$"
    )
    op.execute("INSERT INTO projects (name) VALUES ('posters')")


def downgrade() -> None:
    op.execute("DROP FUNCTION pipeline_report()")
    op.execute("DROP SCHEMA billing CASCADE")
    for table in ("tasks", "jobs", "projects"):
        op.drop_table(table)
