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

from chaos import times
from chaos.crew import Crew
from chaos.disk import cannot_mount, mount, unmount
from chaos.namespace import Namespace
from chaos.observer import Observer, until
from chaos.routes import Routes
from chaos.subject import Subject
from pipeline.broker.topology import SWEEPS
from pipeline.dev.services import Servers, environment

ROOT = Path(__file__).parent.parent
# Room for the cache's megabyte and for SQLite's log, which grows to four before it is written back.
CACHE_DISK = "16m"


class Stage:
    """Opens the workers; ``close`` ends them. ``arrange`` says how they reach the servers, wave by wave."""

    def __init__(
        self,
        servers: Servers,
        subject: Subject,
        folder: Path,
        *,
        seed: int,
        name: str = "pipeline",
        workers: int = 3,
        management: bool = True,
    ) -> None:
        self.servers = servers
        self.subject = subject
        self.folder = folder
        self.name = name
        self.chance = random.Random(seed)  # noqa: S311  repeatable, not secret
        # One hand on a server at a time: of two faults that stop it, the second waits.
        self.postgres_lock, self.rabbitmq_lock = threading.Lock(), threading.Lock()
        self.no_small_disk: str | None = "it was not asked for"
        self.management, self.proxied = management, False
        self.namespace: Namespace | None = None
        self._workers = workers
        self._open = ExitStack()
        self.observer = self.new_observer()
        self.routes = Routes(self._open, workers)
        self.crew = self._new_crew()

    def arrange(self, *, management: bool, proxied: bool) -> None:
        """New workers if these would not fit: with the management address or without, through proxies or not."""
        if (management, proxied) != (self.management, self.proxied):
            self.management, self.proxied = management, proxied
            with self.resting():
                pass

    def environments(self, workers: int) -> list[dict[str, str]]:
        """The settings of each worker. Its name is the number of its proxies."""
        each = [{**self.environment(), "WORKER_ID": f"chaos-{n}"} for n in range(1, workers + 1)]
        return [self.routes.through(n, one) for n, one in enumerate(each, 1)] if self.proxied else each

    def environment(self) -> dict[str, str]:
        """The times of the run; the workers' other settings are the project's own."""
        address = {"RABBITMQ_MANAGEMENT_URL": environment(self.servers)["RABBITMQ_MANAGEMENT_URL"]}
        return {
            "DATABASE_URL": self.servers.postgres.url(self.name),
            "RABBITMQ_URL": self.servers.rabbitmq.url(self.name),
            "PIPELINE_WORKFLOWS": self.subject.module,
            "PIPELINE_TEMP_FOLDER": str(self.temp_folder),
            "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
            **times.environment(),
            **(address if self.management else {}),
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
        until(lambda: self.observer.one("SELECT to_regclass('pipeline.workers') IS NOT NULL"), 90, "the tables")
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
            self.crew = self._new_crew()
            self.crew.start()

    def new_observer(self) -> Observer:
        """A connection for a thread of its own."""
        return Observer(self.servers.postgres.url(self.name))

    def phases(self) -> list[str]:
        """The workflow's phases, in order."""
        rows = self.observer.rows(
            "SELECT phase FROM pipeline.phases WHERE workflow = %s AND position > 0 ORDER BY position",
            self.subject.workflow,
        )
        return [row["phase"] for row in rows]

    def queues(self) -> list[str]:
        return [f"{self.subject.workflow}.{phase}" for phase in self.phases()]

    def all_queues(self) -> list[str]:
        """Those of the workflow, and of the faults' own workflows, which are named after ours."""
        if not self.subject.has_ledger:
            return self.queues()
        rows = self.observer.rows(
            "SELECT queue FROM pipeline.phases WHERE workflow = %s OR workflow LIKE %s ORDER BY id",
            self.subject.workflow,
            f"{self.subject.workflow}-%",
        )
        return [row["queue"] for row in rows]

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

    def _new_crew(self) -> Crew:
        return Crew(self.environments(self._workers), self.folder, self.consumers)


class _Executes:
    """What a workflow's set-up gets: something with ``execute``."""

    def __init__(self, observer: Observer) -> None:
        self.execute = observer.run
