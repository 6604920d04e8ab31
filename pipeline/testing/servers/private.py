"""Private servers for a test run, and for each test a database and a vhost of its own."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from pipeline import settings
from pipeline.declare.registry import DeclaredWorkflow, workflows
from pipeline.dev import services
from pipeline.dev.services import Servers
from pipeline.dev.services.state import exclusive
from pipeline.store import database
from pipeline.store import engine as engines
from pipeline.store.migrate import migrate
from pipeline.store.register import register
from pipeline.store.testing.databases import Databases, exists

if TYPE_CHECKING:
    from pipeline.testing.servers.run import RealRun

Tables = Callable[[Engine], object]

TEMPLATE = "pipeline_testing"
# A test need not wait for what is slow on purpose.
QUICK = {"PIPELINE_PATIENCE_SECONDS": "1", "PIPELINE_HEALTH_SECONDS": "3", "PIPELINE_HEARTBEAT_SECONDS": "1"}


def end(folder: Path) -> None:
    """Stop what runs in the folder, and delete it with all data. Nothing in it is fine."""
    if servers := services.running(folder):
        servers.rabbitmq.kill()
        services.stop(folder)
        servers.rabbitmq.remove()
        servers.postgres.remove()
    shutil.rmtree(folder, ignore_errors=True)


def databases(servers: Servers, folder: Path, tables: Tables | None) -> Databases:
    """Each test gets a copy of one database that has the engine's tables and the application's."""
    with exclusive(folder, "testing.lock"):
        if not exists(servers.postgres.url("postgres"), TEMPLATE):
            servers.postgres.create_database(TEMPLATE)
            _fill(servers.postgres.url(TEMPLATE), tables)
    return Databases(servers.postgres, TEMPLATE)


def _fill(url: str, tables: Tables | None) -> None:
    engine = engines.engine(url.replace("postgresql://", "postgresql+psycopg://"))
    migrate(engine)
    if tables is not None:
        tables(engine)
    engine.dispose()


@contextmanager
def on_servers(servers: Servers, ours: Databases, folder: Path) -> Iterator[RealRun]:
    """Run workflows on a database and a vhost of their own, for as long as the ``with`` block lasts.

    Meanwhile they are this process's settings: what code under test submits, submits to them.
    """
    from pipeline.testing.servers.run import RealRun

    name = ours.new("test")
    servers.rabbitmq.create_vhost(name)
    environment = {
        **QUICK,
        **services.environment(servers),
        "DATABASE_URL": servers.postgres.url(name),
        "RABBITMQ_URL": servers.rabbitmq.url(name),
        "PIPELINE_WORKFLOWS": ",".join(_modules()),
        "PIPELINE_TEMP_FOLDER": str(folder / "temp"),
        "PYTHONPATH": os.pathsep.join(part for part in sys.path if part),
    }
    try:
        with _as_settings(environment):
            with database.engine().begin() as connection:
                register(connection, _loadable(), settings.get().stale_seconds)
            run = RealRun(environment, servers.postgres.url(name), folder)
            try:
                yield run
            finally:
                run.close()
    finally:
        servers.rabbitmq.delete_vhost(name)
        ours.give_back(name)


@contextmanager
def _as_settings(environment: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    settings.get.cache_clear()
    try:
        yield
    finally:
        database.engine().dispose()
        database._engine.cache_clear()
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
        settings.get.cache_clear()


def _loadable() -> list[DeclaredWorkflow]:
    """The workflows that a worker process can import: those that their modules still name."""
    from pipeline.workflow import Workflow

    def names(workflow: DeclaredWorkflow) -> bool:
        module = sys.modules.get(workflow.module)
        values = vars(module).values() if module is not None else ()
        return any(isinstance(one, Workflow) and one.name == workflow.name for one in values)

    return [workflow for workflow in workflows().values() if workflow.phases and names(workflow)]


def _modules() -> list[str]:
    return sorted({workflow.module for workflow in _loadable()})
