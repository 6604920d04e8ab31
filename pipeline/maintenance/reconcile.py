"""PostgreSQL's books against RabbitMQ's: what is marked as sent must be in a queue or in a worker's hands."""

from __future__ import annotations

from datetime import datetime

from pipeline.broker.counts import all_messages
from pipeline.maintenance.dead_letters import read_back
from pipeline.maintenance.passive import Asked, PassiveLooks, Verdict
from pipeline.maintenance.sweeps import Connection
from pipeline.observe import logs
from pipeline.observe.counters import count
from pipeline.settings import Settings

log = logs.get("pipeline.reconcile")

# RabbitMQ's statistics lag behind by up to five seconds, so that younger rows are not judged.
SETTLED = 5
DOUBT = 60
ANYTHING_OUT = "SELECT EXISTS (SELECT 1 FROM pipeline.outbox WHERE sent_at IS NOT NULL)"
EXPECTED = "SELECT queue, queued, now(), running FROM pipeline.expected_messages(%s) WHERE queued > 0"
RESEND = """
    SELECT pipeline.unsend(array_agg(j.id), array_agg(j.send), 'lost_in_broker')
    FROM pipeline.outbox o JOIN pipeline.jobs j ON j.id = o.job_id JOIN pipeline.phases ph ON ph.id = o.phase_id
    WHERE ph.queue = %s AND o.sent_at IS NOT NULL AND o.sent_at <= %s AND pipeline.is_confirmed(o)"""
RESEND_UNCLAIMED = "SELECT pipeline.resend(%s, %s, %s)"
RESEND_OVERTAKEN = """SELECT pipeline.unsend(array_agg(job_id), array_agg(send), 'lost_in_broker')
    FROM pipeline.overtaken(%s, %s) WHERE queue = %s"""


class Reconciler:
    """Sends again what RabbitMQ no longer has, and looks twice before it does.

    With the management API all messages can be counted, those in the workers' hands too. Without it, or while it does
    not answer, ready messages are counted and the workers say what they hold (see ``passive``). A new number voids the
    old message, and a row that was sent again is judged anew: copies do not pile up.
    """

    def __init__(self, config: Settings) -> None:
        self._config = config
        self._passive = Passive(config)
        self._counted = Counted(config)

    def check(self, connection: Connection) -> bool:
        """True if a queue looks short: it is judged at another look, a second or two later.

        It asks RabbitMQ, perhaps for many seconds: not for the thread that sends.
        """
        row = connection.execute(ANYTHING_OUT).fetchone()
        if not (row and row[0]) and not self._passive.under_way:
            return False
        management = self._config.rabbitmq_management_url
        if management is not None and not self._passive.under_way:
            found = all_messages(management.get_secret_value(), self._config.rabbitmq_url.get_secret_value())
            if found is not None:
                return self._counted.check(connection, found)
            log.warning("RabbitMQ's management API does not answer; lost messages are looked for without it")
        return self._passive.check(connection)


class Counted:
    """By the number of all messages.

    Fewer messages than sent rows: some are lost for certain, the second look a good second later decides. A
    running job's message is unacknowledged and counted too, so that a smaller loss can hide behind it: if there
    are fewer than sent and running rows together for a whole minute, they are sent again as well. A message too
    many is void by its old number; none stays lost.
    """

    def __init__(self, config: Settings) -> None:
        self._config = config
        self._short: dict[str, datetime] = {}

    def check(self, connection: Connection, found: dict[str, int]) -> bool:
        """True if a queue has fewer messages than it should and wants a second look."""
        short: dict[str, datetime] = {}
        for queue, sent, moment, running in connection.execute(EXPECTED, (SETTLED,)).fetchall():
            has = found.get(queue, 0)
            if has >= sent + running:
                continue
            since: datetime = self._short.get(queue) or moment
            short[queue] = since
            if (moment - since).total_seconds() >= (1 if has < sent else DOUBT):
                _resend(connection, self._config, queue, RESEND, (queue, since))
                del short[queue]
        self._short = short
        return bool(short)


class Passive:
    """By ready messages and the workers' reports, in steps: a look lasts until every worker has been heard."""

    def __init__(self, config: Settings) -> None:
        self._config = config
        self._looks = PassiveLooks(config)
        self._asked: Asked | None = None
        self._first: Verdict | None = None

    @property
    def under_way(self) -> bool:
        return self._asked is not None

    def check(self, connection: Connection) -> bool:
        """True while a look is under way."""
        if self._asked is not None and self._looks.too_late(connection, self._asked):
            self._asked = self._first = None
        if self._asked is None:
            return self._ask(connection)
        verdict = self._looks.judge(connection, self._asked)
        if verdict is None:
            return True
        self._asked = None
        self._resend_overtaken(connection, verdict)
        first, self._first = self._first, None
        if first is not None:
            self._resend(connection, first, verdict)
        elif verdict.short:
            self._first = verdict
            return self._ask(connection)
        return False

    def _ask(self, connection: Connection) -> bool:
        asked = self._looks.ask(connection)
        if asked is not None and asked.ready:
            self._asked = asked
        else:
            self._first = None
        return self.under_way

    def _resend(self, connection: Connection, first: Verdict, second: Verdict) -> None:
        for queue in first.short.keys() & second.short.keys():
            values = (queue, first.before, second.short[queue].found)
            _resend(connection, self._config, queue, RESEND_UNCLAIMED, values)

    def _resend_overtaken(self, connection: Connection, verdict: Verdict) -> None:
        for queue, seconds in verdict.overtaken.items():
            _resend(connection, self._config, queue, RESEND_OVERTAKEN, (verdict.before, seconds, queue))


def _resend(connection: Connection, config: Settings, queue: str, statement: str, values: tuple[object, ...]) -> None:
    if config.queue_type == "quorum":
        # What is missing may have been given up after too many deliveries: sending it again would go on for ever.
        read_back(connection, config.rabbitmq_url.get_secret_value(), queue)
    row = connection.execute(statement, values).fetchone()
    again = (row[0] if row else 0) or 0
    if again:
        count("resent", again)
        log.warning("RabbitMQ lost messages; they are sent again", queue=queue, messages=again)
