"""After a commit: the job continues here with the message in hand, or its message is acknowledged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import monotonic, sleep
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError

from pipeline.broker.inbound import Inbound
from pipeline.declare.phase import PhaseSpec
from pipeline.journey.attempt import Attempt
from pipeline.journey.message import compose
from pipeline.observe import logs
from pipeline.observe.instruments import count
from pipeline.store import database
from pipeline.store.gateway import sending, settlement
from pipeline.store.gateway.settlement import Release, Snooze
from pipeline.store.group_commit import Completed, Continued, Lost

if TYPE_CHECKING:
    from pipeline.worker.liveness import Liveness

log = logs.get("pipeline.worker")

# Rows that another transaction holds.
ASK_AGAIN = 0.5
LOST_CONNECTION = Snooze("lost_connection", 0.0, None, asked=False)
# RabbitMQ wants a message acknowledged within half an hour, and counts from the job's first phase on.
CONSUMER_TIMEOUT = 1800.0
LONGEST_CARRIED = 0.8 * CONSUMER_TIMEOUT


class Advance:
    """A message carries its job as far as it can go: whoever ends a phase claims the next one in the same statement.

    If the worker dies, the message comes back, and its job is sent to the queue where it belongs. ``following``: the
    phase after each queue, of those that this process serves.
    """

    def __init__(
        self,
        inbound: Inbound,
        liveness: Liveness,
        worker_no: int,
        hold: Callable[[Attempt], None],
        following: Mapping[str, PhaseSpec],
    ) -> None:
        self._inbound = inbound
        self._liveness = liveness
        self._worker_no = worker_no
        self._hold = hold
        self._following = following

    def way(self, attempt: Attempt) -> str | None:
        """The queue that the job may continue in here. None if the thread or the message is needed for something else.

        Order between phases is the workflow's choice: a job that began goes first, unless one of a higher priority
        waits in this process (finish-first); or it goes only if nothing else waits (start-first).
        """
        following = self._following.get(attempt.spec.queue)
        if following is None or not attempt.delivery.live or not self._inbound.consumes(following.queue):
            return None
        if self._inbound.has_waiting(None if following.start_first else attempt.priority):
            return None
        carried = monotonic() - attempt.delivery.arrived
        return following.queue if carried + following.time_limit <= LONGEST_CARRIED else None

    def committed(self, batch: Sequence[tuple[Attempt, Completed]]) -> None:
        """Acknowledge what has done its part, and take up the rest."""
        for attempt, completed in batch:
            if isinstance(completed, Lost):
                count("discarded")
                log.warning("result discarded: the claim was lost", job=str(attempt.job_id), fence=attempt.fence)
                self._liveness.lost(attempt)
            else:
                count(f"{attempt.spec.queue}.succeeded")
        self._inbound.ack(attempt.delivery for attempt, completed in batch if not isinstance(completed, Continued))
        for attempt, completed in batch:
            if isinstance(completed, Continued):
                self._continue(attempt, completed)
            # Committed: no heartbeat any more. Attempt and message name each other, and would wait for the collector.
            self._liveness.release(attempt)
            attempt.delivery.attempt = attempt.job = None

    def _continue(self, ended: Attempt, continued: Continued) -> None:
        """The job is ours again, in its next phase: a thread takes it up as if a message had brought it."""
        spec = self._following[ended.spec.queue]
        message = compose(
            job_id=ended.job_id,
            queue=spec.queue,
            actor=spec.actor,
            send=continued.send,
            attempt=1,
            max_attempts=continued.max_attempts,
            sent_at=continued.at,
            priority=ended.priority,
            body=ended.body,
            trace_id=ended.trace_id,
            span_id=ended.span_id,
        )
        delivery = ended.delivery.continuing(message)
        delivery.attempt = ended.next(spec, delivery, fence=continued.fence, max_attempts=continued.max_attempts)
        count("continued")
        self._hold(delivery.attempt)
        self._inbound.begin_here(delivery)

    def recall(self, attempt: Attempt) -> None:
        """It committed, but the answer was lost, so that nobody continues with the job: it is sent again."""
        ask = partial(sending.continued, worker_no=self._worker_no, jobs=[attempt.job_id], fences=[attempt.fence])
        for job_id, fence in database.insist(ask):
            wait = partial(settlement.settle, job_id=job_id, fence=fence, transition=LOST_CONNECTION)
            while database.insist(wait) == "locked":
                sleep(ASK_AGAIN)

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
