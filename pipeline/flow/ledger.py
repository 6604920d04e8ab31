"""PostgreSQL's books against RabbitMQ's: what is marked as sent must be in a queue or in a worker's hands."""

from __future__ import annotations

from datetime import datetime

from pipeline.broker.counts import message_counts
from pipeline.flow.dead_letters import read_back
from pipeline.flow.sweeps import Connection
from pipeline.observe import logs
from pipeline.observe.counters import count
from pipeline.settings import Settings

log = logs.get("pipeline.ledger")


# RabbitMQ's statistics lag behind by up to five seconds, so that younger rows are not judged.
SETTLED = 5
DOUBT = 60
EXPECTED = "SELECT queue, queued, now(), running FROM pipeline_out(%s) WHERE queued > 0"
RESEND = """
    SELECT pipeline_unsend(array_agg(j.id), array_agg(j.send), 'lost_in_broker')
    FROM outbox o JOIN jobs j ON j.id = o.job_id JOIN phases ph ON ph.id = o.phase_id
    WHERE ph.queue = %s AND o.sent_at IS NOT NULL AND o.sent_at <= %s"""


class Ledger:
    """Looks twice before it sends again.

    Fewer messages than sent rows: some are lost for certain, the second look a good second later decides. A
    running job's message is unacknowledged and counted too, so that a smaller loss can hide behind it: if there
    are fewer than sent and running rows together for a whole minute, they are sent again as well. A message too
    many is void by its old number; none stays lost.
    """

    def __init__(self, config: Settings) -> None:
        self._config = config
        self._short: dict[str, datetime] = {}

    def check(self, connection: Connection) -> bool:
        """True if a queue has fewer messages than it should and wants a second look."""
        rows = connection.execute(EXPECTED, (SETTLED,)).fetchall()
        found = self._counts([row[0] for row in rows]) if rows else {}
        if found is None:
            return bool(rows)
        short: dict[str, datetime] = {}
        for queue, sent, moment, running in rows:
            has = found.get(queue, 0)
            if has >= sent + running:
                continue
            since: datetime = self._short.get(queue) or moment
            short[queue] = since
            if (moment - since).total_seconds() >= (1 if has < sent else DOUBT):
                self._resend(connection, queue, since)
                del short[queue]
        self._short = short
        return bool(short)

    def _counts(self, queues: list[str]) -> dict[str, int] | None:
        management = self._config.rabbitmq_management_url
        url = management.get_secret_value() if management else None
        return message_counts(url, self._config.rabbitmq_url.get_secret_value(), queues)

    def _resend(self, connection: Connection, queue: str, since: datetime) -> None:
        if self._config.queue_type == "quorum":
            # What is missing may have been given up after too many deliveries: sending it again would go on for ever.
            read_back(connection, self._config.rabbitmq_url.get_secret_value(), queue)
        row = connection.execute(RESEND, (queue, since)).fetchone()
        again = (row[0] if row else 0) or 0
        if again:
            count("resent", again)
            log.warning("RabbitMQ lost messages; they are sent again", queue=queue, messages=again)
