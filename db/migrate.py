"""Bring the four workflows' tables and views up to date. The engine's are there already."""

from __future__ import annotations

import hashlib
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text

ROOT = Path(__file__).parents[1]
# Tables of a database that was made before they had a history of their own.
OLDER = text(
    "SELECT to_regclass('public.website_analyses') IS NOT NULL AND to_regclass('public.workflow_versions') IS NULL"
)
RENAMED = """ALTER TABLE public.sources RENAME CONSTRAINT id_fits_a_lane TO id_fits_a_rate_limit"""


def migrate(connection: Connection) -> None:
    """Called by ``pipeline migrate`` after the engine's own migrations, in a transaction, one caller at a time."""
    config = Config()
    config.set_main_option("script_location", str(ROOT / "db" / "migrations"))
    config.attributes["connection"] = connection
    if connection.execute(OLDER).scalar_one():
        command.stamp(config, "0001")
        connection.exec_driver_sql(RENAMED)
    command.upgrade(config, "head")
    _replace_views(connection)


def _replace_views(connection: Connection) -> None:
    """Views and triggers as they stand in the workflows' SQL files, if these have changed."""
    definitions = [path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("actors/*/views.sql"))]
    digest = hashlib.sha256("".join(definitions).encode()).hexdigest()
    connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS public.workflow_views (digest text NOT NULL)")
    if connection.execute(text("SELECT digest FROM public.workflow_views")).scalar() == digest:
        return
    for definition in definitions:
        connection.exec_driver_sql(definition.replace("%", "%%"))
    connection.exec_driver_sql("DELETE FROM public.workflow_views")
    connection.execute(text("INSERT INTO public.workflow_views VALUES (:digest)"), {"digest": digest})
