"""What RabbitMQ lost, found without its management API: by ready messages and what the workers say they hold."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from pipeline.broker.counts import ready_messages
from pipeline.settings import Settings
from pipeline.store.engine import Wire
from pipeline.store.gateway import reconciliation
from pipeline.store.gateway.session import clock

# Only messages that RabbitMQ has confirmed are judged; so young a one may not have found its place in the queue.
SETTLED = timedelta(seconds=1)
# How long RabbitMQ may take to notice that a worker is gone, and to give its messages to others.
NOTICED = timedelta(seconds=40)
# A queue delivers in order: what is overtaken by so much is in somebody's hands or lost. In hand it can be held up
# behind the messages of other queues, but not for ever.
OVERTAKEN, LONG_OVERTAKEN = 60, 180


@dataclass(frozen=True)
class Asked:
    """RabbitMQ's answer, for the queues where it has too few ready messages or delivers out of order."""

    before: datetime
    at: datetime
    ready: dict[str, int]


@dataclass(frozen=True)
class Short:
    """A queue with fewer messages than jobs wait for."""

    sent: int
    found: int


@dataclass(frozen=True)
class Verdict:
    """Of jobs whose messages were sent ``before``: the queues that are short, and those that lost what was overtaken.

    ``overtaken`` says by how many seconds.
    """

    before: datetime
    short: dict[str, Short]
    overtaken: dict[str, int]


class PassiveLooks:
    """One look: ask RabbitMQ, then hear every worker's next heartbeat, which says what it held when RabbitMQ was asked.

    Ready messages and those in hand together are all there were, at least: whatever is ready at that moment is
    counted, and whatever is in hand is reported, also if it was given back or begun since. Rows that were out before
    and are still unclaimed afterwards must be among them.
    """

    def __init__(self, config: Settings) -> None:
        self._url = config.rabbitmq_url.get_secret_value()
        self._beat = timedelta(seconds=config.heartbeat_seconds)

    def ask(self, connection: Wire) -> Asked | None:
        """None if RabbitMQ cannot be asked. Nothing in ``ready``: all is well."""
        before = clock(connection) - SETTLED
        rows = reconciliation.unclaimed(connection, before)
        if not rows:
            return Asked(before, before, {})
        ready = ready_messages(self._url, rows)
        if ready is None:
            return None
        at = clock(connection)
        passed = reconciliation.overtaken(connection, before, OVERTAKEN)
        rows = reconciliation.unclaimed(connection, before)
        return Asked(before, at, {q: ready[q] for q in ready if ready[q] < rows.get(q, 0) or q in passed})

    def judge(self, connection: Wire, asked: Asked) -> Verdict | None:
        """None while a worker that may hold messages has not been heard."""
        hands = reconciliation.unstarted_messages(connection, asked.at, NOTICED + self._beat)
        patient = clock(connection) < asked.at + 1.5 * self._beat + timedelta(seconds=1)
        if patient and any(unheard for queue, _, unheard in hands if queue in asked.ready):
            return None
        held = {queue: n for queue, n, _ in hands}
        found = {queue: n + held.get(queue, 0) for queue, n in asked.ready.items()}
        rows = reconciliation.unclaimed(connection, asked.before)
        short = {queue: Short(rows[queue], n) for queue, n in found.items() if n < rows.get(queue, 0)}
        return Verdict(asked.before, short, self._overtaken(connection, asked, held))

    def too_late(self, connection: Wire, asked: Asked) -> bool:
        """Whether the workers' reports no longer reach back to when RabbitMQ was asked."""
        return clock(connection) > asked.at + 2 * self._beat + timedelta(seconds=1)

    def _overtaken(self, connection: Wire, asked: Asked, held: dict[str, int]) -> dict[str, int]:
        """More than can be in hand, or for longer than they would be held up there."""
        some = reconciliation.overtaken(connection, asked.before, OVERTAKEN)
        lost = {queue: OVERTAKEN for queue, n in some.items() if queue in asked.ready and n > held.get(queue, 0)}
        late = reconciliation.overtaken(connection, asked.before, LONG_OVERTAKEN) if some else {}
        return {queue: LONG_OVERTAKEN for queue in late if queue in asked.ready} | lost
