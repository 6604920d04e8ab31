"""Rows: tables, migrations, and the only statements that change a job's state."""
