"""The relay: sends what waits, through the gate, with publisher confirms. One leader, who has the seat."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic, sleep
from typing import Any

import psycopg
from psycopg.rows import TupleRow

from db.engine import connect
from pipeline.broker.outbound import Outbound, Outgoing
from pipeline.flow.message import compose, encode
from pipeline.flow.refusals import Refusals
from pipeline.flow.seat import Seat, waiting_for_seat
from pipeline.flow.waiter import Waiter
from pipeline.observe import logs
from pipeline.observe.counters import count

log = logs.get("pipeline.relay")

BATCH = 100
SECOND_LOOK = 2.0
FASTEST_LOOK, SLOWEST_LOOK = 0.1, 0.5
ADMIT = """SELECT job_id, queue, actor, send, attempt, max_attempts, priority, body, trace_id, span_id, sent_at
    FROM pipeline_admit(%s, %s, %s)"""


class Relay:
    """Woken by NOTIFY, by due times and by its backstop. Every process has one; the leader's works."""

    def __init__(self, dsn: str, worker_no: int, outbound: Outbound, *, backstop: float, health_every: float,
                 patience: float, check_health: Callable[[psycopg.Connection[TupleRow]], bool],
                 check_broker: Callable[[psycopg.Connection[TupleRow]], bool]) -> None:  # fmt: skip
        self._dsn = dsn
        self._worker_no = worker_no
        self._outbound = outbound
        self._backstop = backstop
        self._health_every = health_every
        self._patience = patience
        self._check_health = check_health
        self._check_broker = check_broker
        self._health_due = 0.0
        self._second_look = float("inf")
        self._reconnects = 0
        self._pause = FASTEST_LOOK
        self._refusals = Refusals()
        self._moved = False
        self._waiter = Waiter()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="pipeline-relay", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._waiter.wake()
        self._thread.join(5)

    def _run(self) -> None:
        while not self._stopping:
            try:
                with waiting_for_seat(self._dsn, self._worker_no) as seat:
                    while not self._stopping and not seat.take():
                        pass
                    with connect(self._dsn, "relay") as connection:
                        self._lead(seat, connection)
            except psycopg.Error as error:
                log.warning("the relay lost PostgreSQL; trying again", error=str(error).strip())
                sleep(0.3)
            except Exception:
                # A relay whose thread died would never lead again, and nobody would notice.
                log.exception("the relay failed; it starts anew")
                sleep(1)

    def _lead(self, seat: Seat, connection: psycopg.Connection[TupleRow]) -> None:
        connection.execute("LISTEN pipeline_relay")
        log.info("this process leads the relay")
        while not self._stopping:
            seat.check()
            if self._outbound.ready.is_set():
                self._meet_broker(connection)
                more = self._send(connection)
            else:
                more = False
            self._health(connection)
            if not more and not self._stopping:
                self._rest(connection)

    def _send(self, connection: psycopg.Connection[TupleRow]) -> bool:
        """Admit a batch, publish it, wait once for all confirms. True if there may be more at once."""
        rows = connection.execute(ADMIT, (self._worker_no, BATCH, self._refusals.resting())).fetchall()
        if not rows:
            return False
        self._moved = True
        failed = self._publish([_outgoing(row) for row in rows])
        count("relay.sent", len(rows) - len(failed))
        if failed:
            log.warning("RabbitMQ did not confirm; sending again", messages=len(failed))
            connection.execute("SELECT pipeline_unsend(%s::uuid[], %s::bigint[], 'unconfirmed')",
                               ([str(m.job_id) for m in failed], [m.send for m in failed]))  # fmt: skip
        self._refusals.heard((row[1] for row in rows), (message.queue for message in failed))
        return len(rows) >= BATCH or bool(failed)

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

    def _meet_broker(self, connection: psycopg.Connection[TupleRow]) -> None:
        """After a reconnect, ask at once what RabbitMQ still has."""
        if self._outbound.reconnects != self._reconnects:
            self._reconnects = self._outbound.reconnects
            self._refusals.forget()
            if self._check_broker(connection):
                self._second_look = min(self._second_look, monotonic() + SECOND_LOOK)

    def _health(self, connection: psycopg.Connection[TupleRow]) -> None:
        now = monotonic()
        if now < min(self._health_due, self._second_look):
            return
        if now >= self._health_due:
            self._health_due = now + self._health_every
        if now >= self._second_look:
            self._second_look = float("inf")
        if self._check_health(connection):
            self._second_look = min(self._second_look, monotonic() + SECOND_LOOK)

    def _rest(self, connection: psycopg.Connection[TupleRow]) -> None:
        row = connection.execute("SELECT seconds, waiting FROM pipeline_next_due()").fetchone()
        seconds, waiting = row if row else (None, False)
        pauses = [self._backstop, min(self._health_due, self._second_look) - monotonic(),
                  self._refusals.next_try()]  # fmt: skip
        if seconds is not None:
            pauses.append(max(seconds, 0.0) + 0.001)
        pauses.append(self._next_look(waiting))
        if not self._outbound.ready.is_set():
            pauses = [0.2]
        # What was said while PostgreSQL was being asked has been read already: there is nothing to wait for.
        if not self._told(connection):
            self._waiter.wait(connection, min(pauses))
            self._told(connection)

    def _told(self, connection: psycopg.Connection[TupleRow]) -> bool:
        """Whether anybody has sent word since the last time."""
        words = [notify.payload for notify in connection.notifies(timeout=0)]
        if "dead" in words:
            # Note it now, and act once the worker has been missing long enough.
            self._health_due = monotonic()
            self._second_look = monotonic() + self._patience + 0.1
        return bool(words)

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
        job_id=job_id, queue=queue, actor=actor, send=send, attempt=attempt, max_attempts=max_attempts,
        sent_at=sent_at, body=body, trace_id=trace_id, span_id=span_id,
    )  # fmt: skip
    return Outgoing(queue, encode(message), priority, job_id, send, sent_at)
