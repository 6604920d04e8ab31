"""Real servers for the whole run, a fresh database and a fresh vhost for each test, real worker processes."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy import create_engine

from pipeline.services import Servers, private_servers
from tests.databases import Databases
from tests.place import Place

# Properties are checked with the same examples in every run, and never fail because the machine is slow.
settings.register_profile(
    "steady", derandomize=True, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")

ENVIRONMENT = ("DATABASE_URL", "RABBITMQ_URL", "RABBITMQ_MANAGEMENT_URL")


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """One PostgreSQL and one RabbitMQ for the run."""
    with private_servers(tmp_path_factory.mktemp("servers"), remove=True) as running:
        yield running


@pytest.fixture(scope="session")
def template(servers: Servers) -> str:
    """A migrated database to clone for each test: much faster than migrating each."""
    os.environ.setdefault("TEST_RECORD", os.devnull)
    for module in ("pipeline.actors", "tests.workflows"):
        importlib.import_module(module)
    from db.migrate import migrate
    from pipeline.flow.register import register
    from pipeline.flow.workflow import workflows

    name = "pipeline_template"
    servers.postgres.create_database(name)
    engine = create_engine(servers.postgres.url(name).replace("postgresql://", "postgresql+psycopg://"))
    migrate(engine)
    with engine.begin() as connection:
        register(connection, workflows().values(), 300.0)
        connection.exec_driver_sql(
            "CREATE TABLE ledger (id bigserial PRIMARY KEY, job_id uuid NOT NULL, phase text NOT NULL, fence bigint NOT NULL)"
        )
        connection.exec_driver_sql("CREATE TABLE rows_to_lock AS SELECT g AS id, 0 AS n FROM generate_series(1, 4) g")
    engine.dispose()
    return name


@pytest.fixture(scope="session")
def databases(servers: Servers, template: str) -> Databases:
    return Databases(servers, template)


@pytest.fixture
def place(servers: Servers, databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A database and a vhost of the test's own, as the settings of this process and of every worker it starts."""
    from pipeline import settings

    name = databases.new("test")
    servers.rabbitmq.create_vhost(name)
    here = Place(servers, name, tmp_path)
    for variable, value in here.environment().items():
        monkeypatch.setenv(variable, value)
    settings.get.cache_clear()
    yield here
    here.close()
    settings.get.cache_clear()
    servers.rabbitmq.delete_vhost(name)
    databases.give_back(name)
