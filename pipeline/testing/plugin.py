"""The pytest plugin: fixtures that run workflows in memory, or on private servers.

Loaded by pytest wherever the engine is installed, so that it imports nothing until a fixture is used.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from pipeline.dev.services import Servers
    from pipeline.store.testing.databases import Databases
    from pipeline.testing.memory.run import MemoryRun
    from pipeline.testing.run import Run
    from pipeline.testing.servers.node import Node
    from pipeline.testing.servers.run import RealRun

    Tables = Callable[[Engine], object]

ON_SERVERS = "--pipeline-servers"
FOLDER = pytest.StashKey[Path]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("pipeline").addoption(
        ON_SERVERS,
        action="store_true",
        help="tests with the fixture pipeline_run use private PostgreSQL and RabbitMQ servers, instead of memory",
    )


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Processes that share the tests of a run (pytest-xdist) share its servers."""
    node.workerinput["pipeline_folder"] = str(_folder(node.config))


def pytest_unconfigure(config: pytest.Config) -> None:
    """The process that made the folder ends the servers in it."""
    if FOLDER in config.stash:
        from pipeline.testing.servers.private import end

        end(config.stash[FOLDER])


def _folder(config: pytest.Config) -> Path:
    told: dict[str, str] = getattr(config, "workerinput", {})
    if "pipeline_folder" in told:
        return Path(told["pipeline_folder"])
    if FOLDER not in config.stash:
        config.stash[FOLDER] = Path(tempfile.mkdtemp(prefix="pipeline-testing-"))
    return config.stash[FOLDER]


@pytest.fixture(scope="session")
def pipeline_tables() -> Tables | None:
    """What makes the application's tables; none by default. Override it in your ``conftest.py``.

    >>> @pytest.fixture(scope="session")
    ... def pipeline_tables():
    ...     return metadata.create_all
    """
    return None


@pytest.fixture
def pipeline_memory(pipeline_tables: Tables | None) -> Iterator[MemoryRun]:
    """A run in memory: no servers, milliseconds. With ``pipeline_tables`` it has an SQLite database."""
    from pipeline.testing.memory.run import in_memory
    from pipeline.testing.memory.sqlite import sqlite

    engine = None
    if pipeline_tables is not None:
        engine = sqlite()
        pipeline_tables(engine)
    with in_memory(engine) as run:
        yield run
    if engine is not None:
        engine.dispose()


@pytest.fixture(scope="session")
def pipeline_private_servers(pytestconfig: pytest.Config) -> Servers:
    """One PostgreSQL and one RabbitMQ for the run, on free ports; whoever needs them first starts them."""
    from pipeline.dev import services

    return services.start(_folder(pytestconfig))


@pytest.fixture(scope="session")
def pipeline_databases(
    pipeline_private_servers: Servers, pytestconfig: pytest.Config, pipeline_tables: Tables | None
) -> Databases:
    """One database for each test, with the engine's tables and those of ``pipeline_tables``."""
    from pipeline.testing.servers.private import databases

    return databases(pipeline_private_servers, _folder(pytestconfig), pipeline_tables)


@pytest.fixture
def pipeline_servers(
    pipeline_private_servers: Servers, pipeline_databases: Databases, tmp_path: Path
) -> Iterator[RealRun]:
    """A run on real servers: a database, a vhost and worker processes of the test's own.

    Workflows must be importable from a module (a test's own will do): the worker is another process.
    """
    from pipeline.testing.servers.private import on_servers

    with on_servers(pipeline_private_servers, pipeline_databases, tmp_path) as run:
        yield run


@pytest.fixture
def pipeline_run(request: pytest.FixtureRequest) -> Run:
    """In memory; with ``pytest --pipeline-servers`` on real servers. The same test runs with both."""
    on_servers = request.config.getoption(ON_SERVERS)
    run: Run = request.getfixturevalue("pipeline_servers" if on_servers else "pipeline_memory")
    return run


@pytest.fixture(scope="session")
def pipeline_rabbitmq_proc(request: pytest.FixtureRequest) -> Node:
    """The run's RabbitMQ as pytest-rabbitmq knows a process, for ``pytest_rabbitmq.factories.rabbitmq`` and a
    connection of the test's own. Needs pytest-rabbitmq: ``pip install "pipeline[testing]"``."""
    from pipeline.testing.servers.node import Node

    request.getfixturevalue("pipeline_private_servers")
    return Node(_folder(request.config)).start()
