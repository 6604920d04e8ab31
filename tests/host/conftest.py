"""One environment, one database and one vhost for all tests of this folder: the application's, with the engine in them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from pipeline.dev.services import Servers
from tests.host import environments
from tests.host.host import READY, SHOP, Host


@dataclass(frozen=True)
class Installed:
    """The wheel; the shop's environment with it, and its size before and after; an environment with nothing else."""

    wheel: Path
    shop: Path
    before: float
    after: float
    bare: Path


@pytest.fixture(scope="package")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("host")
    shop, bare = environments.create(folder / "shop-env"), environments.create(folder / "bare-env")
    with ThreadPoolExecutor() as pool:
        building = pool.submit(environments.build_wheel, folder)
        own = (SHOP / "requirements.txt").read_text().splitlines()
        environments.install(shop, *(line for line in own if not line.startswith("#")))
        before = environments.megabytes(shop)
        wheel = building.result()
        alone = pool.submit(environments.install_wheel, bare, wheel)
        environments.install_wheel(shop, wheel)
        alone.result()
    return Installed(wheel, shop, before, environments.megabytes(shop), bare)


@pytest.fixture(scope="package")
def shop(servers: Servers, installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """The application with its tables, before it has ever heard of the engine."""
    folder = tmp_path_factory.mktemp("shop")
    name = f"host_{uuid4().hex[:12]}"
    servers.postgres.create_database(name)
    servers.rabbitmq.create_vhost(name)
    here = Host(servers, name, folder, installed.shop)
    here.do("alembic", "upgrade", "0001")
    yield here
    here.close()
    servers.rabbitmq.delete_vhost(name)


@pytest.fixture(scope="package")
def migrated(shop: Host) -> tuple[str, str, str]:
    """What the database had outside of the engine's schema before and after its migration, and what that said."""
    before = shop.dump()
    said = shop.do("pipeline", "migrate")
    return before, shop.dump(), said


@pytest.fixture(scope="package")
def guest(shop: Host, migrated: object) -> Host:
    """The application with the engine in its database and its own newest migration on top."""
    shop.do("alembic", "upgrade", "head")
    return shop


@pytest.fixture(scope="package")
def web(guest: Host) -> str:
    """The address of the application's server."""
    _, said = guest.start("uvicorn", "shop.web:app", "--port", "0", says=r"http://127\.0\.0\.1:\d+")
    return said


@pytest.fixture(scope="package")
def worker(guest: Host) -> subprocess.Popen[bytes]:
    """The engine's worker. The application has an address for traces, and the engine no package to send any."""
    process, _ = guest.start(
        "dramatiq",
        *("pipeline.actors", "--processes", "1", "--threads", "2"),
        says=READY,
        OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9",
    )
    return process


@pytest.fixture(scope="package")
def bare(guest: Host, installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """The same database and vhost, used from an environment that has the engine without extras, and nothing else."""
    here = Host(guest.servers, guest.name, tmp_path_factory.mktemp("bare"), installed.bare)
    yield here
    here.close()


@pytest.fixture(scope="package")
def removed(guest: Host) -> tuple[str, str, str]:
    """As ``migrated``, for the way out. Nobody uses the engine any more."""
    guest.close()
    before = guest.dump()
    said = guest.do("pipeline", "migrate", "--remove")
    return before, guest.dump(), said
