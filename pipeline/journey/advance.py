"""After a commit: the message is acknowledged, and the next phase's is published or begun."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from time import sleep
from uuid import UUID

from sqlalchemy import text

from pipeline.broker.inbound import Inbound
from pipeline.broker.outbound import Outbound, Outgoing
from pipeline.journey.attempt import Claim
from pipeline.journey.continuing import Continuing
from pipeline.journey.message import compose, encode
from pipeline.observe import logs
from pipeline.observe.counters import count
from pipeline.store import database
from pipeline.store.group_statement import Completed
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

    def committed(self, batch: Sequence[tuple[Claim, Completed]]) -> None:
        """Publish what this worker must send, and acknowledge what has done its part: all but those that go on."""
        outgoing: list[Outgoing] = []
        unheard = [claim for claim, completed in batch if completed.verdict == "repeated"]
        for claim, completed in batch:
            if completed.verdict == "lost":
                count("discarded")
                log.warning("result discarded: the claim was lost", job=str(claim.job_id), fence=claim.fence)
                self._liveness.lost(claim)
            elif completed.verdict != "repeated":
                count(f"{claim.spec.queue}.succeeded")
            if completed.verdict != "continued" and completed.sent_at is not None:
                outgoing.append(next_message(claim, completed))
        if unheard:
            threading.Thread(target=self.recall, args=(unheard,), daemon=True).start()
        if outgoing:
            self._outbound.publish(outgoing, self._published)
        self._inbound.ack(claim.delivery for claim, completed in batch if completed.verdict != "continued")
        for claim, completed in batch:
            if completed.verdict == "continued":
                self._continuing.begin(claim, completed)
            self._let_go(claim)

    def _let_go(self, claim: Claim) -> None:
        """Committed: no heartbeat any more. Claim and message name each other, and would wait for the collector."""
        self._liveness.release(claim)
        claim.delivery.claim = claim.job = None

    def recall(self, claims: list[Claim]) -> None:
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


def next_message(claim: Claim, completed: Completed) -> Outgoing:
    """The next phase's message, made from what this attempt already holds: no query."""
    assert completed.queue and completed.actor and completed.send and completed.max_attempts and completed.sent_at
    message = compose(
        job_id=claim.job_id,
        queue=completed.queue,
        actor=completed.actor,
        send=completed.send,
        attempt=1,
        max_attempts=completed.max_attempts,
        sent_at=completed.sent_at,
        body=claim.body,
        trace_id=claim.trace_id,
        span_id=claim.span_id,
    )
    return Outgoing(completed.queue, encode(message), claim.priority, claim.job_id, completed.send, completed.sent_at)
