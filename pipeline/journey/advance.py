"""After a commit: the message is acknowledged, and the job continues here or the next phase's message is published."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError

from pipeline.broker.inbound import Inbound
from pipeline.broker.outbound import Outbound, Outgoing
from pipeline.declare.phase import PhaseSpec
from pipeline.journey.attempt import Attempt
from pipeline.journey.message import compose, encode
from pipeline.observe import logs
from pipeline.observe.counters import count
from pipeline.store import database
from pipeline.store.gateway import sending, settlement
from pipeline.store.gateway.completion import Completed, Continued, HandedOver, Lost, NextPhase, Repeated
from pipeline.store.gateway.settlement import Release, Snooze

if TYPE_CHECKING:
    from dramatiq import Message

    from pipeline.worker.liveness import Liveness

log = logs.get("pipeline.worker")

# Rows that another transaction holds.
ASK_AGAIN = 0.5
LOST_CONNECTION = Snooze("lost_connection", 0.0, None, asked=False)
# RabbitMQ wants its messages acknowledged in time, and counts from the first phase on.
LONGEST_CARRIED = 60.0


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
        unheard: list[Attempt] = []
        for attempt, completed in batch:
            match completed:
                case Lost():
                    self._discard(attempt)
                    continue
                case Repeated():
                    unheard.append(attempt)
                    continue
                case HandedOver(NextPhase() as phase):
                    outgoing.append(next_message(attempt, phase))
            count(f"{attempt.spec.queue}.succeeded")
        if unheard:
            threading.Thread(target=self.recall, args=(unheard,), daemon=True).start()
        if outgoing:
            self._outbound.publish(outgoing, self._published)
        self._inbound.ack(attempt.delivery for attempt, completed in batch if not isinstance(completed, Continued))
        for attempt, completed in batch:
            if isinstance(completed, Continued):
                self._continuing.begin(attempt, completed)
            self._let_go(attempt)

    def _discard(self, attempt: Attempt) -> None:
        count("discarded")
        log.warning("result discarded: the claim was lost", job=str(attempt.job_id), fence=attempt.fence)
        self._liveness.lost(attempt)

    def _let_go(self, attempt: Attempt) -> None:
        """Committed: no heartbeat any more. Attempt and message name each other, and would wait for the collector."""
        self._liveness.release(attempt)
        attempt.delivery.attempt = attempt.job = None

    def recall(self, claims: list[Attempt]) -> None:
        """They committed, but the answer was lost with the connection, and with it our turn to publish or to go on."""
        jobs, fences = [claim.job_id for claim in claims], [claim.fence for claim in claims]
        marked = database.insist(lambda connection: sending.marked_as_sent(connection, self._worker_no, jobs))
        held = database.insist(lambda connection: sending.continued(connection, self._worker_no, jobs, fences))
        for job_id, fence in held:
            wait = partial(settlement.settle, job_id=job_id, fence=fence, transition=LOST_CONNECTION)
            while database.insist(wait) == "locked":
                sleep(ASK_AGAIN)
        _send_again([one.job_id for one in marked], [one.send for one in marked])

    def _published(self, failed: list[Outgoing]) -> None:
        # Runs in the AMQP thread, which must not wait for PostgreSQL.
        if failed:
            threading.Thread(target=self._unsend, args=(failed,), daemon=True).start()

    def _unsend(self, messages: list[Outgoing]) -> None:
        count("unconfirmed", len(messages))
        _send_again([message.job_id for message in messages], [message.send for message in messages])


def _send_again(jobs: list[UUID], sends: list[int]) -> None:
    """Under new numbers, by the relay. A row that another transaction holds is asked for again."""
    while jobs:
        database.insist(lambda connection: sending.unsend_published(connection, jobs, sends))
        if not database.insist(lambda connection: sending.is_any_still_sent(connection, jobs, sends)):
            return
        sleep(ASK_AGAIN)


def next_message(attempt: Attempt, phase: NextPhase) -> Outgoing:
    """The next phase's message, made from what this attempt already holds: no query."""
    message = _message(attempt, phase, attempt.body)
    return Outgoing(phase.queue, encode(message), attempt.priority, attempt.job_id, phase.send, phase.sent_at)


def _message(attempt: Attempt, phase: NextPhase, body: dict[str, Any]) -> Message[Any]:
    return compose(
        job_id=attempt.job_id,
        queue=phase.queue,
        actor=phase.actor,
        send=phase.send,
        attempt=1,
        max_attempts=phase.max_attempts,
        sent_at=phase.sent_at,
        body=body,
        trace_id=attempt.trace_id,
        span_id=attempt.span_id,
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

    def begin(self, ended: Attempt, continued: Continued) -> None:
        """The job is ours again, in its next phase: a thread takes it up as if a message had brought it."""
        delivery = ended.delivery.continuing(_message(ended, continued.phase, continued.body))
        attempt = delivery.attempt = Attempt(
            spec=self._following[ended.spec.queue],
            job_id=ended.job_id,
            fence=continued.fence,
            attempts=0,
            max_attempts=continued.phase.max_attempts,
            crashes=0,
            isolated=False,
            priority=ended.priority,
            body=continued.body,
            results=continued.results,
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
                    verdict = settlement.settle(connection, attempt.job_id, attempt.fence, Release())
                if verdict != "locked":
                    self._liveness.release(attempt)
        except SQLAlchemyError as error:
            log.warning("PostgreSQL is away; jobs are left to redelivery", jobs=len(unbegun), error=str(error))
