"""Where a run happens: the servers, the database, the vhost, the workers, and the settings they share."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pika
from pika.exceptions import AMQPError

from chaos.crew import Crew
from chaos.disk import cannot_mount, mount, unmount
from chaos.observer import Observer, until
from chaos.proxy import Proxy
from chaos.subject import Subject
from pipeline.broker.topology import SWEEPS
from pipeline.services import Servers, environment
from pipeline.services.ports import LOOPBACK

ROOT = Path(__file__).parent.parent
LEASE = 8.0
# Room for the cache's megabyte and for SQLite's log, which grows to four before it is written back.
CACHE_DISK = "16m"


class Stage:
    """Opens the workers; ``close`` ends them. ``proxied``: the last worker reaches both servers over a bad network."""

    def __init__(self, servers: Servers, subject: Subject, folder: Path, *, seed: int, name: str = "pipeline",
                 workers: int = 3, proxied: bool = False) -> None:  # fmt: skip
        self.servers = servers
        self.subject = subject
        self.folder = folder
        self.name = name
        self.chance = random.Random(seed)  # noqa: S311  repeatable, not secret
        # One hand on a server at a time: of two faults that stop it, the second waits.
        self.postgres_lock, self.rabbitmq_lock = threading.Lock(), threading.Lock()
        self.no_small_disk: str | None = "it was not asked for"
        self._open = ExitStack()
        self.observer = self.new_observer()
        self.proxies = self._proxies() if proxied else {}
        self._environments = self.environments(workers)
        self.crew = Crew(self._environments, folder)

    def environments(self, workers: int) -> list[dict[str, str]]:
        """The settings of each worker."""
        direct = self.environment()
        return [direct] * (workers - 1) + [{**direct, **self._through_proxies()}]

    def environment(self) -> dict[str, str]:
        """Short times, so that a run is short; the worker's other settings are the project's own."""
        return {
            "DATABASE_URL": self.servers.postgres.url(self.name),
            "RABBITMQ_URL": self.servers.rabbitmq.url(self.name),
            "RABBITMQ_MANAGEMENT_URL": environment(self.servers)["RABBITMQ_MANAGEMENT_URL"],
            "PIPELINE_WORKFLOWS": self.subject.module,
            "PIPELINE_TEMP_FOLDER": str(self.temp_folder),
            "PIPELINE_PATIENCE_SECONDS": "2",
            "PIPELINE_HEALTH_SECONDS": "3",
            "PIPELINE_HEARTBEAT_SECONDS": "1",
            "JOB_LOCK_TIMEOUT_SECONDS": str(LEASE),
            "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
        }

    @property
    def temp_folder(self) -> Path:
        return self.folder / "temp"

    @property
    def cache_folder(self) -> Path:
        """Beside the temp folder: chaos.workflow looks for it there."""
        return self.folder / "cache"

    def open(self) -> None:
        """Return when every worker works and the workflow's phases are known."""
        self.temp_folder.mkdir(parents=True, exist_ok=True)
        self._mount_cache()
        self._open.callback(self._dismiss)
        self.crew.start()
        until(lambda: self.observer.one("SELECT to_regclass('workers') IS NOT NULL"), 90, "the tables")
        self.crew.at_least(self.observer, self.crew.size)
        self.subject.set_up(_Executes(self.observer))

    def close(self) -> None:
        self._open.close()
        self.observer.close()

    @contextmanager
    def resting(self) -> Iterator[None]:
        """No worker works for a while; afterwards new ones do."""
        self.crew.stop()
        try:
            yield
        finally:
            self.crew = Crew(self._environments, self.folder)
            self.crew.start()

    def new_observer(self) -> Observer:
        """A connection for a thread of its own."""
        return Observer(self.servers.postgres.url(self.name))

    def phases(self) -> list[str]:
        """The workflow's phases, in order."""
        rows = self.observer.rows(
            "SELECT phase FROM phases WHERE workflow = %s AND position > 0 ORDER BY position", self.subject.workflow
        )
        return [row["phase"] for row in rows]

    def queues(self) -> list[str]:
        return [f"{self.subject.workflow}.{phase}" for phase in self.phases()]

    def channel(self) -> pika.adapters.blocking_connection.BlockingChannel:
        """A channel of the harness's own; raises AMQPError or OSError while the broker is away."""
        return pika.BlockingConnection(pika.URLParameters(self.servers.rabbitmq.url(self.name))).channel()

    def consumers(self) -> int:
        """Worker processes that consume: each always consumes the sweeps' queue, whether it is busy or not."""
        try:
            channel = self.channel()
            count = channel.queue_declare(SWEEPS, passive=True).method.consumer_count
            channel.connection.close()
        except (AMQPError, OSError):
            return 0
        return int(count or 0)

    def _dismiss(self) -> None:
        self.crew.stop()

    def _mount_cache(self) -> None:
        """Before the workers open their cache: on a disk of its own, which can be filled."""
        self.cache_folder.mkdir(exist_ok=True)
        self.no_small_disk = cannot_mount() or mount(self.cache_folder, CACHE_DISK)
        if not self.no_small_disk:
            self._open.callback(unmount, self.cache_folder)

    def _proxies(self) -> dict[str, Proxy]:
        ports = {
            "postgres": _port(self.servers.postgres.url(self.name)),
            "rabbitmq": _port(self.servers.rabbitmq.url(self.name)),
        }
        return {name: self._open.enter_context(Proxy(port)) for name, port in ports.items()}

    def _through_proxies(self) -> dict[str, str]:
        found = {}
        for variable, name in (("DATABASE_URL", "postgres"), ("RABBITMQ_URL", "rabbitmq")):
            if proxy := self.proxies.get(name):
                url = self.environment()[variable]
                found[variable] = url.replace(f"{LOOPBACK}:{_port(url)}", f"{LOOPBACK}:{proxy.port}")
        return found


class _Executes:
    """What a workflow's set-up gets: something with ``execute``."""

    def __init__(self, observer: Observer) -> None:
        self.execute = observer.run


def _port(url: str) -> int:
    return int(url.rpartition("@")[2].partition("/")[0].rpartition(":")[2])
