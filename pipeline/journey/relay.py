"""The relay: sends what waits, through the gate, with publisher confirms. One of all processes leads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic
from typing import Any

import psycopg
from psycopg.rows import TupleRow

from pipeline.broker.outbound import Outbound, Outgoing
from pipeline.journey.message import compose, encode
from pipeline.journey.refusals import Refusals
from pipeline.observe import logs
from pipeline.observe.counters import count
from pipeline.store.leader import LeaderLock, LeaderThread, told

log = logs.get("pipeline.relay")

BATCH = 100
FASTEST_LOOK, SLOWEST_LOOK = 0.1, 0.5
# A leader that does not reach RabbitMQ for so long lets another lead; the first tries to reconnect take less.
WITHOUT_BROKER = 2.0
ADMIT = """SELECT job_id, queue, actor, send, attempt, max_attempts, priority, body, trace_id, span_id, sent_at
    FROM pipeline.admit(%s, %s, %s)"""
UNSEND = "SELECT pipeline.unsend(%s::uuid[], %s::bigint[], 'unconfirmed')"
STILL_SENT = "SELECT pipeline.still_sent(%s::uuid[], %s::bigint[])"


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

    def _lead(self, lock: LeaderLock, connection: psycopg.Connection[TupleRow]) -> None:
        connection.execute("LISTEN pipeline_relay")
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

    def _send(self, connection: psycopg.Connection[TupleRow]) -> bool:
        """Admit a batch, publish it, wait once for all confirms. True if there may be more at once."""
        self._unsend(connection)
        rows = connection.execute(ADMIT, (self._worker_no, BATCH, self._refusals.resting())).fetchall()
        if not rows:
            return False
        self._moved = True
        failed = self._publish([_outgoing(row) for row in rows])
        count("relay.sent", len(rows) - len(failed))
        if failed:
            log.warning("RabbitMQ did not confirm; sending again", messages=len(failed))
            self._unsent += failed
            self._unsend(connection)
        self._refusals.heard((row[1] for row in rows), (message.queue for message in failed))
        return len(rows) >= BATCH or bool(failed)

    def _unsend(self, connection: psycopg.Connection[TupleRow]) -> None:
        """What was not confirmed is sent under a new number; a row that another transaction holds, the next time."""
        if not self._unsent:
            return
        values = ([str(m.job_id) for m in self._unsent], [m.send for m in self._unsent])
        connection.execute(UNSEND, values)
        left = {row[0] for row in connection.execute(STILL_SENT, values).fetchall()}
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

    def _rest(self, connection: psycopg.Connection[TupleRow]) -> None:
        row = connection.execute("SELECT seconds, waiting FROM pipeline.next_due()").fetchone()
        seconds, waiting = row if row else (None, False)
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


def _outgoing(row: Any) -> Outgoing:
    job_id, queue, actor, send, attempt, max_attempts, priority, body, trace_id, span_id, sent_at = row
    message = compose(
        job_id=job_id,
        queue=queue,
        actor=actor,
        send=send,
        attempt=attempt,
        max_attempts=max_attempts,
        sent_at=sent_at,
        body=body,
        trace_id=trace_id,
        span_id=span_id,
    )
    return Outgoing(queue, encode(message), priority, job_id, send, sent_at)
