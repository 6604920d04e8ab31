"""One worker process: its identity, its threads, and what they share."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any
from uuid import UUID

from sqlalchemy import text

from pipeline.broker.delivery import Delivery
from pipeline.broker.inbound import Inbound
from pipeline.broker.outbound import Outbound, Outgoing
from pipeline.flow import database, lanes
from pipeline.flow.claim import Claim
from pipeline.flow.committer import Committer
from pipeline.flow.group_statement import Completed, Completion
from pipeline.flow.job import Job
from pipeline.flow.message import encode
from pipeline.flow.presence import Presence, new_worker_id
from pipeline.observe import logs
from pipeline.observe.counters import count
from pipeline.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

UNSEND = text("SELECT pipeline_unsend(CAST(:jobs AS uuid[]), CAST(:sends AS bigint[]), :reason)")
UNSEND_OURS = text("""SELECT pipeline_unsend(array_agg(j.id), array_agg(j.send), 'unconfirmed')
    FROM outbox o JOIN jobs j ON j.id = o.job_id
    WHERE o.job_id = ANY (CAST(:jobs AS uuid[])) AND o.sent_by = :worker""")
HOLD = text("SELECT pipeline_hold(:id, :fence)")
PROGRESS = text("SELECT pipeline_progress(:id, :fence, :done, :total)")


class WorkerProcess:
    """Everything a worker thread needs. Made after the fork, at worker boot."""

    def __init__(
        self, settings: Settings, inbound: Inbound, outbound: Outbound, *, threads: int, queues: list[str]
    ) -> None:
        self.settings = settings
        self.inbound = inbound
        self.outbound = outbound
        self.threads = threads
        self.id = new_worker_id(settings.worker_id)
        self.log = logs.get("pipeline.worker").bind(worker=self.id)
        self.presence = Presence(
            settings.dsn, self.id, threads=threads, queues=queues, beat=settings.heartbeat_seconds,
            unconfirmed=outbound.oldest_unconfirmed,
        )  # fmt: skip
        self.presence.start()
        self.no = self.presence.worker_no
        self.committer = Committer(settings.dsn, self.id, self.no, self._committed, self._refused)
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

    def hand_over(self, claim: Claim, completed: Completed) -> None:
        """A completion of its own committed: acknowledge, and send the next phase's message."""
        self._committed([(Completion(claim, None), completed)])

    def stop(self) -> None:
        """Commit what is left, then sign off."""
        self.committer.flush(30)
        self.committer.stop()
        self.presence.stop(clean=self.outbound.drain(5))

    def unsend(self, messages: list[Outgoing], reason: str) -> None:
        """What RabbitMQ did not confirm is sent again by the relay, under a new number."""
        if not messages:
            return
        count("unconfirmed", len(messages))
        values = {"jobs": [m.job_id for m in messages], "sends": [m.send for m in messages], "reason": reason}
        database.insist(lambda connection: connection.execute(UNSEND, values))

    def _committed(self, batch: list[tuple[Completion, Completed]]) -> None:
        outgoing: list[Outgoing] = []
        unpublished = [c.claim.job_id for c, completed in batch if completed.verdict == "repeated"]
        for completion, completed in batch:
            if completed.verdict == "lost":
                count("discarded")
                self.log.warning(
                    "result discarded: the claim was lost",
                    job=str(completion.claim.job_id),
                    fence=completion.claim.fence,
                )
            elif completed.verdict != "repeated":
                count(f"{completion.claim.spec.queue}.succeeded")
            if completed.sent_at is not None:
                outgoing.append(next_message(completion.claim, completed))
        if unpublished:
            threading.Thread(target=self.send_again, args=(unpublished,), daemon=True).start()
        if outgoing:
            self.outbound.publish(outgoing, self._published)
        self.inbound.ack(completion.claim.delivery for completion, _ in batch)

    def send_again(self, jobs: list[UUID]) -> None:
        """Their hand-over committed, but the answer was lost with the connection, and so was our turn to publish."""
        values = {"jobs": jobs, "worker": self.no}
        database.insist(lambda connection: connection.execute(UNSEND_OURS, values))

    def _published(self, failed: list[Outgoing]) -> None:
        # Runs in the AMQP thread, which must not wait for PostgreSQL.
        if failed:
            threading.Thread(target=self.unsend, args=(failed, "unconfirmed"), daemon=True).start()

    def _refused(self, completion: Completion, error: Exception) -> None:
        """PostgreSQL refused this completion by itself: the attempt failed, its neighbours did not."""
        from pipeline.flow.settle import DEAD_LETTERED, settle_error

        def settle() -> None:
            if settle_error(self, completion.claim, error) in DEAD_LETTERED:
                self.inbound.reject(completion.claim.delivery)
            else:
                self.inbound.ack([completion.claim.delivery])

        threading.Thread(target=settle, daemon=True).start()


def next_message(claim: Claim, completed: Completed) -> Outgoing:
    """The next phase's message, made from what this attempt already holds: no query."""
    assert completed.queue and completed.actor and completed.send and completed.max_attempts and completed.sent_at
    body = encode(
        job_id=claim.job_id, queue=completed.queue, actor=completed.actor, send=completed.send, attempt=1,
        max_attempts=completed.max_attempts, sent_at=completed.sent_at, body=claim.body, trace_id=claim.trace_id,
        span_id=claim.span_id,
    )  # fmt: skip
    return Outgoing(completed.queue, body, claim.priority, claim.job_id, completed.send, completed.sent_at)


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
