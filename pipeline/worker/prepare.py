"""Before a worker takes its first job: PostgreSQL reached, tables there, workflows known."""

from __future__ import annotations

from time import monotonic, sleep

from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

from pipeline.declare.errors import BadInput, what_was_said
from pipeline.declare.registry import workflows
from pipeline.observe import logs
from pipeline.settings import Settings
from pipeline.store import database
from pipeline.store.extended import migrate_all
from pipeline.store.migrate import is_new, missing, refuse_first_generation
from pipeline.store.register import introduce, register

log = logs.get("pipeline.prepare")
PATIENCE = 30.0
NOTHING_LOADED = "set PIPELINE_WORKFLOWS to the modules that declare them, for example PIPELINE_WORKFLOWS=shop.jobs"
NEXT = 'if this code is the newer, run "pipeline migrate" with it; otherwise start the newer code here'


def prepare(config: Settings) -> None:
    """Make a new database usable, and register workflows that it does not know. A stale schema and a workflow that
    differs are only reported: changing a database that others use is for ``pipeline migrate``."""
    engine = database.engine()
    reach(engine, config)
    refuse_first_generation(engine)
    if is_new(engine):
        migrate_all(engine)
    elif problem := missing(engine):
        log.warning(problem)
    if not workflows():
        log.warning("no workflow is loaded, so this worker takes no job", next=NOTHING_LOADED)
    with engine.begin() as connection:
        differences = introduce(connection, workflows().values(), config.stale_seconds)
    for one in differences:
        log.warning("this code differs from the database, whose value is in force", **vars(one), next=NEXT)


def upgrade(config: Settings) -> bool:
    """What ``pipeline migrate`` does: migrate, and put this code's chains and options in force. True if it changed."""
    engine = database.engine()
    reach(engine, config, patience=10)
    changed = migrate_all(engine)
    with engine.begin() as connection:
        register(connection, workflows().values(), config.stale_seconds)
    return changed


def reach(engine: Engine, config: Settings, patience: float = PATIENCE) -> None:
    """Wait a while for PostgreSQL, then say where it was looked for."""
    deadline = monotonic() + patience
    while True:
        try:
            with engine.connect():
                return
        except OperationalError as error:
            said = what_was_said(error.orig)
            if monotonic() > deadline:
                raise BadInput(
                    f"no PostgreSQL at {config.database_place}: {said}\n"
                    '  start it, correct DATABASE_URL, or run "pipeline services start" for private servers'
                ) from None
            log.warning("PostgreSQL does not answer; trying again", said=said)
            sleep(1)
