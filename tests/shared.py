"""One PostgreSQL and one RabbitMQ for a whole run, however many processes share its tests."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import create_engine

from pipeline.dev import services
from pipeline.dev.services import Servers
from pipeline.dev.services.state import exclusive
from pipeline.store.testing.databases import exists
from pipeline.testing.servers.private import end as end

TEMPLATE = "pipeline_template"


@contextmanager
def servers_of_their_own(folder: Path) -> Iterator[Servers]:
    """For tests that kill them: nobody else's are harmed."""
    with services.private_servers(folder, remove=True) as running:
        migrated_template(running, folder)
        yield running


def migrated_template(servers: Servers, folder: Path) -> str:
    """A migrated database to clone for each test: much faster than migrating each. Made by whoever comes first."""
    # Every process needs to know the workflows, whoever of them registers them.
    os.environ.setdefault("TEST_RECORD", os.devnull)
    for module in (
        "pipeline.actors",
        "tests.workflows",
        "tests.more_workflows",
        "tests.isolated_workflows",
        "tests.key_workflows",
    ):
        importlib.import_module(module)
    from pipeline.actors import broker
    from pipeline.worker.process import declare_actors

    declare_actors(broker)
    with exclusive(folder, "template.lock"):
        if not exists(servers.database_url, TEMPLATE):
            servers.postgres.create_database(TEMPLATE)
            _migrate(servers.postgres.url(TEMPLATE))
    return TEMPLATE


def _migrate(url: str) -> None:
    from pipeline.declare.registry import workflows
    from pipeline.store.extended import migrate_all
    from pipeline.store.register import register

    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    migrate_all(engine)
    with engine.begin() as connection:
        # Whose schedules would submit jobs into everybody's test comes with its own test's worker.
        register(connection, [one for one in workflows().values() if not one.schedules], 300.0)
        connection.exec_driver_sql(
            "CREATE TABLE ledger (id bigserial PRIMARY KEY, job_id uuid NOT NULL, phase text NOT NULL, fence bigint NOT NULL)"
        )
        connection.exec_driver_sql("CREATE TABLE rows_to_lock AS SELECT g AS id, 0 AS n FROM generate_series(1, 4) g")
    engine.dispose()
