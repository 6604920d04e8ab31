"""Private PostgreSQL and RabbitMQ servers on free ports of 127.0.0.1, with all they write under one folder.

They never touch the machine's own services, outlive the process that started them, and stop only by `stop`.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pipeline.broker.management import Login
from pipeline.dev.services.postgres import Postgres
from pipeline.dev.services.processes import ServiceError
from pipeline.dev.services.rabbitmq import RabbitMQ
from pipeline.dev.services.state import exclusive

__all__ = [
    "FOLDER",
    "Login",
    "Postgres",
    "RabbitMQ",
    "Servers",
    "ServiceError",
    "environment",
    "private_servers",
    "running",
    "start",
    "stop",
    "use_private_servers",
]

FOLDER = Path(".pipeline")


@dataclass(frozen=True)
class Servers:
    """The two servers of one folder and their addresses."""

    postgres: Postgres
    rabbitmq: RabbitMQ

    @property
    def database_url(self) -> str:
        """The database `pipeline`, as its superuser."""
        return self.postgres.url()

    @property
    def rabbitmq_url(self) -> str:
        """The vhost `pipeline`, as the user `pipeline`."""
        return self.rabbitmq.url()

    @property
    def management_url(self) -> str:
        """RabbitMQ's management UI, without credentials."""
        return self.rabbitmq.management_url

    @property
    def management_user(self) -> Login:
        """Who signs in to the management UI."""
        return self.rabbitmq.management_user


def start(folder: Path = FOLDER) -> Servers:
    """Start what is not running yet, both at once; when one fails, what this call started is stopped again."""
    return _start(folder)[0]


def stop(folder: Path = FOLDER) -> None:
    """Stop both servers gracefully and return when they are gone; their data stay. Nothing running is fine."""
    if folder.exists():
        with exclusive(folder, "start.lock"):
            servers = _servers(folder)
            _stop([servers.postgres, servers.rabbitmq])


def running(folder: Path = FOLDER) -> Servers | None:
    """The servers of this folder if both run, otherwise None."""
    servers = _servers(folder)
    return servers if servers.postgres.running and servers.rabbitmq.running else None


@contextlib.contextmanager
def private_servers(folder: Path = FOLDER, *, remove: bool = False) -> Iterator[Servers]:
    """Servers for the time of a `with` block: what was running before stays, the rest is stopped, also after an error.

    `remove` deletes the data of what is stopped: for tests, whose folder PostgreSQL's account often cannot reach,
    so that the data lie elsewhere and would stay behind.
    """
    servers, started = _start(folder)
    try:
        yield servers
    finally:
        with exclusive(folder, "start.lock"):
            if remove and servers.rabbitmq in started:
                servers.rabbitmq.kill()  # its graceful stop takes six seconds, to keep what is deleted next
            _stop(started)
            for server in started if remove else []:
                server.remove()


def environment(servers: Servers) -> dict[str, str]:
    """The settings that lead the pipeline to these servers."""
    name, password = servers.management_user
    return {
        "DATABASE_URL": servers.database_url,
        "RABBITMQ_URL": servers.rabbitmq_url,
        "RABBITMQ_MANAGEMENT_URL": servers.management_url.replace("://", f"://{name}:{password}@"),
    }


def use_private_servers(folder: Path = FOLDER) -> None:
    """For the command line: private servers that run in this folder fill in for addresses that are not set."""
    if "DATABASE_URL" in os.environ and "RABBITMQ_URL" in os.environ:
        return
    servers = running(folder)
    for name, value in environment(servers).items() if servers else ():
        os.environ.setdefault(name, value)


def _servers(folder: Path) -> Servers:
    return Servers(Postgres(folder), RabbitMQ(folder))


def _start(folder: Path) -> tuple[Servers, list[Postgres | RabbitMQ]]:
    with exclusive(folder, "start.lock"):
        servers = _servers(folder)
        both: list[Postgres | RabbitMQ] = [servers.postgres, servers.rabbitmq]
        missing = [server for server in both if not server.running]
        try:
            with ThreadPoolExecutor() as pool:
                for attempt in [pool.submit(server.start) for server in missing]:
                    attempt.result()
        except BaseException:
            _stop(missing)
            raise
        return servers, missing


def _stop(servers: Sequence[Postgres | RabbitMQ]) -> None:
    with ThreadPoolExecutor() as pool:
        for attempt in [pool.submit(server.stop) for server in servers]:
            attempt.result()
