"""The relay: sends what waits, through the gate, with publisher confirms. One of all processes leads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from time import monotonic

from pipeline.broker.outbound import Outbound, Outgoing
from pipeline.journey.message import compose, encode
from pipeline.observe import logs
from pipeline.observe.instruments import count
from pipeline.store.engine import Wire
from pipeline.store.gateway import sending
from pipeline.store.gateway.sending import Admitted
from pipeline.store.leader import LeaderLock, LeaderThread, told

log = logs.get("pipeline.relay")

BATCH = 100
FASTEST_LOOK, SLOWEST_LOOK = 0.1, 0.5
# Between two looks at transactions that may commit without waking the relay.
NAP = 0.03
# A leader that does not reach RabbitMQ for so long lets another lead; the first tries to reconnect take less.
WITHOUT_BROKER = 2.0
# How long a queue that refuses messages is left alone, at first and at most.
FIRST, LONGEST = 0.2, 5.0


class Relay:
    """Woken by NOTIFY, by due times and by its backstop. Every process has one; the leader's works.

    Only a process that reaches RabbitMQ leads. ``on_reconnect`` is called when the leader has a new connection to it.
    """

    def __init__(
        self,
        dsn: str,
        worker_no: int,
        outbound: Outbound,
        *,
        backstop: float,
        on_reconnect: Callable[[], None] = lambda: None,
    ) -> None:
        self._worker_no = worker_no
        self._outbound = outbound
        self._backstop = backstop
        self._on_reconnect = on_reconnect
        self._reconnects = 0
        self._pause = FASTEST_LOOK
        self._refusals = Refusals()
        self._unsent: list[Outgoing] = []
        self._moved = False
        self._asleep = False
        self._horizon = self._unaware = 0
        self._leader = LeaderThread(
            dsn,
            "relay",
            "relay_leader",
            worker_no,
            lead=self._lead,
            ready=lambda: outbound.ready.wait(WITHOUT_BROKER / 4),
        )

    @property
    def leading(self) -> bool:
        return self._leader.leading

    def start(self) -> None:
        self._leader.start()

    def stop(self) -> None:
        self._leader.stop()

    def _lead(self, lock: LeaderLock, connection: Wire) -> None:
        sending.listen(connection)
        # Another may have led since, or PostgreSQL was restarted: what this relay said about its sleep is not true now.
        self._asleep, self._horizon = False, 0
        reached = monotonic()
        while not self._leader.stopping:
            lock.check()
            if self._outbound.ready.is_set():
                reached = monotonic()
                self._meet_broker()
                if not self._send(connection):
                    self._rest(connection)
            elif monotonic() - reached > WITHOUT_BROKER:
                log.warning("this process does not reach RabbitMQ; another may lead the relay")
                return
            else:
                self._leader.waiter.wait(None, FASTEST_LOOK)

    def _send(self, connection: Wire) -> bool:
        """Admit a batch, publish it, wait once for all confirms. True if there may be more at once."""
        self._unsend(connection)
        resting = self._refusals.resting()
        admitted = sending.admit(connection, self._worker_no, BATCH, resting, asleep=self._asleep)
        if not admitted:
            # Looked at once more after everybody can know that the relay sleeps.
            look_again, self._asleep = not self._asleep, True
            return look_again
        self._moved, self._asleep, self._horizon = True, False, 0
        failed = self._publish([_outgoing(one) for one in admitted])
        count("relay.sent", len(admitted) - len(failed))
        if failed:
            log.warning("RabbitMQ did not confirm; sending again", messages=len(failed))
            self._unsent += failed
            self._unsend(connection)
        self._refusals.heard((one.queue for one in admitted), (message.queue for message in failed))
        return True

    def _unsend(self, connection: Wire) -> None:
        """What was not confirmed is sent under a new number; a row that another transaction holds, the next time."""
        if not self._unsent:
            return
        jobs, sends = [message.job_id for message in self._unsent], [message.send for message in self._unsent]
        sending.unsend(connection, jobs, sends)
        left = sending.still_sent(connection, jobs, sends)
        self._unsent = [message for message in self._unsent if message.job_id in left]

    def _publish(self, messages: list[Outgoing]) -> list[Outgoing]:
        confirmed = threading.Event()
        result: list[Outgoing] = []

        def done(failed: list[Outgoing]) -> None:
            result.extend(failed)
            confirmed.set()

        self._outbound.publish(messages, done)
        while not confirmed.wait(1.0):
            if self._leader.stopping:
                return messages  # unknown, so that they are sent again; a copy is void
        return result

    def _meet_broker(self) -> None:
        """After a reconnect, ask at once what RabbitMQ still has."""
        if self._outbound.reconnects != self._reconnects:
            self._reconnects = self._outbound.reconnects
            self._refusals.forget()
            self._on_reconnect()

    def _rest(self, connection: Wire) -> None:
        """Sleep until somebody has something to send, a time has come, or a queue may have capacity again."""
        if not self._horizon:
            # Whoever was about to commit when the relay fell asleep may not have known, and wakes nobody. Those that
            # have done so since the last look are found by one more; the others are waited for.
            self._horizon, self._unaware = sending.fall_asleep(connection)
            return
        seconds, waiting = sending.next_due(connection)
        pauses = [self._backstop, self._refusals.next_try()]
        if seconds is not None:
            pauses.append(max(seconds, 0.0) + 0.001)
        if waiting:
            pauses.append(self._next_look())
        if self._unsent:
            pauses.append(SLOWEST_LOOK)
        # What was said while PostgreSQL was being asked has been read already: there is nothing to wait for.
        if told(connection) or self._sleep(connection, min(pauses)):
            # Awake, also if there is nothing: whoever reads that now is looked for before the next sleep.
            self._asleep, self._horizon = False, 0

    def _sleep(self, connection: Wire, seconds: float) -> bool:
        """True if woken; False after so many seconds, or when somebody has committed who wakes nobody."""
        until = monotonic() + seconds
        while (left := until - monotonic()) > 0 and not self._leader.stopping:
            self._leader.waiter.wait(connection, min(left, NAP) if self._unaware else left)
            if told(connection):
                return True
            if self._unaware and (still := sending.open_before(connection, self._horizon)) < self._unaware:
                self._unaware = still
                return False
        return False

    def _next_look(self) -> float:
        """Soon after something moved, then ever less often."""
        self._pause = FASTEST_LOOK if self._moved else min(self._pause * 2, SLOWEST_LOOK)
        self._moved = False
        return self._pause


class Refusals:
    """A queue that refuses is left alone, longer every time: whatever is sent in vain is written twice."""

    def __init__(self) -> None:
        self._until: dict[str, tuple[float, float]] = {}

    def heard(self, sent: Iterable[str], refused: Iterable[str]) -> None:
        """What came of a batch: the queues in it, and those among them that did not take everything."""
        again = set(refused)
        for queue in set(sent) - again:
            self._until.pop(queue, None)
        for queue in again:
            _, last = self._until.get(queue, (0.0, FIRST / 2))
            pause = min(2 * last, LONGEST)
            self._until[queue] = (monotonic() + pause, pause)

    def resting(self) -> list[str]:
        """The queues to leave alone now."""
        now = monotonic()
        return [queue for queue, (until, _) in self._until.items() if until > now]

    def next_try(self) -> float:
        """Seconds until one of them may be tried again."""
        now = monotonic()
        return min((until - now for until, _ in self._until.values() if until > now), default=float("inf"))

    def forget(self) -> None:
        """A new connection: whatever was refused may be taken now."""
        self._until.clear()


def _outgoing(one: Admitted) -> Outgoing:
    message = compose(
        job_id=one.job_id,
        queue=one.queue,
        actor=one.actor,
        send=one.send,
        attempt=one.attempt,
        max_attempts=one.max_attempts,
        sent_at=one.sent_at,
        priority=one.priority,
        body=one.body,
        trace_id=one.trace_id,
        span_id=one.span_id,
    )
    return Outgoing(one.queue, encode(message), one.priority, one.job_id, one.send, one.sent_at)
