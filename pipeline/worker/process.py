"""One worker process: its identity, its threads, and what they share."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from uuid import UUID

import orjson

from pipeline.broker.delivery import Delivery
from pipeline.broker.inbound import Inbound
from pipeline.broker.outbound import Outbound
from pipeline.declare.job import Done, Job
from pipeline.declare.phase import PhaseSpec
from pipeline.journey.attempt import Advance, Attempt, Held, job_of
from pipeline.journey.settle import settle_for_good
from pipeline.maintenance.temp_folders import TempFolders, database_id
from pipeline.observe import logs
from pipeline.observe.instruments import snapshot
from pipeline.settings import Settings
from pipeline.store.engine import connect
from pipeline.store.gateway.liveness import Report
from pipeline.store.group_commit import Committer, Completed, Completion
from pipeline.worker import isolate
from pipeline.worker.deadlines import Watch
from pipeline.worker.essential import essential_thread
from pipeline.worker.liveness import Liveness, new_worker_id

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipeline.worker.stuck import StuckThreads


class WorkerProcess:
    """Everything a worker thread needs. Made after the fork, at worker boot."""

    def __init__(
        self,
        settings: Settings,
        inbound: Inbound,
        outbound: Outbound,
        *,
        threads: int,
        queues: list[str],
        following: Mapping[str, PhaseSpec],
    ) -> None:
        self.settings = settings
        self.inbound = inbound
        self.outbound = outbound
        self.threads = threads
        self.id = new_worker_id(settings.worker_id)
        self.log = logs.get("pipeline.worker").bind(worker=self.id)
        self.stuck: StuckThreads | None = None
        self.held = Held()
        self.liveness = Liveness(
            settings.dsn,
            self.id,
            held=self.held,
            threads=threads,
            queues=queues,
            beat=settings.heartbeat_seconds,
            report=self._report,
        )
        self.watch = Watch(self.held, self._abandon)
        self.liveness.start()
        self.no = self.liveness.worker_no
        self.advance = Advance(inbound, self.held, self.no, following, lost=self.liveness.lost)
        self.committer = Committer(
            settings.dsn, self.id, self.no, self._completed, self._refused, thread=essential_thread
        )
        self.committer.start()
        self.watch.start()
        with connect(settings.dsn, "identity") as connection:
            self._temp_folders = TempFolders(settings.temp_folder, database_id(connection))
        # Of workers on this host that were killed: its leader of maintenance may be on another.
        self._temp_folders.sweep()
        self._temp_folders.open(self.id)
        self._local = threading.local()

    @property
    def temp_root(self) -> Path:
        """Where this worker's jobs have their folders."""
        return self._temp_folders.root(self.id)

    def delivery(self) -> Delivery:
        """The message this thread is working on."""
        delivery: Delivery = self._local.delivery
        return delivery

    def take(self, delivery: Delivery) -> None:
        self._local.delivery = delivery

    def release_all(self) -> None:
        """Shutdown: attempts that still run are told to stop; their jobs are released at no cost."""
        for attempt in self.held.all():
            attempt.interrupt("shutdown")
        self.held.wake()

    def runs(self, job_id: UUID) -> bool:
        """Whether a thread of this process works on the job."""
        return any(attempt.job_id == job_id for attempt in self.held.all())

    def job(self, attempt: Attempt) -> Job:
        """The job as the phase function sees it."""
        job = job_of(attempt, lambda: self.temp_root)
        # A child process makes the folder, and this process removes it.
        job.has_folder = attempt.isolated
        return job

    def run_isolated(self, attempt: Attempt) -> Done | Completed:
        """Run the claim's phase in a child process."""
        return isolate.run_isolated(self, attempt)

    def stop(self) -> None:
        """Commit what is left, then sign off."""
        self.committer.flush(5)
        self.committer.stop()
        self.advance.release()
        self.watch.stop()
        drained = self.outbound.drain(2)
        self.liveness.stop(clean=drained and not self.held.all())
        self._temp_folders.close()

    def _report(self) -> Report:
        """What a heartbeat tells about this process."""
        return Report(
            confirmed_at=self.outbound.oldest_unconfirmed(),
            counters=orjson.dumps(snapshot()).decode(),
            not_consuming=self.inbound.not_consuming(),
            unstarted=orjson.dumps(self.inbound.unstarted()).decode(),
            stuck=self.stuck.now if self.stuck else 0,
        )

    def _abandon(self, attempt: Attempt) -> None:
        if self.stuck is not None:
            self.stuck.abandon(attempt)

    def _completed(self, batch: list[tuple[Completion, Completed]]) -> None:
        self.advance.committed([(completion.attempt, completed) for completion, completed in batch])

    def _refused(self, completion: Completion, error: Exception) -> None:
        """PostgreSQL refused this completion by itself: the attempt failed, its neighbours did not."""
        threading.Thread(target=settle_for_good, args=(self, completion.attempt, error), daemon=True).start()


_current: WorkerProcess | None = None


def current() -> WorkerProcess:
    """The worker this code runs in."""
    if _current is None:
        raise RuntimeError("a phase runs inside a worker; call its .work(job) to test it without one")
    return _current


def set_current(worker: WorkerProcess | None) -> None:
    global _current  # noqa: PLW0603  one worker a process is what a process is
    _current = worker
