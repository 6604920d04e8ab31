"""PostgreSQL's books against RabbitMQ's: what is marked as sent must be in a queue or in a worker's hands."""

from __future__ import annotations

from datetime import datetime

from pipeline.broker.counts import message_counts
from pipeline.flow.sweeps import Connection
from pipeline.observe import logs
from pipeline.observe.counters import count
from pipeline.settings import Settings

log = logs.get("pipeline.ledger")


EXPECTED = """
    SELECT ph.queue, count(o.job_id) AS sent, now() AS moment,
           (SELECT count(*) FROM jobs j WHERE j.status = 'running' AND j.workflow = ph.workflow AND j.phase = ph.phase)
    FROM phases ph JOIN outbox o ON o.phase_id = ph.id AND o.sent_at IS NOT NULL
    GROUP BY ph.id"""
RESEND = """
    SELECT pipeline_unsend(array_agg(j.id), array_agg(j.send), 'lost_in_broker')
    FROM outbox o JOIN jobs j ON j.id = o.job_id JOIN phases ph ON ph.id = o.phase_id
    WHERE ph.queue = %s AND o.sent_at IS NOT NULL AND o.sent_at <= %s"""


class Ledger:
    """Looks twice before it sends again; the second look is a good second after the first.

    A running job's message is unacknowledged, so RabbitMQ's count is compared with sent and running rows
    together. That may send a message too many, which its old number makes void; it never leaves one lost.
    """

    def __init__(self, config: Settings) -> None:
        self._config = config
        self._short: dict[str, datetime] = {}

    def check(self, connection: Connection) -> bool:
        """True if a queue has fewer messages than it should and wants a second look."""
        rows = connection.execute(EXPECTED).fetchall()
        found = self._counts([row[0] for row in rows]) if rows else {}
        if found is None:
            return bool(rows)
        short = {queue: moment for queue, sent, moment, running in rows if found.get(queue, 0) < sent + running}
        for queue, since in self._short.items():
            if queue in short and (short[queue] - since).total_seconds() >= 1:
                self._resend(connection, queue, since)
                del short[queue]
        self._short = {queue: self._short.get(queue, moment) for queue, moment in short.items()}
        return bool(self._short)

    def _counts(self, queues: list[str]) -> dict[str, int] | None:
        management = self._config.rabbitmq_management_url
        url = management.get_secret_value() if management else None
        return message_counts(url, self._config.rabbitmq_url.get_secret_value(), queues)

    def _resend(self, connection: Connection, queue: str, since: datetime) -> None:
        row = connection.execute(RESEND, (queue, since)).fetchone()
        again = (row[0] if row else 0) or 0
        if again:
            count("resent", again)
            log.warning("RabbitMQ lost messages; they are sent again", queue=queue, messages=again)
