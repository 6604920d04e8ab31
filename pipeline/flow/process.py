"""One worker process: its identity, its threads, and what they share."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any
from uuid import UUID

from sqlalchemy import text

from pipeline.broker.delivery import Delivery
from pipeline.broker.inbound import Inbound
from pipeline.broker.outbound import Outbound
from pipeline.flow import database, lanes
from pipeline.flow.claim import Claim
from pipeline.flow.committer import Committer
from pipeline.flow.group_statement import Completed, Completion
from pipeline.flow.hand_over import HandOver
from pipeline.flow.job import Job
from pipeline.flow.onward import Onward
from pipeline.flow.presence import Presence, new_worker_id
from pipeline.observe import logs
from pipeline.rules.phase import PhaseSpec
from pipeline.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HOLD = text("SELECT pipeline_hold(:id, :fence)")
PROGRESS = text("SELECT pipeline_progress(:id, :fence, :done, :total)")


class WorkerProcess:
    """Everything a worker thread needs. Made after the fork, at worker boot."""

    def __init__(
        self, settings: Settings, inbound: Inbound, outbound: Outbound, *, threads: int, queues: list[str],
        following: Mapping[str, PhaseSpec],
    ) -> None:  # fmt: skip
        self.settings = settings
        self.inbound = inbound
        self.outbound = outbound
        self.threads = threads
        self.id = new_worker_id(settings.worker_id)
        self.log = logs.get("pipeline.worker").bind(worker=self.id)
        self.presence = Presence(
            settings.dsn, self.id, threads=threads, queues=queues, beat=settings.heartbeat_seconds,
            unconfirmed=outbound.oldest_unconfirmed, deaf=inbound.deaf, unstarted=inbound.unstarted,
        )  # fmt: skip
        self.presence.start()
        self.no = self.presence.worker_no
        self.onward = Onward(inbound, self.presence, following)
        self.hand_over = HandOver(inbound, outbound, self.onward, self.no)
        self.committer = Committer(settings.dsn, self.id, self.no, self._completed, self._refused)
        self.committer.start()
        # Where this worker's jobs have their folders; named after it, so that others can tell whose they are.
        self.temp_root = settings.temp_folder / self.id
        self._local = threading.local()

    def delivery(self) -> Delivery:
        """The message this thread is working on."""
        delivery: Delivery = self._local.delivery
        return delivery

    def take(self, delivery: Delivery) -> None:
        self._local.delivery = delivery

    def runs(self, job_id: UUID) -> bool:
        """Whether a thread of this process works on the job."""
        return any(claim.job_id == job_id for claim in self.presence.held())

    def job(self, claim: Claim) -> Job:
        """The job as the phase function sees it."""
        return Job(
            id=claim.job_id, workflow=claim.spec.workflow, phase=claim.spec.name, body=claim.body,
            results=claim.results, attempt=claim.attempts + 1, fence=claim.fence, trace_id=claim.trace_id,
            span_id=claim.span_id, temp_root=self.temp_root, read_rows=read_rows,
            report=lambda done, total: report_progress(claim, done, total),
            keep_rows=lambda statement, values: keep_rows(claim, statement, values),
            take_turn=lambda lane, calls: lanes.take_turn(claim.job_id, lane, calls), has_folder=claim.isolated,
        )  # fmt: skip

    def stop(self) -> None:
        """Commit what is left, then sign off."""
        self.committer.flush(30)
        self.committer.stop()
        self.onward.hand_back()
        self.presence.stop(clean=self.outbound.drain(5))

    def _completed(self, batch: list[tuple[Completion, Completed]]) -> None:
        self.hand_over.committed([(completion.claim, completed) for completion, completed in batch])

    def _refused(self, completion: Completion, error: Exception) -> None:
        """PostgreSQL refused this completion by itself: the attempt failed, its neighbours did not."""
        from pipeline.flow.settle import DEAD_LETTERED, settle_error

        def settle() -> None:
            if settle_error(self, completion.claim, error) in DEAD_LETTERED:
                self.inbound.reject(completion.claim.delivery)
            else:
                self.inbound.ack([completion.claim.delivery])

        threading.Thread(target=settle, daemon=True).start()


def read_rows(statement: str, parameters: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """A short query of a phase, in a transaction of its own."""
    with database.engine().connect() as connection:
        return [dict(row) for row in connection.execute(text(statement), dict(parameters)).mappings()]


def report_progress(claim: Claim, done: int, total: int) -> bool:
    """Fenced; False when the attempt no longer holds its job."""
    with database.engine().begin() as connection:
        values = {"id": claim.job_id, "fence": claim.fence, "done": done, "total": total}
        return bool(connection.execute(PROGRESS, values).scalar_one())


def keep_rows(claim: Claim, statement: str, parameters: Mapping[str, Any]) -> bool:
    """A checkpoint, written only while the attempt holds its job; False when it does not."""
    with database.engine().begin() as connection:
        if not connection.execute(HOLD, {"id": claim.job_id, "fence": claim.fence}).scalar_one():
            return False
        connection.execute(text(statement), dict(parameters))
        return True


_current: WorkerProcess | None = None


def current() -> WorkerProcess:
    """The worker this code runs in."""
    if _current is None:
        raise RuntimeError("a phase runs inside a worker; call its .work(job) to test it without one")
    return _current


def set_current(worker: WorkerProcess | None) -> None:
    global _current  # noqa: PLW0603  one worker a process is what a process is
    _current = worker
