"""After a commit: the message is acknowledged, and the job continues here or the next phase's message is published."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from time import monotonic, sleep
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from pipeline.broker.inbound import Inbound
from pipeline.broker.outbound import Outbound, Outgoing
from pipeline.declare.phase import PhaseSpec
from pipeline.journey.attempt import Attempt
from pipeline.journey.message import compose, encode
from pipeline.observe import logs
from pipeline.observe.counters import count
from pipeline.store import database
from pipeline.store.group_statement import Completed

if TYPE_CHECKING:
    from pipeline.worker.liveness import Liveness

log = logs.get("pipeline.worker")

UNSEND = text("SELECT pipeline.unsend(CAST(:jobs AS uuid[]), CAST(:sends AS bigint[]), 'unconfirmed')")
STILL_SENT = text("SELECT pipeline.still_sent(CAST(:jobs AS uuid[]), CAST(:sends AS bigint[])) LIMIT 1")
# Rows that another transaction holds.
ASK_AGAIN = 0.5
# What this worker had marked as sent, for the relay to send; what it had gone on with, to wait again at no cost.
MARKED = text("""SELECT j.id, j.send FROM pipeline.outbox o JOIN pipeline.jobs j ON j.id = o.job_id
    WHERE o.job_id = ANY (CAST(:jobs AS uuid[])) AND o.sent_by = :worker AND j.status IN ('pending', 'retryable')""")
CARRIED = text("""SELECT j.id, j.fence FROM unnest(CAST(:jobs AS uuid[]), CAST(:fences AS bigint[])) AS a(id, fence)
         JOIN pipeline.jobs j ON j.id = a.id AND j.fence = a.fence + 1 AND j.message_phase_id IS NOT NULL
         JOIN pipeline.workers w ON w.id = j.locked_by AND w.no = :worker""")
SNOOZE = text("SELECT pipeline.snooze(:id, :fence, 'snoozed', 'lost_connection', 0, NULL)")
# RabbitMQ wants its messages acknowledged in time, and counts from the first phase on.
LONGEST_CARRIED = 60.0
RELEASE = text("SELECT pipeline.snooze(:id, :fence, 'released', 'shutdown', 0, NULL)")


class HandOver:
    """What a process owes RabbitMQ once PostgreSQL has decided. What is not confirmed is sent again by the relay."""

    def __init__(
        self, inbound: Inbound, outbound: Outbound, continuing: Continuing, liveness: Liveness, worker_no: int
    ) -> None:
        self._inbound = inbound
        self._outbound = outbound
        self._continuing = continuing
        self._liveness = liveness
        self._worker_no = worker_no

    def committed(self, batch: Sequence[tuple[Attempt, Completed]]) -> None:
        """Publish what this worker must send, and acknowledge what has done its part: all but those that go on."""
        outgoing: list[Outgoing] = []
        unheard = [attempt for attempt, completed in batch if completed.verdict == "repeated"]
        for attempt, completed in batch:
            if completed.verdict == "lost":
                count("discarded")
                log.warning("result discarded: the claim was lost", job=str(attempt.job_id), fence=attempt.fence)
                self._liveness.lost(attempt)
            elif completed.verdict != "repeated":
                count(f"{attempt.spec.queue}.succeeded")
            if completed.verdict != "continued" and completed.sent_at is not None:
                outgoing.append(next_message(attempt, completed))
        if unheard:
            threading.Thread(target=self.recall, args=(unheard,), daemon=True).start()
        if outgoing:
            self._outbound.publish(outgoing, self._published)
        self._inbound.ack(attempt.delivery for attempt, completed in batch if completed.verdict != "continued")
        for attempt, completed in batch:
            if completed.verdict == "continued":
                self._continuing.begin(attempt, completed)
            self._let_go(attempt)

    def _let_go(self, attempt: Attempt) -> None:
        """Committed: no heartbeat any more. Attempt and message name each other, and would wait for the collector."""
        self._liveness.release(attempt)
        attempt.delivery.attempt = attempt.job = None

    def recall(self, claims: list[Attempt]) -> None:
        """They committed, but the answer was lost with the connection, and with it our turn to publish or to go on."""
        values = {"jobs": [c.job_id for c in claims], "fences": [c.fence for c in claims], "worker": self._worker_no}
        marked = database.insist(lambda connection: connection.execute(MARKED, values).all())
        carried = database.insist(lambda connection: connection.execute(CARRIED, values).all())
        for job_id, fence in carried:
            key = {"id": job_id, "fence": fence}
            while database.insist(lambda connection: connection.execute(SNOOZE, key).scalar_one()) == "locked":  # noqa: B023
                sleep(ASK_AGAIN)
        _send_again([row.id for row in marked], [row.send for row in marked])

    def _published(self, failed: list[Outgoing]) -> None:
        # Runs in the AMQP thread, which must not wait for PostgreSQL.
        if failed:
            threading.Thread(target=self._unsend, args=(failed,), daemon=True).start()

    def _unsend(self, messages: list[Outgoing]) -> None:
        count("unconfirmed", len(messages))
        _send_again([message.job_id for message in messages], [message.send for message in messages])


def _send_again(jobs: list[UUID], sends: list[int]) -> None:
    """Under new numbers, by the relay. A row that another transaction holds is asked for again."""
    values = {"jobs": jobs, "sends": sends}
    while jobs:
        database.insist(lambda connection: connection.execute(UNSEND, values))
        if not database.insist(lambda connection: connection.execute(STILL_SENT, values).first()):
            return
        sleep(ASK_AGAIN)


def next_message(attempt: Attempt, completed: Completed) -> Outgoing:
    """The next phase's message, made from what this attempt already holds: no query."""
    assert completed.queue and completed.actor and completed.send and completed.max_attempts and completed.sent_at
    message = compose(
        job_id=attempt.job_id,
        queue=completed.queue,
        actor=completed.actor,
        send=completed.send,
        attempt=1,
        max_attempts=completed.max_attempts,
        sent_at=completed.sent_at,
        body=attempt.body,
        trace_id=attempt.trace_id,
        span_id=attempt.span_id,
    )
    return Outgoing(
        completed.queue, encode(message), attempt.priority, attempt.job_id, completed.send, completed.sent_at
    )


