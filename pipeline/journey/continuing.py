"""Going on: when nothing waits, the worker that ends a phase does the next one, too, with the same message in hand.

The next phase is claimed in the transaction that ends the one before. Neither a message nor a commit of its own is
needed; if the worker dies, the message comes back and its job is sent to the queue where it belongs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from pipeline.broker.inbound import Inbound
from pipeline.declare.phase import PhaseSpec
from pipeline.journey.attempt import Claim
from pipeline.journey.message import compose
from pipeline.observe import logs
from pipeline.observe.counters import count
from pipeline.store import database
from pipeline.store.group_statement import Completed
from pipeline.worker.liveness import Liveness

log = logs.get("pipeline.worker")

# RabbitMQ wants its messages acknowledged in time, and counts from the first phase on.
LONGEST_CARRIED = 60.0
RELEASE = text("SELECT pipeline.snooze(:id, :fence, 'released', 'shutdown', 0, NULL)")


class Continuing:
    """``following``: the phase after each queue, of those that this process serves."""

    def __init__(
        self, inbound: Inbound, liveness: Liveness, hold: Callable[[Claim], None], following: Mapping[str, PhaseSpec]
    ) -> None:
        self._inbound = inbound
        self._liveness = liveness
        self._hold = hold
        self._following = following

    def way(self, claim: Claim) -> str | None:
        """The queue that the job may go on in here. None if others wait for the thread, or the message is not ours."""
        following = self._following.get(claim.spec.queue)
        if following is None or not self._inbound.has_time_for(following.queue):
            return None
        carried = monotonic() - claim.delivery.arrived
        return following.queue if claim.delivery.live and carried < LONGEST_CARRIED else None

    def begin(self, ended: Claim, completed: Completed) -> None:
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
        claim = delivery.claim = Claim(
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
        self._hold(claim)
        self._inbound.begin_here(delivery)

    def release(self) -> None:
        """At the end: what no thread has taken up waits for another worker. Tried once: its message comes back, too."""
        unbegun = [claim for claim in self._liveness.held() if claim.job is None and not claim.finished]
        try:
            for claim in unbegun:
                with database.engine().begin() as connection:
                    verdict = connection.execute(RELEASE, {"id": claim.job_id, "fence": claim.fence}).scalar_one()
                if verdict != "locked":
                    self._liveness.release(claim)
        except SQLAlchemyError as error:
            log.warning("PostgreSQL is away; jobs are left to redelivery", jobs=len(unbegun), error=str(error))
