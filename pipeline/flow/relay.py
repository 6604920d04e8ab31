"""The relay: sends what waits, through the gate, with publisher confirms. One of all processes leads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic, sleep
from typing import Any

import psycopg
from psycopg.rows import TupleRow

from db.engine import connect
from pipeline.broker.outbound import Outbound, Outgoing
from pipeline.flow.leader import LeaderLock, waiting_to_lead
from pipeline.flow.message import compose, encode
from pipeline.flow.refusals import Refusals
from pipeline.flow.waiter import Waiter
from pipeline.observe import logs
from pipeline.observe.counters import count

log = logs.get("pipeline.relay")

BATCH = 100
FASTEST_LOOK, SLOWEST_LOOK = 0.1, 0.5
# A leader that does not reach RabbitMQ for so long lets another lead; the first tries to reconnect take less.
WITHOUT_BROKER = 2.0
ADMIT = """SELECT job_id, queue, actor, send, attempt, max_attempts, priority, body, trace_id, span_id, sent_at
    FROM pipeline_admit(%s, %s, %s)"""
UNSEND = "SELECT pipeline_unsend(%s::uuid[], %s::bigint[], 'unconfirmed')"
STILL_SENT = "SELECT pipeline_still_sent(%s::uuid[], %s::bigint[])"


class Relay:
    """Woken by NOTIFY, by due times and by its backstop. Every process has one; the leader's works.

    Only a process that reaches RabbitMQ leads. ``on_reconnect`` is called when the leader has a new connection to it.
    """

    def __init__(self, dsn: str, worker_no: int, outbound: Outbound, *, backstop: float,
                 on_reconnect: Callable[[], None] = lambda: None) -> None:  # fmt: skip
        self._dsn = dsn
        self._worker_no = worker_no
        self._outbound = outbound
        self._backstop = backstop
        self._on_reconnect = on_reconnect
        self._reconnects = 0
        self._pause = FASTEST_LOOK
        self._refusals = Refusals()
        self._unsent: list[Outgoing] = []
        self._moved = False
        self._waiter = Waiter()
        self._stopping = False
        self._lock: LeaderLock | None = None
        self.leading = False
        self._thread = threading.Thread(target=self._run, name="pipeline-relay", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        if self._lock is not None:
            self._lock.stop()
        self._waiter.wake()
        self._thread.join(5)

    def _run(self) -> None:
        while not self._stopping:
            try:
                if self._outbound.ready.wait(0.5):
                    self._take_part()
            except psycopg.Error as error:
                log.warning("the relay lost PostgreSQL; trying again", error=str(error).strip())
                self._waiter.wait(None, 0.3)
            except Exception:
                # A relay whose thread died would never lead again, and nobody would notice.
                log.exception("the relay failed; it starts anew")
                sleep(1)

    def _take_part(self) -> None:
        with waiting_to_lead(self._dsn, "relay", "relay_seat", self._worker_no) as lock:
            self._lock = lock
            while not self._stopping and not lock.take():
                pass
            try:
                with connect(self._dsn, "relay") as connection:
                    self.leading = True
                    self._lead(lock, connection)
            finally:
                self.leading = False

    def _lead(self, lock: LeaderLock, connection: psycopg.Connection[TupleRow]) -> None:
        connection.execute("LISTEN pipeline_relay")
        log.info("this process leads the relay")
        reached = monotonic()
        while not self._stopping:
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
                self._waiter.wait(None, FASTEST_LOOK)

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
            if self._stopping:
                return messages  # unknown, so that they are sent again; a copy is void
        return result

    def _meet_broker(self) -> None:
        """After a reconnect, ask at once what RabbitMQ still has."""
        if self._outbound.reconnects != self._reconnects:
            self._reconnects = self._outbound.reconnects
            self._refusals.forget()
            self._on_reconnect()

    def _rest(self, connection: psycopg.Connection[TupleRow]) -> None:
        row = connection.execute("SELECT seconds, waiting FROM pipeline_next_due()").fetchone()
        seconds, waiting = row if row else (None, False)
        pauses = [self._backstop, self._refusals.next_try(), self._next_look(waiting)]
        if seconds is not None:
            pauses.append(max(seconds, 0.0) + 0.001)
        if self._unsent:
            pauses.append(SLOWEST_LOOK)
        # What was said while PostgreSQL was being asked has been read already: there is nothing to wait for.
        if not _told(connection):
            self._waiter.wait(connection, min(pauses))
            _told(connection)

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


def _told(connection: psycopg.Connection[TupleRow]) -> bool:
    """Whether anybody has sent word since the last time."""
    return bool([notify.payload for notify in connection.notifies(timeout=0)])


def _outgoing(row: Any) -> Outgoing:
    job_id, queue, actor, send, attempt, max_attempts, priority, body, trace_id, span_id, sent_at = row
    message = compose(
        job_id=job_id, queue=queue, actor=actor, send=send, attempt=attempt, max_attempts=max_attempts,
        sent_at=sent_at, body=body, trace_id=trace_id, span_id=span_id,
    )  # fmt: skip
    return Outgoing(queue, encode(message), priority, job_id, send, sent_at)