class Continuing:
    """When nothing waits, the worker that ends a phase does the next one, too, with the same message in hand.

    The next phase is claimed in the transaction that ends the one before. Neither a message nor a commit of its own is
    needed; if the worker dies, the message comes back and its job is sent to the queue where it belongs.
    ``following``: the phase after each queue, of those that this process serves."""

    def __init__(
        self, inbound: Inbound, liveness: Liveness, hold: Callable[[Attempt], None], following: Mapping[str, PhaseSpec]
    ) -> None:
        self._inbound = inbound
        self._liveness = liveness
        self._hold = hold
        self._following = following

    def way(self, attempt: Attempt) -> str | None:
        """The queue that the job may go on in here. None if others wait for the thread, or the message is not ours."""
        following = self._following.get(attempt.spec.queue)
        if following is None or not self._inbound.has_time_for(following.queue):
            return None
        carried = monotonic() - attempt.delivery.arrived
        return following.queue if attempt.delivery.live and carried < LONGEST_CARRIED else None

    def begin(self, ended: Attempt, completed: Completed) -> None:
        """The job is ours again, in its next phase: a thread takes it up as if a message had brought it."""
        assert completed.queue and completed.actor and completed.send and completed.max_attempts and completed.sent_at
        assert completed.fence and completed.body is not None
        message = compose(
            job_id=ended.job_id,
            queue=completed.queue,
            actor=completed.actor,
            send=completed.send,
            attempt=1,
            max_attempts=completed.max_attempts,
            sent_at=completed.sent_at,
            body=completed.body,
            trace_id=ended.trace_id,
            span_id=ended.span_id,
        )
        delivery = ended.delivery.continuing(message)
        attempt = delivery.attempt = Attempt(
            spec=self._following[ended.spec.queue],
            job_id=ended.job_id,
            fence=completed.fence,
            attempts=0,
            max_attempts=completed.max_attempts,
            crashes=0,
            isolated=False,
            priority=ended.priority,
            body=completed.body,
            results=completed.results or {},
            trace_id=ended.trace_id,
            span_id=ended.span_id,
            delivery=delivery,
        )
        count("continued")
        self._hold(attempt)
        self._inbound.begin_here(delivery)

    def release(self) -> None:
        """At the end: what no thread has taken up waits for another worker. Tried once: its message comes back, too."""
        unbegun = [attempt for attempt in self._liveness.held() if attempt.job is None and not attempt.finished]
        try:
            for attempt in unbegun:
                with database.engine().begin() as connection:
                    verdict = connection.execute(RELEASE, {"id": attempt.job_id, "fence": attempt.fence}).scalar_one()
                if verdict != "locked":
                    self._liveness.release(attempt)
        except SQLAlchemyError as error:
            log.warning("PostgreSQL is away; jobs are left to redelivery", jobs=len(unbegun), error=str(error))
