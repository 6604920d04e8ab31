"""Real servers for the whole run, a database as new and a fresh vhost for each test, real worker processes."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from pytest_rabbitmq.factories import client
from pytest_rabbitmq.factories import rabbitmq as rabbitmq_client

from pipeline.dev import services
from pipeline.dev.services import Servers
from pipeline.testing.servers.node import Node, leave_queues
from sandbox import Sandbox, running_sandbox
from tests import shared
from tests.databases import Databases
from tests.groups import turn
from tests.place import OPTIONAL, Place
from tests.vhosts import vhosts_of

# Properties are checked with the same examples in every run, and never fail because the machine is slow.
settings.register_profile(
    "steady", derandomize=True, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")

ENVIRONMENT = ("DATABASE_URL", "RABBITMQ_URL", "RABBITMQ_MANAGEMENT_URL")


FOLDER = pytest.StashKey[Path]()
# What PostgreSQL and RabbitMQ write in a whole run, and as much again.
SERVERS_NEED = 6 << 30


def memory() -> Path | None:
    """Where servers need not wait for a disk, if this machine has such a place and room in it."""
    shared_memory = Path("/dev/shm")
    roomy = os.access(shared_memory, os.W_OK) and shutil.disk_usage(shared_memory).free > SERVERS_NEED
    return shared_memory if roomy else None


def pytest_configure(config: pytest.Config) -> None:
    """The process that was started by a person owns the servers; those that share its tests are told where they are."""
    if not hasattr(config, "workerinput"):
        config.stash[FOLDER] = folder = Path(tempfile.mkdtemp(prefix="pipeline-tests-", dir=memory()))
        # As root, PostgreSQL runs under an account of its own, which must be able to pass.
        folder.chmod(0o711)
        # Ended from outside it cleans up, too.
        signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["servers"] = str(node.config.stash[FOLDER])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from tests.groups import scheduler

    return scheduler(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: turn(item.nodeid))


def pytest_unconfigure(config: pytest.Config) -> None:
    if FOLDER in config.stash:
        shared.end(config.stash[FOLDER])


@pytest.fixture(scope="session")
def servers_folder(pytestconfig: pytest.Config) -> Path:
    told: dict[str, str] | None = getattr(pytestconfig, "workerinput", None)
    return Path(told["servers"]) if told else pytestconfig.stash[FOLDER]


@pytest.fixture(scope="session")
def servers(servers_folder: Path) -> Servers:
    """One PostgreSQL and one RabbitMQ for the run; whoever needs them first starts them."""
    return services.start(servers_folder)


@pytest.fixture(scope="session")
def rabbitmq_proc(servers: Servers, servers_folder: Path) -> Node:
    """The run's RabbitMQ in pytest-rabbitmq's terms, in place of the bare node that the plugin would start."""
    return Node(servers_folder).start()


@pytest.fixture(scope="session")
def template(servers: Servers, servers_folder: Path) -> str:
    return shared.migrated_template(servers, servers_folder)


@pytest.fixture(scope="session")
def databases(servers: Servers, template: str) -> Databases:
    return Databases(servers.postgres, template)


@pytest.fixture(scope="session")
def pipeline_private_servers(servers: Servers) -> Servers:
    """The fixtures that users have (pipeline.testing.plugin) share the run's servers."""
    return servers


@pytest.fixture(scope="session")
def pipeline_databases(databases: Databases) -> Databases:
    return databases


@pytest.fixture(scope="session")
def outside_world() -> Iterator[Sandbox]:
    with running_sandbox() as running:
        yield running


@pytest.fixture
def sandbox(outside_world: Sandbox) -> Sandbox:
    """The outside world on loopback, without faults or counts of earlier tests."""
    outside_world.reset()
    return outside_world


@pytest.fixture
def own_database(databases: Databases) -> Iterator[str]:
    name = databases.new("test")
    yield name
    databases.give_back(name)


@pytest.fixture
def vhost(servers: Servers, own_database: str, request: pytest.FixtureRequest) -> Iterator[str]:
    vhosts = vhosts_of(servers.rabbitmq)
    name = vhosts.new(own_database) if request.node.get_closest_marker("new_vhost") else vhosts.any(own_database)
    yield name
    vhosts.give_back(name)


@pytest.fixture
def place(
    servers: Servers, own_database: str, vhost: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Place]:
    """A database and a vhost of the test's own, as the settings of this process and of every worker it starts."""
    from pipeline import settings

    here = Place(servers, own_database, tmp_path, vhost)
    for variable, value in here.environment().items():
        monkeypatch.setenv(variable, value)
    settings.get.cache_clear()
    yield here
    here.close()
    settings.get.cache_clear()


@pytest.fixture
def own_vhost(rabbitmq_proc: Node, place: Place, monkeypatch: pytest.MonkeyPatch) -> Node:
    """Where ``rabbitmq`` connects to. The plugin asks a process for its address, and knows only guest and "/" there."""
    monkeypatch.setattr(client, "ConnectionParameters", lambda **_: rabbitmq_proc.parameters(place.vhost))
    return rabbitmq_proc


# A test's own connection to its own vhost, which it may use behind the engine's back.
rabbitmq = rabbitmq_client("own_vhost", teardown=leave_queues)


@pytest.fixture
def users(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """As ``place``, with the settings that users have: two addresses, and nothing else."""
    from pipeline import settings

    place.unset = OPTIONAL
    place.load("tests.more_workflows")
    for name in OPTIONAL:
        monkeypatch.delenv(name, raising=False)
    settings.get.cache_clear()
    return place


@pytest.fixture
def with_steps(place: Place) -> None:
    """Its workers load the workflows with steps, and those on the event loop, too."""
    place.load("tests.async_workflows", "tests.step_workflows")


@pytest.fixture
def with_more(place: Place) -> None:
    """Its workers load the workflows with pools, limits and other options, too."""
    place.load("tests.more_workflows")
