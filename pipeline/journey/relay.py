"""The relay: sends what waits, through the gate, with publisher confirms. One of all processes leads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic

from pipeline.broker.outbound import Outbound, Outgoing
from pipeline.journey.message import compose, encode
from pipeline.journey.refusals import Refusals
from pipeline.observe import logs
from pipeline.observe.counters import count
from pipeline.store.engine import Wire
from pipeline.store.gateway import sending
from pipeline.store.gateway.sending import Admitted
from pipeline.store.leader import LeaderLock, LeaderThread, told

log = logs.get("pipeline.relay")

BATCH = 100
FASTEST_LOOK, SLOWEST_LOOK = 0.1, 0.5
# A leader that does not reach RabbitMQ for so long lets another lead; the first tries to reconnect take less.
WITHOUT_BROKER = 2.0


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

    def _reaches_broker(self) -> bool:
        return self._outbound.ready.wait(0.5)

    def _lead(self, lock: LeaderLock, connection: Wire) -> None:
        sending.listen(connection)
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
        admitted = sending.admit(connection, self._worker_no, BATCH, self._refusals.resting())
        if not admitted:
            return False
        self._moved = True
        failed = self._publish([_outgoing(one) for one in admitted])
        count("relay.sent", len(admitted) - len(failed))
        if failed:
            log.warning("RabbitMQ did not confirm; sending again", messages=len(failed))
            self._unsent += failed
            self._unsend(connection)
        self._refusals.heard((one.queue for one in admitted), (message.queue for message in failed))
        return len(admitted) >= BATCH or bool(failed)

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
        seconds, waiting = sending.next_due(connection)
        pauses = [self._backstop, self._refusals.next_try(), self._next_look(waiting)]
        if seconds is not None:
            pauses.append(max(seconds, 0.0) + 0.001)
        if self._unsent:
            pauses.append(SLOWEST_LOOK)
        # What was said while PostgreSQL was being asked has been read already: there is nothing to wait for.
        if not told(connection):
            self._leader.waiter.wait(connection, min(pauses))
            told(connection)

    def _next_look(self, waiting: bool) -> float:
        """Look again soon after something moved, twice a second while jobs wait at a full queue, else ever less often.

        A hand-over that finds others waiting does not notify, so that the look after the last send is also
        what finds a row that was committed beside it.
        """
        if self._moved:
            self._pause = FASTEST_LOOK
        elif self._pause < self._backstop or waiting:
            self._pause = min(self._pause * 2, SLOWEST_LOOK if waiting else self._backstop)
        self._moved = False
        return self._pause


def _outgoing(one: Admitted) -> Outgoing:
    message = compose(
        job_id=one.job_id,
        queue=one.queue,
        actor=one.actor,
        send=one.send,
        attempt=one.attempt,
        max_attempts=one.max_attempts,
        sent_at=one.sent_at,
        body=one.body,
        trace_id=one.trace_id,
        span_id=one.span_id,
    )
    return Outgoing(one.queue, encode(message), one.priority, one.job_id, one.send, one.sent_at)
