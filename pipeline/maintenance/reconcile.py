"""Compares PostgreSQL with RabbitMQ: what is marked as sent must be in a queue or held by a worker."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial

from pipeline.broker.counts import all_messages
from pipeline.maintenance.dead_letters import read_back
from pipeline.maintenance.passive import Asked, PassiveLooks, Verdict
from pipeline.observe import logs
from pipeline.observe.instruments import count
from pipeline.settings import Settings
from pipeline.store.engine import Wire
from pipeline.store.gateway import reconciliation

log = logs.get("pipeline.reconcile")

# RabbitMQ's statistics lag behind by up to five seconds, so that younger rows are not judged.
SETTLED = 5
DOUBT = 60


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

    def check(self, connection: Wire) -> bool:
        """True if a queue looks short: it is judged at another look, a second or two later.

        It asks RabbitMQ, perhaps for many seconds: not for the thread that sends.
        """
        if not reconciliation.anything_sent(connection) and not self._passive.under_way:
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

    def check(self, connection: Wire, found: dict[str, int]) -> bool:
        """True if a queue has fewer messages than it should and wants a second look."""
        short: dict[str, datetime] = {}
        for queue, sent, running, _, now in reconciliation.expected_messages(connection, SETTLED):
            has = found.get(queue, 0)
            if has >= sent + running:
                continue
            since = short[queue] = self._short.get(queue) or now
            if (now - since).total_seconds() >= (1 if has < sent else DOUBT):
                lost = partial(reconciliation.resend, queue=queue, before=since, reason="lost_in_broker")
                _resend(connection, self._config, queue, lost)
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

    def check(self, connection: Wire) -> bool:
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

    def _ask(self, connection: Wire) -> bool:
        asked = self._looks.ask(connection)
        if asked is not None and asked.ready:
            self._asked = asked
        else:
            self._first = None
        return self.under_way

    def _resend(self, connection: Wire, first: Verdict, second: Verdict) -> None:
        for queue in first.short.keys() & second.short.keys():
            found = second.short[queue].found
            lost = partial(reconciliation.resend_unclaimed, queue=queue, before=first.before, found=found)
            _resend(connection, self._config, queue, lost)

    def _resend_overtaken(self, connection: Wire, verdict: Verdict) -> None:
        for queue, seconds in verdict.overtaken.items():
            lost = partial(reconciliation.resend_overtaken, queue=queue, before=verdict.before, seconds=seconds)
            _resend(connection, self._config, queue, lost)


def _resend(connection: Wire, config: Settings, queue: str, lost: Callable[[Wire], int]) -> None:
    """Send again what is ``lost``, and say how many."""
    if config.queue_type == "quorum":
        # What is missing may have been given up after too many deliveries: sending it again would go on for ever.
        read_back(connection, config.rabbitmq_url.get_secret_value(), queue)
    if again := lost(connection):
        count("resent", again)
        log.warning("RabbitMQ lost messages; they are sent again", queue=queue, messages=again)
