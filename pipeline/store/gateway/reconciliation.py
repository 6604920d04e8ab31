"""What PostgreSQL marked as sent, for comparison with what RabbitMQ has; and sending again what it lost."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pipeline.store.engine import Wire

ANYTHING_SENT = "SELECT EXISTS (SELECT 1 FROM pipeline.outbox WHERE sent_at IS NOT NULL)"
EXPECTED = "SELECT queue, queued, running, newest, now() FROM pipeline.expected_messages(%s) WHERE queued > 0"
UNCLAIMED = """SELECT ph.queue, count(*) FROM pipeline.unclaimed(%s) u JOIN pipeline.phases ph ON ph.id = u.phase_id
    GROUP BY ph.queue"""
OVERTAKEN = "SELECT queue, count(*) FROM pipeline.overtaken(%s, %s) GROUP BY queue"
UNSTARTED = "SELECT queue, held, unheard FROM pipeline.unstarted_messages(%s, %s)"
RESEND = """
    SELECT pipeline.unsend(array_agg(j.id), array_agg(j.send), %s)
    FROM pipeline.outbox o JOIN pipeline.jobs j ON j.id = o.job_id JOIN pipeline.phases ph ON ph.id = o.phase_id
    WHERE ph.queue = %s AND o.sent_at IS NOT NULL AND o.sent_at <= %s AND pipeline.is_confirmed(o)"""
RESEND_UNCLAIMED = "SELECT pipeline.resend(%s, %s, %s)"
RESEND_OVERTAKEN = """SELECT pipeline.unsend(array_agg(job_id), array_agg(send), 'lost_in_broker')
    FROM pipeline.overtaken(%s, %s) WHERE queue = %s"""


class Expected(NamedTuple):
    """How many messages a queue should have: sent ones, the ``newest`` at that moment, and those of running jobs."""

    queue: str
    queued: int
    running: int
    newest: datetime
    now: datetime


class Unstarted(NamedTuple):
    """Messages that living workers hold unstarted, and how many workers have not said so yet."""

    queue: str
    held: int
    unheard: int


def anything_sent(connection: Wire) -> bool:
    """Whether any message is out."""
    row = connection.execute(ANYTHING_SENT).fetchone()
    return bool(row and row[0])


def expected_messages(connection: Wire, older: float) -> list[Expected]:
    """Of messages that were sent more than so many seconds ago."""
    return [Expected._make(row) for row in connection.execute(EXPECTED, (older,)).fetchall()]


def unclaimed(connection: Wire, before: datetime) -> dict[str, int]:
    """By queue, the jobs whose message was sent before that and that nobody has claimed."""
    return dict(connection.execute(UNCLAIMED, (before,)).fetchall())


def overtaken(connection: Wire, before: datetime, seconds: int) -> dict[str, int]:
    """By queue, those among them that later messages were claimed before, by so many seconds."""
    return dict(connection.execute(OVERTAKEN, (before, seconds)).fetchall())


def unstarted_messages(connection: Wire, at: datetime, noticed: timedelta) -> list[Unstarted]:
    """What workers held at that moment, by their later heartbeats."""
    return [Unstarted._make(row) for row in connection.execute(UNSTARTED, (at, noticed)).fetchall()]


def resend(connection: Wire, queue: str, before: datetime, reason: str) -> int:
    """Send again all confirmed messages of the queue that were sent before that. Returns how many."""
    return _count(connection, RESEND, (reason, queue, before))


def resend_unclaimed(connection: Wire, queue: str, before: datetime, found: int) -> int:
    """Send again what was sent before that and is unclaimed, of which ``found`` messages are still there."""
    return _count(connection, RESEND_UNCLAIMED, (queue, before, found))


def resend_overtaken(connection: Wire, queue: str, before: datetime, seconds: int) -> int:
    """Send again what was overtaken by so many seconds."""
    return _count(connection, RESEND_OVERTAKEN, (before, seconds, queue))


def _count(connection: Wire, statement: str, values: tuple[object, ...]) -> int:
    row = connection.execute(statement, values).fetchone()
    return (row[0] if row else 0) or 0
