"""The leader's seat: one relay of all processes leads, and the next one takes over the moment it dies."""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg.rows import TupleRow

from db.engine import connect

TAKE = "LOCK TABLE relay_seat IN SHARE UPDATE EXCLUSIVE MODE"
# How long to wait before the leader is looked at.
PATIENCE = "60s"
# A leader that is frozen keeps its seat. Its heartbeat is stale then: end its session, the lock goes with it.
# Sessions are the server's: another database's leader may have the same number.
DEPOSE = """SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    JOIN workers w ON a.application_name = 'pipeline relay ' || w.no
    WHERE a.datname = current_database() AND l.locktype = 'relation' AND l.relation = 'relay_seat'::regclass
      AND l.granted AND w.heartbeat_at < now() - interval '60 seconds'"""


class Seat:
    """A connection that waits for the seat and then keeps it, in a transaction that does nothing else.

    It has no snapshot, while it waits and while it sits, so that it does not hold back vacuum. Should it be lost, two
    relays may work for a moment, which does no harm.
    """

    def __init__(self, connection: psycopg.Connection[TupleRow]) -> None:
        self._connection = connection

    def take(self) -> bool:
        """Wait for the lock itself, without polling. False after a while: a frozen leader was looked for.

        The first look makes the session know the view: finding it in the catalogue takes a snapshot, too.
        """
        if self._try(f"{TAKE} NOWAIT") or self._try(TAKE):
            return True
        self._connection.execute(DEPOSE)
        return False

    def _try(self, lock: str) -> bool:
        self._connection.execute("BEGIN")
        try:
            self._connection.execute(lock)
        except psycopg.errors.LockNotAvailable:
            self._connection.execute("ROLLBACK")
            return False
        return True

    def check(self) -> None:
        """Raise if the seat is lost: the server hung up."""
        wire = self._connection.pgconn
        while wire.status == psycopg.pq.ConnStatus.OK and select.select([wire.socket], [], [], 0)[0]:
            wire.consume_input()
        if wire.status != psycopg.pq.ConnStatus.OK:
            raise psycopg.OperationalError("the leader's seat is lost")


@contextmanager
def waiting_for_seat(dsn: str, worker_no: int) -> Iterator[Seat]:
    """A seat to take; given up at the end of the block."""
    with connect(dsn, f"relay {worker_no}") as connection:
        connection.execute(f"SET lock_timeout = '{PATIENCE}'")
        connection.execute("SET idle_in_transaction_session_timeout = 0")
        yield Seat(connection)
