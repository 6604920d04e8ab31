"""The relay: sends what waits, through the gate, with publisher confirms. One of all processes leads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import monotonic

from pipeline.broker.outbound import Outbound, Outgoing
from pipeline.journey.message import compose, encode
from pipeline.observe import failpoints, logs
from pipeline.observe.instruments import count
from pipeline.store.engine import Wire
from pipeline.store.gateway import sending
from pipeline.store.gateway.sending import Admitted
from pipeline.store.leader import LeaderLock, LeaderThread, told

log = logs.get("pipeline.relay")

BATCH = 100
# A second look so soon after the last batch finds what came meanwhile; until then nobody needs to wake the relay.
LINGER = 0.002
# So many batches may wait for RabbitMQ's confirms while the next one is admitted.
PIPELINED = 4
FASTEST_LOOK, SLOWEST_LOOK = 0.1, 0.5
# Between two looks at transactions that may commit without waking the relay.
NAP = 0.03
# A leader that does not reach RabbitMQ for so long lets another lead; the first tries to reconnect take less.
WITHOUT_BROKER = 2.0
# How long a relay that stops waits for confirms.
LAST_CONFIRMS = 1.0
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
        self._out: deque[Batch] = deque()
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
                break
            else:
                self._leader.waiter.wait(None, FASTEST_LOOK)
        self._end(connection)

    def _send(self, connection: Wire) -> bool:
        """Admit a batch and publish it, while confirms of earlier ones are out. True if there may be more at once."""
        self._hear()
        self._unsend(connection)
        if len(self._out) == PIPELINED:
            self._leader.waiter.wait(None, SLOWEST_LOOK)
            return True
        sleeps = None if self._horizon else self._asleep
        admitted, horizon = sending.admit(connection, self._worker_no, BATCH, self._refusals.resting(), sleeps=sleeps)
        if not admitted:
            if horizon is not None:
                self._horizon, self._unaware = horizon
            # Looked at once more after everybody can know that the relay sleeps.
            look_again, self._asleep = not self._asleep, True
            return look_again
        self._moved, self._asleep, self._horizon = True, False, 0
        if failpoints.armed:
            failpoints.reach("relay.admitted")
        self._publish([_outgoing(one) for one in admitted])
        if len(admitted) < BATCH:
            self._leader.waiter.wait(None, LINGER)
        return True

    def _publish(self, messages: list[Outgoing]) -> None:
        batch = Batch(messages)
        self._out.append(batch)

        def done(failed: list[Outgoing]) -> None:
            if failpoints.armed:
                failed = _confirm_lost(messages, failed)
            batch.failed = failed
            # A relay that sleeps has nothing to do about messages that arrived.
            if failed or len(self._out) == PIPELINED:
                self._leader.waiter.wake()

        self._outbound.publish(messages, done)

    def _hear(self) -> None:
        """What RabbitMQ has answered since the last look."""
        answered = [batch for batch in self._out if batch.failed is not None]
        for batch in answered:
            self._out.remove(batch)
            failed = batch.failed or []
            count("relay.sent", len(batch.messages) - len(failed))
            if failed:
                log.warning("RabbitMQ did not confirm; sending again", messages=len(failed))
                self._unsent += failed
                if failpoints.armed:
                    failpoints.reach("relay.refused")
            self._refusals.heard((one.queue for one in batch.messages), (one.queue for one in failed))

    def _end(self, connection: Wire) -> None:
        """What RabbitMQ does not confirm soon is sent again by whoever leads next; a copy is void."""
        until = monotonic() + LAST_CONFIRMS
        while any(batch.failed is None for batch in self._out) and (left := until - monotonic()) > 0:
            self._leader.waiter.wait(None, min(left, FASTEST_LOOK))
        for batch in self._out:
            batch.failed = batch.messages if batch.failed is None else batch.failed
        self._hear()
        self._unsend(connection)

    def _unsend(self, connection: Wire) -> None:
        """What was not confirmed is sent under a new number; a row that another transaction holds, the next time."""
        if not self._unsent:
            return
        jobs, sends = [message.job_id for message in self._unsent], [message.send for message in self._unsent]
        sending.unsend(connection, jobs, sends)
        left = sending.still_sent(connection, jobs, sends)
        self._unsent = [message for message in self._unsent if message.job_id in left]

    def _meet_broker(self) -> None:
        """After a reconnect, ask at once what RabbitMQ still has."""
        if self._outbound.reconnects != self._reconnects:
            self._reconnects = self._outbound.reconnects
            self._refusals.forget()
            self._on_reconnect()

    def _rest(self, connection: Wire) -> None:
        """Sleep until somebody has something to send, a time has come, or a queue may have capacity again."""
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
            if failpoints.armed:
                failpoints.reach("relay.woken")
            # Awake, also if there is nothing: whoever reads that now is looked for before the next sleep.
            self._asleep, self._horizon = False, 0

    def _sleep(self, connection: Wire, seconds: float) -> bool:
        """True if woken; False after so many seconds, when somebody has committed who wakes nobody, or when RabbitMQ
        refused a message."""
        until = monotonic() + seconds
        while (left := until - monotonic()) > 0 and not self._leader.stopping:
            self._leader.waiter.wait(connection, min(left, NAP) if self._unaware else left)
            if told(connection):
                return True
            if any(batch.failed for batch in self._out):
                return False
            if self._unaware and (still := sending.open_before(connection, self._horizon)) < self._unaware:
                self._unaware = still
                return False
        # It says anew that it sleeps: a former leader that was frozen may have said since that it is awake.
        self._horizon = 0
        return False

    def _next_look(self) -> float:
        """Soon after something moved, then ever less often."""
        self._pause = FASTEST_LOOK if self._moved else min(self._pause * 2, SLOWEST_LOOK)
        self._moved = False
        return self._pause


def _confirm_lost(messages: list[Outgoing], failed: list[Outgoing]) -> list[Outgoing]:
    try:
        failpoints.reach("relay.published")
    except failpoints.AnswerLost:
        return messages
    return failed


@dataclass(eq=False, slots=True)
class Batch:
    """Messages that were published together; ``failed`` is None until RabbitMQ has answered for all of them."""

    messages: list[Outgoing]
    failed: list[Outgoing] | None = None


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
